"""Activations as modules: each applies the function of its name to every element."""

import warnings

from ... import _core
from ..._core import Tensor
from .. import functional as F
from ._activation_other import GLU, PReLU, RReLU, Softmax2d, Softmin, _AlongDim
from ._attention import MultiheadAttention
from ._text import options
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

_relu = _core.relu
_tanh = _core.tanh
_sigmoid = _core.sigmoid


class _Inplace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    extra_repr = options(unless={"inplace": False})


class ReLU(_Inplace):
    """``max(x, 0)``; the gradient at 0 is 0.

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.ReLU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.0000, 0.5000, 3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return input.relu_() if self.inplace else _relu(input)


class Tanh(Module):
    """The hyperbolic tangent.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Tanh()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.9640,  0.4621,  0.9951])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return _tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Sigmoid()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.1192, 0.6225, 0.9526])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return _sigmoid(input)


class LeakyReLU(Module):
    """``x`` where it is positive, else ``negative_slope * x``.

    Args:
        negative_slope: The slope on the negative side.
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.LeakyReLU(0.1)(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.2000,  0.5000,  3.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    extra_repr = options("negative_slope", unless={"inplace": False})


class _Alpha(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    extra_repr = options("alpha", unless={"inplace": False})


class ELU(_Alpha):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2016).

    Args:
        alpha: The limit on the negative side is ``-alpha``.
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.ELU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.elu(input, self.alpha, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``.

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.SiLU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.2384,  0.3112,  2.8577])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))`` (Misra 2019).

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Mish()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.2525,  0.3752,  2.9865])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """``x / 6 + 1 / 2``, limited to ``[0, 1]``.

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Hardsigmoid()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.1667, 0.5833, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """``x * hardsigmoid(x)`` (Howard et al. 2019).

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Hardswish()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.3333,  0.2917,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class SELU(_Inplace):
    """``scale * (x if x > 0 else alpha * (exp(x) - 1))``, which keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.SELU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.5202,  0.5254,  3.1521])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.selu(input, self.inplace)


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Tanhshrink()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.0360,  0.0379,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.tanhshrink(input)


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    extra_repr = options(first=["lambd"])


class Hardshrink(_Shrink):
    """``x`` where ``|x| > lambd``, else 0.

    Args:
        lambd: The half width of the interval that gives 0.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Hardshrink()(rgrad.tensor([-2.0, 0.3, 3.0]))
        tensor([-2.,  0.,  3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """``x`` moved towards 0 by ``lambd``, and 0 where ``|x| <= lambd``.

    Args:
        lambd: How far.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Softshrink()(rgrad.tensor([-2.0, 0.3, 3.0]))
        tensor([-1.5000,  0.0000,  2.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """``x`` where it is above ``threshold``, else ``value``.

    Args:
        threshold: The largest input that is replaced.
        value: What replaces it.
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Threshold(1.0, 9.0)(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([9., 9., 3.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    extra_repr = options("threshold", "value", unless={"inplace": False})


class CELU(_Alpha):
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)`` (Barron 2017).

    Args:
        alpha: The limit on the negative side is ``-alpha``.
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.CELU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """``x * P(Z <= x)`` for a standard normal Z (Hendrycks and Gimpel 2016).

    Args:
        approximate: ``"none"``, or ``"tanh"`` for an approximation by a hyperbolic tangent.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.GELU()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.0455,  0.3457,  2.9960])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.gelu(input, self.approximate)

    extra_repr = options("approximate")


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, without overflow.

    Args:
        beta: The sharpness of the bend at 0.
        threshold: The result is ``x`` itself where ``beta * x`` is larger.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Softplus()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.1269, 0.9741, 3.0486])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.softplus(input, self.beta, self.threshold)

    extra_repr = options("beta", "threshold")


class Softsign(Module):
    """``x / (1 + |x|)``.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Softsign()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.6667,  0.3333,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.softsign(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``, without overflow.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.LogSigmoid()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-2.1269, -0.4741, -0.0486])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.logsigmoid(input)


class Hardtanh(Module):
    """``x`` limited to ``[min_val, max_val]``.

    Args:
        min_val: The lower limit.
        max_val: The upper limit.
        inplace: Write the result into the input.
        min_value: Old name of ``min_val``.
        max_value: Old name of ``max_val``.

    Raises:
        ValueError: ``max_val`` is not above ``min_val``.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Hardtanh()(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn(
                "keyword arguments `min_value` and `max_value` are deprecated and renamed to `min_val` and `max_val`",
                FutureWarning,
                stacklevel=2,
            )
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if min_val >= max_val:
            raise ValueError(f"max_val must be larger than min_val: got {min_val} and {max_val}")

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    extra_repr = options("min_val", "max_val", unless={"inplace": False})


class ReLU6(Hardtanh):
    """``x`` limited to ``[0, 6]``.

    Args:
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.ReLU6()(rgrad.tensor([-2.0, 0.5, 7.0]))
        tensor([0.0000, 0.5000, 6.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    extra_repr = options(unless={"inplace": False})


class Softmax(_AlongDim):
    """``exp(x) / sum(exp(x))`` along ``dim``.

    Args:
        dim: The dimension along which the results sum to 1.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Softmax(dim=0)(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """``log(softmax(x))`` along ``dim``, without overflow.

    Args:
        dim: The dimension along which the exponentials of the results sum to 1.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.LogSoftmax(dim=0)(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.log_softmax(input, self.dim)
