"""Pooling by powers and by windows whose places are drawn, and the partial inverse of max pooling."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, cast, overload

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._docs import described
from ._max_pooling import Pair
from ._pooling import Size, avg_pool1d, avg_pool2d, avg_pool3d

_NORMS = """
    Of sums that are negative it is 0.

    Args:
        input: A tensor of floats, of shape ``(N, C, {sizes})`` or ``(C, {sizes})``.
        norm_type: The exponent p.
        kernel_size: The size of the windows{each}.
        stride: How far apart the windows begin; None: by their size.
        ceil_mode: Count windows that end behind the last element, too.

    Returns:
        The norms.

    Raises:
        RuntimeError: A size is not positive, or there is no window.
"""
_DRAWN = """
    Args:
        input: A tensor of floats, of shape ``(N, C, {sizes})`` or ``(C, {sizes})``.
        kernel_size: The size of the windows: a number, or one for each dimension.
        output_size: How many windows there are: a number, or one for each dimension.
        output_ratio: The same as a share of the input's sizes, from 0 to 1.
        return_indices: {indices}
        _random_samples: Numbers from 0 to 1 of shape ``(N, C, {dims})``, instead of drawn ones.

    Returns:
        {returns}

    Raises:
        ValueError: Neither ``output_size`` nor ``output_ratio`` is given.
        RuntimeError: There are more windows than the sizes allow.
"""
_ALWAYS = {"indices": "Ignored.", "returns": "The elements and their positions."}
_IF_ASKED = {
    "indices": "Return the positions in the flattened {flattened}, too (int64).",
    "returns": "The elements, or elements and positions.",
}
_BACK = """
    Args:
        input: Elements of shape ``(N, C, {sizes})`` or ``(C, {sizes})``.
        indices: Their positions, from :func:`max_pool{dims}d` with ``return_indices``.
        kernel_size: The size of its windows.
        stride: How far apart they began; None: by their size.
        padding: Its padding.
        output_size: The size of its input, where windows left elements out: of the last {last} or a whole
            shape.

    Returns:
        A tensor of that size.

    Raises:
        RuntimeError: Elements and positions have different shapes, or a position is outside.
        ValueError: There is no input of this ``output_size``.
"""


class _Fractional(Protocol):
    """The type of pooling at drawn places."""

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: Literal[False] = False,
        _random_samples: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        *,
        return_indices: Literal[True],
        _random_samples: Tensor | None = None,
    ) -> Pair: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None,
        output_ratio: float | Sequence[float] | None,
        return_indices: Literal[True],
        _random_samples: Tensor | None = None,
    ) -> Pair: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Tensor | Pair: ...


def _with_overloads(function: Callable[..., Tensor | Pair]) -> _Fractional:
    return cast(_Fractional, function)


def _each(size: Any, count: int) -> list[Any]:
    return [size] * count if isinstance(size, int | float) else list(size)


def _root(mean: Tensor, count: int, norm_type: float) -> Tensor:
    """The norm from the mean of powers of so many elements."""
    return (_core.sign(mean) * _core.relu(_core.abs(mean))).mul(count).pow(1.0 / norm_type)


@overridable("input")
@described(_NORMS, 1, each="")
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Take the norms of windows of the last dimension: ``sum(x**p)**(1 / p)``.

    Example:
        >>> F.lp_pool1d(rgrad.tensor([[3.0, 4.0]]), 2, 2)
        tensor([[5.]])
    """
    return _root(avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), kernel_size, norm_type)


@overridable("input")
@described(_NORMS, 2, each=": a number, or one for each dimension")
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Take the norms of windows of the last two dimensions: ``sum(x**p)**(1 / p)``.

    Example:
        >>> F.lp_pool2d(rgrad.tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
        tensor([[[5.]]])
    """
    height, width = _each(kernel_size, 2)
    return _root(avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), height * width, norm_type)


@overridable("input")
@described(_NORMS, 3, each=": a number, or one for each dimension")
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Take the norms of windows of the last three dimensions: ``sum(x**p)**(1 / p)``.

    Example:
        >>> F.lp_pool3d(rgrad.ones(1, 2, 2, 4), 2, 2).shape
        rgrad.Size([1, 1, 1, 2])
    """
    depth, height, width = _each(kernel_size, 3)
    return _root(avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), depth * height * width, norm_type)


def _drawn(
    name: str,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
    count: int,
) -> Pair:
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if input.dim() < count:
            raise RuntimeError(f"{name}(): Expected at least {count} dimensions, but got {input.dim()}")
        sizes = input.shape[input.dim() - count :]
        output_size = [int(size * ratio) for size, ratio in zip(sizes, _each(output_ratio, count), strict=True)]
    if samples is None:
        batch = input.size(0) if input.dim() == count + 2 else 1
        samples = _core.rand(batch, input.size(-count - 1), count, dtype=input.dtype, device=input.device)
    native = _core.fractional_max_pool2d if count == 2 else _core.fractional_max_pool3d
    return native(input, kernel_size, output_size, samples)


@overridable("input")
@described(_DRAWN, 2, **_ALWAYS)
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Pair:
    """Find the largest elements of windows at drawn places (Graham 2014), and their positions: two dimensions.

    Example:
        >>> F.fractional_max_pool2d_with_indices(rgrad.ones(1, 4, 4), 2, 3)[1].shape
        rgrad.Size([1, 3, 3])
    """
    return _drawn("fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2)


@_with_overloads
@overridable("input")
@described(_DRAWN, 2, **_IF_ASKED)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | Pair:
    """Find the largest elements of windows of the last two dimensions whose places are drawn (Graham 2014).

    Example:
        >>> F.fractional_max_pool2d(rgrad.ones(1, 4, 4), 2, 3).shape
        rgrad.Size([1, 3, 3])
    """
    pair = _drawn("fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return pair if return_indices else pair[0]


@overridable("input")
@described(_DRAWN, 3, **_ALWAYS)
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Pair:
    """Find the largest elements of windows at drawn places (Graham 2014), and their positions: three dimensions.

    Example:
        >>> F.fractional_max_pool3d_with_indices(rgrad.ones(1, 5, 5, 5), 2, 3)[1].shape
        rgrad.Size([1, 3, 3, 3])
    """
    return _drawn("fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3)


@_with_overloads
@overridable("input")
@described(_DRAWN, 3, **_IF_ASKED)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | Pair:
    """Find the largest elements of windows of the last three dimensions whose places are drawn (Graham 2014).

    Example:
        >>> F.fractional_max_pool3d(rgrad.ones(1, 5, 5, 5), 2, 3).shape
        rgrad.Size([1, 3, 3, 3])
    """
    pair = _drawn("fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return pair if return_indices else pair[0]


def _unpooled_size(
    input: Tensor, kernel: list[int], stride: list[int], padding: list[int], output_size: Sequence[int] | None
) -> list[int]:
    """The size of the input of max pooling, which is not certain where windows have left elements out."""
    count = len(kernel)
    sizes = input.shape[max(input.dim() - count, 0) :]
    default = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(sizes, kernel, stride, padding, strict=False)]
    if output_size is None:
        return default
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d, (size, own, step) in enumerate(zip(output_size, default, stride, strict=False)):
        if not own - step < size < own + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {own - step} and {own + step})'
            )
    return list(output_size)


@overridable("input", "indices")
@described(_BACK, 1, last="dimension")
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put elements back to where max pooling found them, among zeros.

    Example:
        >>> F.max_unpool1d(rgrad.tensor([[5.0]]), rgrad.tensor([[1]]), 2)
        tensor([[0., 5.]])
    """
    kernel = _each(kernel_size, 1)
    step = kernel if stride is None else _each(stride, 1)
    size = _unpooled_size(input, kernel, step, _each(padding, 1), output_size)
    return _core.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


@overridable("input", "indices")
@described(_BACK, 2, last="{dims} dimensions")
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put elements back to where max pooling found them, among zeros.

    Example:
        >>> F.max_unpool2d(rgrad.tensor([[[5.0]]]), rgrad.tensor([[[2]]]), 2)
        tensor([[[0., 0.],
                 [5., 0.]]])
    """
    kernel = _each(kernel_size, 2)
    step = kernel if stride is None else _each(stride, 2)
    size = _unpooled_size(input, kernel, step, _each(padding, 2), output_size)
    return _core.max_unpool2d(input, indices, size)


@overridable("input", "indices")
@described(_BACK, 3, last="{dims} dimensions")
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put elements back to where max pooling found them, among zeros.

    Example:
        >>> F.max_unpool3d(rgrad.ones(1, 1, 1, 1), rgrad.zeros(1, 1, 1, 1, dtype=rgrad.int64), 2).shape
        rgrad.Size([1, 2, 2, 2])
    """
    kernel = _each(kernel_size, 3)
    step = kernel if stride is None else _each(stride, 3)
    around = _each(padding, 3)
    size = _unpooled_size(input, kernel, step, around, output_size)
    return _core.max_unpool3d(input, indices, size, step, around)
