"""Adam and AdamW."""

import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, _set_grad_enabled, is_grad_enabled
from .optimizer import Optimizer, Params, number, refuse_differentiable


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015): steps by the mean of gradients over the root of the mean of their squares.

    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g²``, ``p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)``.
    ``weight_decay`` is added to the gradient, or shrinks the parameter if ``decoupled_weight_decay``
    (Loshchilov and Hutter 2019); ``amsgrad`` divides by the largest v so far (Reddi et al. 2018). ``foreach``,
    ``capturable`` and ``fused`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr``, ``eps`` or ``weight_decay`` negative, or a beta outside [0, 1).
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if not number("lr", lr) >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        numbers = tuple(number(f"betas[{i}]", beta) for i, beta in enumerate(betas))
        for i, beta in enumerate(numbers):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        refuse_differentiable(type(self).__name__, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": numbers,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _start(self, param: Tensor, state: dict[str, Any], amsgrad: bool) -> None:
        # float32, as PyTorch's: exact for 2^24 steps. On the CPU wherever the parameter is: the step reads it.
        state["step"] = _core.tensor(0.0, dtype=_core.float32, device="cpu")
        state["exp_avg"] = _core.zeros_like(param)
        state["exp_avg_sq"] = _core.zeros_like(param)
        if amsgrad:
            state["max_exp_avg_sq"] = _core.zeros_like(param)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; returns what ``closure`` returned."""
        loss = self._loss(closure)
        mode = is_grad_enabled()
        _set_grad_enabled(False)
        try:
            for group in self.param_groups:
                self._step_group(group)
        finally:
            _set_grad_enabled(mode)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        lr = number("lr", group["lr"])
        beta1, beta2 = group["betas"]
        eps, decay, amsgrad, maximize = group["eps"], group["weight_decay"], group["amsgrad"], group["maximize"]
        decoupled = group["decoupled_weight_decay"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = self.state[param]
            if not state:
                self._start(param, state, amsgrad)
            if maximize:
                grad = -grad
            if decay != 0:
                if decoupled:
                    param.mul_(1 - lr * decay)
                else:
                    grad = grad.add(param, alpha=decay)
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            count = state["step"]
            if isinstance(count, Tensor):
                steps = count.add_(1).item()
            else:
                steps = state["step"] = count + 1
            if amsgrad:
                largest = state["max_exp_avg_sq"]
                largest.copy_(_core.maximum(largest, square))
                square = largest
            denom = square.sqrt().div_(math.sqrt(1 - beta2**steps)).add_(eps)
            param.addcdiv_(mean, denom, value=-lr / (1 - beta1**steps))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): ``p -= lr weight_decay p`` before each step.

    Raises:
        ValueError: As :class:`Adam`.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # States saved before the option existed are AdamW's all the same.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
