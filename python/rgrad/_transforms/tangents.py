"""What forward mode shares: at which levels tangents are computed, and which tangent fits which tensor."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor


@contextmanager
def tangents_of(level: int) -> Generator[None]:
    """A block in which operations compute tangents at ``level``, and at lower ones if they did outside."""
    before = _core._set_tangents_enabled(True)
    hidden = None if before else _core._hide_tangents(level, below=True)
    try:
        yield
    finally:
        if hidden is not None:
            _core._unhide_tangents(hidden)
        _core._set_tangents_enabled(before)


@contextmanager
def tangents_hidden(level: int) -> Generator[None]:
    """A block in which tensors of ``level`` seem to have no tangents. Those of other levels are seen."""
    before = _core._hide_tangents(level)
    try:
        yield
    finally:
        _core._unhide_tangents(before)


def is_differentiable(tensor: Tensor) -> bool:
    """Whether its elements are real or complex floating point numbers."""
    return tensor.is_floating_point() or tensor.dtype.is_complex


def check_real(api: str, flat: Iterable[Any], what: str) -> None:
    """Raise RuntimeError for a complex tensor among the leaves: a Jacobian would have two numbers for each entry."""
    for i, value in enumerate(flat):
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def fitting(tensor: Tensor, tangent: Tensor) -> Tensor:
    """The tangent; a real one of a complex tensor as a complex number."""
    if tensor.dtype.is_complex and tangent.is_floating_point():
        return tangent.to(tensor.dtype)
    return tangent


def check_dual(tensor: Tensor, tangent: Tensor) -> None:
    """Raise unless a tangent fits a tensor: ValueError for integers, RuntimeError for the shape."""
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual: expected a Tensor as {what}, but got {type(value).__name__}")
        if not is_differentiable(value):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
