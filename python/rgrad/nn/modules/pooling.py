"""Pooling as modules; see :func:`rgrad.nn.functional.max_pool2d` and its neighbours."""

from collections.abc import Sequence
from typing import Any

from ..._core import Tensor
from .. import functional as F
from ..common_types import _ratio_any_t, _size_any_opt_t, _size_any_t
from ._ranks import Ranked
from ._text import options
from .utils import _each


class _Pool(Ranked):
    """Base of pooling layers. ``_function`` is the function that a subclass computes."""

    _function: Any

    @classmethod
    def _words(cls) -> dict[str, str]:
        return {"function": cls._function.__name__}


class _MaxPoolNd(_Pool):
    _text = """
        Errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            kernel_size: The size of the windows.
            stride: How far apart the windows begin; None: by their size.
            padding: How many elements, smaller than all others, are added on both sides.
            dilation: The distance between neighbours in a window.
            return_indices: Return the positions of the elements, too.
            ceil_mode: Count windows that end behind the padding, too.

        Shape:
            ``(N, C, {sizes})``, or without N; in the output the last sizes are those of the windows' number.

        Example:
            >>> nn.{name}(2)(rgrad.ones(2, 3, {eights})).shape
            rgrad.Size([2, 3, {fours}])
    """

    def __init__(
        self,
        kernel_size: _size_any_t,
        stride: _size_any_t | None = None,
        padding: _size_any_t = 0,
        dilation: _size_any_t = 1,
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

    extra_repr = options("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """Finds the largest elements of windows of the last dimension."""

    _dims = 1
    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Finds the largest elements of windows of the last two dimensions."""

    _dims = 2
    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Finds the largest elements of windows of the last three dimensions."""

    _dims = 3
    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(_Pool):
    _text = """
        Errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            kernel_size: The size of its windows.
            stride: How far apart they began; None: by their size.
            padding: Its padding.

        Shape:
            Input and positions: ``(N, C, {sizes})``, or without N; output: that with larger last sizes.

        Example:
            >>> values, indices = nn.MaxPool{dims}d(2, return_indices=True)(rgrad.ones(2, 3, {eights}))
            >>> nn.{name}(2)(values, indices).shape
            rgrad.Size([2, 3, {eights}])
    """

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self._dims)
        self.stride = _each(kernel_size if stride is None else stride, self._dims)
        self.padding = _each(padding, self._dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The elements at their positions, among zeros."""
        made: Tensor = self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)
        return made

    extra_repr = options("kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool1d` found them, among zeros."""

    _dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool2d` found them, among zeros."""

    _dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool3d` found them, among zeros."""

    _dims = 3
    _function = staticmethod(F.max_unpool3d)


class _AvgPoolNd(_Pool):
    _text = """
        Errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            kernel_size: The size of the windows.
            stride: How far apart the windows begin; None: by their size.
            padding: How many zeros are added on both sides.
            ceil_mode: Count windows that end behind the padding, too.
            count_include_pad: Whether the padding counts as elements.
        {divisor}
        Shape:
            ``(N, C, {sizes})``, or without N; in the output the last sizes are those of the windows' number.

        Example:
            >>> nn.{name}(2)(rgrad.ones(2, 3, {eights})).shape
            rgrad.Size([2, 3, {fours}])
    """

    def __init__(
        self,
        kernel_size: _size_any_t,
        stride: _size_any_t | None = None,
        padding: _size_any_t = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    @classmethod
    def _words(cls) -> dict[str, str]:
        entry = "    divisor_override: What sums are divided by, instead of their number of elements.\n"
        return super()._words() | {"divisor": "" if cls._dims == 1 else entry}

    extra_repr = options("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """Takes the means of windows of the last dimension."""

    _dims = 1
    _function = staticmethod(F.avg_pool1d)

    def __init__(
        self,
        kernel_size: _size_any_t,
        stride: _size_any_t | None = None,
        padding: _size_any_t = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        stride = kernel_size if stride is None else stride
        super().__init__(_each(kernel_size, 1), _each(stride, 1), _each(padding, 1), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """The means of windows."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: _size_any_t,
        stride: _size_any_t | None = None,
        padding: _size_any_t = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
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


class AvgPool2d(_AvgPool):
    """Takes the means of windows of the last two dimensions."""

    _dims = 2
    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Takes the means of windows of the last three dimensions."""

    _dims = 3
    _function = staticmethod(F.avg_pool3d)


class _LPPoolNd(_Pool):
    _text = """
        Errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            norm_type: The exponent p in ``sum(x**p)**(1 / p)``.
            kernel_size: The size of the windows.
            stride: How far apart the windows begin; None: by their size.
            ceil_mode: Count windows that end behind the last element, too.

        Shape:
            ``(N, C, {sizes})``, or without N; in the output the last sizes are those of the windows' number.

        Example:
            >>> nn.{name}(2, 2)(rgrad.ones(2, 3, {eights})).shape
            rgrad.Size([2, 3, {fours}])
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: _size_any_t,
        stride: _size_any_t | None = None,
        ceil_mode: bool = False,
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

    extra_repr = options("norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """Takes the norms of windows of the last dimension."""

    _dims = 1
    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """Takes the norms of windows of the last two dimensions."""

    _dims = 2
    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """Takes the norms of windows of the last three dimensions."""

    _dims = 3
    _function = staticmethod(F.lp_pool3d)


class _ToSize(_Pool):
    _text = """
        Errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            output_size: How many windows there are: a number, or one for each dimension.{none}{indices}

        Shape:
            ``(N, C, {sizes})``, or without N; in the output the last sizes are ``output_size``.

        Example:
            >>> nn.{name}(5)(rgrad.ones(2, 3, {eights})).shape
            rgrad.Size([2, 3, {fives}])
    """
    _indices_entry = ""

    def __init__(self, output_size: _size_any_opt_t) -> None:
        super().__init__()
        self.output_size = output_size

    @classmethod
    def _words(cls) -> dict[str, str]:
        none = "" if cls._dims == 1 else " None stands for the input's size."
        return super()._words() | {"none": none, "indices": cls._indices_entry}

    extra_repr = options("output_size")


class _AdaptiveMaxPoolNd(_ToSize):
    _indices_entry = "\n    return_indices: Return the positions of the elements, too."

    def __init__(self, output_size: _size_any_opt_t, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """The largest elements of windows, and their positions if ``return_indices``."""
        return self._function(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(_ToSize):
    def forward(self, input: Tensor) -> Tensor:
        """The means of windows."""
        made: Tensor = self._function(input, self.output_size)
        return made


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Finds the largest elements of windows that divide the last dimension as evenly as possible."""

    _dims = 1
    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Finds the largest elements of windows that divide the last two dimensions as evenly as possible."""

    _dims = 2
    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Finds the largest elements of windows that divide the last three dimensions as evenly as possible."""

    _dims = 3
    _function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Takes the means of windows that divide the last dimension as evenly as possible."""

    _dims = 1
    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Takes the means of windows that divide the last two dimensions as evenly as possible."""

    _dims = 2
    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Takes the means of windows that divide the last three dimensions as evenly as possible."""

    _dims = 3
    _function = staticmethod(F.adaptive_avg_pool3d)


class _FractionalMaxPool(_Pool):
    _text = """
        Other errors are those of :func:`rgrad.nn.functional.{function}`.

        Args:
            kernel_size: The size of the windows.
            output_size: How many windows there are: a number, or one for each dimension.
            output_ratio: The same as a share of the input's sizes, between 0 and 1.
            return_indices: Return the positions of the elements, too.
            _random_samples: Numbers from 0 to 1 of shape ``(N, C, {dims})``, instead of drawn ones.

        Shape:
            ``(N, C, {sizes})``, or without N; in the output the last sizes are ``output_size``.

        Raises:
            ValueError: Not exactly one of ``output_size`` and ``output_ratio`` is given, or the ratio is not between 0
                and 1.

        Example:
            >>> nn.{name}(2, output_ratio=0.5)(rgrad.ones(2, 3, {eights})).shape
            rgrad.Size([2, 3, {fours}])
    """
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: _size_any_t,
        output_size: _size_any_t | None = None,
        output_ratio: _ratio_any_t | None = None,
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
    """Finds the largest elements of windows of the last two dimensions whose places are drawn (Graham 2014)."""

    _dims = 2
    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Finds the largest elements of windows of the last three dimensions whose places are drawn (Graham 2014)."""

    _dims = 3
    _function = staticmethod(F.fractional_max_pool3d)
