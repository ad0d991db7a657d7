"""Activations with a slope of their own on the negative side, gates, and the in-place forms of activations."""

import math
import warnings

from ... import _core
from ..._core import Tensor
from ..._operation.composed import type_name
from ..._operation.overridable import overridable
from .._docs import described
from ._activation import IN_PLACE_TOO, hardtanh, leaky_relu, softmax

# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Compute ``x`` where it is positive, else ``weight * x`` (He et al. 2015).

    Args:
        input: A tensor of any shape; its channels are dimension 1.
        weight: One number, or a vector with one for each channel.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: ``weight`` has another number of elements than 1 or the channels, or another dtype.

    Example:
        >>> F.prelu(rgrad.tensor([[-2.0, -2.0, 3.0]]), rgrad.tensor([0.1, 0.2, 0.3]))
        tensor([[-0.2000, -0.4000,  3.0000]])
    """
    return _core.prelu(input, weight)


@overridable("input")
@described(IN_PLACE_TOO)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``scale * (x if x > 0 else alpha * (exp(x) - 1))`` with the constants of Klambauer et al. (2017).

    They keep activations at mean 0 and variance 1.

    Example:
        >>> F.selu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.5202,  0.5254,  3.1521])
    """
    if inplace:
        return input.elu_(_SELU_ALPHA, _SELU_SCALE)
    return _core.elu(input, _SELU_ALPHA, _SELU_SCALE)


@overridable("input")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Compute ``a * sigmoid(b)`` of the two halves of ``input`` along ``dim`` (Dauphin et al. 2017).

    Args:
        input: A tensor with an even size along ``dim``.
        dim: The dimension that is halved.

    Returns:
        A tensor of half the size along ``dim``.

    Raises:
        RuntimeError: The size is odd, or ``input`` has no dimensions.

    Example:
        >>> F.glu(rgrad.tensor([1.0, 2.0, 0.0, 3.0]))
        tensor([0.5000, 1.9051])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        at = dim % input.dim()
        raise RuntimeError(f"Halving dimension must be even, but dimension {at} is size {size}")
    if input.is_complex():
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{type_name(input.dtype)}'")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"glu is not implemented for {input.dtype}: it takes a float tensor")
    return input.narrow(dim, 0, size // 2) * input.narrow(dim, size // 2, size // 2).sigmoid()


@overridable("input")
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Compute ``x`` where it is positive, else ``a * x`` with a random slope ``a`` (Xu et al. 2015).

    In training each element has its own slope, uniform in ``[lower, upper)``; else it is the mean of the two.

    Args:
        input: A tensor of any shape.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether slopes are random.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Raises:
        RuntimeError: ``lower`` is greater than ``upper``.

    Example:
        >>> F.rrelu(rgrad.tensor([-24.0, 3.0]))
        tensor([-5.5000,  3.0000])
        >>> slope = F.rrelu(rgrad.tensor([-1.0]), 0.2, 0.3, training=True)
        >>> -0.3 <= slope.item() <= -0.2
        True
    """
    if not lower <= upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound: rrelu got lower = {lower}, upper = {upper}"
        )
    if not math.isfinite(lower) or not math.isfinite(upper):
        raise RuntimeError(f"rrelu: bounds must be finite, got lower = {lower}, upper = {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = _core.rand_like(input.detach()) * (upper - lower) + lower
    noise = _core.where(input.detach() > 0, _core.ones_like(slope), slope)
    return input.mul_(noise) if inplace else input * noise


@overridable("logits")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draw from the Gumbel-softmax distribution (Jang et al. 2017, Maddison et al. 2017).

    Args:
        logits: Unnormalised log probabilities of any shape.
        tau: The temperature.
        hard: Give one-hot vectors, whose gradient is that of the soft ones.
        eps: Without effect.
        dim: The dimension along which the results sum to 1.

    Returns:
        A tensor of the shape of ``logits``.

    Example:
        >>> F.gumbel_softmax(rgrad.zeros(2, 3), hard=True).sum(-1)
        tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    uniform = _core.rand_like(logits.detach())
    # -log(-log(u)) of a uniform u in (0, 1]; 1 - rand keeps the inner logarithm from -inf.
    gumbels = -(-(1 - uniform).clamp(max=1 - 2.0**-24).log()).log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    ones = _core.ones_like(index, dtype=soft.dtype)
    chosen = _core.zeros_like(soft.detach()).scatter(dim, index, ones)
    return chosen - soft.detach() + soft


@overridable("input")
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute :func:`elu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        alpha: The limit on the negative side is ``-alpha``.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([0.0, 2.0])
        >>> F.elu_(x) is x
        True
        >>> x
        tensor([0., 2.])
    """
    return input.elu_(alpha)


@overridable("input")
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute :func:`celu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        alpha: The limit on the negative side is ``-alpha``.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([0.0, 2.0])
        >>> F.celu_(x) is x
        True
        >>> x
        tensor([0., 2.])
    """
    return input.celu_(alpha)


@overridable("input")
def selu_(input: Tensor) -> Tensor:
    """Compute :func:`selu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([0.0, 2.0])
        >>> F.selu_(x) is x
        True
        >>> x
        tensor([0.0000, 2.1014])
    """
    return input.elu_(_SELU_ALPHA, _SELU_SCALE)


@overridable("input")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Compute :func:`leaky_relu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        negative_slope: The slope on the negative side.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([-2.0, 2.0])
        >>> F.leaky_relu_(x, 0.5) is x
        True
        >>> x
        tensor([-1.,  2.])
    """
    return input.leaky_relu_(negative_slope)


@overridable("input")
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Compute :func:`hardtanh` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        min_val: The lower limit.
        max_val: The upper limit.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([-2.0, 0.5])
        >>> F.hardtanh_(x) is x
        True
        >>> x
        tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, True)


@overridable("input")
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Compute :func:`threshold` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        threshold: The largest input that is replaced.
        value: What replaces it.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([-2.0, 3.0])
        >>> F.threshold_(x, 1.0, 9.0) is x
        True
        >>> x
        tensor([9., 3.])
    """
    return input.threshold_(threshold, value)


@overridable("input")
def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Compute :func:`rrelu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether slopes are random.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([0.0, 2.0])
        >>> F.rrelu_(x) is x
        True
        >>> x
        tensor([0., 2.])
    """
    return rrelu(input, lower, upper, training, True)
