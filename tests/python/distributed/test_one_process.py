"""Programs for several processes, run by one."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from rgrad import distributed as dist
from rgrad import nn
from rgrad.nn.parallel import DistributedDataParallel


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_group_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    dist.init_process_group(backend="NCCL")
    try:
        assert dist.is_initialized()
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
        assert dist.get_node_local_rank() == 0
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(RuntimeError, match="world_size is 4, but no launcher of MPI has started this process"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="rank 3 and world_size 1"):
        dist.init_process_group("gloo", rank=3, world_size=1)


@pytest.mark.parametrize(
    "call", [dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, lambda: dist.all_reduce(rgrad.ones(1))]
)
def test_without_a_group(call: Any) -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        call()


@pytest.mark.usefixtures("group")
def test_tensors_come_back() -> None:
    x = rgrad.arange(6.0).reshape(2, 3)
    for op in (o for o in dist.ReduceOp if o < dist.ReduceOp.BAND):
        y = x.clone()
        assert dist.all_reduce(y, op) is None
        assert dist.reduce(y, 0, op) is None
        assert rgrad.equal(x, y)
    work = dist.broadcast(y, src=0, async_op=True)
    assert work is not None
    assert work.wait()
    assert work.result()[0] is y
    for send in (
        lambda out: dist.all_gather([out], x),
        lambda out: dist.all_gather_into_tensor(out, x),
        lambda out: dist.gather(x, [out], dst=0),
        lambda out: dist.scatter(out, [x], src=0),
        lambda out: dist.reduce_scatter(out, [x]),
        lambda out: dist.reduce_scatter_tensor(out, x),
        lambda out: dist.all_to_all([out], [x]),
        lambda out: dist.all_to_all_single(out, x),
    ):
        out = rgrad.zeros(2, 3)
        assert send(out) is None
        assert rgrad.equal(out, x)
        assert out.data_ptr() != x.data_ptr()
    flat = rgrad.zeros(6)
    dist.all_gather_into_tensor(flat, x)
    assert flat.tolist() == x.reshape(-1).tolist()


@pytest.mark.usefixtures("group")
def test_objects_come_back_as_copies() -> None:
    given, got, scattered = {"a": [1]}, [None], [None]
    dist.all_gather_object(got, given)
    assert got == [given]
    assert got[0] is not given
    dist.gather_object(given, got)
    dist.scatter_object_list(scattered, [given])
    dist.broadcast_object_list(got)
    assert got == scattered == [given]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: dist.all_reduce([1]), TypeError, "Expected parameter `tensor` of type torch.Tensor, got list"),
        (lambda: dist.broadcast(rgrad.ones(1), 2), RuntimeError, "invalid root rank: 2; the group has 1 processes"),
        (lambda: dist.all_gather([], rgrad.ones(1)), RuntimeError, "expected length 1, got 0"),
        (lambda: dist.all_gather([rgrad.ones(2)], rgrad.ones(3)), RuntimeError, "invalid tensor size at index 0"),
        (lambda: dist.all_gather([rgrad.ones(2).int()], rgrad.ones(2)), ValueError, "different dtypes"),
        (lambda: dist.gather(rgrad.ones(2)), ValueError, "gather_list"),
        (lambda: dist.send(rgrad.ones(1), 0), ValueError, "the group has 1 processes"),
        (lambda: dist.recv(rgrad.ones(1), 1), RuntimeError, "the group has 1 processes"),
        (lambda: dist.new_group([1]), ValueError, "got ranks .1., and there are 1 processes"),
        (lambda: dist.get_default_backend_for_device("meta"), ValueError, "not registered"),
        (lambda: dist.all_gather_object([], 1), ValueError, "one place for each process"),
    ],
)
def test_bad_input(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.usefixtures("group")
def test_groups() -> None:
    inner = dist.new_group([0])
    assert (dist.get_rank(inner), dist.get_world_size(inner)) == (0, 1)
    outside = dist.new_group([])
    assert (dist.get_rank(outside), dist.get_world_size(outside)) == (-1, -1)
    dist.destroy_process_group(inner)
    assert dist.group.WORLD is dist.GroupMember.WORLD is not None
    assert dist.get_process_group_ranks(None) == [0]
    assert list(rgrad.utils.data.DistributedSampler(range(4), shuffle=False)) == [0, 1, 2, 3]


@pytest.mark.usefixtures("group")
def test_a_wrapped_module_trains_as_it_does_alone() -> None:
    rgrad.manual_seed(0)
    alone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    wrapped = DistributedDataParallel(alone)
    assert all(name.startswith("module.") for name in wrapped.state_dict())
    x = rgrad.randn(8, 3)
    with wrapped.no_sync():
        wrapped(x).sum().backward()
    first = [p.grad.clone() for p in alone.parameters() if p.grad is not None]
    assert len(first) == 6
    alone.zero_grad()
    wrapped.eval().train()
    alone(x).sum().backward()
    for a, p in zip(first, alone.parameters(), strict=True):
        assert rgrad.equal(a, p.grad)


def test_what_cannot_be_wrapped() -> None:
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedDataParallel(nn.Linear(1, 1))
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        with pytest.raises(RuntimeError, match="is not needed"):
            DistributedDataParallel(nn.ReLU())
        with pytest.raises(ValueError, match="got device_ids .0., output_device None"):
            DistributedDataParallel(nn.Linear(1, 1), device_ids=[0])
        with pytest.raises(TypeError, match="must be callable"):
            DistributedDataParallel(nn.Linear(1, 1)).register_comm_hook(None, None)
    finally:
        dist.destroy_process_group()


def test_meshes_and_remote_calls_come_with_the_package() -> None:
    program = (
        "import rgrad.distributed as d; import sys; assert 'rgrad.distributed.device_mesh' not in sys.modules; "
        "assert d.init_device_mesh is d.device_mesh.init_device_mesh and d.DeviceMesh is d.device_mesh.DeviceMesh; "
        "assert not d.rpc.is_available() and {'device_mesh', 'DeviceMesh', 'rpc'} <= set(dir(d))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("group")
def test_functional_collectives_write_to_nothing() -> None:
    calls = dist._functional_collectives
    mesh = dist.init_device_mesh("cpu", (1,))
    x = rgrad.arange(6.0).view(2, 3).t()
    for members in (dist.group.WORLD, mesh, (mesh, 0)):
        made = (
            calls.all_reduce(x, "sum", members),
            calls.broadcast(x, 0, members),
            calls.all_gather_tensor(x, 1, members),
            calls.reduce_scatter_tensor(x, "avg", 1, members),
            calls.all_to_all_single(x, None, None, members),
            calls.all_to_all_single(x, [3], [3], members),
        )
        for out in made:
            assert out.tolist() == x.tolist()
            assert out.data_ptr() != x.data_ptr()
            assert calls.wait_tensor(out) is out
            assert not isinstance(out, calls.AsyncCollectiveTensor)
    with pytest.raises(ValueError, match=r"all_reduce: expected one of \['sum', .*got 'mean'"):
        calls.all_reduce(x, "mean", mesh)
    with pytest.raises(
        ValueError, match="expected a group, a mesh or .mesh, dimension., got list; distributed.new_group"
    ):
        calls.all_gather_tensor(x, 0, [0])
    with pytest.raises(ValueError, match="got a mesh of 2 dimensions"):
        calls.all_gather_tensor(x, 0, dist.init_device_mesh("cpu", (1, 1)))
