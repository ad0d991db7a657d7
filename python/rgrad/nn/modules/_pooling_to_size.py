"""Pooling to a given size as modules: windows that divide the input evenly, or whose places are drawn."""

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module
from .pooling import Size, SomeSize, _each

Ratio = float | tuple[float, ...]


class _AdaptiveMaxPool(Module):
    _function: Any

    def __init__(self, output_size: SomeSize, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """The largest elements of windows, and their positions if ``return_indices``."""
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Module):
    _function: Any

    def __init__(self, output_size: SomeSize) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """The means of windows."""
        made: Tensor = self._function(input, self.output_size)
        return made

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Finds the largest elements of windows that divide the last dimension as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_max_pool1d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension.
        return_indices: Return the positions of the elements, too.

    Shape:
        ``(N, C, L)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveMaxPool1d(5)(rgrad.ones(2, 3, 8)).shape
        rgrad.Size([2, 3, 5])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Finds the largest elements of windows that divide the last two dimensions as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_max_pool2d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Return the positions of the elements, too.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveMaxPool2d(5)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 5, 5])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Finds the largest elements of windows that divide the last three dimensions as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_max_pool3d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Return the positions of the elements, too.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveMaxPool3d(5)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 5, 5, 5])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Takes the means of windows that divide the last dimension as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_avg_pool1d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension.

    Shape:
        ``(N, C, L)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveAvgPool1d(5)(rgrad.ones(2, 3, 8)).shape
        rgrad.Size([2, 3, 5])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Takes the means of windows that divide the last two dimensions as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_avg_pool2d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveAvgPool2d(5)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 5, 5])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Takes the means of windows that divide the last three dimensions as evenly as possible.

    Errors are those of :func:`rgrad.nn.functional.adaptive_avg_pool3d`.

    Args:
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Example:
        >>> nn.AdaptiveAvgPool3d(5)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 5, 5, 5])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


class _FractionalMaxPool(Module):
    _random_samples: Tensor | None
    _dims = 2
    _function: Any

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Ratio | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = _each(kernel_size, self._dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _each(output_size, self._dims)
        self.output_ratio = None if output_ratio is None else _each(output_ratio, self._dims)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """The largest elements of windows whose places are drawn, and their positions if ``return_indices``."""
        return self._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Finds the largest elements of windows of the last two dimensions whose places are drawn (Graham 2014).

    Other errors are those of :func:`rgrad.nn.functional.fractional_max_pool2d`.

    Args:
        kernel_size: The size of the windows.
        output_size: How many windows there are: a number, or one for each dimension.
        output_ratio: The same as a share of the input's sizes, between 0 and 1.
        return_indices: Return the positions of the elements, too.
        _random_samples: Numbers from 0 to 1 of shape ``(N, C, 2)``, instead of drawn ones.

    Shape:
        ``(N, C, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Raises:
        ValueError: Not exactly one of ``output_size`` and ``output_ratio`` is given, or the ratio is not between 0
            and 1.

    Example:
        >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(rgrad.ones(2, 3, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4])
    """

    _dims = 2
    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Finds the largest elements of windows of the last three dimensions whose places are drawn (Graham 2014).

    Other errors are those of :func:`rgrad.nn.functional.fractional_max_pool3d`.

    Args:
        kernel_size: The size of the windows.
        output_size: How many windows there are: a number, or one for each dimension.
        output_ratio: The same as a share of the input's sizes, between 0 and 1.
        return_indices: Return the positions of the elements, too.
        _random_samples: Numbers from 0 to 1 of shape ``(N, C, 3)``, instead of drawn ones.

    Shape:
        ``(N, C, D, H, W)``, or without N; in the output the last sizes are ``output_size``.

    Raises:
        ValueError: Not exactly one of ``output_size`` and ``output_ratio`` is given, or the ratio is not between 0
            and 1.

    Example:
        >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(rgrad.ones(2, 3, 8, 8, 8)).shape
        rgrad.Size([2, 3, 4, 4, 4])
    """

    _dims = 3
    _function = staticmethod(F.fractional_max_pool3d)
