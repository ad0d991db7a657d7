"""What forward mode shares: at which levels tangents are computed, and which tangent fits which tensor."""

from collections.abc import Generator
from contextlib import contextmanager

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


def check_dual(tensor: Tensor, tangent: Tensor) -> None:
    """Raise unless a tangent fits a tensor: ValueError for integers, RuntimeError for the shape."""
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual: expected a Tensor as {what}, but got {type(value).__name__}")
        if not value.is_floating_point():
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
