"""NAdam."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, check_write, plus, plus_product, plus_quotient
from .optimizer import Params, checked, checked_betas, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decay_kind = options
    param, grad, mean, square = tensors
    shrink, decay, grow, keep, add, correction, eps, of_grad, of_mean = numbers
    if maximize:
        grad = grad.neg()
    if decay_kind == "decoupled":
        param = param.mul(shrink)
    elif decay_kind == "added":
        grad = plus(grad, param, decay)
    mean = mean.lerp(grad, grow)
    square = plus_product(square.mul(keep), grad, grad, add)
    root = square.div(correction).sqrt().add(eps)
    param = plus_quotient(plus_quotient(param, grad, root, of_grad), mean, root, of_mean)
    return {2: mean, 3: square, 0: param}


_update = Update(_formula)


def _fade(states: list[dict[str, Any]], factor: float) -> None:
    for state in states:
        state["mu_product"].mul_(factor)


def _faded(product: Tensor, factor: float) -> Any:
    """The number that :func:`_fade` will write. It fails where that would."""
    after = product.mul(factor)
    if after.dtype != product.dtype or product.is_frozen():
        check_write(product, after)
        raise TypeError(f"NAdam.step: the state 'mu_product' must be a floating point tensor, but got {product.dtype}")
    return after.item()


class NAdam(GroupedOptimizer):
    """Adam with Nesterov's momentum (Dozat 2016): the step looks ahead by the momentum of the next step.

    With ``mu_t = b1 (1 - 0.96^(t momentum_decay) / 2)`` and the product of all of them,
    ``p -= lr (mu_(t+1) m / (1 - product_(t+1)) + (1 - mu_t) g / (1 - product_t)) / (sqrt(v / (1 - b2^t)) + eps)``.
    ``weight_decay`` is added to the gradient, or shrinks the parameter if ``decoupled_weight_decay``.
    ``foreach`` and ``capturable`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr`` or another option is negative, or a beta outside [0, 1).
    """

    _counters = ("step", "mu_product")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        checked("momentum_decay", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["mu_product"] = scalar_state(1.0)
        state["exp_avg"] = _core.zeros_like(param)
        state["exp_avg_sq"] = _core.zeros_like(param)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay = option(group["lr"], differentiable), group["weight_decay"]
        (beta1, beta2), fade = group["betas"], group["momentum_decay"]
        kind = ("decoupled" if group["decoupled_weight_decay"] else "added") if decay != 0 else "none"
        names = ("exp_avg", "exp_avg_sq")
        for count, counted in self._by_count(batch):
            now, following = (beta1 * (1.0 - 0.5 * 0.96 ** (t * fade)) for t in (count, count + 1))
            for product, part in counted.by([_faded(state["mu_product"], now) for state in counted.states]):
                numbers = (
                    1 - rate * decay,
                    decay,
                    1 - beta1,
                    beta2,
                    1 - beta2,
                    1 - beta2**count,
                    group["eps"],
                    -rate * (1.0 - now) / (1.0 - product),
                    -rate * following / (1.0 - product * following),
                )
                yield _update.planned(
                    (group["maximize"], kind),
                    part.lists(*names),
                    numbers,
                    names,
                    part.states if differentiable else None,
                    partial(_fade, part.states, now),
                )
