"""Methods that are made of functions: with ``self`` and without ``out``, and those that write to their tensor."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from .._core import Tensor, _check_recorded_write, _from_old_form, _has_old_form, is_grad_enabled
from .composed import check_cast, refused_write
from .overridable import cover


def _form(
    name: str,
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    result: Any,
    tensors: Sequence[str],
    passed: str,
) -> Callable[..., Any]:
    """A function with these parameters that asks the handlers of its tensors, and calls another one."""
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    positional = len(parameters) - len(by_name)

    def older(*given: Any, **named: Any) -> Any:
        new = {p.name: named[p.name] for p in by_name if named[p.name] is not p.default}
        found = _from_old_form(name, parameters[0].name == "self", given, new)
        if found is None:
            raise TypeError(f"{name}() takes {positional} positional arguments but {len(given)} were given")
        return made(*found[0], **found[1])

    made: Any = cover(
        name,
        function,
        [p.name for p in parameters],
        positional,
        {p.name: p.default for p in parameters if p.default is not p.empty},
        tensors,
        passed,
        numpy_names=True,
        older=older if _has_old_form(name) else None,
    )
    made._tensors = tuple(tensors)
    made.__signature__ = inspect.Signature(parameters, return_annotation=result)
    if parameters[0].name == "self":
        made.__module__, made.__qualname__ = Tensor.__module__, f"Tensor.{name}"
    form: Callable[..., Any] = made
    return form


def _passed(parameters: Sequence[inspect.Parameter]) -> str:
    return ", ".join(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters)


def _without(doc: str, names: Sequence[str]) -> str:
    """A docstring without the entries of some parameters."""
    lines, dropping = [], False
    for line in inspect.cleandoc(doc).splitlines():
        entry = re.match(r" {4}(\w+): ", line)
        if entry or not line.startswith(" " * 8):
            dropping = entry is not None and entry[1] in names
        if not dropping:
            lines.append(line)
    return "\n".join(lines).replace("Args:\n\n", "")


def as_method(function: Any, name: str) -> Callable[..., Any]:
    """The method of a function: the first of its tensors becomes ``self``, and it has no ``out``.

    Args:
        function: An :func:`overridable` function or :func:`operation`.
        name: The name of the method.

    Returns:
        The method, with the documentation of the function but for those parameters.
    """
    signature = inspect.signature(function)
    first, *others = function._tensors
    given = [p for p in signature.parameters.values() if p.name != "out"]
    renamed = [p.replace(name="self") if p.name == first else p for p in given]
    this = next(p for p in renamed if p.name == "self")
    parameters = [this, *(p for p in renamed if p is not this)]
    made = _form(
        name,
        getattr(function, "_calls_as_method", function._calls),
        parameters,
        signature.return_annotation,
        ["self", *others],
        _passed(renamed),
    )
    made.__doc__ = _without(function.__doc__, (first, "out"))
    return made


def in_place(method: Any, name: str, first: str) -> Callable[..., Any]:
    """The form of a method that writes the result to its tensor.

    Args:
        method: A method, native or made by :func:`as_method`.
        name: The name of the form.
        first: The name of its first parameter: ``self``, or ``input`` for a function.

    Returns:
        The method or function.
    """

    def root(tensor: Tensor) -> Tensor:
        return tensor if tensor._base is None else tensor._base

    def write(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        # What the derivative reads of the memory that is written is a copy: it would change, and hold the graph.
        base = root(tensor)
        args = tuple(a.clone() if type(a) is Tensor and root(a) is base else a for a in args)
        kwargs = {k: a.clone() if type(a) is Tensor and root(a) is base else a for k, a in kwargs.items()}
        tensors = [x for x in (tensor, *args, *kwargs.values()) if isinstance(x, Tensor)]
        recorded = is_grad_enabled() and any(x.requires_grad for x in tensors)
        if recorded:
            # Before the tensor is read: of two errors, PyTorch raises that of the write.
            _check_recorded_write(tensor)
        made = method(tensor.clone() if recorded else tensor, *args, **kwargs)
        if made.shape != tensor.shape:
            raise RuntimeError(
                f"output with shape {list(tensor.shape)} doesn't match the broadcast shape {list(made.shape)}"
            )
        check_cast(made, tensor)
        if recorded and type(made.grad_fn).__name__ == "NotImplemented":
            written: Tensor = refused_write(name).apply(tensor, made)
            return written
        return tensor.copy_(made)

    signature = inspect.signature(method)
    this, *rest = signature.parameters.values()
    parameters = [this.replace(name=first, kind=this.POSITIONAL_OR_KEYWORD, annotation=Tensor), *rest]
    required = [p.name for p in parameters if p.default is p.empty]
    _, *others = getattr(method, "_tensors", required)
    made = _form(name, write, parameters, Tensor, [first, *others], _passed(parameters))
    plain = [p.replace(annotation=p.empty) for p in rest]
    made.__doc__ = f"Write the result of ``{name[:-1]}{inspect.Signature(plain)}`` to this tensor."
    return made
