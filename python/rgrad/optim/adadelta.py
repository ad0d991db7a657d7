"""Adadelta."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_product
from .optimizer import Params, checked, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays = options
    param, grad, square, moved = tensors
    decay, keep, add, eps, rate = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    square = plus_product(square.mul(keep), grad, grad, add)
    delta = moved.add(eps).sqrt().div(square.add(eps).sqrt()).mul(grad)
    moved = plus_product(moved.mul(keep), delta, delta, add)
    return {2: square, 3: moved, 0: plus(param, delta, rate)}


_update = Update(_formula)


class Adadelta(GroupedOptimizer):
    """Steps of the size of earlier steps, in the units of the parameter (Zeiler 2012).

    ``v = rho v + (1 - rho) g²``; ``d = sqrt(u + eps) / sqrt(v + eps) g``; ``u = rho u + (1 - rho) d²``; ``p -= lr d``.
    ``weight_decay`` is added to the gradient. ``foreach`` and ``capturable`` change nothing.

    Raises:
        ValueError: ``lr``, ``eps`` or ``weight_decay`` negative, or ``rho`` outside [0, 1].
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        checked("epsilon", eps)
        checked("weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["square_avg"] = _core.zeros_like(param)
        state["acc_delta"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay, rho = option(group["lr"], differentiable), group["weight_decay"], group["rho"]
        names = ("square_avg", "acc_delta")
        yield _update.planned(
            (group["maximize"], decay != 0),
            batch.lists(*names),
            (decay, rho, 1 - rho, group["eps"], -rate),
            names,
            batch.states if differentiable else None,
        )
