"""Activations: functions of each element, and the softmax family."""

import warnings

from ... import _core
from ..._core import Tensor, dtype
from ..._operation.overridable import overridable
from .._docs import described

#: The texts of functions without options, and of those that may write into their input.
ELEMENTWISE = """
    Args:
        input: A tensor of any shape.

    Returns:
        A tensor of the shape of ``input``.
"""
IN_PLACE_TOO = """
    Args:
        input: A tensor of any shape.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.
"""


@overridable("input", native=_core.relu, takes=("input",))
@described(IN_PLACE_TOO)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``max(x, 0)``; the gradient at 0 is 0.

    Example:
        >>> F.relu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.0000, 0.5000, 3.0000])
    """
    return input.relu_() if inplace else _core.relu(input)


def relu_(input: Tensor) -> Tensor:
    """Compute :func:`relu` in place.

    Args:
        input: A tensor of any shape, which is overwritten.

    Returns:
        ``input``.

    Example:
        >>> x = rgrad.tensor([-1.0, 2.0])
        >>> F.relu_(x) is x
        True
        >>> x
        tensor([0., 2.])
    """
    return input.relu_()


@described(ELEMENTWISE)
def tanh(input: Tensor) -> Tensor:
    """Compute the hyperbolic tangent.

    Example:
        >>> F.tanh(rgrad.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """
    return input.tanh()


@described(ELEMENTWISE)
def sigmoid(input: Tensor) -> Tensor:
    """Compute ``1 / (1 + exp(-x))``.

    Example:
        >>> F.sigmoid(rgrad.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2689, 0.5000, 0.7311])
    """
    return input.sigmoid()


@overridable("input", native=_core.leaky_relu, takes=("input", "negative_slope"))
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute ``x`` where it is positive, else ``negative_slope * x``.

    Args:
        input: A tensor of any shape.
        negative_slope: The slope on the negative side.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Example:
        >>> F.leaky_relu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.0200,  0.5000,  3.0000])
    """
    return input.leaky_relu_(negative_slope) if inplace else _core.leaky_relu(input, negative_slope)


@overridable("input", native=_core.elu, takes=("input", "alpha"))
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``x`` where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2016).

    Args:
        input: A tensor of any shape.
        alpha: The limit on the negative side is ``-alpha``.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Example:
        >>> F.elu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.8647,  0.5000,  3.0000])
    """
    return input.elu_(alpha) if inplace else _core.elu(input, alpha)


@overridable("input", native=_core.celu, takes=("input", "alpha"))
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)`` (Barron 2017).

    Args:
        input: A tensor of any shape.
        alpha: The limit on the negative side is ``-alpha``.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Example:
        >>> F.celu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.8647,  0.5000,  3.0000])
    """
    return input.celu_(alpha) if inplace else _core.celu(input, alpha)


@overridable("input", native=_core.silu, takes=("input",))
@described(IN_PLACE_TOO)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * sigmoid(x)``.

    Example:
        >>> F.silu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.2384,  0.3112,  2.8577])
    """
    return input.silu_() if inplace else _core.silu(input)


@overridable("input", native=_core.mish, takes=("input",))
@described(IN_PLACE_TOO)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * tanh(softplus(x))`` (Misra 2019).

    Example:
        >>> F.mish(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.2525,  0.3752,  2.9865])
    """
    return input.mish_() if inplace else _core.mish(input)


@overridable("input", native=_core.gelu, takes=("input", "approximate="))
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Compute ``x * P(Z <= x)`` for a standard normal Z (Hendrycks and Gimpel 2016).

    Args:
        input: A tensor of any shape.
        approximate: ``"none"``, or ``"tanh"`` for an approximation by a hyperbolic tangent.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: ``approximate`` is neither of the two.

    Example:
        >>> F.gelu(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.0455,  0.3457,  2.9960])
    """
    return _core.gelu(input, approximate=approximate)


@overridable("input", native=_core.softplus, takes=("input", "beta", "threshold"))
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute ``log(1 + exp(beta * x)) / beta``, without overflow.

    Args:
        input: A tensor of any shape.
        beta: The sharpness of the bend at 0.
        threshold: The result is ``x`` itself where ``beta * x`` is larger.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.softplus(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.1269, 0.9741, 3.0486])
    """
    return _core.softplus(input, beta, threshold)


@overridable("input")
@described(ELEMENTWISE)
def softsign(input: Tensor) -> Tensor:
    """Compute ``x / (1 + |x|)``.

    Example:
        >>> F.softsign(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.6667,  0.3333,  0.7500])
    """
    return input / (1 + input.abs())


@overridable("input")
@described(ELEMENTWISE)
def tanhshrink(input: Tensor) -> Tensor:
    """Compute ``x - tanh(x)``.

    Example:
        >>> F.tanhshrink(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.0360,  0.0379,  2.0049])
    """
    return input - input.tanh()


@overridable("input", native=_core.logsigmoid, takes=("input",))
@described(ELEMENTWISE)
def logsigmoid(input: Tensor) -> Tensor:
    """Compute ``log(sigmoid(x))``, without overflow.

    Example:
        >>> F.logsigmoid(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-2.1269, -0.4741, -0.0486])
    """
    return _core.logsigmoid(input)


@overridable("input")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit ``x`` to ``[min_val, max_val]``.

    Args:
        input: A tensor of any shape.
        min_val: The lower limit.
        max_val: The upper limit.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Raises:
        ValueError: ``min_val`` is greater than ``max_val``.

    Example:
        >>> F.hardtanh(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: got {min_val} and {max_val}")
    return input.hardtanh_(min_val, max_val) if inplace else _core.hardtanh(input, min_val, max_val)


@overridable("input")
@described(IN_PLACE_TOO)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Limit ``x`` to ``[0, 6]``.

    Example:
        >>> F.relu6(rgrad.tensor([-2.0, 0.5, 7.0]))
        tensor([0.0000, 0.5000, 6.0000])
    """
    return input.hardtanh_(0.0, 6.0) if inplace else _core.hardtanh(input, 0.0, 6.0)


@overridable("input", native=_core.hardsigmoid, takes=("input",))
@described(IN_PLACE_TOO)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x / 6 + 1 / 2``, limited to ``[0, 1]``.

    Example:
        >>> F.hardsigmoid(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([0.1667, 0.5833, 1.0000])
    """
    return input.hardsigmoid_() if inplace else _core.hardsigmoid(input)


@overridable("input", native=_core.hardswish, takes=("input",))
@described(IN_PLACE_TOO)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * hardsigmoid(x)`` (Howard et al. 2019).

    Example:
        >>> F.hardswish(rgrad.tensor([-2.0, 0.5, 3.0]))
        tensor([-0.3333,  0.2917,  3.0000])
    """
    return input.hardswish_() if inplace else _core.hardswish(input)


@overridable("input", native=_core.hardshrink, takes=("input", "lambd"))
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Compute ``x`` where ``|x| > lambd``, else 0.

    Args:
        input: A tensor of any shape.
        lambd: The half width of the interval that gives 0.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.hardshrink(rgrad.tensor([-2.0, 0.3, 3.0]))
        tensor([-2.,  0.,  3.])
    """
    return _core.hardshrink(input, lambd)


@overridable("input", native=_core.softshrink, takes=("input", "lambd"))
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move ``x`` towards 0 by ``lambd``; it is 0 where ``|x| <= lambd``.

    Args:
        input: A tensor of any shape.
        lambd: How far.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.softshrink(rgrad.tensor([-2.0, 0.3, 3.0]))
        tensor([-1.5000,  0.0000,  2.5000])
    """
    return _core.softshrink(input, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Compute ``x`` where it is above ``threshold``, else ``value``.

    Args:
        input: A tensor of any shape.
        threshold: The largest input that is replaced.
        value: What replaces it.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Example:
        >>> F.threshold(rgrad.tensor([-2.0, 0.5, 3.0]), 1.0, 9.0)
        tensor([9., 9., 3.])
    """
    return input.threshold_(threshold, value) if inplace else _core.threshold(input, threshold, value)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 2,
    )
    return 0 if ndim in (0, 1, 3) else 1


@overridable("input", native=_core.softmax, takes=("input", "dim"))
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """Compute ``exp(x) / sum(exp(x))`` along ``dim``.

    Args:
        input: A tensor of any shape.
        dim: The dimension along which the results sum to 1.
        _stacklevel: How many frames above the warning about a missing ``dim`` points.
        dtype: A dtype that the input is cast to first.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.softmax(rgrad.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.0900, 0.2447, 0.6652])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return _core.softmax(input, dim) if dtype is None else _core.softmax(input.to(dtype), dim)


@overridable("input")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """Compute the softmax of ``-x`` along ``dim``.

    Args:
        input: A tensor of any shape.
        dim: The dimension along which the results sum to 1.
        _stacklevel: How many frames above the warning about a missing ``dim`` points.
        dtype: A dtype that the input is cast to first.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.softmin(rgrad.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.6652, 0.2447, 0.0900])
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


@overridable("input", native=_core.log_softmax, takes=("input", "dim"))
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """Compute ``log(softmax(x))`` along ``dim``, without overflow.

    Args:
        input: A tensor of any shape.
        dim: The dimension along which the exponentials of the results sum to 1.
        _stacklevel: How many frames above the warning about a missing ``dim`` points.
        dtype: A dtype that the input is cast to first.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.log_softmax(rgrad.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([-2.4076, -1.4076, -0.4076])
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return _core.log_softmax(input, dim) if dtype is None else _core.log_softmax(input.to(dtype), dim)
