"""Limits for gradients."""

import math
from collections.abc import Iterable

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in tensors if p.grad is not None]


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
    grads = _gradients(parameters)
    if not grads:
        return _core.tensor(0.0)
    home = grads[0].device
    norm: Tensor = _core.stack([grad.norm(norm_type).to(home) for grad in grads]).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(scale.to(grad.device, grad.dtype))
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
