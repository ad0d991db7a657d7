"""SparseAdam."""

from collections.abc import Callable
from typing import Any, overload

from .._core import Tensor
from ._batch import Batch, Started
from ._grouped import GroupedOptimizer
from .optimizer import Loss, Params, checked_betas, checked_rate


class SparseAdam(GroupedOptimizer):
    """Adam for gradients with few elements. There are none here: tensors are dense, and :meth:`step` says so.

    Raises:
        ValueError: ``lr`` or ``eps`` is not positive, or a beta outside [0, 1).
    """

    _counters = ()

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        checked_rate(lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        checked_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [
            [g, p]
            for g, group in enumerate(self.param_groups)
            for p, param in enumerate(group["params"])
            if param.dtype.is_complex
        ]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...
    @overload
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None: ...
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Refuse dense gradients; returns what ``closure`` returned if no parameter has a gradient.

        Raises:
            RuntimeError: A parameter has a gradient.
        """
        return self._run(closure)

    def _batch(self, group: dict[str, Any], started: Started) -> Batch:
        if any(param.grad is not None for param in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return Batch([], [], [])
