"""Limits for gradients."""

import math
import warnings
from collections.abc import Iterable
from types import GeneratorType

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in tensors if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of tensors as if they were one vector.

    Args:
        tensors: A tensor or several, mostly gradients.
        norm_type: The order of the norm.
        error_if_nonfinite: Raise if the norm is nan or infinite.
        foreach: Accepted for PyTorch's sake; it has no effect.

    Returns:
        A tensor without dimensions on the device of the first tensor.

    Raises:
        RuntimeError: The norm is not finite and ``error_if_nonfinite`` is set.

    Example:
        >>> nn.utils.get_total_norm([rgrad.tensor([3.0]), rgrad.tensor([4.0])])
        tensor(5.)
    """
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not found:
        return _core.tensor(0.0)
    home = found[0].device
    norm: Tensor = _core.stack([t.norm(norm_type).to(home) for t in found]).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return norm


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients in place by ``max_norm / total_norm``, where that is less than 1.

    Args:
        parameters: A tensor or several, whose ``.grad`` is scaled.
        max_norm: The largest norm.
        total_norm: The norm that they have, from :func:`get_total_norm`.
        foreach: Accepted for PyTorch's sake; it has no effect.

    Example:
        >>> w = rgrad.zeros(1, requires_grad=True)
        >>> w.grad = rgrad.tensor([4.0])
        >>> nn.utils.clip_grads_with_norm_(w, 1.0, rgrad.tensor(8.0))
        >>> w.grad
        tensor([0.5000])
    """
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _gradients(parameters):
        grad.mul_(scale.to(grad.device, grad.dtype))


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients in place so that the norm of all of them together is ``max_norm`` at most (Pascanu et al. 2013).

    Args:
        parameters: A tensor or several, whose ``.grad`` is scaled; those without are left out.
        max_norm: The largest norm.
        norm_type: The order of the norm.
        error_if_nonfinite: Raise if the norm is nan or infinite.
        foreach: Accepted for PyTorch's sake; it has no effect.

    Returns:
        The norm before, a tensor without dimensions on the device of the first gradient.

    Raises:
        RuntimeError: The norm is not finite and ``error_if_nonfinite`` is set.

    Example:
        >>> w = rgrad.zeros(2, requires_grad=True)
        >>> (w * rgrad.tensor([3.0, 4.0])).sum().backward()
        >>> nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    is_generator = isinstance(parameters, GeneratorType)
    params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if is_generator and not params:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    norm = get_total_norm(_gradients(params), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(params, max_norm, norm)
    return norm


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limit every entry of the gradients to ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: A tensor or several, whose ``.grad`` is limited.
        clip_value: The limit.
        foreach: Accepted for PyTorch's sake; it has no effect.

    Example:
        >>> w = rgrad.zeros(2, requires_grad=True)
        >>> (w * rgrad.tensor([3.0, -0.5])).sum().backward()
        >>> nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    for grad in _gradients(parameters):
        grad.clamp_(-float(clip_value), float(clip_value))


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """As :func:`clip_grad_norm_`, under its old name."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
