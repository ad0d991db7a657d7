"""Transforms made of others: one after the other, over more dimensions, on parts of a tensor; and other shapes."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Size, Tensor
from . import constraints
from ._transform_base import Transform, _need_dims
from .utils import _sum_rightmost, lazy_property


class ComposeTransform(Transform):
    """Transforms one after the other.

    Args:
        parts: The transforms, in the order in which they are called.
        cache_size: 1 to let each of them keep its last pair of input and output.

    Example:
        >>> parts = [rgrad.distributions.AffineTransform(0.0, 2.0), rgrad.distributions.ExpTransform()]
        >>> rgrad.distributions.ComposeTransform(parts)(rgrad.tensor(0.5))
        tensor(2.7183)
    """

    _arguments = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def _is_equal(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._end(self.parts[::-1], "codomain", "domain")

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return self._end(self.parts, "domain", "codomain")

    @staticmethod
    def _end(parts: list[Transform], side: str, other: str) -> constraints.Constraint:
        """The constraint at the end of a chain: of the last part, with the dimensions that the earlier ones need."""
        if not parts:
            return constraints.real
        dims = getattr(parts[0], side).event_dim
        for part in parts:
            own = getattr(part, other).event_dim
            dims = max(dims + own - getattr(part, side).event_dim, own)
        end: constraints.Constraint = getattr(parts[-1], other)
        return constraints.independent(end, dims - end.event_dim) if dims > end.event_dim else end

    @lazy_property
    def bijective(self) -> bool:
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return _core.zeros_like(x)
        # Parts with a cache give what they have computed.
        values = [*itertools.accumulate(self.parts[:-1], lambda value, part: part(value), initial=x), y]
        terms, dims = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, dims - part.domain.event_dim))
            dims += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape  # type: ignore[return-value]

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape  # type: ignore[return-value]

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(p) for p in self.parts)
        return f"{self.__class__.__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose values have more dimensions, over which the logarithms of determinants are summed.

    Args:
        base_transform: The transform.
        reinterpreted_batch_ndims: How many dimensions more.
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> made = rgrad.distributions.IndependentTransform(rgrad.distributions.ExpTransform(), 1)
        >>> made.log_abs_det_jacobian(rgrad.tensor([1.0, 2.0]), None)
        tensor(3.)
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        _need_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _need_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Values of another shape with as many elements.

    Args:
        in_shape: The shape of a value before.
        out_shape: Its shape after.
        cache_size: 1 to keep the last pair of input and output.

    Raises:
        ValueError: The shapes have different numbers of elements.

    Example:
        >>> rgrad.distributions.ReshapeTransform((2, 3), (6,))(rgrad.zeros(5, 2, 3)).shape
        rgrad.Size([5, 6])
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape} and {self.out_shape}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchanged(shape: Sequence[int], old: Size, new: Size) -> Size:
        _need_dims(shape, len(old))
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {old} but got {tuple(shape[cut:])}")
        return Size((*shape[:cut], *new))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._exchanged(shape, self.out_shape, self.in_shape)


class _Parts(Transform):
    """Transforms of the parts of a tensor along a dimension."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        assert all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances"
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _check(self, value: Tensor, wanted: int) -> None:
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
        )
        size = value.shape[self.dim]
        assert size == wanted, f"size({self.dim}) = {size} must equal the transforms' length {wanted}"


class CatTransform(_Parts):
    """Transforms of slices along a dimension.

    Args:
        tseq: The transforms.
        dim: The dimension.
        lengths: The length of each slice; 1 by default.
        cache_size: 1 to let each transform keep its last pair of input and output.

    Example:
        >>> parts = [rgrad.distributions.ExpTransform(), rgrad.distributions.identity_transform]
        >>> rgrad.distributions.CatTransform(parts, lengths=[1, 2])(rgrad.zeros(3))
        tensor([1., 0., 0.])
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms), (
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
        )

    @lazy_property
    def event_dim(self) -> int:
        return max(int(t.event_dim) for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of all slices together."""
        return sum(self.lengths)

    def _slices(self, value: Tensor) -> list[Tensor]:
        self._check(value, self.length)
        starts = itertools.accumulate(self.lengths, initial=0)
        return [value.narrow(self.dim, start, n) for start, n in zip(starts, self.lengths, strict=False)]

    def _call(self, x: Tensor) -> Tensor:
        return _core.cat([t(v) for t, v in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return _core.cat([t.inv(v) for t, v in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(before, after), self.event_dim - t.event_dim)
            for t, before, after in zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        ]
        # From the right, and without the dimensions of a value; one of those is summed.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return _core.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Transforms of the elements along a dimension.

    Args:
        tseq: The transforms.
        dim: The dimension.
        cache_size: 1 to let each transform keep its last pair of input and output.

    Example:
        >>> parts = [rgrad.distributions.ExpTransform(), rgrad.distributions.identity_transform]
        >>> rgrad.distributions.StackTransform(parts)(rgrad.zeros(2))
        tensor([1., 0.])
    """

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _slice(self, value: Tensor) -> Sequence[Tensor]:
        self._check(value, len(self.transforms))
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return _core.stack([t(v) for t, v in zip(self.transforms, self._slice(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return _core.stack([t.inv(v) for t, v in zip(self.transforms, self._slice(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slice(x), self._slice(y), strict=True)
        return _core.stack([t.log_abs_det_jacobian(before, after) for t, before, after in pairs], self.dim)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
