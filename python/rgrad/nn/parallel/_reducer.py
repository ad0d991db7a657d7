"""Averages gradients of several processes while backward still runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...autograd.variable import Variable
from ...distributed._buffers import Lent
from ...distributed._calls import Seen, run
from ...distributed._group import ProcessGroup
from ...distributed._reductions import ReduceOp, Reduction
from ...distributed._tree import sum_of_processes
from ...distributed._work import Work

MEGABYTE = 1024 * 1024


class GradBucket:
    """Gradients that are sent together, as a communication hook gets them.

    Args:
        index: Its place in the order in which buckets are sent.
        flat: All gradients, one after the other.
        parameters: The parameters.
        last: Whether it is the last of a backward pass.
    """

    def __init__(self, index: int, flat: Tensor, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._flat, self._parameters, self._last = index, flat, list(parameters), last

    def index(self) -> int:
        """Its place in the order in which buckets are sent."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, one after the other."""
        return self._flat

    def set_buffer(self, buffer: Tensor) -> None:
        """Put other gradients in the place of these."""
        self._flat = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, which are views of the buffer."""
        return views(self._flat, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last of a backward pass."""
        return self._last


def views(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Parts of a buffer with the shapes of parameters."""
    parts = flat.split([parameter.numel() for parameter in parameters])
    return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]


class _Bucket:
    """Parameters of one dtype and device whose gradients are sent together."""

    def __init__(self, members: list[int], parameters: list[Tensor]) -> None:
        self.members, self.parameters = members, parameters
        self.flat: Tensor | None = None
        self.parts: list[Tensor] = []
        self.missing = 0
        self.work: Work | None = None
        self.future: Any = None

    def memory(self) -> Tensor:
        """Zeros for its gradients."""
        first = self.parameters[0]
        count = sum(parameter.numel() for parameter in self.parameters)
        self.flat = _core.zeros([count], dtype=first.dtype, device=first.device, requires_grad=False)
        self.parts = views(self.flat, self.parameters)
        return self.flat


def divided(parameters: Sequence[Tensor], first_bytes: int, most_bytes: int) -> list[list[int]]:
    """The parameters by buckets, from the last one on, since their gradients come first."""
    groups: dict[tuple[Any, Any], list[int]] = {}
    sizes: dict[tuple[Any, Any], int] = {}
    made: list[list[int]] = []
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        key = (parameter.dtype, parameter.device)
        groups.setdefault(key, []).append(index)
        sizes[key] = sizes.get(key, 0) + parameter.nbytes
        if sizes[key] >= (most_bytes if made else first_bytes):
            made.append(groups.pop(key))
            del sizes[key]
    return made + list(groups.values())


class Reducer:
    """What a wrapped module does in each backward pass.

    Args:
        parameters: Those that require grad.
        names: Their names.
        group: The processes.
        buckets: Places of parameters by buckets.
        tree: Whether sums have the fixed tree.
        views: Whether gradients are views of the buckets.
        unused: Whether parameters may get no gradient.
        static: Whether each pass uses the same parameters, as often.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        buckets: Sequence[list[int]],
        *,
        tree: bool,
        views: bool,
        unused: bool,
        static: bool,
    ) -> None:
        self.parameters, self.names, self.group = list(parameters), list(names), group
        self.tree, self.views, self.unused, self.static = tree, views, unused, static
        self.buckets = [_Bucket(members, [self.parameters[i] for i in members]) for members in buckets]
        self.place = {i: (bucket, k) for bucket in self.buckets for k, i in enumerate(bucket.members)}
        self.hook: Callable[[GradBucket], Any] | None = None
        self.divide_by = group.size()
        self.active = False
        self._started = self._queued = False
        self._ready: set[int] = set()
        self._without: set[int] = set()
        self._next = 0
        self._earlier: dict[int, Tensor] = {}
        # Gradients that no_sync has left, which are not the same in all processes.
        self.local: set[int] = set()
        # How often each gradient is written in a pass that is always the same.
        self._times: dict[int, int] | None = None
        self._seen: dict[int, int] = {}
        self.handles = []
        for index, parameter in enumerate(self.parameters):
            self.handles.append(parameter.register_hook(self._before(index)))
            self.handles.append(parameter.register_post_accumulate_grad_hook(self._after(index)))

    def prepare(self, without: set[int]) -> None:
        """A forward pass has ended whose backward pass is to be reduced.

        Args:
            without: Parameters that get no gradient in it.

        Raises:
            RuntimeError: The backward pass before has not used all parameters.
        """
        if self._started:
            missing = [i for i in range(len(self.parameters)) if i not in self._ready]
            self._reset()
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                "indicates that your module has parameters that were not used in producing loss. You can enable unused "
                "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                "`DistributedDataParallel`, and by making sure all `forward` function outputs participate in "
                "calculating "
                f"loss. Parameters without a gradient: {[self.names[i] for i in missing]} (indices {missing})"
            )
        self._reset()
        self.active = True
        self._without = without

    def _reset(self) -> None:
        self.active = self._started = self._queued = False
        self._ready.clear()
        self._earlier.clear()
        self._seen.clear()
        self._next = 0
        for bucket in self.buckets:
            bucket.missing = len(bucket.members)
            bucket.work = bucket.future = None
            if not self.views:
                bucket.flat, bucket.parts = None, []

    def _before(self, index: int) -> Callable[[Tensor], None]:
        """What is there already is the same in all processes, so it is set aside before a gradient is added."""

        def hook(gradient: Tensor) -> None:
            if not self.active:
                self.local.add(index)
            elif self.tree and index not in self.local and index not in self._seen:
                parameter = self.parameters[index]
                if parameter.grad is not None:
                    self._set_aside(index, parameter.grad)
                    parameter.grad = None

        return hook

    def _set_aside(self, index: int, gradient: Tensor) -> None:
        # A view of a bucket is overwritten before it is needed.
        self._earlier[index] = gradient.clone() if self.views else gradient

    def _after(self, index: int) -> Callable[[Tensor], None]:
        def hook(parameter: Tensor) -> None:
            if self.active:
                self._started = True
                if not self._queued:
                    self._queued = True
                    Variable._execution_engine.queue_callback(self._end)
                    without = self._without
                    if self._times is not None:
                        without = set(range(len(self.parameters))).difference(self._times)
                    for other in sorted(without):
                        self._mark(other)
                self._wrote(index)

        return hook

    def _wrote(self, index: int) -> None:
        self._seen[index] = times = self._seen.get(index, 0) + 1
        if self.static:
            # In the first pass nobody knows yet which write is the last.
            if self._times is None or times < self._times.get(index, 1):
                return
        elif times > 1:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) "
                "Use of a module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant "
                "backward passes, such as checkpointed blocks with use_reentrant=True; use use_reentrant=False, or "
                f"static_graph=True. Parameter at index {index} with name {self.names[index]} has been marked as ready "
                "twice."
            )
        self._mark(index)

    def _mark(self, index: int) -> None:
        """A gradient is complete."""
        if index in self._ready:
            return
        self._ready.add(index)
        bucket, place = self.place[index]
        if bucket.flat is None:
            bucket.memory()
        part, gradient = bucket.parts[place], self.parameters[index].grad
        if gradient is not None and self.tree and index not in self._seen and index not in self.local:
            self._set_aside(index, gradient)
            gradient = None
        with no_grad():
            if gradient is None:
                part.zero_()
            elif gradient.data_ptr() != part.data_ptr():
                part.copy_(gradient)
        bucket.missing -= 1
        # All processes send buckets in the same order.
        while self._next < len(self.buckets) and self.buckets[self._next].missing == 0:
            self._send(self._next)
            self._next += 1

    def _send(self, number: int) -> None:
        bucket = self.buckets[number]
        flat = bucket.flat
        assert flat is not None
        if self.hook is not None:
            last = number == len(self.buckets) - 1
            bucket.future = self.hook(GradBucket(number, flat, bucket.parameters, last))
            return
        bucket.work = self.sum(flat, f"bucket {number}")

    def sum(self, flat: Tensor, what: str) -> Work:
        """Start the sum over all processes, in place."""
        name = "DistributedDataParallel"
        reduction = Reduction(name, ReduceOp.SUM, flat)

        def program(lent: Lent) -> Generator[Any, None, None]:
            if self.tree:
                yield from sum_of_processes(self.group.link, lent.flat)
            else:
                yield from reduction.all(self.group.link, lent.flat)
            lent.written()

        work = run(self.group, name, program(Lent(flat)), [Seen(flat), what], [flat], True)
        assert work is not None
        return work

    def _end(self) -> None:
        """Backward has ended: wait for what was sent, and put the means into the gradients."""
        if self.static and self._times is None:
            self._times = dict(self._seen)
            for index in range(len(self.parameters)):
                self._mark(index)
        if self._next < len(self.buckets):
            return
        everywhere_unused = self.unused_everywhere() if self.unused or self.static else set()
        with no_grad():
            for number, bucket in enumerate(self.buckets):
                self._finish(number, bucket, everywhere_unused)
        self.local.clear()
        self._reset()

    def _finish(self, number: int, bucket: _Bucket, unused: set[int]) -> None:
        flat, parts = bucket.flat, bucket.parts
        assert flat is not None
        if bucket.future is not None:
            given = bucket.future.wait()
            given = given[0] if isinstance(given, (list, tuple)) else given
            if given.data_ptr() != flat.data_ptr():
                flat.copy_(given)
        else:
            assert bucket.work is not None
            bucket.work.wait()
            if self.divide_by != 1:
                flat.div_(self.divide_by)
        for index, part in zip(bucket.members, parts, strict=True):
            if index in unused:
                continue
            parameter, earlier = self.parameters[index], self._earlier.get(index)
            if earlier is not None:
                part.add_(earlier)
            if self.views:
                parameter.grad = part
            elif earlier is not None:
                parameter.grad = earlier.copy_(part)
            elif parameter.grad is None:
                parameter.grad = part.clone()
            else:
                parameter.grad.copy_(part)

    def unused_everywhere(self) -> set[int]:
        """Parameters that no process has used: their gradients stay as they are."""
        used = _core.zeros([len(self.parameters)], dtype=_core.int32, device="cpu", requires_grad=False)
        for index in self._seen:
            used[index] = 1
        if self.group.size() > 1:
            reduction = Reduction("DistributedDataParallel", ReduceOp.SUM, used)
            steps = reduction.all(self.group.link, used)
            run(self.group, "DistributedDataParallel", steps, [Seen(used), "used parameters"], [used], False)
        return {index for index, count in enumerate(used.tolist()) if not count}


def unreached(outputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> set[int]:
    """Places of the parameters that no output depends on."""
    places = {id(parameter): place for place, parameter in enumerate(parameters)}
    found: set[int] = set()
    seen: set[int] = set()
    nodes = []
    for output in outputs:
        if output.grad_fn is not None:
            nodes.append(output.grad_fn)
        elif id(output) in places:
            found.add(places[id(output)])
    kept = []
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        # Its id is that of another node once it is gone.
        kept.append(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) in places:
            found.add(places[id(variable)])
        nodes.extend(after for after, _ in node.next_functions if after is not None)
    return set(range(len(parameters))) - found
