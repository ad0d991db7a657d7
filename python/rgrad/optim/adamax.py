"""Adamax."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_quotient
from .optimizer import Params, checked, checked_betas, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays = options
    param, grad, mean, largest = tensors
    decay, grow, keep, eps, rate = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    mean = mean.lerp(grad, grow)
    largest = largest.mul(keep).maximum(grad.abs().add(eps))
    return {2: mean, 3: largest, 0: plus_quotient(param, mean, largest, rate)}


_update = Update(_formula)


class Adamax(GroupedOptimizer):
    """Adam with the largest gradient so far in place of the root of squares (Kingma and Ba 2015).

    ``u = max(b2 u, |g| + eps)``; ``p -= lr / (1 - b1^t) m / u``. ``weight_decay`` is added to the gradient. ``foreach``
    and ``capturable`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr``, ``eps`` or ``weight_decay`` negative, or a beta outside [0, 1).
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
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
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["exp_avg"] = _core.zeros_like(param)
        state["exp_inf"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay = option(group["lr"], differentiable), group["weight_decay"]
        beta1, beta2 = group["betas"]
        names = ("exp_avg", "exp_inf")
        for count, part in self._by_count(batch):
            numbers = (decay, 1 - beta1, beta2, group["eps"], -rate / (1 - beta1**count))
            yield _update.planned(
                (group["maximize"], decay != 0),
                part.lists(*names),
                numbers,
                names,
                part.states if differentiable else None,
            )
