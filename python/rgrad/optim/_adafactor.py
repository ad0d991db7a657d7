"""Adafactor."""

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._loaded import check_entry
from ._update import Steps
from .optimizer import Params, checked_rate, option, refuse_complex, scalar_state


def _shapes(grad: Tensor) -> dict[str, tuple[int, ...]]:
    """What a state keeps for gradients of this shape: a row and a column for each matrix, or all."""
    if grad.dim() < 2:
        return {"variance": grad.shape}
    *outer, rows, columns = grad.shape
    return {"row_var": (*outer, rows, 1), "col_var": (*outer, 1, columns)}


def _variance(grad: Tensor, state: dict[str, Any], fresh: float, least: float) -> Tensor:
    """Bring the mean of squares up to date."""
    if grad.dim() < 2:
        mean: Tensor = state["variance"].lerp_(grad * grad, fresh)
        return mean
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(grad.norm(2, -1, keepdim=True).square().div(grad.size(-1)), fresh)
    columns.lerp_(grad.norm(2, -2, keepdim=True).square().div(grad.size(-2)), fresh)
    mean = rows @ columns
    return mean.div(rows.mean(dim=-2, keepdim=True).clamp(min=least))


class Adafactor(GroupedOptimizer):
    """Adam that keeps squared gradients of matrices as a row and a column, not whole (Shazeer and Stern 2018).

    Args:
        params: Parameters.
        lr: The largest relative step; from step ``1 / lr²`` on it is ``1 / sqrt(t)``.
        beta2_decay: The mean of squares forgets with ``1 - t^beta2_decay``.
        eps: A term for the squared gradients (None: the dtype's precision), and the least size of a parameter.
        d: Steps whose root mean square is larger than this are shortened to it.
        weight_decay: The parameter shrinks by ``lr weight_decay`` before each step.
        foreach: Accepted for PyTorch's sake; it changes nothing.
        maximize: Go uphill.

    Raises:
        ValueError: An option is out of range.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        checked_rate(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = scalar_state(0.0)
        for name, shape in _shapes(grad).items():
            state[name] = _core.zeros(shape, dtype=grad.dtype, device=grad.device)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Steps]:
        refuse_complex("Adafactor", batch.params)
        rate = float(option(group["lr"], False))
        eps1, eps2 = group["eps"]
        eps1, eps2 = None if eps1 is None else float(eps1), float(eps2)
        keep = 1 - rate * group["weight_decay"] if group["weight_decay"] != 0 else None
        largest = float(group["d"])
        for count, part in self._by_count(batch):
            fresh = count ** group["beta2_decay"]
            relative = min(rate, 1 / count**0.5)
            variances = []
            for grad, state in zip(part.grads, part.states, strict=True):
                for name, shape in _shapes(grad).items():
                    variance = state[name]
                    check_entry("Adafactor", name, variance.shape, shape)
                    if variance.device != grad.device:
                        raise RuntimeError(
                            f"Adafactor.step: the state '{name}' is on device {variance.device}, the gradient of its "
                            f"parameter on {grad.device}; both must be on the same device"
                        )
                    if variance.dtype != grad.dtype:
                        raise RuntimeError(
                            f"Adafactor.step: expected dtype {variance.dtype} of the state '{name}' for the gradient, "
                            f"but got dtype {grad.dtype}"
                        )
                    variances.append(variance)

            def move(part: Batch = part, fresh: float = fresh, relative: float = relative) -> None:
                for param, grad, state in zip(part.params, part.grads, part.states, strict=True):
                    if group["maximize"]:
                        grad = grad.neg()
                    size = param.norm(2).item() / param.numel() ** 0.5
                    if keep is not None:
                        param.mul_(keep)
                    least = finfo(param.dtype).eps if eps1 is None else eps1
                    update = _variance(grad, state, fresh, least).clamp(min=least * least).rsqrt().mul(grad)
                    clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * largest))
                    param.add_(update, alpha=-max(eps2, size) * relative / clip)

            yield Steps(move, [part.params, variances], [part.grads])
