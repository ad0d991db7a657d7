"""Scaling of losses, so that gradients in 16 bits do not become 0."""

import math
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any, overload

from .. import _core
from .._core import Tensor
from .._runtime.warned import warn_user
from ..autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What a scaler has done for an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Multiplies losses by a scale, and divides gradients by it before optimizers use them.

    Steps whose gradients have inf or nan are left out, and the scale becomes smaller; after ``growth_interval`` steps
    without them it grows (Micikevicius et al. 2018).

    Args:
        device: The kind of device; ``"cuda"`` is accepted, and switches the scaler off.
        init_scale: The first scale.
        growth_factor: What the scale is multiplied by when it grows.
        backoff_factor: What it is multiplied by after inf or nan.
        growth_interval: How many steps without inf and nan let it grow.
        enabled: False makes all methods do nothing but call the optimizers.

    Raises:
        AssertionError: ``growth_factor`` is not above 1, or ``backoff_factor`` not below 1.

    Example:
        >>> w = rgrad.ones(2, requires_grad=True)
        >>> optimizer, scaler = rgrad.optim.SGD([w], lr=0.1), rgrad.amp.GradScaler("cpu")
        >>> scaler.scale(w.sum()).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> w.detach()
        tensor([0.9000, 0.9000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warn_user("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale = init_scale
            self._scale: Tensor | None = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker: int | None = None
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(self._fresh)

    @staticmethod
    def _fresh() -> dict[str, Any]:
        return {"stage": OptState.READY, "found_inf_per_device": {}}

    def _started(self, what: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale

    def _start(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = _core.full((), self._init_scale, dtype=_core.float32, device=device)
            self._growth_tracker = self._init_growth_tracker
        return self._scale

    @overload
    def scale(self, outputs: Tensor) -> Tensor: ...
    @overload
    def scale(self, outputs: list[Tensor]) -> list[Tensor]: ...
    @overload
    def scale(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]: ...
    @overload
    def scale(self, outputs: Iterable[Tensor]) -> Iterable[Tensor]: ...
    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        """Multiply a tensor, or all tensors of an iterable, by the scale.

        Args:
            outputs: A loss, or several ones.

        Returns:
            The products, in the same order.

        Raises:
            ValueError: There is something else than tensors.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            scale = self._start(outputs.device)
            return outputs * scale.to(device=outputs.device)
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            made = [self.scale(o) for o in outputs]
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else iter(made)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer: Any, factor: float, allow_fp16: bool) -> dict[str, float]:
        """Multiply all gradients by ``factor``. Returns 1 for each device where one has inf or nan, else 0."""
        found: dict[str, float] = {}
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is not None and param.grad.dtype.is_complex:
                        name = "ComplexDouble" if param.grad.dtype == _core.complex128 else "ComplexFloat"
                        raise NotImplementedError(
                            f"\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '{name}'"
                        )
            for group in optimizer.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if not allow_fp16 and grad.dtype == _core.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grad.mul_(factor)
                    bad = not bool(_core.isfinite(grad).all())
                    device = str(grad.device)
                    found[device] = max(found.get(device, 0.0), float(bad))
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example to clip them before :meth:`step`.

        Args:
            optimizer: The optimizer.

        Raises:
            RuntimeError: It was called before since the last update, or after the step.
        """
        if not self._enabled:
            return
        scale = self._started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, 1.0 / float(scale), False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Divide gradients by the scale, unless :meth:`unscale_` has, and let the optimizer step if all are finite.

        Args:
            optimizer: The optimizer.
            args: For its ``step``.
            kwargs: For its ``step``.

        Returns:
            What ``optimizer.step`` returns; None if the step is left out.

        Raises:
            RuntimeError: It was called before since the last update, or with a closure.
            AssertionError: No parameter has a gradient, or nothing was scaled.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if any(found.values()) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Make the scale smaller if a gradient was not finite, or count the step, and let it grow in time.

        Args:
            new_scale: A scale to set instead.

        Raises:
            AssertionError: Nothing was scaled, or no step was made since the last update.
        """
        if not self._enabled:
            return
        scale = self._started("update")
        tracker = self._growth_tracker or 0
        with no_grad():
            if new_scale is not None:
                if isinstance(new_scale, Tensor):
                    if new_scale.numel() != 1:
                        raise AssertionError("new_scale should be a float or a 1-element float tensor")
                    new_scale = new_scale.detach()
                scale.fill_(new_scale)
            else:
                found = [v for s in self._per_optimizer_states.values() for v in s["found_inf_per_device"].values()]
                if not found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                if any(found):
                    scale.mul_(self._backoff_factor)
                    tracker = 0
                else:
                    tracker += 1
                    if tracker == self._growth_interval:
                        grown = float(scale) * self._growth_factor
                        # As PyTorch: the scale stays finite.
                        if math.isfinite(float(_core.tensor(grown, dtype=_core.float32))):
                            scale.fill_(grown)
                        tracker = 0
        self._growth_tracker = tracker
        self._per_optimizer_states = defaultdict(self._fresh)

    def get_scale(self) -> float:
        """The scale now; 1 if the scaler is off."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after inf or nan."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by after inf or nan."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps without inf and nan let the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many steps without inf and nan let the scale grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker

    def is_enabled(self) -> bool:
        """Whether the scaler is on."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and all settings; empty if the scaler is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned.

        Args:
            state_dict: Scale and settings.

        Raises:
            RuntimeError: The state is empty.
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker = state_dict["_growth_tracker"]

    def _check_inf_per_device(self, optimizer: Any) -> dict[str, float]:
        """Whether gradients are finite, without dividing them."""
        self._started("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, 1.0, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[str, float]:
        found: dict[str, float] = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        return found
