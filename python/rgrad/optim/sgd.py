"""Stochastic gradient descent."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch, Started
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, plus
from .optimizer import Params, checked_fused, option


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    maximize, decays, nesterov, first = options
    param, grad, *rest = tensors
    rate, decay, momentum, keep = numbers
    if maximize:
        grad = grad.neg()
    if decays:
        grad = plus(grad, param, decay)
    if not rest:
        return {0: plus(param, grad, rate)}
    buffer = grad if first else plus(rest[0].mul(momentum), grad, keep)
    update = plus(grad, buffer, momentum) if nesterov else buffer
    return {2: buffer, 0: plus(param, update, rate)}


_update = Update(_formula)


def _keep(states: list[dict[str, Any]], buffers: list[Tensor]) -> None:
    for state, buffer in zip(states, buffers, strict=True):
        state["momentum_buffer"] = buffer


class SGD(GroupedOptimizer):
    """``v = momentum v + (1 - dampening) g``; ``p = p - lr v``, where g has ``weight_decay p`` added.

    With ``nesterov`` the update is ``g + momentum v`` (Sutskever et al. 2013); ``maximize`` goes uphill. ``foreach``
    and ``fused`` are accepted for PyTorch's sake and change nothing.

    Raises:
        ValueError: ``lr``, ``momentum`` or ``weight_decay`` is negative, or nesterov is given without momentum or with
            dampening.
    """

    _counters = ()

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
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
        checked_fused(fused, foreach, differentiable, self.param_groups)

    def _batch(self, group: dict[str, Any], started: Started) -> Batch:
        if group["momentum"] != 0:
            return super()._batch(group, started)
        pairs = [(param, param.grad) for param in group["params"]]
        params = [param for param, grad in pairs if grad is not None]
        # Without momentum there is no state, not even an empty one.
        return Batch(params, [grad for _, grad in pairs if grad is not None], [{} for _ in params])

    def _fresh(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": grad} if state.get("momentum_buffer") is not None else {}

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        differentiable = group["differentiable"]
        rate, decay = (option(group[name], differentiable) for name in ("lr", "weight_decay"))
        momentum = group["momentum"]
        numbers = (-rate, decay, momentum, 1 - group["dampening"])
        decays = isinstance(decay, Tensor) or decay != 0
        if momentum == 0:
            yield _update.planned(
                (group["maximize"], decays, False, False),
                batch.lists(),
                numbers,
                (),
                batch.states if differentiable else None,
            )
            return
        for first, part in batch.by([state.get("momentum_buffer") is None for state in batch.states]):
            if first:
                buffers = [_core.empty_like(grad) for grad in part.grads]
            else:
                buffers = [state["momentum_buffer"] for state in part.states]
            yield _update.planned(
                (group["maximize"], decays, group["nesterov"], first),
                [part.params, part.grads, buffers],
                numbers,
                ("momentum_buffer",),
                part.states if differentiable else None,
                partial(_keep, part.states, buffers) if first and not differentiable else None,
            )
