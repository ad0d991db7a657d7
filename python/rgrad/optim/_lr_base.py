"""The base of learning rate schedules."""

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .._core import Tensor
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


def checked_optimizer(optimizer: Any) -> None:
    """Refuse what is no optimizer.

    Raises:
        TypeError: See above.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def of_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from a value for all of them or a list.

    Raises:
        ValueError: The list has another length.
    """
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    if len(values) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, "
            f"param_groups has {groups}."
        )
    return [v.clone() if isinstance(v, Tensor) else v for v in values]


def rates_of(optimizer: Optimizer, key: str = "lr") -> list[Any]:
    """The option of each group; of tensors copies, which later schedules do not change."""
    values = (group[key] for group in optimizer.param_groups)
    return [value.clone() if isinstance(value, Tensor) else value for value in values]


def set_rate(group: dict[str, Any], value: Any) -> None:
    """Give a group a rate; one that is a tensor stays that tensor."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def set_momentum(group: dict[str, Any], value: Any, is_beta1: bool) -> None:
    """Give a group a momentum, or a first decay rate."""
    if is_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def has_betas(optimizer: Optimizer) -> bool:
    """Whether the optimizer's momentum is the first of its ``betas``.

    Raises:
        ValueError: It has no momentum at all.
    """
    # A wrapper has the groups of its optimizer, but often no defaults.
    options = optimizer._options() or optimizer.param_groups[0]
    if "momentum" not in options and "betas" not in options:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in options


class LRScheduler:
    """Base class: subclasses define :meth:`get_lr`, the rates for ``last_epoch`` from those before.

    Args:
        optimizer: The optimizer whose groups are changed; the rate it has now becomes ``initial_lr``.
        last_epoch: The epoch to resume after; -1 starts anew.

    Raises:
        TypeError: ``optimizer`` is no optimizer.
        KeyError: ``last_epoch`` is not -1, and a group has no ``initial_lr``.
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _step_count: int
    _last_lr: list[Any]
    last_epoch: int

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        checked_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.detach().clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0. Load the optimizer's state first, or start with last_epoch=-1."
                )
        self.base_lrs: list[Any] = rates_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._watch_steps()
        self._initial_step()

    def _watch_steps(self) -> None:
        # A schedule that is stepped before the optimizer skips its first rate: worth a warning.
        optimizer = self.optimizer
        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
            return
        owner = weakref.ref(optimizer)

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(inner)
            def step(*args: Any, **kwargs: Any) -> Any:
                owner().__dict__["_opt_called"] = True
                return inner(*args, **kwargs)

            step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
            return step

        optimizer._wrap_step(wrap)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Rates of all groups for ``last_epoch``; use :meth:`get_last_lr` to ask what is in force."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The rates that the last :meth:`step` set."""
        return self._last_lr

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch (or, deprecated, to ``epoch``) and set the rates.

        Warns if the optimizer has not made a step since the scheduler was made.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                    UserWarning,
                    stacklevel=2,
                )
            elif not self.optimizer.__dict__.get("_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                    "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result "
                    "in skipping the first value of the learning rate schedule.",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed_form is None else closed_form()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)

    def _set_rates(self, rates: Sequence[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, lr)
        self._last_lr = rates_of(self.optimizer)

    def _rates(self) -> list[Any]:
        return rates_of(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """All of the scheduler but its optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave; the optimizer's state is to be loaded too."""
        self.__dict__.update(state_dict)


def is_function(value: Any) -> bool:
    """Whether a value is a plain function, whose state cannot be saved."""
    return isinstance(value, type(checked_optimizer))
