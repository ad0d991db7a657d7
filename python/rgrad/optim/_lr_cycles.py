"""Schedules that go up and down: cosines, cycles, and one cycle."""

import math
from collections.abc import Callable
from typing import Any

from ._lr_base import LRScheduler, checked_optimizer, has_betas, is_function, of_groups, set_momentum, set_rate
from .optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to ``eta_min`` in ``T_max`` epochs (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: got T_max={T_max}, expected 1 or more")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """From the rate before, so that changes by other schedules stay in force."""
        self._warn_outside_step()
        rates = self._rates()
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return rates
        if self._step_count == 1 and epoch > 0:
            return [low + (base - low) * (1 + math.cos(epoch * math.pi / period)) / 2 for base in self.base_lrs]
        if (epoch - 1 - period) % (2 * period) == 0:
            # The rate before is eta_min, from which the ratio below cannot start.
            rise = 1 - math.cos(math.pi / period)
            return [lr + (base - low) * rise / 2 for lr, base in zip(rates, self.base_lrs, strict=True)]
        ratio = (1 + math.cos(math.pi * epoch / period)) / (1 + math.cos(math.pi * (epoch - 1) / period))
        return [ratio * (lr - low) + low for lr in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines that start anew after ``T_0``, ``T_0 T_mult``, ``T_0 T_mult²``... epochs (Loshchilov, Hutter 2017).

    :meth:`step` takes parts of epochs too, to be called after each batch: ``step(epoch + i / batches)``.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is no positive integer, or ``eta_min`` no number.
    """

    T_cur: float
    T_i: int

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """See the class."""
        self._warn_outside_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to ``epoch``, which may have a fraction.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)


class CyclicLR(LRScheduler):
    """The rate goes from ``base_lr`` to ``max_lr`` and back, over and over; step it after each batch (Smith 2017).

    Args:
        optimizer: The optimizer.
        base_lr: The lowest rate, or one for each group.
        max_lr: The highest rate of the first cycle, or one for each group.
        step_size_up: Steps of the way up.
        step_size_down: Steps of the way down; None for as many.
        mode: ``"triangular"`` keeps the height, ``"triangular2"`` halves it in each cycle, ``"exp_range"`` multiplies
            it with ``gamma`` in each step.
        gamma: See ``mode``.
        scale_fn: A function of the cycle or the step that scales the height, in place of ``mode``.
        scale_mode: ``"cycle"`` or ``"iterations"``: what ``scale_fn`` gets.
        cycle_momentum: Whether the momentum (or the first beta) goes down while the rate goes up.
        base_momentum: The lowest momentum.
        max_momentum: The highest momentum.
        last_epoch: The step to resume after.

    Raises:
        ValueError: An unknown mode, lists of other lengths, or an optimizer without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        checked_optimizer(optimizer)
        lows = of_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(lows, optimizer.param_groups, strict=True):
                set_rate(group, lr)
        self.max_lrs = of_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = has_betas(optimizer)
            self.base_momentums = of_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = of_groups("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                for high, low, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True
                ):
                    set_momentum(group, high, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """By how much the height is scaled in a cycle or step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        result: float = 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x
        return result

    def get_lr(self) -> list[Any]:
        """The rates; sets the momentums too."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """As of the base class; a function of one's own is not saved, an object's ``__dict__`` is."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if custom is None or is_function(custom) else dict(custom.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(LRScheduler):
    """One rise to ``max_lr`` and one fall far below the start; to be stepped after each batch (Smith and Topin 2019).

    Args:
        optimizer: The optimizer.
        max_lr: The highest rate, or one for each group.
        total_steps: Steps of the cycle; or give ``epochs`` and ``steps_per_epoch``.
        epochs: Epochs of the cycle.
        steps_per_epoch: Steps of one epoch.
        pct_start: Which part of the steps rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: Whether the momentum (or the first beta) goes down while the rate goes up.
        base_momentum: The lowest momentum.
        max_momentum: The highest momentum.
        div_factor: The first rate is ``max_lr / div_factor``.
        final_div_factor: The last rate is the first one divided by this.
        three_phase: Fall to the first rate as fast as it rose, then go on to the last rate.
        last_epoch: The step to resume after.

    Raises:
        ValueError: An option is out of range, or the optimizer has no momentum; in :meth:`step`: the cycle is over.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        checked_optimizer(optimizer)
        if total_steps is not None:
            self.total_steps = _positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        top = float(pct_start * self.total_steps) - 1
        phases: list[tuple[Any, ...]] = [(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            middle = float(2 * pct_start * self.total_steps) - 2
            phases.append((middle, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(names, phase, strict=True)) for phase in phases]
        highs = of_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for high, group in zip(highs, optimizer.param_groups, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = has_betas(optimizer)
            tops = of_groups("max_momentum", optimizer, max_momentum)
            lows = of_groups("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for high, low, group in zip(tops, lows, optimizer.param_groups, strict=True):
                    set_momentum(group, high, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        """The rates; sets the momentums too."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start: Any = 0.0
        phase = self._schedule_phases[-1]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                set_momentum(group, momentum, self.use_beta1)
        return rates


def _positive(name: str, value: Any) -> int:
    if value <= 0 or not isinstance(value, int):
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value
