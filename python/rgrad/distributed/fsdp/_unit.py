"""Parameters that are gathered together, used, freed, and whose gradients are reduced together.

Note: life of a unit. Outside of forward modules have the shards. ``enter`` gathers the whole parameters and registers
the outputs of :class:`Gather`, whose backward reduces their gradients; ``leave`` registers the shards again and drops
the whole ones. What operations save for backward of the memory of whole parameters, views too, is replaced by a
:class:`Reference` (``packing``), so the graph keeps no whole parameter alive. The first node that asks for one has the
unit gathered again, and the next one in order of backward with it; the last reference that goes frees it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor, is_grad_enabled
from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from ...autograd.graph import saved_tensors_hooks
from ...autograd.variable import Variable
from ...nn.modules.module import Module
from .._buffers import bytes_of, room_for
from .._calls import Seen, run
from .._reductions import Premultiplied, ReduceOp, Reduction
from .._work import Work
from ..tensor._dtensor import DTensor
from ._parameter import ShardedParameter
from ._policies import MixedPrecisionPolicy

Steps = Generator[Any, None, None]


class Pass:
    """What the units of one tree of modules know together.

    Attributes:
        units: All of them.
        root: The outermost one.
        order: The units in the order in which their forward has ended.
        memories: By the number of their memory: the whole parameters that are there.
        is_last: Whether the end of backward frees all units.
    """

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.root: Unit | None = None
        self.order: list[Unit] = []
        self.memories: dict[int, tuple[Unit, int]] = {}
        self.depth = 0
        self.is_last = True
        self.in_backward = False
        self.seen: set[int] = set()
        self.reduced: set[int] = set()
        # Whether a pass has left gradients that are not reduced.
        self.pending = False

    def begin_backward(self) -> None:
        """Have :meth:`end` called when the backward that runs ends."""
        if not self.in_backward:
            self.in_backward = True
            self.seen.clear()
            self.reduced.clear()
            Variable._execution_engine.queue_callback(self.end)

    def end(self) -> None:
        """The end of a backward."""
        self.in_backward = False
        if self.pending:
            # What earlier passes have left in units that this one has not used.
            for unit in self.units:
                if unit.sync and id(unit) not in self.reduced:
                    unit.reduce_rest()
        self.pending = any(not (unit.sync and unit.all_reduces) for unit in self.units)
        for unit in self.units:
            if self.is_last and unit.reshard_after_backward and not unit.by_user:
                unit.free()
        if self.is_last:
            self.order.clear()

    def reset(self) -> None:
        """Forget a forward or backward that an error has ended."""
        for unit in self.units:
            unit.forget()
        self.order.clear()
        self.in_backward, self.pending, self.depth = False, False, 0

    def packed(self, tensor: Tensor) -> Any:
        """What a node keeps for a tensor."""
        if not self.memories or tensor.is_conj() or tensor.is_neg():
            return tensor
        found = self.memories.get(tensor.untyped_storage()._cdata)
        if found is None:
            return tensor
        unit, number = found
        whole = unit.wholes[number] if unit.wholes is not None else None
        return tensor if whole is None or whole.dtype != tensor.dtype else Reference(unit, number, tensor)

    def packing(self) -> saved_tensors_hooks:
        """A block in which operations keep no whole parameters."""
        return saved_tensors_hooks(self.packed, _unpacked)


class Reference:
    """Stands for a view of a whole parameter that a node has saved.

    Args:
        unit: The parameter's unit.
        number: The parameter's number in it.
        tensor: The view.
    """

    __slots__ = ("number", "offset", "shape", "stamp", "stride", "unit")

    def __init__(self, unit: Unit, number: int, tensor: Tensor) -> None:
        self.unit, self.number = unit, number
        self.shape, self.stride, self.offset = tensor.shape, tensor.stride(), tensor.storage_offset()
        self.stamp = unit.stamp
        unit.references += 1

    def __del__(self) -> None:
        self.unit.released()

    def tensor(self) -> Tensor:
        """The view, of a parameter that is gathered again if need be.

        Raises:
            RuntimeError: The shard has changed since.
        """
        whole = self.unit.for_backward()[self.number]
        if self.unit.stamp != self.stamp:
            raise RuntimeError(
                "fully_shard: one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: a parameter of {self.unit.name} was changed between forward and backward; step the "
                "optimizer after backward"
            )
        return whole.as_strided(self.shape, self.stride, self.offset)


def in_backward() -> bool:
    """Whether this thread is inside of a backward pass: a module that runs there is computed again."""
    return _core._current_graph_task_id() >= 0


def _unpacked(kept: Any) -> Tensor:
    return kept.tensor() if isinstance(kept, Reference) else kept


class Gather(Function):
    """From shards to whole parameters; gradients of whole parameters become those of shards."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, numbers: Sequence[int], *shards: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.unit, ctx.numbers = unit, numbers
        assert unit.wholes is not None
        return tuple(unit.wholes[number].detach() for number in numbers)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        if is_grad_enabled():
            raise NotImplementedError(
                "fully_shard: derivatives of derivatives are not there; call backward without create_graph, or use "
                "DistributedDataParallel"
            )
        unit: Unit = ctx.unit
        unit.context.begin_backward()
        return (None, None, *unit.reduced(ctx.numbers, gradients))


class Unit:
    """The parameters of one call of :func:`fully_shard`.

    Args:
        modules: What was given to it.
        parameters: The parameters.
        policy: Their dtypes.
        reshard: Whether forward frees the whole parameters; None for all but the outermost unit.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        parameters: Sequence[ShardedParameter],
        policy: MixedPrecisionPolicy,
        reshard: bool | None,
        groups: tuple[Any, Any],
        device: str,
    ) -> None:
        self.modules, self.parameters, self.policy = list(modules), list(parameters), policy
        self.group, self.replicas = groups
        self.device = device
        self.name = type(modules[0]).__name__
        self.context = Pass()
        self.automatic = reshard is None
        self.reshard_after_forward = reshard is not False
        self.reshard_after_backward = True
        self.sync, self.all_reduces = True, True
        self.divisor: float | None = None
        self.hook: Any = None
        self.forward_prefetch: list[Unit] = []
        self.backward_prefetch: list[Unit] | None = None
        self.wholes: list[Tensor] | None = None
        self.stamp: tuple[Any, ...] = ()
        self.references = 0
        self.used = 0
        self.ran: set[int] = set()
        self.by_user = False
        self._rooms: list[Tensor] = []
        self._work: Work | None = None
        # Sums of gradients that were not reduced, and of those that were not reduced over replicas, by number.
        self._sums: dict[int, Tensor] = {}
        self._partial: dict[int, Tensor] = {}

    # Whole parameters.

    def start(self) -> None:
        """Begin to gather the whole parameters, unless they are there or on their way."""
        for parameter in self.parameters:
            parameter.refresh()
        stamp = tuple(parameter.stamp() for parameter in self.parameters)
        if (self.wholes is not None or self._work is not None) and stamp == self.stamp:
            return
        self.free()
        self.stamp = stamp
        if not self.parameters:
            self.wholes = []
            return
        with no_grad():
            given = [parameter.given(self.policy.param_dtype) for parameter in self.parameters]
            rooms = [
                room_for(one.numel() * parameter.parts, one.dtype).view(one.shape[0] * parameter.parts, *one.shape[1:])
                for one, parameter in zip(given, self.parameters, strict=True)
            ]

        def program() -> Steps:
            link = self.group.link
            pairs = zip(given, rooms, strict=True)
            begun = [link.all_gather(bytes_of(one.reshape(-1)), bytes_of(room.reshape(-1))) for one, room in pairs]
            # A group of one process has nothing to wait for.
            yield [request for request in begun if request is not None]

        self._rooms = rooms
        self._work = run(self.group, "fully_shard.all_gather", program(), [Seen(one) for one in given], [], True)

    def wait(self) -> list[Tensor]:
        """The whole parameters, when they have been gathered."""
        self.start()
        if self._work is not None:
            self._work.wait()
            self._work = None
            with no_grad():
                pairs = zip(self.parameters, self._rooms, strict=True)
                self.wholes = [parameter.whole(room, self.device) for parameter, room in pairs]
            self._rooms = []
            for number, whole in enumerate(self.wholes):
                self.context.memories[whole.untyped_storage()._cdata] = self, number
        assert self.wholes is not None
        return self.wholes

    def free(self) -> None:
        """Drop the whole parameters."""
        if self._work is not None:
            # Its memory must stay until it has ended.
            self._work.wait()
            self._work, self._rooms = None, []
        for whole in self.wholes or ():
            self.context.memories.pop(whole.untyped_storage()._cdata, None)
        self.wholes = None

    def for_backward(self) -> list[Tensor]:
        """The whole parameters for a node of the graph; those that come next are begun to be gathered, too."""
        self.context.begin_backward()
        self.start()
        if id(self) not in self.context.seen:
            self.context.seen.add(id(self))
            for unit in self._next():
                unit.start()
        return self.wait()

    def _next(self) -> list[Unit]:
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        order = self.context.order
        place = order.index(self) if self in order else 0
        # What nothing refers to is not needed.
        return [order[place - 1]] if place > 0 and order[place - 1].references > 0 else []

    def released(self) -> None:
        """A reference has gone."""
        self.references -= 1
        done = self.references == 0 and self.used == 0 and not self.by_user and self._work is None
        if done and self.context.in_backward and self.reshard_after_backward:
            self.free()

    # Forward.

    def register_whole(self) -> None:
        """Let the modules have the whole parameters."""
        wholes = self.wait()
        trained = [n for n, parameter in enumerate(self.parameters) if parameter.sharded.requires_grad]
        made: Sequence[Tensor] = ()
        if trained and is_grad_enabled():
            made = Gather.apply(self, trained, *(self.parameters[n].sharded for n in trained))
        with_history = dict(zip(trained, made, strict=False))
        for number, parameter in enumerate(self.parameters):
            tensor = with_history[number] if number in with_history else wholes[number].detach()
            vars(tensor)["_is_param"] = True
            parameter.register(tensor)

    def register_shards(self) -> None:
        """Let the modules have the shards."""
        for parameter in self.parameters:
            parameter.register(parameter.sharded)

    def enter(self) -> None:
        """A module's forward begins."""
        self.context.depth += 1
        self.used += 1
        if self.context.depth == 1 and not in_backward():
            # An error may have ended the last one.
            self.context.in_backward = False
        if self.used > 1:
            return
        try:
            self.start()
            for unit in self.forward_prefetch:
                unit.start()
            self.register_whole()
        except BaseException:
            self.context.depth -= 1
            self.used -= 1
            self.register_shards()
            raise

    def leave(self, module: Module) -> None:
        """It has ended."""
        self.context.depth -= 1
        self.used -= 1
        if self.used:
            return
        self.register_shards()
        self.by_user = False
        self.ran.add(id(module))
        # Modules that share a unit run one after the other.
        if len(self.ran) < len(self.modules):
            return
        self.ran.clear()
        if is_grad_enabled() and not in_backward():
            if self in self.context.order:
                self.context.order.remove(self)
            self.context.order.append(self)
        if self.reshard_after_forward:
            self.free()

    def before_state(self) -> None:
        """What is saved are shards."""
        if not self.used:
            self.by_user = False
            self.register_shards()

    def forget(self) -> None:
        """Be as before a forward that has failed."""
        self.register_shards()
        self.free()
        self.used, self.by_user = 0, False
        self.ran.clear()
        self._sums.clear()
        self._partial.clear()

    # Gradients.

    def reduced(self, numbers: Sequence[int], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of shards, of those of whole parameters; None where they are not reduced yet.

        Args:
            numbers: The parameters' numbers.
            gradients: Those of this process; None for parameters that it has not used.
        """
        self.context.reduced.add(id(self))
        found: dict[int, Tensor] = {}
        for number, gradient in zip(numbers, gradients, strict=True):
            before = self._sums.pop(number, None)
            if gradient is not None:
                kept = gradient.detach().to(self.policy.reduce_dtype or gradient.dtype)
                found[number] = kept if before is None else before + kept
            elif before is not None:
                found[number] = before
        del gradients
        if not self.sync:
            self._sums.update(found)
            return [None] * len(numbers)
        got = self._reduce(list(numbers), found)
        result: list[Tensor | None] = []
        for number in numbers:
            part = got.get(number)
            if part is not None and self.hook is not None:
                self.hook(part)
            result.append(None if part is None else self.parameters[number].own_rows(part))
        return result

    @no_grad()
    def reduce_rest(self) -> None:
        """Add to the gradients of shards what passes without reduction have left."""
        numbers = [n for n, parameter in enumerate(self.parameters) if parameter.sharded.requires_grad]
        for number, part in zip(numbers, self.reduced(numbers, [None] * len(numbers)), strict=True):
            if part is not None:
                shard = self.parameters[number].sharded
                gradient = DTensor(part, shard._spec)
                shard.grad = gradient if shard.grad is None else shard.grad + gradient

    def _op(self, tensor: Tensor, members: int) -> Any:
        if self.divisor is not None:
            return Reduction("fully_shard", Premultiplied(1.0 / self.divisor) if members else ReduceOp.SUM, tensor)
        return Reduction("fully_shard", ReduceOp.AVG, tensor)

    def _reduce(self, numbers: Sequence[int], found: dict[int, Tensor]) -> dict[int, Tensor]:
        """The mean over all processes, of each the rows of this one's shard."""
        link = self.group.link
        mask = room_for(len(numbers), _core.uint8)
        for place, number in enumerate(numbers):
            mask[place] = number in found or number in self._partial
        over = Reduction("fully_shard", ReduceOp.MAX, mask)
        replicas = self.replicas if self.replicas is not None and self.all_reduces else None
        got: dict[int, Tensor] = {}

        def program() -> Steps:
            yield from over.all(link, mask)
            if replicas is not None:
                yield from over.all(replicas.link, mask)
            for place, number in enumerate(numbers):
                if mask[place].item() == 0:
                    continue
                parameter = self.parameters[number]
                kind = self._kind(number, found)
                gradient = found.pop(number, None)
                if gradient is None:
                    gradient = room_for(0, kind).new_zeros(tuple(parameter.sharded.shape))
                given = parameter.all_rows(gradient, kind)
                del gradient
                room = room_for(given.numel() // parameter.parts, kind)
                yield from self._op(given, 1).parts(link, given.reshape(-1), room)
                part = room.view(parameter.rows, *given.shape[1:])
                del given, room
                if number in self._partial:
                    part += self._partial.pop(number)
                if replicas is not None:
                    yield from self._op(part, 0).all(replicas.link, part.view(-1))
                elif self.replicas is not None:
                    self._partial[number] = part
                    continue
                got[number] = part

        with no_grad():
            seen = [f"{len(numbers)} gradients"]
            run(self.group, "fully_shard.reduce_scatter", program(), seen, [], False)
        return got

    def _kind(self, number: int, found: dict[int, Tensor]) -> Any:
        """The dtype in which a gradient is reduced, the same in all processes."""
        policy = self.policy
        own = self.parameters[number].sharded.dtype
        used = policy.param_dtype if policy.param_dtype is not None and own.is_floating_point else own
        return policy.reduce_dtype or used
