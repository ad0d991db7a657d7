"""Muon."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._batch import Batch
from ._grouped import GroupedOptimizer
from ._update import Steps, Update, Values, Write
from .optimizer import Params, checked_rate, option, refuse_complex


def _orthogonal(update: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """A matrix near the orthogonal one with the same singular vectors, in bfloat16.

    Each iteration sends the singular values x to ``a x + b x³ + c x⁵``, which brings those in (0, 1] close to 1 (a
    Newton-Schulz iteration with the coefficients of Jordan et al. 2024).
    """
    a, b, c = coefficients
    is_tall = update.size(0) > update.size(1)
    x = update.bfloat16()
    if is_tall:
        x = x.T
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = _core.addmm(x, _core.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x


def _checked(group: dict[str, Any], batch: Batch) -> None:
    if group["ns_steps"] >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if any(param.dim() != 2 for param in batch.params):
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(group["ns_coefficients"]) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")


def _momentum(options: Any, tensors: Any, numbers: Any) -> Values:
    grad, buffer = tensors
    return {1: buffer.lerp(grad, numbers[0])}


_update = Update(_momentum)


class Muon(GroupedOptimizer):
    """Steps by the orthogonal matrix nearest to the momentum (Jordan et al. 2024); for matrices of hidden layers.

    Args:
        params: Matrices.
        lr: Learning rate.
        weight_decay: The parameter shrinks by ``lr weight_decay`` before each step.
        momentum: How much of the momentum is kept.
        nesterov: Step by the gradient's blend with the momentum.
        ns_coefficients: The three coefficients of the iteration.
        eps: The least norm that is divided by.
        ns_steps: Iterations, below 100.
        adjust_lr_fn: ``"original"`` (or None) scales with ``sqrt(max(1, rows / columns))``, ``"match_rms_adamw"`` with
            ``0.2 sqrt(max(rows, columns))``.

    Raises:
        ValueError: An option is out of range, or a parameter is no matrix.
    """

    _counters = ()

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        checked_rate(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["momentum_buffer"] = _core.zeros_like(grad)

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write | Steps]:
        refuse_complex("Muon", batch.params)
        _checked(group, batch)
        rate, momentum = float(option(group["lr"], False)), group["momentum"]
        coefficients, steps = [float(c) for c in group["ns_coefficients"]], int(group["ns_steps"])
        eps, keep = float(group["eps"]), 1 - rate * group["weight_decay"]
        buffers = [state["momentum_buffer"] for state in batch.states]
        yield _update.planned((), (batch.grads, buffers), (1 - momentum,))

        def move() -> None:
            for param, grad, buffer in zip(batch.params, batch.grads, buffers, strict=True):
                update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
                update = _orthogonal(update, coefficients, steps, eps)
                rows, columns = param.shape
                scale = math.sqrt(max(1, rows / columns))
                if group["adjust_lr_fn"] == "match_rms_adamw":
                    scale = 0.2 * math.sqrt(max(rows, columns))
                param.mul_(keep)
                param.add_(update, alpha=-rate * scale)

        yield Steps(move, [batch.params], [batch.grads, buffers])
