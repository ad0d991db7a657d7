"""Averages of the weights of a training run (Izmailov et al. 2018): stochastic weight averaging and running means."""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.module import Module
from ._lr_base import LRScheduler, of_groups
from ._update import Update
from .optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]

_lerp = Update(lambda options, tensors, numbers: {0: tensors[0].lerp(tensors[1], numbers[0])})


def _checked_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """A function that moves lists of averages towards the parameters: ``decay average + (1 - decay) parameter``.

    Raises:
        ValueError: ``decay`` is outside [0, 1].
    """
    _checked_decay(decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], params: Sequence[Tensor], _: Any) -> None:
        if averages[0].is_floating_point() or averages[0].dtype.is_complex:
            _lerp((), (averages, params), (1 - decay,))
            return
        for average, param in zip(averages, params, strict=True):
            average.copy_(average * decay + param * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """A function that adds one more value to the means of ``num_averaged`` values, for lists of tensors."""

    @no_grad()
    def swa_update(averages: Sequence[Tensor], params: Sequence[Tensor], num_averaged: Any) -> None:
        share = 1 / (float(num_averaged) + 1)
        if averages[0].is_floating_point() or averages[0].dtype.is_complex:
            _lerp((), (averages, params), (share,))
            return
        for average, param in zip(averages, params, strict=True):
            average.copy_(average + (param - average) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A function that gives ``decay average + (1 - decay) parameter``.

    Raises:
        ValueError: ``decay`` is outside [0, 1].
    """
    _checked_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, param: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * param

    return ema_update


def get_swa_avg_fn() -> Average:
    """A function that gives the mean of ``num_averaged`` values and one more."""

    @no_grad()
    def swa_update(average: Tensor, param: Tensor, num_averaged: Any) -> Tensor:
        result: Tensor = average + (param - average) / (num_averaged + 1)
        return result

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that :meth:`update_parameters` has seen.

    Args:
        model: The model, which is copied.
        device: Where the averages are; None for the model's device.
        avg_fn: ``avg_fn(average, parameter, number)`` gives the new average; default is the mean.
        multi_avg_fn: ``multi_avg_fn(averages, parameters, number)`` writes lists of averages; excludes ``avg_fn``.
        use_buffers: Whether buffers are averaged too. Otherwise they are copied.

    Raises:
        AssertionError: Both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _core.tensor(0, dtype=_core.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the averages; the first time they are copied."""
        own: Iterable[Tensor] = self.parameters()
        others: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own = chain(self.module.parameters(), self.module.buffers())
            others = chain(model.parameters(), model.buffers())
        pairs = [(a.detach(), p.detach().to(a.device)) for a, p in zip(own, others, strict=False)]
        number = self.n_averaged
        if number.item() == 0:
            for average, param in pairs:
                average.copy_(param)
        elif self.avg_fn is not None:
            for average, param in pairs:
                average.copy_(self.avg_fn(average, param, number.to(average.device)))
        else:
            write = self.multi_avg_fn or get_swa_multi_avg_fn()
            groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, param in pairs:
                averages, params = groups.setdefault((average.device, average.dtype), ([], []))
                averages.append(average)
                params.append(param)
            for (device, _), (averages, params) in groups.items():
                write(averages, params, number.to(device))
        if not self.use_buffers:
            for own_buffer, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own_buffer.detach().copy_(buffer.detach().to(own_buffer.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of the model's batch norms anew, as means over all batches of a loader.

    Args:
        loader: Batches; of lists and tuples the first entry is the input.
        model: A model, in whichever mode; the mode is the same afterwards.
        device: Where the inputs go first.
    """
    from ..nn.modules.batchnorm import _BatchNorm

    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        # None: the mean over all batches.
        module.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to ``swa_lr`` in ``anneal_epochs`` epochs, and stays there.

    Args:
        optimizer: The optimizer.
        swa_lr: The last rate, or one for each group.
        anneal_epochs: Epochs of the way; 0 for at once.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: The epoch to resume after.

    Raises:
        ValueError: An option is out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(of_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of ``swa_lr`` is in the rate of a step."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * part)) / 2 if self._anneal_strategy == "cos" else part

    def get_lr(self) -> list[Any]:
        """From the rate before, so that changes by other schedules stay in force."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
