"""What is said of devices that there are not: errors in PyTorch's words, and modules that answer every query."""

import contextlib
import copy
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Never


def refuse(name: str) -> Never:
    """Say that there is none, with the words of PyTorch where no driver is found.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(NO_CUDA.text.format(name=name))


class Refused(NamedTuple):
    """An entry of a table for what cannot be without the device.

    Attributes:
        error: The type of its error.
        text: The message. ``{name}`` stands for the name of the function.
    """

    error: type[Exception]
    text: str


#: An entry for a function that gives a context without effect.
CONTEXT = object()
NO_CUDA = Refused(
    RuntimeError,
    "cuda.{name}: Found no NVIDIA driver on your system: there are no CUDA devices. rgrad runs on the CPU and, by "
    'WebGPU, on GPUs of any vendor. Ask cuda.is_available() first, or use the device "wgpu" (rgrad.wgpu)',
)


def _answer(name: str, answer: Any) -> Any:
    if answer is CONTEXT:
        return contextlib.nullcontext()
    if isinstance(answer, Refused):
        raise answer.error(answer.text.format(name=name))
    return copy.copy(answer)


def _doc(what: str, answer: Any) -> str:
    if isinstance(answer, Refused):
        return f"Refuse: {what} needs a device that is not there.\n\nRaises:\n    {answer.error.__name__}: Always."
    done = "Do nothing" if answer is None or answer is CONTEXT else f"Answer {answer!r}"
    return f"{done}: {what} has no device to ask."


def _made(module: str, text: str, answer: Any) -> Any:
    if text.startswith("class "):
        name = text.removeprefix("class ")

        def refusing(cls: type, *args: Any, **kwargs: Any) -> Any:
            return object.__new__(cls) if answer is None else _answer(name, answer)

        if answer is CONTEXT:
            return type(name, (contextlib.nullcontext,), {"__doc__": _doc(name, answer), "__module__": module})
        body = {"__new__": refusing, "__init__": lambda self, *args, **kwargs: None}
        return type(name, (), {**body, "__doc__": _doc(name, answer), "__module__": module})
    name = text.partition("(")[0]
    scope: dict[str, Any] = {"_answer": _answer, "_entry": answer}
    exec(f"def {text}: return _answer({name!r}, _entry)", scope)
    made = scope[name]
    made.__module__, made.__doc__ = module, _doc(name, answer)
    return made


def answering(
    module: str, table: Mapping[str, Any], modules: tuple[str, ...] = (), of: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module of a device that there is not.

    Args:
        module: Its name.
        table: Functions as their signatures, and ``class Name``, each with what it answers: a value, which callers get
            a copy of, :data:`CONTEXT`, or a :class:`Refused`.
        modules: Submodules that are attributes.
        of: Names that are those of another module, by the names of these modules.
    """
    texts = {text.removeprefix("class ").partition("(")[0]: text for text in table}
    owners = dict(of or {})

    def __getattr__(name: str) -> Any:
        if name in modules:
            return import_module(f"{module}.{name}")
        if name in owners:
            made = getattr(import_module(owners[name]), name)
        elif name in texts:
            made = _made(module, texts[name], table[texts[name]])
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(sys.modules[module], name, made)
        return made

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *modules, *texts, *owners})

    return __getattr__, __dir__
