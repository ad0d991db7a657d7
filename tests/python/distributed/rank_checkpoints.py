"""Checks of ``distributed.checkpoint``, made by several processes together; test_ranks.py reads what they say."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rgrad
import rgrad.distributed.checkpoint as dcp
from rank_training import raises
from rgrad import distributed as dist
from rgrad import nn
from rgrad.distributed.checkpoint.filesystem import FileSystemWriter
from rgrad.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from rgrad.distributed.fsdp import fully_shard
from rgrad.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from rgrad.nn.parallel import DistributedDataParallel

FULL = StateDictOptions(full_state_dict=True)
FIRST = StateDictOptions(full_state_dict=True, cpu_offload=True)
GIVEN = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, the same in all processes."""
    made: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(made, 0)
    try:
        yield Path(made[0])
    finally:
        dist.barrier()
        if dist.get_rank() == 0:
            shutil.rmtree(made[0])


def plain(seed: int) -> nn.Sequential:
    rgrad.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def sharded(seed: int) -> tuple[Any, rgrad.optim.Optimizer]:
    net = plain(seed)
    fully_shard(net[0])
    fully_shard(net)
    return net, rgrad.optim.AdamW(net.parameters(), lr=0.01 * (seed + 1))


def stepped(seed: int) -> tuple[Any, rgrad.optim.Optimizer]:
    net, optimizer = sharded(seed)
    net(rgrad.ones(2, 5)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return net, optimizer


def values(net: Any, optimizer: Any) -> list[rgrad.Tensor]:
    model = get_model_state_dict(net, options=FULL)
    state = get_optimizer_state_dict(net, optimizer, options=FULL)["state"]
    return [*model.values(), *(state[name][key] for name in sorted(state) for key in sorted(state[name]))]


def same(first: tuple[Any, Any], second: tuple[Any, Any]) -> None:
    for a, b in zip(values(*first), values(*second), strict=True):
        assert rgrad.equal(a, b)
    assert first[1].param_groups[0]["lr"] == second[1].param_groups[0]["lr"]


def check_a_checkpoint_is_loaded_with_other_placements() -> None:
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    x = rgrad.arange(35.0).reshape(7, 5)
    with folder() as at:
        for number, first in enumerate(([Shard(0)], [Shard(1)], [Replicate()])):
            here = at / str(number)
            metadata = dcp.save({"x": distribute_tensor(x, mesh, first), "n": 4}, checkpoint_id=here)
            assert metadata.state_dict_metadata["x"].size == x.shape
            for second in ([Shard(0)], [Shard(1)], [Replicate()]):
                state = {"x": distribute_tensor(rgrad.zeros(7, 5), mesh, second), "n": 0}
                dcp.load(state, checkpoint_id=here)
                assert rgrad.equal(state["x"].full_tensor(), x)
                assert state["n"] == 4
            whole = {"x": rgrad.zeros(7, 5)}
            dcp.load(whole, storage_reader=dcp.FileSystemReader(here))
            assert rgrad.equal(whole["x"], x)
        written = sum(file.stat().st_size for file in (at / "2").iterdir())
        # What all have is written once.
        assert written < 2 * (at / "0" / "__0_0.distcp").stat().st_size + 8000


def check_training_goes_on_from_a_checkpoint() -> None:
    saved = stepped(0)
    with folder() as at:
        model, state = get_state_dict(*saved)
        assert all(isinstance(value, DTensor) for value in model.values())
        dcp.save({"model": model, "optim": state, "epoch": 3}, checkpoint_id=at)
        other = sharded(1)
        model, state = get_state_dict(*other)
        loaded = {"model": model, "optim": state, "epoch": 0}
        dcp.load(loaded, checkpoint_id=at)
        set_state_dict(*other, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"])
        assert loaded["epoch"] == 3
        same(saved, other)

        class App:
            def __init__(self, net: Any, optimizer: Any) -> None:
                self.parts = net, optimizer

            def state_dict(self) -> dict[str, Any]:
                model, state = get_state_dict(*self.parts)
                return {"model": model, "optim": state}

            def load_state_dict(self, state_dict: dict[str, Any]) -> None:
                set_state_dict(*self.parts, model_state_dict=state_dict["model"], optim_state_dict=state_dict["optim"])

        dcp.save({"app": App(*saved)}, checkpoint_id=at / "app")
        last = sharded(2)
        dcp.load({"app": App(*last)}, checkpoint_id=at / "app")
        same(saved, last)


def check_whole_states_come_from_one_process() -> None:
    saved, first = stepped(0), dist.get_rank() == 0
    model, state = get_state_dict(*saved, options=FIRST)
    assert bool(model) == bool(state) == first
    other = sharded(3)
    said = set_state_dict(*other, model_state_dict=model, optim_state_dict=state, options=GIVEN)
    assert not said.missing_keys
    assert not said.unexpected_keys
    same(saved, other)
    assert isinstance(other[1].state[other[0][0].weight]["exp_avg"], DTensor)
    # Every process has whole ones.
    model, state = get_state_dict(*saved, options=FULL)
    one = plain(9)
    one.load_state_dict(model)
    last = sharded(4)
    set_model_state_dict(last[0], model, options=FULL)
    set_optimizer_state_dict(*last, state, options=FULL)
    same(saved, last)
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    named = get_optimizer_state_dict(*saved, options=flat)
    assert "state.0.weight.exp_avg" in named
    assert "param_groups.0.weight.lr" in named
    fresh = sharded(5)
    set_optimizer_state_dict(*fresh, named, options=flat)
    set_model_state_dict(fresh[0], model, options=FULL)
    same(saved, fresh)
    for net in (DistributedDataParallel(plain(0)), plain(0)):
        names = list(get_model_state_dict(net))
        assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert not set_model_state_dict(net, get_model_state_dict(net)).missing_keys
    net, _optimizer = sharded(0)
    assert list(get_model_state_dict(net, submodules={net[2]})) == ["2.weight", "2.bias"]
    only = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(net, submodules={net[2]}, options=only)) == ["weight", "bias"]
    net[0].weight.requires_grad_(False)
    assert "0.weight" not in get_model_state_dict(net, options=StateDictOptions(ignore_frozen_params=True))
    raises(RuntimeError, "Missing key", lambda: set_model_state_dict(net, {}))
    raises(ValueError, "full_state_dict must be True", lambda: get_model_state_dict(net, options=_wrong()))
    before = [p.full_tensor().clone() for p in net.parameters()]
    get_optimizer_state_dict(net, rgrad.optim.AdamW(net.parameters(), weight_decay=0.5))
    assert all(rgrad.equal(p.full_tensor(), q) for p, q in zip(net.parameters(), before, strict=True))
    elsewhere = rgrad.optim.SGD([nn.Parameter(rgrad.ones(1))], momentum=0.9)
    raises(RuntimeError, "none of the model's", lambda: get_optimizer_state_dict(net, elsewhere))


def _wrong() -> StateDictOptions:
    return StateDictOptions(broadcast_from_rank0=True)


def check_a_half_checkpoint_is_none() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    old, new = (distribute_tensor(rgrad.full((40, 50), v), mesh, [Shard(0)]) for v in (1.0, 2.0))

    class Full(FileSystemWriter):
        """The disk of the last process is full."""

        def write(self, name: str, items: Any) -> Any:
            if rank == size - 1:
                items = list(items)
                (self.path / name).write_bytes(b"begun")
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / name))
            return super().write(name, items)

    class NoMetadata(FileSystemWriter):
        def finish(self, metadata: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with folder() as at:
        for kind in (Full, NoMetadata):
            _fails_and_goes_on(at / kind.__name__, kind, old, new)


def _fails_and_goes_on(here: Path, kind: type[FileSystemWriter], old: DTensor, new: DTensor) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    state = {"x": rgrad.zeros_like(old)}

    def saved(x: DTensor, **options: Any) -> None:
        dcp.save({"x": x}, **options)

    def loaded() -> DTensor:
        dcp.load(state, checkpoint_id=here)
        return state["x"]

    def remove(name: str) -> None:
        dist.barrier()
        if rank == 0:
            next(iter(here.glob(name))).unlink()
        dist.barrier()

    raises(dcp.CheckpointException, "No space left on device", lambda: saved(old, storage_writer=kind(here)))
    raises(dcp.CheckpointException, "there is no checkpoint", loaded)
    dist.barrier()
    saved(old, checkpoint_id=here)
    raises(dcp.CheckpointException, "No space left on device", lambda: saved(new, storage_writer=kind(here)))
    assert rgrad.equal(loaded(), old)
    saved(new, checkpoint_id=here)
    assert rgrad.equal(loaded(), new)
    # Nothing is left of the others.
    assert len(list(here.glob("*.distcp"))) == size
    writer = dcp.FileSystemWriter(here, overwrite=False)
    raises(dcp.CheckpointException, "already exists", lambda: saved(old, storage_writer=writer))
    remove(f"__{size - 1}_*.distcp")
    raises(dcp.CheckpointException, "a file of the checkpoint is missing", loaded)
    if size > 1:
        remove(".metadata")
        raises(dcp.CheckpointException, "not complete", loaded)


def check_a_thread_saves_what_there_was() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x = distribute_tensor(rgrad.ones(6, 2), mesh, [Shard(0)])
    if dist.get_world_size() > 1:
        raises(ValueError, "a group of its own", lambda: dcp.async_save({"x": x}, checkpoint_id="nowhere"))
    own = dist.new_group()
    with folder() as at:
        waiting = dcp.async_save({"x": x, "list": [1, {"y": rgrad.ones(2)}]}, checkpoint_id=at, process_group=own)
        x.to_local().zero_()
        dist.all_reduce(rgrad.ones(1))
        assert "x" in waiting.result().state_dict_metadata
        state = {"x": x, "list": [0, {"y": rgrad.zeros(2)}]}
        dcp.load(state, checkpoint_id=at)
        assert rgrad.equal(x.full_tensor(), rgrad.ones(6, 2))
        assert state["list"][0] == 1
    dist.destroy_process_group(own)
