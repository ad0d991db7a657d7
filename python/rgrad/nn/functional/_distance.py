"""Distances and similarities of vectors, and the bilinear form."""

import math

from ... import _core
from ..._core import Tensor
from ..._operation.composed import type_name
from ..._operation.overridable import overridable
from ...amp.autocast_mode import autocast

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def _at_least(norm: Tensor, eps: float) -> Tensor:
    """The norm, or `eps` where it is less; the gradient passes as if it were not replaced."""
    return _core.where(norm.detach() < eps, norm - norm.detach() + eps, norm)


@overridable("x1", "x2")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute the cosine of the angle between vectors along ``dim``.

    Args:
        x1: A tensor of any shape.
        x2: A tensor that is broadcast with it.
        dim: The dimension of the vectors.
        eps: The smallest norm that is divided by.

    Returns:
        A tensor of the common shape without ``dim``.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The common dtype is no float type.

    Example:
        >>> F.cosine_similarity(rgrad.tensor([[1.0, 0.0]]), rgrad.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """
    dtype = _core.result_type(x1, x2)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {type_name(dtype)}")
    x1, x2 = _core.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    norm1 = _at_least(x1.norm(2, dim, keepdim=True), eps)
    norm2 = _at_least(x2.norm(2, dim, keepdim=True), eps)
    return ((x1 / norm1) * (x2 / norm2)).sum(dim)


@overridable("x1", "x2")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Compute the norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        x1: Vectors of shape ``(N, D)`` or ``(D)``.
        x2: Vectors that are broadcast with them.
        p: The order of the norm.
        eps: Added to each difference.
        keepdim: Keep the last dimension, with size 1.

    Returns:
        A tensor of the common shape without the last dimension.

    Example:
        >>> F.pairwise_distance(rgrad.tensor([[3.0, 0.0]]), rgrad.tensor([[0.0, 4.0]]), keepdim=True)
        tensor([[5.]])
    """
    difference = x1 - x2 + eps
    if difference.dim() == 0:
        return difference.norm(p)
    return difference.norm(p, -1, keepdim)


def _norms(difference: Tensor, p: float) -> Tensor:
    """The norm of order `p` over the last dimension; its gradient at 0 is 0."""
    if difference.size(-1) == 0:
        return difference.sum(-1)
    if p == 0:
        # The number of elements that are not 0 is constant almost everywhere.
        return (difference != 0).sum(-1).to(difference.dtype) + _core.zeros_like(difference).mul(difference.sgn()).sum(
            -1
        )
    if math.isinf(p):
        return difference.abs().amax(-1)
    return difference.norm(p, -1)


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances by one product of matrices: no tensor has the differences."""
    squares = (x1 * x1).sum(-1).unsqueeze(-1) + (x2 * x2).sum(-1).unsqueeze(-2) - 2 * (x1 @ x2.mT)
    positive = squares.detach() > 0
    # The root is taken of ones where the distance is 0, to keep inf out of derivatives.
    return _core.where(positive, _core.where(positive, squares, 1.0).sqrt(), 0.0)


@overridable("x1", "x2")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Compute the distances between each vector of ``x1`` and each of ``x2``.

    Args:
        x1: Vectors of shape ``(*, P, M)``.
        x2: Vectors of shape ``(*, R, M)``; leading dimensions are broadcast.
        p: The order of the norm: any number from 0, the count of differing elements, to inf, the largest difference.
        compute_mode: ``"use_mm_for_euclid_dist"`` takes distances of order 2 from a product of matrices, which needs
            no memory for differences and is less accurate for near vectors; ``"donot_use_mm_for_euclid_dist"`` does
            not; ``"use_mm_for_euclid_dist_if_necessary"`` does if P or R is above 25.

    Returns:
        A tensor of shape ``(*, P, R)``. The gradient of a distance of 0 is 0.

    Raises:
        RuntimeError: The shapes or dtypes do not fit, or ``p`` is negative.
        ValueError: There is no such mode.

    Example:
        >>> rgrad.cdist(rgrad.tensor([[0.0, 0.0], [3.0, 0.0]]), rgrad.tensor([[3.0, 4.0]]))
        tensor([[5.],
                [4.]])
    """
    if _core._autocasts():
        x1, x2 = _core._autocast_widened(x1, x2)
        with autocast(x1.device.type, enabled=False):
            return _cdist(x1, x2, p, compute_mode)
    return _cdist(x1, x2, p, compute_mode)


def _cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: str) -> Tensor:
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: expected one of {', '.join(_MODES)}")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {type_name(x.dtype)}")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}")
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values: got {p}")
    if x1.dtype != x2.dtype:
        raise RuntimeError(
            f"expected scalar type {type_name(x1.dtype)} but found {type_name(x2.dtype)}: cdist takes one dtype"
        )
    by_product = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and max(x1.size(-2), x2.size(-2)) > 25)
    if p == 2 and by_product:
        return _euclidean(x1, x2)
    return _norms(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@overridable("input")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Compute the distances between each two vectors of ``input``: the upper triangle of :func:`rgrad.cdist`.

    Args:
        input: Vectors of shape ``(N, M)``.
        p: The order of the norm: any number from 0 to inf.

    Returns:
        A tensor of shape ``(N * (N - 1) / 2)``. The gradient of a distance of 0 is 0.

    Raises:
        RuntimeError: ``input`` is no matrix of floats, or ``p`` is negative.

    Example:
        >>> F.pdist(rgrad.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
        tensor([5., 3., 4.])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"pdist only supports floating-point dtypes: got {type_name(input.dtype)}")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values: got {p}")
    count = input.size(0)
    if count < 2:
        return input.reshape(-1)[:0]
    rows, columns = _core.triu_indices(count, count, 1).to(input.device).unbind(0)
    return _norms(input.index_select(0, rows) - input.index_select(0, columns), p)


@overridable("input1", "input2", "weight")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``y_k = x1ᵀ A_k x2 + b_k`` over the last dimensions of two inputs.

    Args:
        input1: A tensor of shape ``(*, I)``.
        input2: A tensor of shape ``(*, J)``, with the same leading dimensions.
        weight: The matrices A, of shape ``(K, I, J)``.
        bias: The vector b, of shape ``(K)``.

    Returns:
        A tensor of shape ``(*, K)``.

    Raises:
        RuntimeError: The shapes do not fit.

    Example:
        >>> F.bilinear(rgrad.ones(2), rgrad.tensor([1.0, 3.0]), rgrad.ones(1, 2, 2))
        tensor([8.])
    """
    if _core._autocasts():
        # PyTorch leaves its products as they are.
        with autocast(input1.device.type, enabled=False):
            return bilinear(input1, input2, weight, bias)
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for i, (n, m) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {n} and {m}")
    if weight.dim() != 3 or input1.dim() == 0:
        raise RuntimeError(
            f"bilinear(): expected inputs with at least one dimension and a 3-D weight, got {input1.dim()}-D inputs "
            f"and a {weight.dim()}-D weight"
        )
    for i, x in ((1, input1), (2, input2)):
        if x.size(-1) != weight.size(i):
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.size(-1)} but expected {weight.size(i)}"
            )
    if bias is not None and (bias.dim() != 1 or bias.size(0) != weight.size(0)):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.numel()} but expected {weight.size(0)}"
        )
    result = _core.einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias
