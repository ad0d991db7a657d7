"""Shards that run beside each other, one at a time, and meet where they need each other's statistics."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ...distributed import ProcessGroup
from ..modules._sync_norm import local, normalised
from ..modules.batchnorm import SyncBatchNorm
from ..modules.module import Module


def meets(module: Module) -> bool:
    """Whether shards of a module need each other."""
    return any(isinstance(part, SyncBatchNorm) and part.training for part in module.modules())


def with_tensors(module: Module, tensors: dict[str, Tensor], prefix: str = "", made: Any = None) -> Module:
    """A module with the same submodules, settings and hooks, and with other parameters and buffers."""
    made = {} if made is None else made
    if id(module) in made:
        known: Module = made[id(module)]
        return known
    other = made[id(module)] = copy.copy(module)
    for kind in ("_parameters", "_buffers"):
        own = getattr(module, kind)
        setattr(other, kind, {name: tensors.get(prefix + name, value) for name, value in own.items()})
    other._modules = {
        name: None if part is None else with_tensors(part, tensors, f"{prefix}{name}.", made)
        for name, part in module._modules.items()
    }
    return other


class _Shard:
    """A thread that runs one shard when it is its turn."""

    def __init__(self, call: Callable[[], Any], seed: int, meeting: Lockstep) -> None:
        self.call, self.meeting = call, meeting
        self.turn, self.back = threading.Semaphore(0), threading.Semaphore(0)
        self.waits: tuple[SyncBatchNorm, Tensor] | None = None
        self.answer: Tensor | None = None
        self.done = self.stopped = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.random = _core.Generator().manual_seed(seed).get_state()
        self.autocast = {
            kind: (_core.is_autocast_enabled(kind), _core.get_autocast_dtype(kind)) for kind in ("cpu", "wgpu")
        }
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.turn.acquire()
        try:
            if not self.stopped:
                for kind, (enabled, dtype) in self.autocast.items():
                    _core.set_autocast_enabled(kind, enabled)
                    _core.set_autocast_dtype(kind, dtype)
                local.meeting, local.shard = self.meeting, self
                self.result = self.call()
        except BaseException as error:
            self.error = error
        finally:
            self.done = True
            self.back.release()

    def go_on(self) -> None:
        """Let it run until it waits for the others or has ended."""
        _core.default_generator.set_state(self.random)
        self.turn.release()
        self.back.acquire()
        self.random = _core.default_generator.get_state()


class _Stopped(BaseException):
    """Another shard has failed."""


class Lockstep:
    """Runs shards.

    Args:
        group: The processes.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group

    def meet(self, norm: SyncBatchNorm, x: Tensor) -> Tensor:
        """Called in a shard's thread: its input goes to the others, and it waits for its output."""
        shard: _Shard = local.shard
        shard.waits = (norm, x)
        shard.back.release()
        shard.turn.acquire()
        if shard.stopped or shard.answer is None:
            raise _Stopped
        answer, shard.answer = shard.answer, None
        return answer

    def run(self, calls: Sequence[Callable[[], Any]], seeds: Sequence[int]) -> list[Any]:
        """What the calls give, each with its seed.

        Raises:
            RuntimeError: Some shards wait for others that have ended.
        """
        before = _core.default_generator.get_state()
        shards = [_Shard(call, seed, self) for call, seed in zip(calls, seeds, strict=True)]
        try:
            while True:
                for shard in shards:
                    shard.go_on()
                    if shard.error is not None:
                        raise shard.error
                if all(shard.done for shard in shards):
                    return [shard.result for shard in shards]
                waiting = [shard.waits for shard in shards if shard.waits is not None and not shard.done]
                if len(waiting) != len(shards):
                    raise RuntimeError(
                        "SyncBatchNorm: some virtual shards of the batch use more norms than others; use the same "
                        "layers "
                        "for each input, or DistributedDataParallel(virtual_shards=1)"
                    )
                outputs = normalised([norm for norm, _ in waiting], [x for _, x in waiting], self.group)
                for shard, output in zip(shards, outputs, strict=True):
                    shard.waits, shard.answer = None, output
        finally:
            for shard in shards:
                if not shard.done:
                    shard.stopped = True
                    shard.turn.release()
                shard.thread.join()
            _core.default_generator.set_state(before)
