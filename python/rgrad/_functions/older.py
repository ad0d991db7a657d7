"""Names of earlier versions of PyTorch that its present one still has: they warn, or say what to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._runtime.warned import warn_user

# ------------------------------------------------------------------------------------------------------- linear algebra


def _removed(name: str, instead: str) -> Never:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed: rgrad.{name} is in favor of {instead}"
    )


@operation("eig")
def eig(
    input: Tensor, eigenvectors: bool = False, *, e: Tensor | None = None, v: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Refuse: removed in favor of :func:`rgrad.linalg.eig`, which gives complex numbers.

    Args:
        input: A square matrix.
        eigenvectors: Whether to compute the vectors, too.
        e: Where the values were written.
        v: Where the vectors were written.

    Raises:
        RuntimeError: Always.
    """
    _removed("eig", "rgrad.linalg.eig(A), or rgrad.linalg.eigvals(A) without the vectors; both give complex numbers")


@operation("symeig")
def symeig(
    input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Refuse: removed in favor of :func:`rgrad.linalg.eigh`, which reads the lower triangle by default.

    Args:
        input: A symmetric matrix.
        eigenvectors: Whether to compute the vectors, too.
        upper: Whether the upper triangle is read.
        out: Where the results were written.

    Raises:
        RuntimeError: Always.
    """
    _removed("symeig", "rgrad.linalg.eigh(A, UPLO='U' if upper else 'L'), or rgrad.linalg.eigvalsh without the vectors")


@operation("lstsq")
def lstsq(input: Tensor, A: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Refuse: removed in favor of :func:`rgrad.linalg.lstsq`, whose arguments are in the other order.

    Args:
        input: The right sides.
        A: The matrix.
        out: Where the results were written.

    Raises:
        RuntimeError: Always.
    """
    _removed("lstsq", "rgrad.linalg.lstsq(A, input).solution, with the arguments reversed")


@operation("solve")
def solve(input: Tensor, A: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Refuse: removed in favor of :func:`rgrad.linalg.solve`, whose arguments are in the other order.

    Args:
        input: The right sides.
        A: The matrix.
        out: Where the results were written.

    Raises:
        RuntimeError: Always.
    """
    _removed("solve", "rgrad.linalg.solve(A, input), with the arguments reversed; rgrad.linalg.lu_factor gives the LU")


@operation("matrix_rank")
def matrix_rank(
    input: Tensor, tol: float | None = None, symmetric: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Refuse: removed in favor of :func:`rgrad.linalg.matrix_rank`.

    Args:
        input: A matrix.
        tol: Singular values up to this count as 0.
        symmetric: Whether the matrix is symmetric.
        out: Where the result was written.

    Raises:
        RuntimeError: Always.
    """
    _removed("matrix_rank", "rgrad.linalg.matrix_rank(A, tol=tol, hermitian=symmetric)")


# --------------------------------------------------------------------------------------------------- methods of tensors


@operation("resize_as")
def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """Give the elements with the shape of another tensor, with a warning; use :meth:`Tensor.reshape`.

    Args:
        input: A tensor.
        tensor: A tensor of as many elements.

    Raises:
        RuntimeError: The number of elements differs.
    """
    warn_user("non-inplace resize_as is deprecated")
    return input.reshape(tensor.shape)


@operation("reinforce")
def reinforce(input: Tensor, reward: Any) -> Tensor:
    """Refuse: removed in favor of :mod:`rgrad.distributions`.

    Args:
        input: A tensor of actions.
        reward: What they brought.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        "reinforce() was removed.\nUse rgrad.distributions instead: keep m = Categorical(probs) with the action "
        "m.sample(), and call (-m.log_prob(action) * reward).sum().backward()"
    )


# ------------------------------------------------------------------------------------------------------------- autocast


def _warn_of_device(old: str, new: str) -> None:
    warn_user(f"rgrad.{old} is deprecated. Please use rgrad.{new} instead.", DeprecationWarning)


_Settings = tuple[Callable[[], bool], Callable[[bool], None], Callable[[], Any], Callable[[Any], None]]


def _made_for(kind: str, name: str) -> _Settings:
    """The four functions of autocast on one kind of device. Of a kind that rgrad lacks, autocast is off."""
    absent = kind not in ("cpu", "cuda")
    kept: dict[str, Any] = {"dtype": _core.bfloat16 if kind == "xla" else _core.float16, "enabled": False}

    def is_enabled() -> bool:
        _warn_of_device(f"is_autocast_{name}_enabled()", f"is_autocast_enabled('{kind}')")
        return bool(kept["enabled"]) if absent else _core.is_autocast_enabled(kind)

    def set_enabled(enabled: bool) -> None:
        _warn_of_device(f"set_autocast_{name}_enabled(enabled)", f"set_autocast_enabled('{kind}', enabled)")
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
        if absent:
            kept["enabled"] = enabled
        else:
            _core.set_autocast_enabled(kind, enabled)

    def get_dtype() -> Any:
        _warn_of_device(f"get_autocast_{name}_dtype()", f"get_autocast_dtype('{kind}')")
        return kept["dtype"] if absent else _core.get_autocast_dtype(kind)

    def set_dtype(dtype: Any) -> None:
        _warn_of_device(f"set_autocast_{name}_dtype(dtype)", f"set_autocast_dtype('{kind}', dtype)")
        if not isinstance(dtype, _core.dtype):
            raise TypeError(f"dtype must be a rgrad.dtype (got {type(dtype).__name__})")
        if absent:
            kept["dtype"] = dtype
        else:
            _core.set_autocast_dtype(kind, dtype)

    made = {
        f"is_autocast_{name}_enabled": (is_enabled, "Tell whether autocast is on"),
        f"set_autocast_{name}_enabled": (set_enabled, "Switch autocast on or off"),
        f"get_autocast_{name}_dtype": (get_dtype, "Give the smaller dtype"),
        f"set_autocast_{name}_dtype": (set_dtype, "Set the smaller dtype"),
    }
    for old, (function, what) in made.items():
        function.__name__ = function.__qualname__ = old
        function.__doc__ = f"{what} on the device {kind!r}; older than the functions that take the device's name."
    return is_enabled, set_enabled, get_dtype, set_dtype


is_autocast_cpu_enabled, set_autocast_cpu_enabled, get_autocast_cpu_dtype, set_autocast_cpu_dtype = _made_for(
    "cpu", "cpu"
)
is_autocast_xla_enabled, set_autocast_xla_enabled, get_autocast_xla_dtype, set_autocast_xla_dtype = _made_for(
    "xla", "xla"
)
is_autocast_ipu_enabled, set_autocast_ipu_enabled, get_autocast_ipu_dtype, set_autocast_ipu_dtype = _made_for(
    "ipu", "ipu"
)
# Of CUDA, the functions without a device's name are the older ones.
*_, get_autocast_gpu_dtype, set_autocast_gpu_dtype = _made_for("cuda", "gpu")
