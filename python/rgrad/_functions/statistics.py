"""Covariances and histograms."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Sequence
from typing import Any

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import type_name
from .._runtime.warned import warn_user_once
from .numeric import searchsorted


def _weights(name: str, w: Tensor, count: int) -> Tensor:
    if w.dim() > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.dim()} dims")
    integers = name == "fweights"
    if integers == w.dtype.is_floating_point or w.dtype == _core.bool:
        wanted = "integral" if integers else "floating point"
        raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {w.dtype} dtype")
    if w.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{w.numel()} != {count}"
        )
    if count and bool((w.detach() < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return w.reshape(-1)


@operation("cov")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Compute the covariances of variables.

    Args:
        input: Shape ``(variables, observations)``, or ``(observations)`` of one variable.
        correction: What is subtracted from the number of observations.
        fweights: How often each observation occurred: integers.
        aweights: The weight of each observation: floats.

    Returns:
        Shape ``(variables, variables)``; no dimensions for one variable.

    Raises:
        RuntimeError: The shapes or dtypes do not fit.

    Example:
        >>> rgrad.cov(rgrad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    if input.dtype == _core.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.dim() == 2 else input.reshape(1, -1)
    count = x.shape[1]
    w = None if fweights is None else _weights("fweights", fweights, count)
    if aweights is not None:
        a = _weights("aweights", aweights, count)
        w = a if w is None else w * a
    total: Any = count
    if w is not None:
        total = w.sum()
        if bool(total.detach() == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x.sum(1, keepdim=True) if w is None else (x * w).sum(1, keepdim=True)) / total
    if w is None or not correction:
        divisor: Any = total - correction
    elif aweights is None:
        divisor = total - correction
    else:
        assert w is not None
        squares = (w * aweights.reshape(-1)).sum()
        divisor = total - correction * squares / total
    plain = divisor.item() if isinstance(divisor, Tensor) and _core._level_of(divisor) == 0 else divisor
    if not isinstance(plain, Tensor) and plain <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=4,
        )
        divisor = divisor * 0 if isinstance(divisor, Tensor) else 0.0
    centred = x - mean
    made = centred @ (centred if w is None else centred * w).mT.conj() / divisor
    result: Tensor = made.squeeze()
    return result


@operation("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """Compute the correlation coefficients of variables (Pearson).

    Args:
        input: Shape ``(variables, observations)``, or ``(observations)`` of one variable.

    Returns:
        Shape ``(variables, variables)``, from -1 to 1; no dimensions for one variable.

    Raises:
        RuntimeError: There are more dimensions.

    Example:
        >>> rgrad.corrcoef(rgrad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    spread = c.diagonal().real.sqrt()
    made = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if made.dtype.is_complex:
        return _core.complex(made.real.clamp(-1, 1), made.imag.clamp(-1, 1))
    return made.clamp(-1, 1)


def _bounds(name: str, x: Tensor, low: float, high: float) -> tuple[float, float]:
    """The ends of a histogram: those of the elements if both are equal, and never the same."""
    if low == high and x.numel():
        low, high = float(x.min()), float(x.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return (low - 1.0, high + 1.0) if low == high else (low, high)


@operation("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """Count elements in bins of one width. It has no derivative.

    Args:
        input: A tensor of floats.
        bins: The number of bins.
        min: The lower end; elements below are not counted.
        max: The upper end; elements above are not counted. If both ends are 0, they are those of the elements.
        out: Where the result is written.

    Returns:
        A vector of counts, of the dtype of the input.

    Raises:
        RuntimeError: ``bins`` is not positive, or the ends are not finite.

    Example:
        >>> rgrad.histc(rgrad.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    if input.is_complex():
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{type_name(input.dtype)}'")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_name(input.dtype)}'")
    if bins <= 0:
        raise RuntimeError("torch.histc(): bins must be > 0")
    x = input.detach().reshape(-1)
    low, high = _bounds("torch.histc", x, float(min), float(max))
    inside = x[(x >= low) & (x <= high)]
    at = ((inside - low) / (high - low) * bins).to(_core.int64).clamp(max=bins - 1)
    return _core.bincount(at, minlength=bins).to(x.dtype)


def _edges(x: Tensor, bins: Any, low: float, high: float) -> Tensor:
    return _core.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _places(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each value, and whether it has one; the last bin has both of its ends."""
    at = searchsorted(edges, values, right=True) - 1
    count = edges.numel() - 1
    at = _core.where(values == edges[-1], at.clamp(max=count - 1), at)
    return at.clamp(0, count - 1), (at >= 0) & (at < count) & ~values.isnan()


def _check_weight(name: str, input: Tensor, weight: Tensor | None, shape: Any) -> None:
    if weight is not None and weight.shape != shape:
        raise RuntimeError(
            f"{name}: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"{name}: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
        )


@operation("histogram")
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, ...] | None = None,
) -> return_types.histogram:
    """Count elements in bins, or add up their weights. It has no derivative.

    Args:
        input: A tensor of float32 or float64.
        bins: The number of bins of one width, or a rising vector of their ends.
        range: The ends of the first and the last bin, by default those of the elements.
        weight: A weight for each element.
        density: Divide by the sum and by the widths of the bins.
        out: Two tensors that the results are written to.

    Returns:
        ``(hist, bin_edges)``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit, or there are no bins.

    Example:
        >>> rgrad.histogram(rgrad.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
        tensor([0., 2., 1., 0.])
    """
    if isinstance(bins, Tensor):
        edges = bins.detach()
        if edges.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
                f"input with dtype {input.dtype} and bins with dtype {edges.dtype}"
            )
        if edges.dim() != 1:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {edges.dim()}")
        ends: list[Tensor] | None = [edges]
        counts = [edges.numel() - 1]
    else:
        ends, counts = None, [bins]
    flat = input.detach().reshape(-1, 1)
    _check_weight("torch.histogramdd", input, weight, input.shape)
    made, found = _histogram(flat, counts, ends, range, None if weight is None else weight.reshape(-1), density)
    return return_types.histogram(made, found[0])


def _histogram(
    points: Tensor,
    counts: list[int],
    ends: list[Tensor] | None,
    limits: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, list[Tensor]]:
    """The counts of points of several coordinates, and the ends of the bins of each."""
    if points.dtype not in (_core.float32, _core.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{type_name(points.dtype)}'")
    if any(n <= 0 for n in counts):
        raise RuntimeError(f"torch.histogramdd(): bins {counts} must be > 0 for all dimensions")
    if limits is not None and len(limits) != 2 * len(counts):
        raise RuntimeError(f"torch.histogramdd(): range should have {2 * len(counts)} elements, but got {len(limits)}")
    edges = []
    for i, n in enumerate(counts):
        if ends is not None:
            edges.append(ends[i])
            continue
        column = points[:, i]
        low, high = (float(v) for v in limits[2 * i : 2 * i + 2]) if limits is not None else (0.0, 0.0)
        if limits is None:
            low, high = (float(column.min()), float(column.max())) if column.numel() else (0.0, 1.0)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd(): dimension {i}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd(): min should not exceed max, but got min {low} max {high} for dimension {i}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(_edges(points, n, low, high))
    at = _core.zeros(points.shape[0], dtype=_core.int64, device=points.device)
    inside = _core.ones(points.shape[0], dtype=_core.bool, device=points.device)
    for i, e in enumerate(edges):
        place, has_one = _places(points[:, i].contiguous(), e)
        at, inside = at * counts[i] + place, inside & has_one
    each = _core.ones(points.shape[0], dtype=points.dtype, device=points.device) if weight is None else weight.detach()
    made = _core.zeros(math.prod(counts), dtype=points.dtype, device=points.device)
    made = _core._unrelated(made.index_add(0, at[inside], each[inside]).reshape(counts))
    if density:
        made = made / made.sum()
        for i, e in enumerate(edges):
            made = made / (e[1:] - e[:-1]).reshape([-1 if k == i else 1 for k in builtins.range(len(counts))])
    return made, edges


@operation("histogramdd")
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogramdd:
    """Count points of several coordinates in boxes, or add up their weights. It has no derivative.

    Args:
        input: Shape ``(*, N)``: points of ``N`` coordinates, float32 or float64.
        bins: The number of bins along every coordinate, one number for each, or a rising vector of ends for each.
        range: Two ends for each coordinate, one after the other.
        weight: A weight for each point.
        density: Divide by the sum and by the volumes of the boxes.

    Returns:
        ``(hist, bin_edges)``: counts with ``N`` dimensions, and a vector of ends for each coordinate.

    Raises:
        RuntimeError: Shapes or dtypes do not fit, or there are no bins.

    Example:
        >>> rgrad.histogramdd(rgrad.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 0.]])
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    n = input.shape[-1]
    given = [bins] * n if isinstance(bins, int) else list(bins)
    if len(given) != n:
        raise RuntimeError(
            "torch.histogramdd: the size of bins must be equal to the innermost dimension of the input, got "
            f"{len(given)} and {n}"
        )
    ends: Any = given if all(isinstance(b, Tensor) for b in given) else None
    counts: Any = [b.numel() - 1 for b in ends] if ends else given
    _check_weight("torch.histogramdd", input, weight, input.shape[:-1])
    points = input.detach().reshape(-1, n)
    made, edges = _histogram(points, counts, ends, range, None if weight is None else weight.reshape(-1), density)
    return return_types.histogramdd(made, tuple(edges))


@operation("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Compute the cross products of vectors of three elements; see :func:`rgrad.linalg.cross`.

    Args:
        input: A tensor with three elements along a dimension.
        other: A tensor that is broadcast with it.
        dim: The dimension of the vectors, by default the first one of size 3.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        RuntimeError: There is no dimension of size 3.

    Example:
        >>> rgrad.cross(rgrad.tensor([1, 0, 0]), rgrad.tensor([0, 1, 0]), dim=0)
        tensor([0, 0, 1])
    """
    if dim is None:
        warn_user_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross."
        )
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return _core.linalg_cross(input, other, dim=dim)
