"""A batch in virtual shards, each computed as a process of its own would; gradients are summed in a tree."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from ...distributed import ProcessGroup
from ...distributed._tree import sum_of
from ...func import functional_call
from ...utils._pytree import tree_flatten, tree_unflatten
from ..modules.module import Module
from ._lockstep import Lockstep, meets, with_tensors


class _Spread(Function):
    """A parameter, once for each shard; its gradient is the sum of theirs in the tree."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, count: int) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return tuple(parameter.detach() for _ in range(count))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        return sum_of(gradients), None


class NotSharded(Exception):
    """The module's outputs cannot be put together from those of shards."""


def seed_of(base: int, call: int, shard: int) -> int:
    """A seed for each shard of each call, which looks random: the mixing function of SplitMix64."""
    mask = (1 << 64) - 1
    z = (base + 0x9E3779B97F4A7C15 * (call + 1) + 0xD1B54A32D192ED03 * (shard + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) & ((1 << 63) - 1)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A block whose random numbers depend on a seed alone."""
    generator = _core.default_generator
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)


def _batch(leaves: Sequence[Any]) -> int:
    """The size of the first dimension of the first input that has one."""
    for leaf in leaves:
        if isinstance(leaf, Tensor) and leaf.dim() > 0:
            return leaf.shape[0]
    return 0


def _parts(leaves: Sequence[Any], batch: int, count: int) -> list[list[Any]]:
    """The inputs of each shard. What has another first dimension than the batch goes to all of them."""
    parts: list[list[Any]] = [[] for _ in range(count)]
    for leaf in leaves:
        split = isinstance(leaf, Tensor) and leaf.dim() > 0 and leaf.shape[0] == batch
        pieces = leaf.tensor_split(count) if split else [leaf] * count
        for part, piece in zip(parts, pieces, strict=True):
            part.append(piece)
    return parts


def _check(outputs: Any, rows: int) -> None:
    for leaf in tree_flatten(outputs)[0]:
        if isinstance(leaf, Tensor):
            if leaf.dim() == 0 or leaf.shape[0] != rows:
                raise NotSharded(f"an output of shape {tuple(leaf.shape)} has no batch dimension of {rows}")
        elif not isinstance(leaf, (int, float, str, bool, type(None))):
            raise NotSharded(f"an output is a {type(leaf).__name__}")


def _joined(outputs: Sequence[Any]) -> Any:
    flat = [tree_flatten(output) for output in outputs]
    spec = flat[0][1]
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    leaves = [_core.cat(list(column)) if isinstance(column[0], Tensor) else column[0] for column in columns]
    return tree_unflatten(leaves, spec)


class Shards:
    """How a module is called with its batch in shards.

    Args:
        module: The module.
        count: How many shards this process has.
        first: The number of its first one among all.
        base: What random numbers depend on, the same in all processes.
        group: The processes.
    """

    def __init__(self, module: Module, count: int, first: int, base: int, group: ProcessGroup) -> None:
        self.group = group
        self.module, self.count, self.first, self.base = module, count, first, base
        self.calls = 0
        self.whole = False

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the module. What comes out has the whole batch again."""
        call = self.calls
        self.calls += 1
        leaves, spec = tree_flatten((args, kwargs))
        batch = _batch(leaves)
        count = min(self.count, batch)
        if count <= 1 or self.whole:
            with seeded(seed_of(self.base, call, self.first)):
                return self.module(*args, **kwargs)
        before = [(buffer, buffer.clone()) for buffer in self.module.buffers()] if call == 0 else []
        try:
            return self._in_shards(call, [tree_unflatten(part, spec) for part in _parts(leaves, batch, count)], batch)
        except NotSharded as error:
            warnings.warn(
                f"DistributedDataParallel: {error}, so the batch is not divided into shards, and results depend on the "
                "number of processes; return tensors with a batch dimension and compute the loss outside of the module",
                stacklevel=4,
            )
            self.whole = True
            with no_grad():
                for buffer, value in before:
                    buffer.copy_(value)
            with seeded(seed_of(self.base, call, self.first)):
                return self.module(*args, **kwargs)

    def _in_shards(self, call: int, parts: Sequence[Any], batch: int) -> Any:
        count = len(parts)
        rows = [batch // count + (shard < batch % count) for shard in range(count)]
        spread = {
            name: _Spread.apply(parameter, count)
            for name, parameter in self.module.named_parameters()
            if parameter.requires_grad
        }
        if meets(self.module):
            return self._in_lockstep(call, parts, spread, rows)
        outputs = []
        for shard, (args, kwargs) in enumerate(parts):
            tensors = {name: copies[shard] for name, copies in spread.items()}
            if shard:
                # As in a process of its own, whose buffers are those of the first one at the next call.
                tensors.update((name, buffer.clone()) for name, buffer in self.module.named_buffers())
            with seeded(seed_of(self.base, call, self.first + shard)):
                outputs.append(functional_call(self.module, tensors, tuple(args), dict(kwargs)))
            _check(outputs[-1], rows[shard])
        return _joined(outputs)

    def _in_lockstep(self, call: int, parts: Sequence[Any], spread: dict[str, Any], rows: list[int]) -> Any:
        """Shards that need each other's statistics run beside each other."""
        calls = []
        for shard, (args, kwargs) in enumerate(parts):
            tensors = {name: copies[shard] for name, copies in spread.items()}
            if shard:
                tensors.update((name, buffer.clone()) for name, buffer in self.module.named_buffers())
            calls.append(partial(with_tensors(self.module, tensors), *args, **kwargs))
        seeds = [seed_of(self.base, call, self.first + shard) for shard in range(len(parts))]
        outputs = Lockstep(self.group).run(calls, seeds)
        for output, size in zip(outputs, rows, strict=True):
            _check(output, size)
        return _joined(outputs)
