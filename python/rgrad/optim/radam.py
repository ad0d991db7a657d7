"""RAdam."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_product
from .optimizer import Params, checked, checked_betas, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decay_kind, rectified = options
    param, grad, mean, square = tensors
    shrink, decay, grow, keep, add, correction, eps, rate = numbers
    if maximize:
        grad = grad.neg()
    if decay_kind == "decoupled":
        param = param.mul(shrink)
    elif decay_kind == "added":
        grad = plus(grad, param, decay)
    mean = mean.lerp(grad, grow)
    square = plus_product(square.mul(keep), grad, grad, add)
    step = mean.div(correction)
    if rectified:
        step = step.div(square.sqrt().add(eps))
    return {2: mean, 3: square, 0: plus(param, step, rate)}


_update = Update(_formula)


class RAdam(GroupedOptimizer):
    """Adam whose first steps are plain momentum, until the variance of the squares is known (Liu et al. 2020).

    The length of the average of squares, ``rho = rho_inf - 2 t b2^t / (1 - b2^t)`` with ``rho_inf = 2 / (1 - b2) - 1``,
    must be above 5 for a step to be divided by their root; that step is scaled by
    ``sqrt((rho - 4)(rho - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho))``. ``weight_decay`` is added to the gradient,
    or shrinks the parameter if ``decoupled_weight_decay``. ``foreach`` and ``capturable`` change nothing.

    Raises:
        ValueError: ``lr``, ``eps`` or ``weight_decay`` negative, or a beta outside [0, 1).
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        checked("epsilon", eps)
        checked_betas(betas)
        checked("weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["exp_avg"] = _core.zeros_like(param)
        state["exp_avg_sq"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay = option(group["lr"], differentiable), group["weight_decay"]
        beta1, beta2 = group["betas"]
        kind = ("decoupled" if group["decoupled_weight_decay"] else "added") if decay != 0 else "none"
        names = ("exp_avg", "exp_avg_sq")
        for count, part in self._by_count(batch):
            correction = 1 - beta2**count
            longest = 2 / (1 - beta2) - 1
            length = longest - 2 * count * beta2**count / correction
            scale = -rate
            if length > 5.0:
                ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                scale = -rate * ratio**0.5 * correction**0.5
            numbers = (
                1 - rate * decay,
                decay,
                1 - beta1,
                beta2,
                1 - beta2,
                1 - beta1**count,
                group["eps"],
                scale,
            )
            yield _update.planned(
                (group["maximize"], kind, length > 5.0),
                part.lists(*names),
                numbers,
                names,
                part.states if differentiable else None,
            )
