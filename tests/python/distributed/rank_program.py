"""Checks that several processes make together: ``mpiexec -n 2 python rank_program.py OUT.json``.

Each function ``check_*`` runs in all processes at the same time. What each says goes to a file, which test_ranks.py
reads.
"""

from __future__ import annotations

import datetime
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rank_checkpoints
import rank_shards
import rank_tensors
import rank_training
import rgrad
from rank_training import raises
from rgrad import distributed as dist

RANK, SIZE = 0, 1
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
]


def dtype_of(name: str) -> Any:
    return getattr(rgrad, name)


def values(rank: int, dtype: str = "float32", count: int = 6) -> rgrad.Tensor:
    """Small numbers that each dtype has, other ones in each process."""
    numbers = (rgrad.arange(count) * (rank + 2) + rank) % 5
    if dtype == "bool":
        return numbers % 2 == 0
    if dtype.startswith("complex"):
        return rgrad.complex(numbers.float(), numbers.float() + 1).to(dtype_of(dtype))
    return numbers.to(dtype_of(dtype))


def same(got: rgrad.Tensor, expected: rgrad.Tensor) -> None:
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    left, right = (x.detach().to(rgrad.complex128).numpy() for x in (got, expected))
    assert np.array_equal(left, right), (got, expected)


def everybody(dtype: str = "float32") -> list[rgrad.Tensor]:
    return [values(rank, dtype) for rank in range(SIZE)]


# Collectives.


def check_all_reduce_of_each_dtype() -> None:
    for dtype in DTYPES:
        x = values(RANK, dtype)
        dist.all_reduce(x)
        if dtype == "bool":
            expected = rgrad.stack(everybody(dtype)).any(0)
        elif dtype == "complex32":
            expected = sum(v.to(rgrad.complex64) for v in everybody(dtype)).to(rgrad.complex32)  # type: ignore[union-attr]
        elif dtype.startswith("uint") and dtype != "uint8":
            expected = sum(v.to(rgrad.int64) for v in everybody(dtype)).to(dtype_of(dtype))  # type: ignore[union-attr]
        else:
            expected = sum(everybody(dtype)).to(dtype_of(dtype))  # type: ignore[union-attr]
        same(x, expected)


def check_each_operation() -> None:
    ops: dict[Any, Callable[[Any, Any], Any]] = {
        dist.ReduceOp.PRODUCT: np.multiply,
        dist.ReduceOp.MIN: np.minimum,
        dist.ReduceOp.MAX: np.maximum,
        dist.ReduceOp.BAND: np.bitwise_and,
        dist.ReduceOp.BOR: np.bitwise_or,
        dist.ReduceOp.BXOR: np.bitwise_xor,
    }
    for op, ufunc in ops.items():
        for dtype in ("int32", "uint8", "bool", "float16", "float64"):
            if dtype.startswith("float") and op >= dist.ReduceOp.BAND:
                continue
            x = values(RANK, dtype)
            dist.all_reduce(x, op)
            parts = [v.numpy() for v in everybody(dtype)]
            expected = parts[0]
            for part in parts[1:]:
                expected = ufunc(expected, part).astype(expected.dtype)
            assert np.array_equal(x.numpy(), expected), (op, dtype)
    mean = values(RANK).double()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    same(mean, rgrad.stack(everybody()).double().sum(0) / SIZE)
    twice = values(RANK)
    dist.all_reduce(twice, dist._make_nccl_premul_sum(2.0))
    same(twice, 2 * rgrad.stack(everybody()).sum(0))


def check_layouts_and_histories() -> None:
    base = rgrad.zeros(4, 3)
    x = base.t()
    x.copy_(rgrad.full((3, 4), float(RANK)))
    dist.all_reduce(x)
    same(base, rgrad.full((4, 3), float(sum(range(SIZE)))))
    every_second = rgrad.arange(8.0)
    dist.broadcast(every_second[::2], src=SIZE - 1)
    same(every_second, rgrad.arange(8.0))
    conjugate = rgrad.tensor([1 + RANK * 1j]).conj()
    dist.all_reduce(conjugate)
    same(conjugate.resolve_conj(), rgrad.tensor([SIZE - 1j * sum(range(SIZE))]))
    nothing = rgrad.zeros(0, 3)
    dist.all_reduce(nothing)
    dist.all_gather([rgrad.zeros(0, 3) for _ in range(SIZE)], nothing)
    scalar = rgrad.tensor(float(RANK))
    dist.all_reduce(scalar, dist.ReduceOp.MAX)
    assert scalar.item() == SIZE - 1
    leaf = rgrad.ones(2, requires_grad=True)
    product = leaf * leaf
    dist.all_reduce(leaf)
    assert leaf.tolist() == [SIZE, SIZE]
    assert leaf.requires_grad
    # What backward needs was changed, and that is seen.
    raises(RuntimeError, "modified by an inplace operation", lambda: product.sum().backward())


def check_moves_of_each_dtype() -> None:
    for dtype in DTYPES:
        mine, all_of_them = values(RANK, dtype), everybody(dtype)
        got = [rgrad.zeros_like(mine) for _ in range(SIZE)]
        dist.all_gather(got, mine)
        for a, b in zip(got, all_of_them, strict=True):
            same(a, b)
        flat = rgrad.zeros(SIZE * 6, dtype=dtype_of(dtype))
        dist.all_gather_into_tensor(flat, mine)
        same(flat, rgrad.cat(all_of_them))
        for root in range(SIZE):
            here = root == RANK
            x = values(RANK, dtype)
            dist.broadcast(x, src=root)
            same(x, all_of_them[root])
            got = [rgrad.zeros_like(mine) for _ in range(SIZE)]
            dist.gather(mine, got if here else None, dst=root)
            for a, b in zip(got, all_of_them, strict=True):
                same(a, b if here else rgrad.zeros_like(b))
            x = rgrad.zeros_like(mine)
            dist.scatter(x, all_of_them if here else None, src=root)
            same(x, mine)
        got = [rgrad.zeros_like(mine) for _ in range(SIZE)]
        dist.all_to_all(got, [values(RANK + 10 * to, dtype) for to in range(SIZE)])
        for sender, x in enumerate(got):
            same(x, values(sender + 10 * RANK, dtype))


def check_reduce_and_its_parts() -> None:
    for root in range(SIZE):
        x = values(RANK)
        dist.reduce(x, dst=root)
        same(x, rgrad.stack(everybody()).sum(0) if root == RANK else values(RANK))
    for dtype in ("float32", "bfloat16", "int64"):
        given = rgrad.arange(4 * SIZE).reshape(2 * SIZE, 2).to(dtype_of(dtype)) + RANK
        out = rgrad.zeros(2, 2, dtype=dtype_of(dtype))
        dist.reduce_scatter_tensor(out, given)
        total = SIZE * rgrad.arange(4 * SIZE).reshape(2 * SIZE, 2) + sum(range(SIZE))
        expected = total[2 * RANK : 2 * RANK + 2].to(dtype_of(dtype))
        same(out, expected)
        out.zero_()
        dist.reduce_scatter(out, list(given.chunk(SIZE)))
        same(out, expected)
    one, two = rgrad.ones(2), rgrad.full((3,), float(RANK))
    dist.all_reduce_coalesced([one, two])
    assert one.tolist() == [SIZE] * 2
    assert two.tolist() == [sum(range(SIZE))] * 3


def check_functional_collectives() -> None:
    calls = dist._functional_collectives
    mesh = dist.init_device_mesh("cpu", (SIZE,))
    mine, all_of_them = values(RANK).view(2, 3), [values(rank).view(2, 3) for rank in range(SIZE)]
    same(calls.all_reduce(mine, "sum", mesh), sum(all_of_them[1:], all_of_them[0]))
    same(calls.all_reduce(mine, "max", (mesh, 0)), rgrad.stack(all_of_them).amax(0))
    same(calls.broadcast(mine, SIZE - 1, mesh), all_of_them[-1])
    for dim in (0, 1):
        same(calls.all_gather_tensor(mine, dim, dist.group.WORLD), rgrad.cat(all_of_them, dim))
    wide = [values(rank, count=3 * SIZE).view(SIZE, 3).t() for rank in range(SIZE)]
    total = sum(wide[1:], wide[0])
    same(calls.reduce_scatter_tensor(wide[RANK], "sum", 1, mesh), total[:, RANK : RANK + 1])
    raises(ValueError, "must be a multiple of group_size", lambda: calls.reduce_scatter_tensor(mine, "sum", 1, mesh))
    rows = [values(rank, count=2 * SIZE).view(SIZE, 2) for rank in range(SIZE)]
    same(calls.all_to_all_single(rows[RANK], None, None, mesh), rgrad.stack([r[RANK] for r in rows]))
    # Each process gives each other one a row more than the one before.
    given = [k + 1 for k in range(SIZE)]
    much = [values(rank, count=sum(given)) for rank in range(SIZE)]
    got = calls.all_to_all_single(much[RANK], [RANK + 1] * SIZE, given, mesh)
    same(got, rgrad.cat([m.split(given)[RANK] for m in much]))


def check_all_to_all_single() -> None:
    given = rgrad.arange(2 * SIZE).float() + 100 * RANK
    got = rgrad.zeros(2 * SIZE)
    dist.all_to_all_single(got, given)
    same(got, rgrad.cat([rgrad.arange(2 * RANK, 2 * RANK + 2).float() + 100 * sender for sender in range(SIZE)]))
    # Process r sends r + 1 rows to each.
    rows = RANK + 1
    given = rgrad.full((rows * SIZE, 2), float(RANK)).bfloat16()
    sizes = [sender + 1 for sender in range(SIZE)]
    got = rgrad.zeros(sum(sizes), 2).bfloat16()
    dist.all_to_all_single(got, given, sizes, [rows] * SIZE)
    same(got, rgrad.cat([rgrad.full((n, 2), float(sender)) for sender, n in enumerate(sizes)]).bfloat16())


def check_messages() -> None:
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for dtype in DTYPES:
        got = rgrad.zeros_like(values(0, dtype))
        sent = dist.isend(values(RANK, dtype), after)
        assert dist.recv(got, before) == before
        assert sent is not None
        assert sent.wait()
        same(got, values(before, dtype))
    # Large ones, in which both sides are busy at once; tags tell them apart in any order.
    large = [rgrad.full((300_000,), float(10 * RANK + tag)) for tag in range(2)]
    room = [rgrad.zeros(300_000) for _ in range(2)]
    works = [dist.irecv(room[tag], before, tag=tag) for tag in (1, 0)]
    works += [dist.isend(large[tag], after, tag=tag) for tag in (0, 1)]
    for work in works:
        assert work is not None
        work.wait()
        assert work.is_success()
    for tag in range(2):
        same(room[tag], rgrad.full((300_000,), float(10 * before + tag)))
    out, room_2 = rgrad.full((3,), float(RANK)), rgrad.zeros(3, 2)[:, 0]
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, after), dist.P2POp(dist.irecv, room_2, before)]):
        work.wait()
    same(room_2.contiguous(), rgrad.full((3,), float(before)))
    if RANK == 0:
        senders = {dist.recv(got) for _ in range(SIZE - 1)}
        assert senders == set(range(1, SIZE))
        dist.send_object_list([{"a": 1}, "b"], 1)
        raises(RuntimeError, "has sent 8 bytes", lambda: dist.recv(rgrad.zeros(3), 1, tag=7))
    else:
        dist.send(values(RANK, "complex128"), 0)
        if RANK == 1:
            objects: list[Any] = [None, None]
            assert dist.recv_object_list(objects, 0) == 0
            assert objects == [{"a": 1}, "b"]
            dist.send(rgrad.ones(2), 0, tag=7)


def check_objects() -> None:
    got: list[Any] = [None] * SIZE
    dist.all_gather_object(got, {"rank": RANK, "long": "x" * (1000 * RANK), "tensor": rgrad.ones(RANK)})
    assert [g["rank"] for g in got] == list(range(SIZE))
    assert [len(g["long"]) for g in got] == [1000 * r for r in range(SIZE)]
    same(got[-1]["tensor"], rgrad.ones(SIZE - 1))
    got = [None] * SIZE
    dist.gather_object(RANK, got if RANK == 0 else None)
    assert got == (list(range(SIZE)) if RANK == 0 else [None] * SIZE)
    some = [1, "two", [3]] if RANK == SIZE - 1 else [None] * 3
    dist.broadcast_object_list(some, src=SIZE - 1)
    assert some == [1, "two", [3]]
    out: list[Any] = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(SIZE)] if RANK == 0 else None, src=0)
    assert out == [f"for {RANK}"]


def check_works() -> None:
    tensors = [rgrad.full((1000,), float(RANK + i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, (work, tensor) in enumerate(zip(works, tensors, strict=True)):
        assert work is not None
        assert work.wait()
        assert work.is_completed()
        assert work.result()[0] is tensor
        same(tensor, rgrad.full((1000,), float(sum(r + i for r in range(SIZE)))))
    x = rgrad.ones(1)
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    future = work.get_future().then(lambda done: done.value()[0] * 10)
    assert future.wait().item() == 10 * SIZE
    work = dist.barrier(async_op=True)
    assert work is not None
    work.wait()
    dist.barrier(timeout=datetime.timedelta(seconds=30))
    dist.monitored_barrier()


def check_groups() -> None:
    assert dist.get_process_group_ranks(None) == list(range(SIZE))
    alone = dist.new_group([0])
    last = dist.new_group([SIZE - 1, 0], sort_ranks=False)
    assert dist.get_rank(alone) == (0 if RANK == 0 else -1)
    if RANK in (0, SIZE - 1):
        assert dist.get_process_group_ranks(last) == [SIZE - 1, 0]
        assert dist.get_global_rank(last, 0) == SIZE - 1
        assert dist.get_group_rank(last, 0) == 1
        x = rgrad.full((2,), float(RANK))
        dist.broadcast(x, src=0, group=last)
        same(x, rgrad.zeros(2))
        dist.broadcast(x.fill_(RANK), group=last, group_src=0)
        same(x, rgrad.full((2,), float(SIZE - 1)))
        raises(ValueError, "Global rank 77 is not part of group", lambda: dist.broadcast(x, 77, group=last))
    if RANK == 0:
        x = rgrad.ones(1)
        dist.all_reduce(x, group=alone)
        assert x.item() == 1
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert dist.all_reduce(rgrad.ones(1), group=alone) is None
        assert "does not belong to the given group" in str(caught[0].message)
    both = dist.new_group()
    assert dist.get_world_size(both) == SIZE
    dist.destroy_process_group(both)
    raises(ValueError, "has ended", lambda: dist.barrier(both))
    own, made = dist.new_subgroups(1)
    assert (dist.get_world_size(own), len(made)) == (1, SIZE)
    part = dist.split_group(split_ranks=[[0], list(range(1, SIZE))])
    assert dist.get_world_size(part) == (1 if RANK == 0 else SIZE - 1)


def check_bad_input() -> None:
    """Nothing is sent, so the processes stay together."""
    x = rgrad.ones(2)
    raises(TypeError, "Expected parameter `tensor` of type torch.Tensor, got list", lambda: dist.all_reduce([1]))
    raises(RuntimeError, "invalid root rank: 77", lambda: dist.broadcast(x, 77))
    raises(ValueError, "Must specify src or group_src", lambda: dist.broadcast(x))
    raises(ValueError, "Can't specify both", lambda: dist.broadcast(x, 0, group_src=0))
    raises(RuntimeError, "expected length", lambda: dist.all_gather([x], x))
    outs = [rgrad.ones(2) for _ in range(SIZE)]
    raises(RuntimeError, "invalid tensor size at index 0", lambda: dist.all_gather(outs, rgrad.ones(3)))
    raises(ValueError, "different dtypes", lambda: dist.all_gather(outs, x.int()))
    raises(RuntimeError, "world_size times", lambda: dist.all_gather_into_tensor(rgrad.ones(3), x))
    raises(RuntimeError, "non-integral dtype", lambda: dist.all_reduce(x, dist.ReduceOp.BAND))
    raises(ValueError, "on complex tensors", lambda: dist.all_reduce(x + 1j, dist.ReduceOp.MAX))
    raises(RuntimeError, "can't be cast", lambda: dist.all_reduce(x.int(), dist.ReduceOp.AVG))
    raises(TypeError, "`op` must be", lambda: dist.all_reduce(x, "sum"))
    raises(ValueError, "should not be the same as the rank", lambda: dist.send(x, RANK))
    raises(ValueError, "should not be the same as the rank", lambda: dist.recv(x, RANK))
    raises(ValueError, "tag must be", lambda: dist.isend(x, (RANK + 1) % SIZE, tag=-1))
    raises(ValueError, "within the world_size", lambda: dist.new_group([0, SIZE][-1:]))
    raises(ValueError, "duplicate ranks", lambda: dist.new_group([0] * SIZE))
    raises(ValueError, "p2p_op_list", lambda: dist.batch_isend_irecv([]))
    raises(ValueError, "Invalid ``op``", lambda: dist.P2POp(dist.all_reduce, x, 0))
    raises(RuntimeError, "Split sizes doesn't match", lambda: dist.all_to_all_single(x, x, [5] * SIZE))
    raises(RuntimeError, "meta device", lambda: dist.all_reduce(rgrad.ones(2, device="meta")))
    if RANK == 0:
        raises(ValueError, "``scatter_list`` must be", lambda: dist.scatter(x))
        raises(ValueError, "``gather_list`` must be", lambda: dist.gather(x))
    else:
        raises(ValueError, "must NOT be specified", lambda: dist.scatter(x, outs))
        raises(ValueError, "must NOT be specified", lambda: dist.gather(x, outs))


def check_who_calls_something_else_is_named() -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        x = rgrad.ones(2)
        dist.all_reduce(x)
        raises(
            RuntimeError,
            "Detected mismatch between collectives on ranks. Rank 0 is running collective: all_reduce(float32[2]",
            lambda: dist.all_reduce(x) if RANK == 0 else dist.broadcast(x, 0),
        )
        raises(RuntimeError, "rank_program.py:", lambda: dist.all_reduce(x if RANK == 0 else rgrad.ones(3)))
        raises(RuntimeError, "float64[2]", lambda: dist.all_reduce(x if RANK == 0 else x.double()))
        dist.all_reduce(x)
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


def checks() -> dict[str, Callable[[], None]]:
    found = dict(globals())
    for module in (rank_training, rank_tensors, rank_shards, rank_checkpoints):
        found.update(vars(module))
    return {name: value for name, value in found.items() if name.startswith("check_")}


def main(out: str, only: list[str]) -> None:
    global RANK, SIZE
    warnings.simplefilter("error")
    dist.init_process_group(timeout=datetime.timedelta(seconds=30))
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    said: dict[str, str] = {}
    for name, check in checks().items():
        if only and name not in only:
            continue
        try:
            check()
            error = ""
        except Exception:
            error = traceback.format_exc()
        errors: list[Any] = [None] * SIZE
        dist.all_gather_object(errors, error)
        said[name] = "\n".join(f"rank {rank}:\n{text}" for rank, text in enumerate(errors) if text)
        if RANK == 0:
            Path(out).write_text(json.dumps(said), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
