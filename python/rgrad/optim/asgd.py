"""ASGD."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, check_write, plus
from .optimizer import Params, checked, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays, copies = options
    param, grad, average = tensors
    decay, shrink, rate, weight = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    param = plus(param.mul(shrink), grad, rate)
    average = param.mul(1.0) if copies else average.add(param.sub(average).mul(weight))
    return {2: average, 0: param}


_update = Update(_formula)


def _set_rates(states: list[dict[str, Any]], eta: Tensor, mu: Tensor) -> None:
    for state in states:
        state["eta"].copy_(eta)
        state["mu"].copy_(mu)


class ASGD(GroupedOptimizer):
    """Gradient descent with a falling rate that averages the parameters it passes (Polyak and Juditsky 1992).

    ``p = (1 - lambd eta) p - eta g`` with ``eta = lr / (1 + lambd lr t)^alpha``; from step ``t0`` on ``ax`` is the mean
    of the parameters. ``weight_decay`` is added to the gradient. ``foreach`` and ``capturable`` change nothing.

    Raises:
        ValueError: ``lr`` or ``weight_decay`` is negative.
    """

    _counters = ("step", "eta", "mu")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checked_rate(lr)
        checked("weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["eta"] = scalar_state(option(group["lr"], False))
        state["mu"] = scalar_state(1.0)
        state["ax"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay, lambd = option(group["lr"], False), group["weight_decay"], group["lambd"]
        for count, counted in self._by_count(batch):
            # In the dtype of new states first, whatever dtype they were loaded in: as PyTorch does.
            eta_after = scalar_state(rate / (1 + lambd * rate * count) ** group["alpha"])
            mu_after = scalar_state(1 / max(1, count - group["t0"]))
            for state in counted.states:
                for rate_now, rate_after in ((state["eta"], eta_after), (state["mu"], mu_after)):
                    if rate_now.is_frozen():
                        check_write(rate_now, rate_after)
            for (eta, mu), part in counted.by([(s["eta"].item(), s["mu"].item()) for s in counted.states]):
                yield _update.planned(
                    (group["maximize"], decay != 0, mu == 1),
                    part.lists("ax"),
                    (decay, 1 - lambd * eta, -eta, mu),
                    ("ax",),
                    part.states if differentiable else None,
                    partial(_set_rates, part.states, eta_after, mu_after),
                )
