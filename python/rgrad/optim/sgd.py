"""Stochastic gradient descent."""

from collections.abc import Callable
from typing import Any

from .._core import Tensor, _set_grad_enabled, is_grad_enabled
from .optimizer import Optimizer, Params, number, refuse_differentiable


class SGD(Optimizer):
    """``v = momentum v + (1 - dampening) g``; ``p = p - lr v``, where g has ``weight_decay p`` added.

    With ``nesterov`` the update is ``g + momentum v`` (Sutskever et al. 2013); ``maximize`` goes uphill. ``foreach``
    and ``fused`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr``, ``momentum`` or ``weight_decay`` is negative, or nesterov is given without momentum or with
            dampening.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if number("lr", lr) < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        refuse_differentiable("SGD", differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; returns what ``closure`` returned."""
        loss = self._loss(closure)
        mode = is_grad_enabled()
        _set_grad_enabled(False)
        try:
            for group in self.param_groups:
                alpha = -number("lr", group["lr"])
                if group["momentum"] == 0 and group["weight_decay"] == 0:
                    if group["maximize"]:
                        alpha = -alpha
                    for param in group["params"]:
                        grad = param.grad
                        if grad is not None:
                            param.add_(grad, alpha=alpha)
                else:
                    self._step_group(group, alpha)
        finally:
            _set_grad_enabled(mode)
        return loss

    def _step_group(self, group: dict[str, Any], alpha: float) -> None:
        momentum, nesterov, decay, maximize = (
            group[name] for name in ("momentum", "nesterov", "weight_decay", "maximize")
        )
        keep = 1 - group["dampening"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if maximize:
                grad = -grad
            if decay != 0:
                grad = grad.add(param, alpha=decay)
            if momentum != 0:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = grad.detach().clone()
                else:
                    buffer.mul_(momentum).add_(grad, alpha=keep)
                grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
            param.add_(grad, alpha=alpha)
