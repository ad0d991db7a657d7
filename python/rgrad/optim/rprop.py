"""Rprop."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Update, Values, Write, where
from .optimizer import Params, checked_rate, option, scalar_state


def _formula(options: Any, tensors: Any, numbers: Any) -> Values:
    param, grad, previous, size = tensors
    less, more, least, most = numbers
    if options:
        grad = grad.neg()
    product = grad.mul(previous)
    changed = where(product.lt(0.0), size.mul(less), size)
    size = where(product.gt(0.0), size.mul(more), changed).clamp(least, most)
    # After a change of sign the step is left out, and the next one counts as the first.
    grad = where(product.lt(0.0), 0.0, grad)
    return {2: grad, 3: size, 0: param.addcmul(grad.sign(), size, value=-1)}


_update = Update(_formula)


class Rprop(GroupedOptimizer):
    """Each element steps by a size of its own, which depends on signs of gradients alone (Riedmiller and Braun 1993).

    The size grows by ``etas[1]`` while the gradient keeps its sign, and shrinks by ``etas[0]`` after a change, within
    ``step_sizes``. It begins at ``lr``. ``foreach`` and ``capturable`` change nothing.

    Raises:
        ValueError: ``lr`` is negative, or not ``0 < etas[0] < 1 < etas[1]``.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        state["prev"] = _core.zeros_like(param)
        first: Any = float(option(group["lr"], False))
        # Each part of a complex number has a step size of its own.
        state["step_size"] = _core.full_like(grad.detach(), complex(first, first) if grad.dtype.is_complex else first)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write]:
        names = ("prev", "step_size")
        yield _update.planned(
            group["maximize"],
            batch.lists(*names),
            (*group["etas"], *group["step_sizes"]),
            names,
            batch.states if group["differentiable"] else None,
        )
