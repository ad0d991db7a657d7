"""The decorator of functions written in Python that treat their arguments as native ones do.

Native functions have their arguments checked where they are converted; here the annotations say what they may be.
"""

import numbers
import operator
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from .._core import Tensor
from .composed import check_out, into
from .overridable import overridable

F = TypeVar("F", bound=Callable[..., Any])


def _is_int(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_number(value: Any) -> bool:
    """Whether it is a tensor that stands for a number: without dimensions, and without a history that would be lost."""
    return isinstance(value, Tensor) and not value.dim() and not value.requires_grad


def _is_float(value: Any) -> bool:
    return isinstance(value, numbers.Real) or _is_number(value)


# What an annotation demands: the word of messages, and the test. Others, such as sequences, are left to the function.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("Tensor", lambda v: isinstance(v, Tensor)),
    "Tensor | float": ("Tensor or Number", lambda v: isinstance(v, (Tensor, numbers.Real))),
    "float | Tensor": ("Tensor or Number", lambda v: isinstance(v, (Tensor, numbers.Real))),
    "float | str": ("float or str", lambda v: isinstance(v, (numbers.Real, str)) or _is_number(v)),
    "bool": ("bool", lambda v: isinstance(v, bool)),
    "float": ("float", _is_float),
    "int": ("int", _is_int),
    "str": ("str", lambda v: isinstance(v, str)),
    "tuple[Tensor, ...]": ("tuple of Tensors", lambda v: isinstance(v, (tuple, list))),
}


def write_results(name: str, out: Any, made: Any, casts: bool) -> Any:
    """The results in the tensors of ``out``: one, or as many as there are results.

    Raises:
        RuntimeError: A dtype does not fit.
        TypeError: There are more or fewer, or other objects.
    """
    if isinstance(out, Tensor):
        return into(out, made, name, not casts)
    if len(out) != len(made):
        raise TypeError(f"{name}(): expected tuple of {len(made)} elements but got {len(out)}")
    for k, (o, m) in enumerate(zip(out, made, strict=True)):
        if not isinstance(o, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 'out', but got {type(o).__name__}")
        check_out(o, m, name, not casts)
    written = [into(o, m, name, not casts) for o, m in zip(out, made, strict=True)]
    return type(made)(*written) if hasattr(made, "_fields") else tuple(written)


def operation(
    name: str, *, casts: bool = False, native: Callable[..., Any] | None = None, takes: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Check a function's arguments, let their classes override it, and write what it gives to ``out``.

    Annotations are read as text (``from __future__ import annotations``): those of tensors, numbers, truth values and
    strings are checked, with None where they allow it. A tensor without dimensions that is given for a number is that
    number. The function itself never sees ``out``, whose annotation is
    ``Tensor | None`` or ``tuple[Tensor, ...] | None``.

    Args:
        name: The name in messages, such as ``linalg_inv``.
        casts: Convert results to the dtype of ``out`` if they may be cast to it, instead of refusing other dtypes.
        native: What the function calls, with ``takes``, if its other parameters have their defaults and its operands
            are plain tensors. It is called without a detour then, so it must check its other arguments itself.
        takes: See :func:`rgrad._operation.overridable.overridable`.

    Returns:
        The decorator.
    """

    def decorate(function: F) -> F:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        texts = {p: function.__annotations__[p] for p in names}
        kinds = {p: _KINDS[t.removesuffix(" | None")] for p, t in texts.items() if t.removesuffix(" | None") in _KINDS}
        tests = {p: test for p, (_, test) in kinds.items()}
        numeric = {p for p, (kind, _) in kinds.items() if kind in ("float", "float or str")}
        optional = {p for p, t in texts.items() if t.endswith(" | None")}
        operands = [p for p in names if texts[p] in ("Tensor", "Tensor | float")]
        any_operand = all(texts[p] == "Tensor | float" for p in operands)
        positional = names[: code.co_argcount]
        this = operands[0] if operands else None

        def refuse(parameter: str, value: Any, is_method: bool) -> NoReturn:
            # As in native methods, positions do not count `self`.
            places = [p for p in positional if not is_method or p != this]
            place = f" (position {places.index(parameter) + 1})" if parameter in places else ""
            kind = kinds[parameter][0]
            raise TypeError(f"{name}(): argument '{parameter}'{place} must be {kind}, not {type(value).__name__}")

        def checked(args: tuple[Any, ...], kwargs: dict[str, Any], is_method: bool) -> Any:
            given = {**dict(zip(positional, args, strict=False)), **kwargs}
            for parameter, value in given.items():
                test = tests.get(parameter)
                if test is not None and not test(value) and not (value is None and parameter in optional):
                    refuse(parameter, value, is_method)
                if parameter in numeric and isinstance(value, Tensor):
                    given[parameter] = value.item()
            if any_operand and not any(isinstance(given[p], Tensor) for p in operands):
                found = " and ".join(type(given[p]).__name__ for p in operands)
                raise TypeError(f"{name}(): one of the operands must be Tensor, but they are {found}")
            out = given.pop("out", None)
            made = function(**given)
            return made if out is None else write_results(name, out, made, casts)

        def as_function(*args: Any, **kwargs: Any) -> Any:
            return checked(args, kwargs, this == "self")

        def as_method(*args: Any, **kwargs: Any) -> Any:
            return checked(args, kwargs, True)

        made: Any = overridable(*operands, native=native, takes=takes, calls=as_function)(function)
        made._calls_as_method = as_method
        return cast(F, made)

    return decorate
