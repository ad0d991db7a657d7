"""What derivatives of functions are given: functions, points and vectors, checked and made ready."""

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

Func = Callable[..., Any]


def _tensors(value: Any, what: str, where: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether ``value`` is a tuple, and its tensors."""
    is_tuple = isinstance(value, tuple)
    entries = value if is_tuple else (value,)
    for i, entry in enumerate(entries):
        if not isinstance(entry, Tensor):
            which = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(entry)}."
            )
    return is_tuple, entries


def _prepared(inputs: tuple[Tensor, ...], create_graph: bool, need_graph: bool = True) -> tuple[Tensor, ...]:
    # Always new tensors: a tensor that the function reaches other than by its arguments is a constant.
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs
    )


def _called(func: Func, inputs: tuple[Tensor, ...], where: str) -> tuple[bool, tuple[Tensor, ...]]:
    return _tensors(func(*inputs), "outputs of the user-provided function", where)


def _require_history(outputs: tuple[Tensor, ...], strict: bool) -> None:
    if strict:
        for i, out in enumerate(outputs):
            if not out.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )


def _require_curvature(gradient: tuple[Tensor | None, ...], strict: bool) -> None:
    if strict:
        for i, g in enumerate(gradient):
            if g is not None and not g.requires_grad:
                raise RuntimeError(
                    "While computing the hessian, found that the jacobian of the user-provided function with respect "
                    f"to input {i} is independent of the input. This is not allowed in strict mode. You should ensure "
                    "that your function is twice differentiable and that the jacobian depends on the inputs (this "
                    "would be violated by a linear function for example)."
                )


def _check_vector(v: tuple[Tensor, ...], other: tuple[Tensor, ...], is_tuple: bool) -> None:
    if len(v) != len(other):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (one, like) in enumerate(zip(v, other, strict=True)):
        if one.shape != like.shape:
            entry = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {like.shape} but got {one.shape}.")


def _vector(v: Any, like: tuple[Tensor, ...], is_tuple: bool, where: str, needs: str) -> tuple[Tensor, ...]:
    """The given vector, detached and of fitting shapes; None is 1 where one number is asked for."""
    if v is not None:
        _, entries = _tensors(v, "v", where)
        fitted = tuple(x.detach() if not x.requires_grad else x for x in entries)
        _check_vector(fitted, like, is_tuple)
        return fitted
    if len(like) != 1 or like[0].numel() != 1:
        raise RuntimeError(f"The vector v can only be None if {needs}.")
    if like[0].dtype.is_complex:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {like[0].dtype}")
    return (_core.ones_like(like[0]).detach(),)
