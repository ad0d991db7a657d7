"""Convolutions as modules."""

import math
from collections.abc import Sequence
from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..common_types import _size_any_t
from ._parameters import draw, register
from ._ranks import Ranked, described_as_lazy
from .lazy import _LazyLayer
from .utils import _each, _reverse_repeat_tuple

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Ranked):
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        weight = (*self._weight_channels(), *kernel_size)
        register(self, device, dtype, weight=weight, bias=out_channels if bias else None)
        self.reset_parameters()

    def _sides(self) -> list[int] | tuple[int, ...]:
        """The padding before and after each dimension, the last dimension first, as ``F.pad`` takes it."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides: list[int] = []
        for d in reversed(range(len(self.kernel_size))):
            total = self.dilation[d] * (self.kernel_size[d] - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def _weight_channels(self) -> tuple[int, int]:
        if self.transposed:
            return self.in_channels, self.out_channels // self.groups
        return self.out_channels, self.in_channels // self.groups

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform in ``±1 / sqrt(fan_in)``."""
        # kaiming_uniform_ with a = sqrt(5) is uniform in ±1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw(init._calculate_fan_in_and_fan_out(self.weight)[0], self.bias)

    @classmethod
    def _words(cls) -> dict[str, str]:
        stretch = ("stretch", "patch", "box")[cls._dims - 1]
        primed = ", ".join(f"{size}'" for size in ("L", "HW", "DHW")[cls._dims - 1])
        return {"stretch": stretch, "stretches": f"{stretch}es", "primed": primed}

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    _text = """
        The parameters ``weight`` of shape ``(out_channels, in_channels / groups, *kernel)`` and ``bias`` of shape
        ``(out_channels)`` start uniform in ``±1 / sqrt(fan_in)``.

        Args:
            in_channels: The channels of the input.
            out_channels: The channels of the output.
            kernel_size: The size of a {stretch}: a number, or one for each dimension.
            stride: How far the {stretches} lie apart.
            padding: How many elements are added at both ends of each dimension, or ``'valid'`` (none) or ``'same'``
                (the output is as large as the input).
            dilation: How far the elements of a {stretch} lie apart.
            groups: The groups of channels, each of which has weights of its own.
            bias: Whether there is a bias; without it ``bias`` is None.
            padding_mode: What is added: ``'zeros'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
            device: The device of the parameters.
            dtype: The dtype of the parameters.

        Raises:
            ValueError: The channels cannot be divided into the groups, or a padding has no such name.

        Shape:
            Input: ``(N, C, {sizes})``; output: ``(N, out_channels, {primed})``; both may be without N. Each size is
            ``L' = (L + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _size_any_t,
        stride: _size_any_t = 1,
        padding: str | _size_any_t = 0,
        dilation: _size_any_t = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, n),
            _each(stride, n),
            padding if isinstance(padding, str) else _each(padding, n),
            _each(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: str | _size_any_t = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        function = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve ``input`` of shape ``(N, C, *)`` or ``(C, *)``."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """The sums of products of learned weights with each stretch of the input.

    Example:
        >>> nn.Conv1d(3, 8, 5, stride=2)(rgrad.ones(1, 3, 20)).shape
        rgrad.Size([1, 8, 8])
    """

    _dims = 1


class Conv2d(_Conv):
    """The sums of products of learned weights with each patch of the input.

    Example:
        >>> nn.Conv2d(3, 8, (3, 5), padding=(1, 2))(rgrad.ones(1, 3, 20, 30)).shape
        rgrad.Size([1, 8, 20, 30])
    """

    _dims = 2


class Conv3d(_Conv):
    """The sums of products of learned weights with each box of the input.

    Example:
        >>> nn.Conv3d(2, 4, 3)(rgrad.ones(1, 2, 8, 9, 10)).shape
        rgrad.Size([1, 4, 6, 7, 8])
    """

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    _text = """
        The parameters ``weight`` of shape ``(in_channels, out_channels / groups, *kernel)`` and ``bias`` of shape
        ``(out_channels)`` start uniform in ``±1 / sqrt(fan_in)``.

        Args:
            in_channels: The channels of the input.
            out_channels: The channels of the output.
            kernel_size: The size of a {stretch}: a number, or one for each dimension.
            stride: How far the {stretches} lie apart.
            padding: How many elements at both ends of each dimension of the output are left out.
            output_padding: How many elements more the output has at the end of each dimension; less than the stride or
                the dilation.
            groups: The groups of channels, each of which has weights of its own.
            bias: Whether there is a bias; without it ``bias`` is None.
            dilation: How far the elements of a {stretch} lie apart.
            padding_mode: ``'zeros'``; there is no other.
            device: The device of the parameters.
            dtype: The dtype of the parameters.

        Raises:
            ValueError: The channels cannot be divided into the groups, or ``padding_mode`` is another one.

        Shape:
            Input: ``(N, C, {sizes})``; output: ``(N, out_channels, {primed})``; both may be without N. Each size is
            ``L' = (L - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _size_any_t,
        stride: _size_any_t = 1,
        padding: _size_any_t = 0,
        output_padding: _size_any_t = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: _size_any_t = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, n),
            _each(stride, n),
            _each(padding, n),
            _each(dilation, n),
            True,
            _each(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """How many elements are added so that the output has this size."""
        if output_size is None:
            return self.output_padding
        n = self._dims
        lead = 2 if input.dim() == n + 2 else 1
        sizes = list(output_size)
        if len(sizes) == lead + n:
            sizes = sizes[lead:]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} elements (got "
                f"{len(sizes)})"
            )
        least = [
            (input.size(d + lead) - 1) * self.stride[d]
            - 2 * int(self.padding[d])
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        most = [low + self.stride[d] - 1 for d, low in enumerate(least)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to {most} (for an input of "
                f"{input.shape[2:]})"
            )
        return tuple(size - low for size, low in zip(sizes, least, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the transposed convolution to ``input``; of the sizes that are possible choose ``output_size``."""
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dims - 1]
        more = self._output_padding(input, output_size)
        padding = self.padding
        assert not isinstance(padding, str)
        return function(input, self.weight, self.bias, self.stride, padding, more, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of a :class:`Conv1d` with respect to its input: each element adds a multiple of the weight.

    Example:
        >>> nn.ConvTranspose1d(3, 8, 5, stride=2)(rgrad.ones(1, 3, 8)).shape
        rgrad.Size([1, 8, 19])
    """

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of a :class:`Conv2d` with respect to its input: each element adds a multiple of the weight.

    Example:
        >>> down, up = nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1)
        >>> x = rgrad.ones(1, 4, 12, 12)
        >>> up(down(x), output_size=x.size()).shape
        rgrad.Size([1, 4, 12, 12])
    """

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of a :class:`Conv3d` with respect to its input: each element adds a multiple of the weight.

    Example:
        >>> nn.ConvTranspose3d(2, 4, 3)(rgrad.ones(1, 2, 6, 7, 8)).shape
        rgrad.Size([1, 4, 8, 9, 10])
    """

    _dims = 3


class _LazyConvXdMixin(_LazyLayer, _ConvNd):
    _learned = "in_channels"

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_channels`` from the input.

        Args:
            input: The input of the first call.

        Raises:
            RuntimeError: The input has not the dimensions of such a convolution, with or without a batch.
            ValueError: Its channels cannot be divided into the groups.
        """
        if not self.has_uninitialized_params():
            return
        bare = self._dims + 1
        if input.dim() not in (bare, bare + 1):
            raise RuntimeError(
                f"Expected {bare}D (unbatched) or {bare + 1}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        channels = int(input.shape[-bare])
        if channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.in_channels = channels
        weight: Any = self.weight
        bias: Any = self.bias
        with no_grad():
            weight.materialize((*self._weight_channels(), *self.kernel_size))
            if bias is not None:
                bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: _size_any_t,
        stride: _size_any_t = 1,
        padding: str | _size_any_t = 0,
        dilation: _size_any_t = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self.out_channels = out_channels
        self._without_shapes(bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: _size_any_t,
        stride: _size_any_t = 1,
        padding: _size_any_t = 0,
        output_padding: _size_any_t = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: _size_any_t = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self.out_channels = out_channels
        self._without_shapes(bias, device, dtype)


@described_as_lazy("8, 3", (2, 3, 6))
class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv1d


@described_as_lazy("8, 3", (2, 3, 6, 6))
class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv2d


@described_as_lazy("8, 3", (2, 3, 6, 6, 6))
class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv3d


@described_as_lazy("8, 3", (2, 3, 6))
class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose1d


@described_as_lazy("8, 3", (2, 3, 6, 6))
class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose2d


@described_as_lazy("8, 3", (2, 3, 6, 6, 6))
class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose3d
