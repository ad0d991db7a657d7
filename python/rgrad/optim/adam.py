"""Adam and AdamW."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_product, plus_quotient
from .optimizer import (
    Params,
    checked,
    checked_betas,
    checked_fused,
    checked_rate,
    option,
    scalar_state,
)


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decay_kind, amsgrad = options
    param, grad, mean, square, *rest = tensors
    shrink, decay, grow, keep, add, root, eps, rate = numbers
    if maximize:
        grad = grad.neg()
    if decay_kind == "decoupled":
        param = param.mul(shrink)
    elif decay_kind == "added":
        grad = plus(grad, param, decay)
    mean = mean.lerp(grad, grow)
    square = plus_product(square.mul(keep), grad, grad, add)
    values = {2: mean, 3: square}
    if amsgrad:
        square = values[4] = rest[0].maximum(square)
    values[0] = plus_quotient(param, mean, square.sqrt().div(root).add(eps), rate)
    return values


_update = Update(_formula)


class Adam(GroupedOptimizer):
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
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        checked_rate(lr)
        checked("epsilon", eps)
        checked_betas(betas)
        checked("weight_decay", weight_decay)
        if not (all(isinstance(b, float) for b in betas) or all(isinstance(b, Tensor) for b in betas)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if foreach and not capturable:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        betas = (option(betas[0], True), option(betas[1], True))
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
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
        checked_fused(fused, foreach, differentiable, self.param_groups)

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["exp_avg"] = _core.zeros_like(param)
        state["exp_avg_sq"] = _core.zeros_like(param)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, beta1, beta2, decay = (
            option(value, differentiable) for value in (group["lr"], *group["betas"], group["weight_decay"])
        )
        kind = "none"
        if isinstance(decay, Tensor) or decay != 0:
            kind = "decoupled" if group["decoupled_weight_decay"] else "added"
        names = ["exp_avg", "exp_avg_sq"]
        if group["amsgrad"]:
            names.append("max_exp_avg_sq")
        for count, part in self._by_count(batch):
            numbers = (
                1 - rate * decay,
                decay,
                1 - beta1,
                beta2,
                1 - beta2,
                (1 - beta2**count) ** 0.5,
                group["eps"],
                -rate / (1 - beta1**count),
            )
            yield _update.planned(
                (group["maximize"], kind, group["amsgrad"]),
                part.lists(*names),
                numbers,
                names,
                part.states if differentiable else None,
            )


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
