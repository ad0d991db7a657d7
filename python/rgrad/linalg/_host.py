"""What linear algebra in Python has in common."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from .. import _core
from .._core import Tensor

LinAlgError = _core.LinAlgError


def check_matrix(name: str, A: Any, which: str = "A", square: bool = False) -> Tensor:
    """Refuse other tensors than batches of matrices of floats or complex numbers.

    Under autocast smaller floats become float32.

    Raises:
        RuntimeError: It has fewer than two dimensions, is not square where it should be, or has another dtype than
            float32, float64, complex64 and complex128 (some functions: NotImplementedError, which is one).
    """
    return _core._linalg_matrices(name, A, which, square)


def widened(A: Tensor) -> Tensor:
    """The tensor as a function takes it that autocast runs in float32."""
    return _core._autocast_widened(A)[0] if _core._autocasts() else A


def without_autocast(A: Tensor) -> Any:
    """A context in which products inside of a function keep their dtype."""
    from ..amp.autocast_mode import autocast

    return autocast(A.device.type, enabled=False) if _core._autocasts() else nullcontext()


def eye_like(A: Tensor, n: int) -> Tensor:
    """The identity of n rows, of the dtype and device of ``A``."""
    return _core.eye(n, dtype=A.dtype, device=A.device)
