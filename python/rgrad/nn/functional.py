"""Functions behind the modules of ``rgrad.nn``; nothing in here has state.

Activations and losses are native; what is composed of tensor operations here (soft targets, label smoothing) is
differentiable to every order like everything else.
"""

import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from ..overrides import handle_torch_function as _handle
from ..overrides import has_torch_function_variadic as _overridden

linear = _core.linear
softmax_native = _core.softmax
log_softmax_native = _core.log_softmax
_relu = _core.relu
_REDUCTIONS = ("none", "mean", "sum")


def _asked(func: Callable[..., Tensor], arguments: dict[str, Any]) -> Tensor:
    """What those with a ``__torch_function__`` give for a call; arguments without a default are positional in it."""
    count = func.__code__.co_argcount - len(func.__defaults__ or ())
    names = list(arguments)
    values = [arguments[name] for name in names[:count]]
    named = {name: arguments[name] for name in names[count:]}
    answer: Tensor = _handle(func, tuple(arguments.values()), *values, **named)
    return answer


def _reduction(
    reduction: str, size_average: bool | None = None, reduce: bool | None = None, stacklevel: int = 3
) -> str:
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; expected one of {', '.join(_REDUCTIONS)}")
    return reduction


def _reduce(value: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return value.mean()
    return value.sum() if reduction == "sum" else value


# Activations.


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; the gradient at 0 is 0."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(relu, locals())
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """:func:`relu`, in place."""
    return input.relu_()


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(leaky_relu, locals())
    return input.leaky_relu_(negative_slope) if inplace else _core.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(elu, locals())
    return input.elu_(alpha) if inplace else _core.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(celu, locals())
    return input.celu_(alpha) if inplace else _core.celu(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(silu, locals())
    return input.silu_() if inplace else _core.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(mish, locals())
    return input.mish_() if inplace else _core.mish(input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x * P(Z <= x)`` for a standard normal Z (Hendrycks and Gimpel 2016), exact or by a tanh.

    Raises RuntimeError unless ``approximate`` is ``"none"`` or ``"tanh"``.
    """
    if type(input) is not Tensor and _overridden(input):
        return _asked(gelu, locals())
    return _core.gelu(input, approximate=approximate)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; the identity where ``beta * x > threshold``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(softplus, locals())
    return _core.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(softsign, locals())
    return input / (1 + input.abs())


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(tanhshrink, locals())
    return input - input.tanh()


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))``, without overflow."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(logsigmoid, locals())
    return _core.logsigmoid(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` limited to ``[min_val, max_val]``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(hardtanh, locals())
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: got {min_val} and {max_val}")
    return input.hardtanh_(min_val, max_val) if inplace else _core.hardtanh(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``x`` limited to ``[0, 6]``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(relu6, locals())
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``x / 6 + 1 / 2`` limited to ``[0, 1]``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(hardsigmoid, locals())
    return input.hardsigmoid_() if inplace else _core.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(hardswish, locals())
    return input.hardswish_() if inplace else _core.hardswish(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where ``|x| > lambd``, else 0."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(hardshrink, locals())
    return _core.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``lambd``, and 0 where ``|x| <= lambd``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(softshrink, locals())
    return _core.softshrink(input, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where above ``threshold``, else ``value``."""
    return input.threshold_(threshold, value) if inplace else _core.threshold(input, threshold, value)


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim``; ``dtype`` casts the input first."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(softmax, locals())
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return softmax_native(input, dim) if dtype is None else softmax_native(input.to(dtype), dim)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """:func:`softmax` of ``-x``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(softmin, locals())
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """``log(softmax(x))`` along ``dim``, without overflow."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(log_softmax, locals())
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return log_softmax_native(input, dim) if dtype is None else log_softmax_native(input.to(dtype), dim)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``x / max(norm(x, p, dim), eps)``."""
    if type(input) is not Tensor and _overridden(input):
        return _asked(normalize, locals())
    norm = input.norm(p, dim, keepdim=True).clamp(min=eps).expand_as(input)
    return input / norm if out is None else _core.div(input, norm, out=out)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``; the identity if not training.

    Raises ValueError unless ``0 <= p <= 1``.
    """
    if type(input) is not Tensor and _overridden(input):
        return _asked(dropout, locals())
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not inplace:
        return _core.dropout(input, p, training)
    return input.mul_(_core.dropout(_core.ones_like(input), p, training)) if training else input


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class indices of shape ``(*)`` as int64 indicators of shape ``(*, num_classes)``.

    ``num_classes=-1`` takes one more than the largest index.

    Raises:
        RuntimeError: a dtype other than int64, an index out of range, or no index to infer ``num_classes`` from.
    """
    if type(tensor) is not Tensor and _overridden(tensor):
        return _asked(one_hot, locals())
    if tensor.dtype != _core.int64:
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor (int64), but got {tensor.dtype}"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return _core.zeros(*tensor.shape, num_classes, dtype=_core.int64, device=tensor.device)
    if int(tensor.min()) < 0:
        raise RuntimeError(f"Class values must be non-negative, but got {int(tensor.min())}.")
    top = int(tensor.max())
    if num_classes == -1:
        num_classes = top + 1
    elif num_classes < 1:
        raise RuntimeError(f"num_classes should be positive, but got {num_classes}")
    elif top >= num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes: got {top}, num_classes is {num_classes}.")
    return (tensor.unsqueeze(-1) == _core.arange(num_classes, device=tensor.device)).to(_core.int64)


# Losses.


def _expanded(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            f"This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size "
            f"in {name}.",
            UserWarning,
            stacklevel=3,
        )
        # A mismatch that does not broadcast is the native operation's to report.
        shape = (input.detach() + target.detach()).shape
        return input.expand(shape), target.expand(shape)
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared error, per element (``"none"``) or reduced; ``weight`` has the shape of ``input``."""
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(mse_loss, locals())
    reduction = _reduction(reduction, size_average, reduce)
    input, target = _expanded("mse_loss", input, target)
    if weight is None:
        return _core.mse_loss(input, target, reduction)
    return _weighted(_core.mse_loss(input, target, "none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute error, per element (``"none"``) or reduced; ``weight`` has the shape of ``input``."""
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(l1_loss, locals())
    reduction = _reduction(reduction, size_average, reduce)
    input, target = _expanded("l1_loss", input, target)
    if weight is None:
        return _core.l1_loss(input, target, reduction)
    return _weighted(_core.l1_loss(input, target, "none"), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size: got {weight.shape} and {loss.shape}.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``0.5 d² / beta`` where ``|d| < beta``, else ``|d| - 0.5 beta``; the absolute error for ``beta=0``."""
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target):
        return _asked(smooth_l1_loss, locals())
    reduction = _reduction(reduction, size_average, reduce)
    input, target = _expanded("smooth_l1_loss", input, target)
    return _core.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``0.5 d²`` where ``|d| < delta``, else ``delta (|d| - 0.5 delta)`` (Huber 1964)."""
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(huber_loss, locals())
    reduction = _reduction(reduction)
    input, target = _expanded("huber_loss", input, target)
    if weight is None:
        return _core.huber_loss(input, target, reduction, delta)
    return _weighted(_core.huber_loss(input, target, "none", delta), weight, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of class indices.

    Args:
        input: log probabilities of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: int64 class indices of shape ``()``, ``(N)`` or ``(N, d1, ...)``.
        weight: one factor for each class; a mean is over the weights of the targets.
        ignore_index: targets that count nothing.

    Raises:
        ValueError, RuntimeError: batch sizes or shapes differ. IndexError: a class out of range.
    """
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(nll_loss, locals())
    return _core.nll_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy between the softmax of ``input`` along the class dimension and ``target``.

    Args:
        input: scores of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: int64 class indices as in :func:`nll_loss`, or probabilities of the shape of ``input``.
        weight: one factor for each class.
        ignore_index: class indices that count nothing.
        label_smoothing: part of the target, in [0, 1], that is spread evenly over all classes
            (Szegedy et al. 2016).

    Raises:
        RuntimeError, ValueError: shapes differ, or ``label_smoothing`` out of range. IndexError: class out of range.
    """
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(cross_entropy, locals())
    reduction = _reduction(reduction, size_average, reduce)
    return _core.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of ``sigmoid(input)`` and ``target`` (same shape), without overflow.

    ``weight`` rescales elements, ``pos_weight`` the positive part; both broadcast to ``input``.

    Raises ValueError if shapes of input and target differ.
    """
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight, pos_weight):
        return _asked(binary_cross_entropy_with_logits, locals())
    reduction = _reduction(reduction, size_average, reduce)
    return _core.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of probabilities ``input`` and ``target`` (same shape).

    Logarithms are limited to -100 or more, as PyTorch's.

    Raises:
        ValueError: shapes differ. RuntimeError: a probability outside [0, 1].
    """
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target, weight):
        return _asked(binary_cross_entropy, locals())
    reduction = _reduction(reduction, size_average, reduce)
    return _core.binary_cross_entropy(input, target, weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback-Leibler divergence ``target * (log(target) - input)`` of log probabilities ``input``.

    ``reduction="batchmean"`` divides the sum by the batch size, which is the divergence of the definition.
    """
    if (type(input) is not Tensor or type(target) is not Tensor) and _overridden(input, target):
        return _asked(kl_div, locals())
    batchmean = reduction == "batchmean"
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' "
            "divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    reduction = _reduction("sum" if batchmean else reduction, size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 0 log 0 is 0; the logarithm is taken of ones there, to keep nan out of derivatives too.
        positive = target > 0
        safe = _core.where(positive, target, _core.ones_like(target))
        loss = _core.where(positive, target * safe.log(), _core.zeros_like(target)) - target * input
    loss = _reduce(loss, reduction)
    return loss / input.shape[0] if batchmean and input.dim() else loss
