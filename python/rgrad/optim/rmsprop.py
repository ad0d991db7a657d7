"""RMSprop."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_product, plus_quotient
from .optimizer import Params, checked, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays, has_momentum, centered = options
    param, grad, square, *rest = tensors
    decay, keep, add, eps, momentum, rate = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    square = plus_product(square.mul(keep), grad, grad, add)
    values = {2: square}
    root = square
    if centered:
        mean = values[2 + len(rest)] = rest[-1].lerp(grad, add)
        root = square.addcmul(mean, mean, value=-1)
    root = root.sqrt().add(eps)
    if has_momentum:
        buffer = values[3] = rest[0].mul(momentum).addcdiv(grad, root)
        values[0] = plus(param, buffer, rate)
    else:
        values[0] = plus_quotient(param, grad, root, rate)
    return values


_update = Update(_formula)


class RMSprop(GroupedOptimizer):
    """Divides by the root of the mean of squared gradients (Hinton's lecture 6e).

    ``v = alpha v + (1 - alpha) g²``; ``p -= lr g / (sqrt(v) + eps)``. ``centered`` subtracts the square of the mean of
    gradients from v (Graves 2013); ``momentum`` steps by a momentum of the quotients. ``weight_decay`` is added to the
    gradient. ``foreach`` and ``capturable`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr`` or another option is negative.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        checked("epsilon", eps)
        checked("momentum", momentum)
        checked("weight_decay", weight_decay)
        checked("alpha", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["square_avg"] = _core.zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _core.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay, alpha = option(group["lr"], differentiable), group["weight_decay"], group["alpha"]
        momentum, centered = group["momentum"], group["centered"]
        names = ["square_avg"]
        if momentum > 0:
            names.append("momentum_buffer")
        if centered:
            names.append("grad_avg")
        yield _update.planned(
            (group["maximize"], decay != 0, momentum > 0, centered),
            batch.lists(*names),
            (decay, alpha, 1 - alpha, group["eps"], momentum, -rate),
            names,
            batch.states if differentiable else None,
        )
