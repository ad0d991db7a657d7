"""Adagrad."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus, plus_quotient
from .optimizer import Params, checked, checked_fused, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays = options
    param, grad, total = tensors
    decay, eps, rate = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    total = total.addcmul(grad, grad, value=1)
    return {2: total, 0: plus_quotient(param, grad, total.sqrt().add(eps), rate)}


_update = Update(_formula)


class Adagrad(GroupedOptimizer):
    """Divides by the root of the sum of all squared gradients (Duchi et al. 2011).

    ``s += g²``; ``p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)``, with s beginning at
    ``initial_accumulator_value``. States exist from the start. ``weight_decay`` is added to the gradient. ``foreach``
    and ``fused`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr`` or another option is negative.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checked_rate(lr)
        checked("lr_decay", lr_decay)
        checked("weight_decay", weight_decay)
        checked("initial_accumulator_value", initial_accumulator_value)
        checked("epsilon", eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        checked_fused(fused, foreach, differentiable, self.param_groups)
        for group in self.param_groups:
            for param in group["params"]:
                self._start(param, param, self.state[param], group)

    def share_memory(self) -> None:
        """Move the states to shared memory, where other processes can step them."""
        for state in self.state.values():
            state["step"].share_memory_()
            state["sum"].share_memory_()

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        first: Any = self.defaults["initial_accumulator_value"]
        # Each part of a complex number has a sum of its own.
        state["sum"] = _core.full_like(param.detach(), complex(first, first) if param.dtype.is_complex else first)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay = option(group["lr"], differentiable), group["weight_decay"]
        for count, part in self._by_count(batch):
            numbers = (decay, group["eps"], -rate / (1 + (count - 1) * group["lr_decay"]))
            yield _update.planned(
                (group["maximize"], decay != 0),
                part.lists("sum"),
                numbers,
                ("sum",),
                part.states if differentiable else None,
            )
