"""Pooling as modules; see :func:`rgrad.nn.functional.max_pool2d` and its neighbours."""

from collections.abc import Sequence
from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module

Size = int | tuple[int, ...]
SomeSize = int | tuple[int | None, ...] | None


def _each(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * count


class _MaxPool(Module):
    _function: Any

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The largest elements of windows, and their positions if ``return_indices``."""
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Finds the largest elements of windows of the last dimension.

    Errors are those of :func:`rgrad.nn.functional.max_pool1d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements, smaller than all others, are added on both sides.
        dilation: The distance between neighbours in a window.
        return_indices: Return the positions of the elements, too.
        ceil_mode: Count windows that end behind the padding, too.

    Shape:
        ``(N, C, L)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.MaxPool1d(2)(rgrad.ones(2, 3, 8)).shape
        rgrad.Size([2, 3, 4])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """Finds the largest elements of windows of the last two dimensions.

    Errors are those of :func:`rgrad.nn.functional.max_pool2d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements, smaller than all others, are added on both sides.
        dilation: The distance between neighbours in a window.
        return_indices: Return the positions of the elements, too.
        ceil_mode: Count windows that end behind the padding, too.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.MaxPool2d(2)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """Finds the largest elements of windows of the last three dimensions.

    Errors are those of :func:`rgrad.nn.functional.max_pool3d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements, smaller than all others, are added on both sides.
        dilation: The distance between neighbours in a window.
        return_indices: Return the positions of the elements, too.
        ceil_mode: Count windows that end behind the padding, too.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.MaxPool3d(2)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4, 4])
    """

    _function = staticmethod(F.max_pool3d)


class _MaxUnpool(Module):
    _dims = 1
    _function: Any

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self._dims)
        self.stride = _each(kernel_size if stride is None else stride, self._dims)
        self.padding = _each(padding, self._dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The elements at their positions, among zeros."""
        made: Tensor = self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)
        return made

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts elements back to where :class:`MaxPool1d` found them, among zeros.

    Errors are those of :func:`rgrad.nn.functional.max_unpool1d`.

    Args:
        kernel_size: The size of its windows.
        stride: How far apart they began; None: by their size.
        padding: Its padding.

    Shape:
        Input and positions: ``(N, C, L)``, or without N; output: that with larger last sizes.

    Example:
        >>> values, indices = nn.MaxPool1d(2, return_indices=True)(rgrad.ones(2, 3, 8))
        >>> nn.MaxUnpool1d(2)(values, indices).shape
        rgrad.Size([2, 3, 8])
    """

    _dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Puts elements back to where :class:`MaxPool2d` found them, among zeros.

    Errors are those of :func:`rgrad.nn.functional.max_unpool2d`.

    Args:
        kernel_size: The size of its windows.
        stride: How far apart they began; None: by their size.
        padding: Its padding.

    Shape:
        Input and positions: ``(N, C, H, W)``, or without N; output: that with larger last sizes.

    Example:
        >>> values, indices = nn.MaxPool2d(2, return_indices=True)(rgrad.ones(2, 3, 8, 8))
        >>> nn.MaxUnpool2d(2)(values, indices).shape
        rgrad.Size([2, 3, 8, 8])
    """

    _dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Puts elements back to where :class:`MaxPool3d` found them, among zeros.

    Errors are those of :func:`rgrad.nn.functional.max_unpool3d`.

    Args:
        kernel_size: The size of its windows.
        stride: How far apart they began; None: by their size.
        padding: Its padding.

    Shape:
        Input and positions: ``(N, C, D, H, W)``, or without N; output: that with larger last sizes.

    Example:
        >>> values, indices = nn.MaxPool3d(2, return_indices=True)(rgrad.ones(2, 3, 8, 8, 8))
        >>> nn.MaxUnpool3d(2)(values, indices).shape
        rgrad.Size([2, 3, 8, 8, 8])
    """

    _dims = 3
    _function = staticmethod(F.max_unpool3d)


class AvgPool1d(Module):
    """Takes the means of windows of the last dimension.

    Errors are those of :func:`rgrad.nn.functional.avg_pool1d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many zeros are added on both sides.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the last size is the windows' number.

    Example:
        >>> nn.AvgPool1d(2)(rgrad.ones(2, 3, 8)).shape
        rgrad.Size([2, 3, 4])
    """

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, 1)
        self.stride = _each(kernel_size if stride is None else stride, 1)
        self.padding = _each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The means of windows."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    _function: Any

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The means of windows."""
        made: Tensor = self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return made

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """Takes the means of windows of the last two dimensions.

    Errors are those of :func:`rgrad.nn.functional.avg_pool2d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many zeros are added on both sides.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.
        divisor_override: What sums are divided by, instead of their number of elements.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.AvgPool2d(2)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4])
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Takes the means of windows of the last three dimensions.

    Errors are those of :func:`rgrad.nn.functional.avg_pool3d`.

    Args:
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        padding: How many zeros are added on both sides.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.
        divisor_override: What sums are divided by, instead of their number of elements.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.AvgPool3d(2)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4, 4])
    """

    _function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    _function: Any

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """The norms of windows."""
        made: Tensor = self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return made

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Takes the norms of windows of the last dimension.

    Errors are those of :func:`rgrad.nn.functional.lp_pool1d`.

    Args:
        norm_type: The exponent p in ``sum(x**p)**(1 / p)``.
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        ceil_mode: Count windows that end behind the last element, too.

    Shape:
        ``(N, C, L)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.LPPool1d(2, 2)(rgrad.ones(2, 3, 8)).shape
        rgrad.Size([2, 3, 4])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """Takes the norms of windows of the last two dimensions.

    Errors are those of :func:`rgrad.nn.functional.lp_pool2d`.

    Args:
        norm_type: The exponent p in ``sum(x**p)**(1 / p)``.
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        ceil_mode: Count windows that end behind the last element, too.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.LPPool2d(2, 2)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """Takes the norms of windows of the last three dimensions.

    Errors are those of :func:`rgrad.nn.functional.lp_pool3d`.

    Args:
        norm_type: The exponent p in ``sum(x**p)**(1 / p)``.
        kernel_size: The size of the windows.
        stride: How far apart the windows begin; None: by their size.
        ceil_mode: Count windows that end behind the last element, too.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are those of the windows' number.

    Example:
        >>> nn.LPPool3d(2, 2)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4, 4])
    """

    _function = staticmethod(F.lp_pool3d)
