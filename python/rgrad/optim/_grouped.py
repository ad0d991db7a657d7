"""What the optimizers here share: a step that looks at all groups before it writes the first of them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, overload

from .._core import Tensor, _set_grad_enabled, is_grad_enabled
from .._runtime.info import typename
from ..autograd.grad_mode import enable_grad
from ._batch import Batch, Started
from ._loaded import check_loaded
from ._update import Steps, Update, Write, check_write
from .optimizer import Loss, Optimizer

_plus_one = Update(lambda options, tensors, numbers: {0: tensors[0].add(1.0)})


def _count_each(states: list[dict[str, Any]]) -> None:
    for state in states:
        state["step"] += 1


class GroupedOptimizer(Optimizer):
    """Base of optimizers that say what to write to a group: they define ``_step_group`` and ``_start``."""

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...
    @overload
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None: ...
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Update all parameters that have a gradient; returns what ``closure`` returned."""
        return self._run(closure)

    @staticmethod
    def _loss(closure: Callable[[], Loss] | None) -> Loss | None:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _run(self, closure: Callable[[], Loss] | None) -> Loss | None:
        """Compute the loss again, and step each group, without recording unless the step is differentiable."""
        loss = self._loss(closure)
        mode = is_grad_enabled()
        _set_grad_enabled(bool(self.defaults.get("differentiable")))
        try:
            self._write_all()
        finally:
            _set_grad_enabled(mode)
        return loss

    def _write_all(self) -> None:
        """Step all groups. What can fail is computed or looked at before the first write."""
        started = Started(self.state)
        try:
            is_new = "_is_unchecked" in self.__dict__
            if is_new:
                check_loaded(self)
            pairs = [(group, self._batch(group, started)) for group in self.param_groups]
            pairs = [(group, batch) for group, batch in pairs if batch.params]
            writes = [write for group, batch in pairs for write in self._step_group(group, batch)]
            seen = writes[0].seen() if len(writes) == 1 else None
            is_checked = not is_new and not started and seen is not None and seen == self.__dict__.get("_seen")
            for write in writes:
                if not (is_checked and write.is_plain()):
                    write.check()
            counts = [counts for _, batch in pairs for counts in self._counts(batch)]
            for write in writes:
                write.run()
            for count in counts:
                count()
        except BaseException:
            started.undo()
            raise
        self.__dict__.pop("_is_unchecked", None)
        self.__dict__["_seen"] = seen

    def _batch(self, group: dict[str, Any], started: Started) -> Batch:
        batch = Batch([], [], [])
        all_states = self.state
        params, grads, states = batch.params.append, batch.grads.append, batch.states.append
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
            params(param)
            grads(grad)
            state = all_states.get(param)
            if not state:
                state = started.state_of(param)
                self._start(param, grad, state, group)
            states(state)
        return batch

    def _start(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Make the state of a parameter before its first step."""

    def _fresh(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        """What a step needs of a parameter's state, which has been loaded, as it would be before the first step."""
        fresh: dict[str, Any] = {}
        self._start(param, grad, fresh, group)
        return fresh

    def _step_group(self, group: dict[str, Any], batch: Batch) -> Iterator[Write | Steps]:
        """What to write to the parameters and states of a group. Nothing is written yet."""
        raise NotImplementedError

    @staticmethod
    def _by_count(batch: Batch) -> list[tuple[float, Batch]]:
        """The parameters that have made equally many steps together, with how many these are, this one included."""
        return [(count + 1, part) for count, part in batch.by([float(state["step"]) for state in batch.states])]

    def _counts(self, batch: Batch) -> Iterator[Callable[[], None]]:
        """What counts the step of each parameter. Nothing is counted yet.

        Raises:
            KeyError: A state has no counter.
            RuntimeError: A counter may not be written.
            TypeError: A counter is neither a tensor nor a number.
        """
        if "step" not in self._counters:
            return
        counts = [state["step"] for state in batch.states]
        if set(map(type, counts)) == {Tensor} and not any(map(Tensor.is_frozen, counts)):
            yield partial(_plus_one, (), [counts], ())
            return
        for count in counts:
            if isinstance(count, Tensor):
                check_write(count, count + 1)
            elif not isinstance(count, (int, float)):
                raise TypeError(f"{type(self).__name__}.step: a counter must be a tensor, but got {typename(count)}")
        yield partial(_count_each, batch.states)
