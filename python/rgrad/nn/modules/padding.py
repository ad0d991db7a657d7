"""Padding as modules; see :func:`rgrad.nn.functional.pad`."""

from ..._core import Tensor
from .. import functional as F
from ._ranks import Ranked
from ._text import options

Padding = int | tuple[int, ...]


class _Pad(Ranked):
    padding: tuple[int, ...]
    _mode = "constant"
    _value_entry = ""
    _value_example = ""
    _text = """
        Errors are those of :func:`rgrad.nn.functional.pad`.

        Args:
            padding: How much at each end; or {twice} numbers, of the start and the end of the last dimension first.
        {value_entry}
        Shape:
            ``(N, C, {sizes})`` or ``(C, {sizes})``; in the output the padded dimensions are larger.

        Example:
            >>> nn.{name}(1{value_example})(rgrad.ones(1, {twos})).shape
            rgrad.Size([1, {fours}])
    """

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        return F.pad(input, self.padding, self._mode)

    extra_repr = options(first=["padding"])

    @classmethod
    def _words(cls) -> dict[str, str]:
        return {"value_entry": cls._value_entry, "value_example": cls._value_example}


class _ConstantPadNd(_Pad):
    _value_entry = "    value: The constant.\n"
    _value_example = ", 2.0"

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        return F.pad(input, self.padding, "constant", self.value)

    extra_repr = options("padding", "value")


class _ZeroPad(_ConstantPadNd):
    _value_entry = ""
    _value_example = ""

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    extra_repr = options(first=["padding"])


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        low = self._dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with the elements at the other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with the elements at the other end."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with the elements at the other end."""

    _dims = 3


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a constant."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a constant."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a constant."""

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with the elements next to the edge in reverse order."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with the elements next to the edge in reverse order."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with the elements next to the edge in reverse order."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with the elements at the edge."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions with the elements at the edge."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with the elements at the edge."""

    _dims = 3


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last dimension with zeros."""

    _dims = 1


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two dimensions with zeros."""

    _dims = 2


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three dimensions with zeros."""

    _dims = 3
