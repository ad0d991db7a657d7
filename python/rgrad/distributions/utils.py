"""What distributions share: parameters of one shape, probabilities and logits, properties that are computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from ..autograd.grad_mode import enable_grad

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

R = TypeVar("R")

euler_constant = 0.57721566490153286060


def _is_tensor_like(value: object) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Give parameters as tensors of one shape.

    Numbers get the dtype and device of the first tensor, or the default ones without any.

    Args:
        *values: Tensors, numbers, or objects with ``__torch_function__``.

    Returns:
        The tensors.

    Raises:
        ValueError: A parameter is none of these.

    Example:
        >>> rgrad.distributions.utils.broadcast_all(1.0, rgrad.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(_is_tensor_like(v) or isinstance(v, (int, float)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = _core.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    made = [v if _is_tensor_like(v) else _core.tensor(v, dtype=dtype, device=device) for v in values]
    return tuple(_core.broadcast_tensors(*made))


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Samples of the standard normal distribution."""
    return _core.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    return value.reshape((*value.shape[:-dim], -1)).sum(-1) if dim else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Compute probabilities of logits.

    Args:
        logits: Logarithms of probabilities up to a constant, along the last dimension.
        is_binary: They are logarithms of odds instead, each for itself.

    Returns:
        Probabilities of the same shape.

    Example:
        >>> rgrad.distributions.utils.logits_to_probs(rgrad.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1 by the epsilon of their dtype.

    Args:
        probs: Probabilities.

    Returns:
        Numbers from ``eps`` to ``1 - eps``.

    Example:
        >>> rgrad.distributions.utils.clamp_probs(rgrad.tensor([0.0, 0.5]))
        tensor([1.1921e-07, 5.0000e-01])
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Compute logits of probabilities, which :func:`clamp_probs` keeps away from 0 and 1.

    Args:
        probs: Probabilities.
        is_binary: Give logarithms of odds instead.

    Returns:
        Logarithms of the same shape.

    Example:
        >>> rgrad.distributions.utils.probs_to_logits(rgrad.tensor(0.5), is_binary=True)
        tensor(0.)
    """
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


class lazy_property(Generic[R]):
    """Decorate a method so that it is a property which is computed, with gradients, when it is first read.

    Args:
        wrapped: The method.

    Example:
        >>> class Circle:
        ...     @rgrad.distributions.utils.lazy_property
        ...     def area(self):
        ...         return 3.0
        >>> Circle().area
        3.0
    """

    def __init__(self, wrapped: Callable[[Any], R]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, obj_type: Any = None) -> Any: ...
    @overload
    def __get__(self, instance: object, obj_type: Any = None) -> R: ...
    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        # This is no data descriptor, so the object's own attribute is what the next reader finds.
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property[Any], property):
    """What a class gives: a property for tools that write documentation, a lazy one for the checks of parameters."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _triangle(n: int, diag: int, device: Any) -> Tensor:
    """The mask of the elements of an ``n`` by ``n`` matrix up to a diagonal."""
    return _core.ones(n, n, dtype=_core.bool, device=device).tril(diag)


def _triangle_size(n: int, diag: int) -> int:
    """How many elements such a mask selects."""
    below, beyond = max(n + min(diag, 0), 0), max(n - 1 - max(diag, 0), 0)
    return below * (below + 1) // 2 if diag < 0 else n * n - beyond * (beyond + 1) // 2


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Give the elements of lower triangles, row by row.

    Args:
        mat: Square matrices.
        diag: The last diagonal that is given.

    Returns:
        Vectors in the place of the matrices.

    Raises:
        ValueError: There is no such diagonal.

    Example:
        >>> rgrad.distributions.utils.tril_matrix_to_vec(rgrad.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _triangle(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Write vectors row by row into lower triangles of square matrices.

    Args:
        vec: Vectors along the last dimension.
        diag: The last diagonal that is written.

    Returns:
        Matrices in the place of the vectors.

    Raises:
        ValueError: There is no matrix with so many elements up to that diagonal.

    Example:
        >>> rgrad.distributions.utils.vec_to_tril_matrix(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor([[1., 0.],
                [2., 3.]])
    """
    n, count = max(-diag, 0), vec.shape[-1]
    while _triangle_size(n + 1, diag) <= count:
        n += 1
    if _triangle_size(n, diag) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    if not count:
        return vec.new_zeros((*vec.shape[:-1], n, n))
    # Each element reads its place in the vector, and those above the diagonal any: out of place, so that it is linear
    # under every transform.
    mask = _triangle(n, diag, vec.device).flatten()
    places = (mask.cumsum(0) - 1).clamp(min=0)
    made: Tensor = vec.index_select(-1, places).unflatten(-1, (n, n)).tril(diag)
    return made
