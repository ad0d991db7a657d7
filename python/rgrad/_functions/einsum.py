"""Einstein summation and `tensordot`: sums of products along dimensions that are named."""

import operator
from typing import Any

from .. import _core
from .._core import Tensor

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _term(subscripts: Any, owner: str) -> str:
    """One list of subscripts as letters of an equation."""
    if isinstance(subscripts, str) or not hasattr(subscripts, "__iter__"):
        raise TypeError(
            f"einsum(): the subscripts of {owner} must be a list of integers and Ellipsis, not "
            f"{type(subscripts).__name__}; operands and their lists take turns: einsum(a, [0, 1], b, [1, 2], [0, 2])"
        )
    made = []
    for n in subscripts:
        if n is Ellipsis:
            made.append("...")
            continue
        try:
            at = operator.index(n)
        except TypeError as error:
            raise TypeError(
                f"einsum(): a subscript of {owner} must be an integer or Ellipsis, not {type(n).__name__}"
            ) from error
        if not 0 <= at < len(_LETTERS):
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, 52): got {at} for {owner}"
            )
        made.append(_LETTERS[at])
    return "".join(made)


def _equation(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of what is given as operands and lists in turn."""
    lists = args[1::2]
    equation = ",".join(_term(subscripts, f"operand {k}") for k, subscripts in enumerate(lists))
    if len(args) % 2 == 0:
        return equation, args[::2]
    return f"{equation}->{_term(args[-1], 'the output')}", args[:-1:2]


def einsum(*args: Any) -> Tensor:
    """Sum products of elements along dimensions that are named: Einstein's notation.

    Args:
        args: An equation and the operands, as in ``einsum("ij,jk->ik", a, b)``; or each operand and a list that names
            its dimensions by integers from 0 to 51, and perhaps a list for the result, as in
            ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. ``...`` in an equation or :data:`Ellipsis` in a list stands for
            the other dimensions, which are broadcast. Without a result it has the names that occur once, in the order
            of the alphabet (capital letters first) or of the integers.

    Returns:
        A tensor with the dimensions of the result. A dimension of size 1 is broadcast.

    Raises:
        RuntimeError: Names do not fit the dimensions, or sizes differ.
        TypeError: An operand is no tensor, or a list has something else than integers and ``Ellipsis``.
        ValueError: There is no operand, or an integer is out of range.

    Example:
        >>> a, b = rgrad.ones(2, 3), rgrad.ones(3, 4)
        >>> rgrad.einsum("ij,jk->ik", a, b).shape
        rgrad.Size([2, 4])
        >>> rgrad.einsum(a, [..., 0], b, [0, 1], [..., 1]).shape
        rgrad.Size([2, 4])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, operands = _equation(args) if isinstance(args[0], Tensor) else (args[0], args[1:])
    if _core._has_torch_function(operands):
        made: Tensor = _core._ask_torch_function(einsum, operands, (equation, *operands), {})
        return made
    return _core.einsum(equation, *operands)


def _contracted(given: Any, name: str, position: int) -> tuple[int, ...]:
    """The dimensions of one operand that are summed over."""
    said = f"tensordot(): argument '{name}' (position {position}) must be tuple of ints"
    if not isinstance(given, list | tuple):
        raise TypeError(f"{said}, not {type(given).__name__}; give dims=([1, 2], [0, 1]), or a number")
    for at, n in enumerate(given):
        if not hasattr(n, "__index__"):
            raise TypeError(f"{said}, but found element of type {type(n).__name__} at pos {at}")
    return tuple(operator.index(n) for n in given)


def _as_dims(dims: Any) -> int | tuple[tuple[int, ...], tuple[int, ...]]:
    """What is given as ``dims``: a number of dimensions, or those of each operand."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, list | tuple):
        first, second = dims
        return _contracted(first, "dims_self", 3), _contracted(second, "dims_other", 4)
    if not hasattr(dims, "__index__"):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    count = operator.index(dims)
    if count < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
    return count


def tensordot(a: Any, b: Any, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum products of elements over dimensions of two tensors.

    Args:
        a: A tensor.
        b: A tensor of the same dtype.
        dims: How many of the last dimensions of ``a`` are summed over together with as many of the first ones of
            ``b``; or two lists, with the dimensions of ``a`` and with those of ``b`` in the same order. A tensor of
            integers with one element or two rows is the same.
        out: Where the result is written.

    Returns:
        A tensor with the dimensions of ``a`` and then those of ``b`` that are not summed over.

    Raises:
        RuntimeError: The sizes of dimensions differ, or ``dims`` is negative, greater than a rank, or something else.
        TypeError: A list has something else than integers.
        ValueError: There are not two lists, or they differ in length.

    Example:
        >>> a, b = rgrad.ones(2, 3, 4), rgrad.ones(4, 3)
        >>> rgrad.tensordot(a, b, dims=[[1, 2], [1, 0]])
        tensor([12., 12.])
    """
    if _core._has_torch_function((a, b)):
        made: Tensor = _core._ask_torch_function(tensordot, (a, b), (a, b), {"dims": dims, "out": out})
        return made
    return _core.tensordot(a, b, _as_dims(dims), out=out)
