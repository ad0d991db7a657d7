"""Padding as modules; see :func:`rgrad.nn.functional.pad`."""

from ..._core import Tensor
from .. import functional as F
from .module import Module

Padding = int | tuple[int, ...]


class _Pad(Module):
    padding: tuple[int, ...]
    _dims = 1
    _mode = "constant"

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding = _sides(padding, 2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


def _sides(padding: Padding, count: int) -> tuple[int, ...]:
    return (padding,) * count if isinstance(padding, int) else tuple(padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        low = self._dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionPad(_Pad):
    _mode = "reflect"


class _ReplicationPad(_Pad):
    _mode = "replicate"


class CircularPad1d(_CircularPad):
    """Pads the last dimension with the elements at the other end.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 2 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.CircularPad1d(1)(rgrad.ones(1, 2)).shape
        rgrad.Size([1, 4])
    """

    _dims = 1


class CircularPad2d(_CircularPad):
    """Pads the last two dimensions with the elements at the other end.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 4 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, H, W)`` or ``(C, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.CircularPad2d(1)(rgrad.ones(1, 2, 2)).shape
        rgrad.Size([1, 4, 4])
    """

    _dims = 2


class CircularPad3d(_CircularPad):
    """Pads the last three dimensions with the elements at the other end.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 6 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, D, H, W)`` or ``(C, D, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.CircularPad3d(1)(rgrad.ones(1, 2, 2, 2)).shape
        rgrad.Size([1, 4, 4, 4])
    """

    _dims = 3


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a constant.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 2 numbers, of the start and the end of the last dimension first.
        value: The constant.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ConstantPad1d(1, 2.0)(rgrad.ones(1, 2)).shape
        rgrad.Size([1, 4])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two dimensions with a constant.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 4 numbers, of the start and the end of the last dimension first.
        value: The constant.

    Shape:
        ``(N, C, H, W)`` or ``(C, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ConstantPad2d(1, 2.0)(rgrad.ones(1, 2, 2)).shape
        rgrad.Size([1, 4, 4])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three dimensions with a constant.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 6 numbers, of the start and the end of the last dimension first.
        value: The constant.

    Shape:
        ``(N, C, D, H, W)`` or ``(C, D, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ConstantPad3d(1, 2.0)(rgrad.ones(1, 2, 2, 2)).shape
        rgrad.Size([1, 4, 4, 4])
    """

    _dims = 3


class ReflectionPad1d(_ReflectionPad):
    """Pads the last dimension with the elements next to the edge in reverse order.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 2 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReflectionPad1d(1)(rgrad.ones(1, 2)).shape
        rgrad.Size([1, 4])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPad):
    """Pads the last two dimensions with the elements next to the edge in reverse order.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 4 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, H, W)`` or ``(C, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReflectionPad2d(1)(rgrad.ones(1, 2, 2)).shape
        rgrad.Size([1, 4, 4])
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPad):
    """Pads the last three dimensions with the elements next to the edge in reverse order.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 6 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, D, H, W)`` or ``(C, D, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReflectionPad3d(1)(rgrad.ones(1, 2, 2, 2)).shape
        rgrad.Size([1, 4, 4, 4])
    """

    _dims = 3


class ReplicationPad1d(_ReplicationPad):
    """Pads the last dimension with the elements at the edge.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 2 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReplicationPad1d(1)(rgrad.ones(1, 2)).shape
        rgrad.Size([1, 4])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPad):
    """Pads the last two dimensions with the elements at the edge.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 4 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, H, W)`` or ``(C, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReplicationPad2d(1)(rgrad.ones(1, 2, 2)).shape
        rgrad.Size([1, 4, 4])
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPad):
    """Pads the last three dimensions with the elements at the edge.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 6 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, D, H, W)`` or ``(C, D, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ReplicationPad3d(1)(rgrad.ones(1, 2, 2, 2)).shape
        rgrad.Size([1, 4, 4, 4])
    """

    _dims = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 2 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, L)`` or ``(C, L)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ZeroPad1d(1)(rgrad.ones(1, 2)).shape
        rgrad.Size([1, 4])
    """

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two dimensions with zeros.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 4 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, H, W)`` or ``(C, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ZeroPad2d(1)(rgrad.ones(1, 2, 2)).shape
        rgrad.Size([1, 4, 4])
    """

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three dimensions with zeros.

    Errors are those of :func:`rgrad.nn.functional.pad`.

    Args:
        padding: How much at each end; or 6 numbers, of the start and the end of the last dimension first.

    Shape:
        ``(N, C, D, H, W)`` or ``(C, D, H, W)``; in the output the padded dimensions are larger.

    Example:
        >>> nn.ZeroPad3d(1)(rgrad.ones(1, 2, 2, 2)).shape
        rgrad.Size([1, 4, 4, 4])
    """

    _dims = 3
