"""DTensors and modules in shards, of one process: what needs no other one."""

from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from rgrad import distributed as dist
from rgrad import nn
from rgrad.distributed import fsdp
from rgrad.distributed import tensor as parts


@pytest.fixture
def mesh() -> Iterator[parts.DeviceMesh]:
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield parts.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_placements_are_values() -> None:
    assert parts.Shard(0) == parts.Shard(0) != parts.Shard(1)
    assert len({parts.Shard(0), parts.Shard(0), parts.Replicate(), parts.Partial(), parts.Partial("sum")}) == 3
    assert parts.Shard(1).is_shard()
    assert parts.Shard(1).is_shard(1)
    assert not parts.Shard(1).is_shard(0)
    assert parts.Partial("max").is_partial("max")
    assert not parts.Partial("max").is_partial("sum")
    assert parts.Replicate().is_replicate()
    assert [repr(p) for p in (parts.Shard(2), parts.Replicate(), parts.Partial())] == [
        "Shard(dim=2)",
        "Replicate()",
        "Partial(sum)",
    ]
    with pytest.raises(ValueError, match="sum, avg"):
        parts.Partial("median")
    with pytest.raises(TypeError, match="must be an int"):
        parts.Shard("rows")  # type: ignore[arg-type]


def test_a_dtensor_says_what_it_is(mesh: parts.DeviceMesh) -> None:
    x = parts.distribute_tensor(rgrad.ones(2, 3), mesh, [parts.Shard(0)])
    assert repr(x).startswith("DTensor(local_tensor=tensor([[1., 1., 1.],")
    assert repr(x).endswith("placements=(Shard(dim=0),))")
    assert (x.nbytes, x.nelement(), x.size(1), x.stride(0), x.ndim) == (24, 6, 3, 3, 2)
    assert x.device_mesh is mesh
    assert x.dtype == rgrad.float32
    with pytest.raises(TypeError, match="len"):
        len(x.sum())
    x.data = parts.distribute_tensor(rgrad.zeros(4), mesh, [parts.Shard(0)])
    assert x.shape == (4,)
    x.grad = parts.ones(4, device_mesh=mesh, placements=[parts.Shard(0)])
    del x.grad
    assert x.grad is None
    with pytest.raises(RuntimeError, match="must lie as its tensor does"):
        x.grad = parts.ones(4, device_mesh=mesh)
    with pytest.raises(NotImplementedError, match="strided"):
        parts.zeros(2, layout="sparse", device_mesh=mesh)
    with pytest.raises(NotImplementedError, match="between meshes"):
        x.redistribute(parts.init_device_mesh("cpu", (1, 1)), [parts.Replicate()])
    made = x.redistribute(mesh, [parts.Replicate()], forward_dtype=rgrad.float64)
    assert made.dtype == rgrad.float64
    assert rgrad.equal(parts.full([2], 7, device_mesh=mesh).to_local(), rgrad.full([2], 7))


def test_every_name_of_elements_is_an_operation() -> None:
    """A name that nobody has would be a rule for nothing."""
    from rgrad.distributed.tensor import _rules

    known = {*dir(rgrad), *dir(rgrad.Tensor), *dir(nn.functional), *rgrad._core.pointwise_names}
    tables = (_rules.OF_PART, _rules.KEEP, _rules.LIKE, _rules.ELEMENTS, _rules.RANDOM, _rules.RANDOM_LIKE)
    missing = {name for table in (*tables, _rules.NEVER, _rules.REDUCTIONS) for name in table} - known
    assert not missing


def test_shards_of_one_process_are_whole(mesh: parts.DeviceMesh) -> None:
    net: Any = fsdp.fully_shard(nn.Linear(3, 2), mesh=mesh, offload_policy=fsdp.OffloadPolicy())
    assert isinstance(net, fsdp.FSDPModule)
    net(rgrad.ones(1, 3)).sum().backward()
    assert rgrad.equal(net.weight.grad.full_tensor(), rgrad.ones(2, 3))
    for name in ("set_custom_all_gather", "set_custom_reduce_scatter"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(net, name)(None)
    seen: list[Any] = []
    net.set_all_reduce_hook(seen.append)
    net(rgrad.ones(1, 3)).sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="has no method"):
        fsdp.register_fsdp_forward_method(net, "encode")
    with pytest.raises(ValueError, match="1D or 2D"):
        fsdp.fully_shard(nn.Linear(1, 1), mesh=parts.init_device_mesh("cpu", (1, 1, 1)))
    with pytest.raises(AssertionError, match="mesh_dim_names"):
        fsdp.fully_shard(nn.Linear(1, 1), mesh=parts.init_device_mesh("cpu", (1, 1)))
    with pytest.raises(ValueError, match="should be a bool"):
        net.set_reshard_after_forward("yes")
    with pytest.raises(NotImplementedError, match="fully_shard"):
        fsdp.FullyShardedDataParallel(nn.Linear(1, 1))


@pytest.mark.parametrize("policy", [fsdp.OffloadPolicy(), fsdp.CPUOffloadPolicy()], ids=lambda p: type(p).__name__)
@pytest.mark.usefixtures("mesh")
def test_shards_lie_where_the_policy_says(policy: fsdp.OffloadPolicy, device: str) -> None:
    rgrad.manual_seed(0)
    one = nn.Linear(3, 2, device="cpu")
    rgrad.manual_seed(0)
    net: Any = fsdp.fully_shard(
        nn.Linear(3, 2, device="cpu"), mesh=parts.init_device_mesh(device, (1,)), offload_policy=policy
    )
    home = "cpu" if isinstance(policy, fsdp.CPUOffloadPolicy) else rgrad.device(device).type
    for module, place in ((one, "cpu"), (net, device)):
        optimizer = rgrad.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            out = module(rgrad.ones(1, 3, device=place))
            assert out.device.type == rgrad.device(place).type
            out.square().sum().backward()
            optimizer.step()
    assert net.weight.device.type == net.weight.grad.device.type == home
    assert rgrad.allclose(net.weight.full_tensor().cpu(), one.weight, atol=1e-6)
    there = fsdp.fully_shard(nn.Linear(3, 2, device=device))
    assert there.weight.device_mesh.device_type == rgrad.device(device).type
