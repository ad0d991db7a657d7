"""The decorator of Python functions that a ``__torch_function__`` may override.

Native functions have their own covers; users decorate with :func:`rgrad.overrides.wrap_torch_function`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from .._core import Tensor, _ask_torch_function, _has_torch_function_variadic

F = TypeVar("F", bound=Callable[..., Any])

# The decorated function has the parameters of the function itself, since `*args, **kwargs` would cost more than many
# an operation. `short` calls the native function where the function would do nothing else.
_TEMPLATE = """\
def {name}({parameters}):
    {old}
    {renamed}
    if {plain}:
        {short}
        asked = _has()
    else:
        asked = _has({all})
    if asked:
        return _ask(_own, ({all},), ({positional},), dict({named}))
    return _function({passed})
"""
_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
# A traceback shows the line of this file that the line of the function was made from.
_FIRST_LINE = 17


def _is_default(name: str, value: Any) -> str:
    if value is False:
        return f"{name} is False"
    return f"{name} is None" if value is None else f"{name} == {value!r}"


def cover(
    name: str,
    function: Callable[..., Any],
    parameters: Sequence[str],
    positional: int,
    default_of: Mapping[str, Any],
    tensors: Sequence[str],
    passed: str,
    short: str = "pass",
    native: Callable[..., Any] | None = None,
    numpy_names: bool = False,
    older: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function that asks the handlers of its arguments, and calls another one.

    A mode is asked about it, too; where ``short`` calls a native function, about that one instead.

    Args:
        name: Its name.
        function: What is called.
        parameters: The names of its parameters.
        positional: How many of them may be given by position; the others are given by name.
        default_of: Their defaults.
        tensors: The parameters whose types decide whether anyone is asked.
        passed: The arguments of the call, as text.
        short: What is done first where all ``tensors`` are plain, as text.
        native: What ``short`` knows as ``_native``.
        numpy_names: Take ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``, as native functions do.
        older: What is called with all arguments where there are more by position than there are parameters.

    Returns:
        The function, without documentation.
    """

    def renamed(parameter: str, value: Any, other: str, given: Any) -> Any:
        if value is not default_of[parameter]:
            raise TypeError(f"{name}() got both '{parameter}' and its other name '{other}'; give one of them")
        return given

    names, by_name = parameters[:positional], parameters[positional:]
    required = [p for p in names if p not in default_of]
    others = {p: other for p, other in _NUMPY_NAMES.items() if numpy_names and p in default_of}
    optional = {*default_of, *others.values()}
    first, last = (
        [f"{p}=None" if p in optional else p for p in some] for some in (names, (*by_name, *others.values()))
    )
    more = "*_more" if older else "*"
    text = _TEMPLATE.format(
        name=name,
        parameters=", ".join([*first, *([more, *last] if last else [])]),
        old=f"if _more: return _older({', '.join((*names, more, *(f'{p}={p}' for p in by_name)))})"
        if older
        else "pass",
        renamed="; ".join(f"{p} = {p} if {o} is None else _renamed('{p}', {p}, '{o}', {o})" for p, o in others.items())
        or "pass",
        plain=" and ".join(f"type({p}) is _Tensor" for p in tensors),
        short=short,
        all=", ".join(parameters),
        passed=passed,
        positional=", ".join(required),
        named=", ".join(f"{p}={p}" for p in parameters if p not in required),
    )
    scope: dict[str, Any] = {
        "_Tensor": Tensor,
        "_ask": _ask_torch_function,
        "_function": function,
        "_has": _has_torch_function_variadic,
        "_native": native,
        "_older": older,
        "_renamed": renamed,
    }
    exec(compile("\n" * (_FIRST_LINE - 1) + text, __file__, "exec"), scope)
    # Not by its name: a parameter may have the same one.
    made: Any = scope[name]
    scope["_own"] = made
    made.__defaults__ = tuple(default_of[p] for p in names if p in default_of)
    made.__kwdefaults__ = {p: default_of[p] for p in by_name if p in default_of} | dict.fromkeys(others.values())
    covered: Callable[..., Any] = made
    return covered


def overridable(
    *tensors: str,
    native: Callable[..., Any] | None = None,
    takes: tuple[str, ...] = (),
    calls: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Let the classes of a function's arguments override it.

    If the arguments named ``tensors`` are all plain tensors and no mode is on, the function runs. Else its arguments
    are searched for a ``__torch_function__``, which is given those without default by position and the others by name.

    Args:
        tensors: The parameters whose types decide. They have no default, or None.
        native: What the function calls, with ``takes``, if its other parameters have their defaults. It is called
            without a detour then.
        takes: The parameters that are passed to ``native``; one that ends in ``=`` is passed by name. None is not
            passed.
        calls: What is called in place of the function, with the same arguments.

    Returns:
        The decorator.
    """

    def decorate(function: F) -> F:
        code, defaults = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        required = names[: len(names) - len(defaults)]
        by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        default_of = dict(zip(names[len(required) :], defaults, strict=True)) | (function.__kwdefaults__ or {})
        short = "pass"
        if native is not None:
            passed = [name.removesuffix("=") for name in takes]
            conditions = [f"{name} is not None" for name in passed if name in default_of and default_of[name] is None]
            conditions += [_is_default(name, value) for name, value in default_of.items() if name not in passed]
            if native.__name__.startswith("_"):
                # Modes are asked about no private function, so about this one.
                conditions.insert(0, "not _has()")
            call = ", ".join(f"{name}{name[:-1]}" if name.endswith("=") else name for name in takes)
            short = (f"if {' and '.join(conditions)}: " if conditions else "") + f"return _native({call})"
        made: Any = cover(
            function.__name__,
            calls or function,
            (*names, *by_name),
            len(names),
            default_of,
            tensors,
            ", ".join((*names, *(f"{name}={name}" for name in by_name))),
            short,
            native,
            calls is not None,
        )
        made._tensors, made._calls = tensors, calls or function
        return cast(F, functools.update_wrapper(made, function))

    return decorate
