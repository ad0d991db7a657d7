"""Checks of DTensors, made by several processes at the same time; test_ranks.py reads what they say."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import rgrad
from rank_training import close, raises
from rgrad import distributed as dist
from rgrad import nn, optim
from rgrad.distributed.tensor import (
    DeviceMesh,
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
    ones,
    rand,
)


def line() -> DeviceMesh:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def grids() -> list[DeviceMesh]:
    size = dist.get_world_size()
    return [init_device_mesh("cpu", shape, mesh_dim_names=("a", "b")) for shape in ((size, 1), (1, size))]


def whole(*shape: int, start: float = 0.0) -> rgrad.Tensor:
    count = rgrad.Size(shape).numel()
    return (rgrad.arange(count, dtype=rgrad.float64) - start).reshape(shape) / 3


def check_parts_are_those_of_chunk() -> None:
    mesh, rank, size = line(), dist.get_rank(), dist.get_world_size()
    for shape in ((5, 3), (4,), (1, 2), (3 * size, 2, 2), (0, 3)):
        x = whole(*shape)
        y = distribute_tensor(x, mesh, [Shard(0)])
        parts = x.chunk(size)
        expected = parts[rank] if rank < len(parts) else x[:0]
        assert rgrad.equal(y.to_local(), expected)
        assert (y.shape, y.size(), y.numel(), y.dim(), y.stride()) == (x.shape, x.shape, x.numel(), x.dim(), x.stride())
        assert len(y) == shape[0]
        assert rgrad.equal(y.full_tensor(), x)
    # The first process's elements count.
    z = distribute_tensor(whole(2, 2) + rank, mesh)
    assert z.placements == (Replicate(),)
    assert rgrad.equal(z.to_local(), whole(2, 2))
    assert rgrad.equal(distribute_tensor(whole(2, 3), mesh, [Shard(-1)]).full_tensor(), whole(2, 3))


def check_placements_lead_to_each_other() -> None:
    for mesh in (line(), *grids()):
        places = [Replicate(), Shard(0), Shard(1)]
        every = [[a] for a in places] if mesh.ndim == 1 else [[a, b] for a in places for b in places]
        x = whole(5, 3)
        for first in every:
            for second in every:
                y = distribute_tensor(x, mesh, first).redistribute(mesh, second)
                assert y.placements == tuple(second)
                assert rgrad.equal(y.to_local(), distribute_tensor(x, mesh, second).to_local()), (first, second)
                assert rgrad.equal(y.full_tensor(), x)
    size, mesh = dist.get_world_size(), line()
    mine = whole(4, 2) + dist.get_rank()
    total = sum(whole(4, 2) + rank for rank in range(size))
    for place, expected in (
        (Partial(), total),
        (Partial("avg"), total / size),
        (Partial("max"), whole(4, 2) + size - 1),
        (Partial("min"), whole(4, 2)),
    ):
        for target in (Replicate(), Shard(0)):
            y = DTensor.from_local(mine, mesh, [place]).redistribute(mesh, [target])
            close(y.full_tensor(), expected)


def check_gradients_go_through_placements() -> None:
    """The gradient of whole tensors is that of one process."""
    mesh, rank = line(), dist.get_rank()
    weight = whole(5, 3, start=2.0)
    for first, second in ((Shard(0), Shard(1)), (Shard(1), Replicate()), (Replicate(), Shard(0)), (Shard(0), Shard(0))):
        x = distribute_tensor(whole(5, 3), mesh, [first]).requires_grad_()
        y = x.redistribute(mesh, [second]) ** 3
        ((y * distribute_tensor(weight, mesh, [second])).sum()).backward()
        assert isinstance(x.grad, DTensor)
        assert x.grad.placements == (first,)
        close(x.grad.full_tensor(), 3 * whole(5, 3) ** 2 * weight)
        x.grad = None
        (x.full_tensor() ** 2 * weight).sum().backward()
        close(x.grad.full_tensor(), 2 * whole(5, 3) * weight)
        x.grad = None
        (x.full_tensor(grad_placements=[Partial()]) * weight * (rank + 1)).sum().backward()
        total = sum(k + 1 for k in range(dist.get_world_size()))
        close(x.grad.full_tensor(), weight * total)
    local = whole(2, 2).requires_grad_()
    (DTensor.from_local(local, mesh, [Shard(0)]) * 2).sum().full_tensor().backward()
    close(local.grad, rgrad.full((2, 2), 2.0).double())
    # A number that all have, which meets pieces.
    scale = nn.Parameter(distribute_tensor(rgrad.tensor(2.0).double(), mesh))
    (distribute_tensor(weight, mesh, [Shard(0)]) * scale).sum().backward()
    close(scale.grad.to_local(), weight.sum())
    seen: list[Any] = []
    x = distribute_tensor(whole(5, 3), mesh, [Shard(0)]).requires_grad_()
    x.register_hook(lambda g: seen.append(g) or 2 * g)
    (3 * x).sum().backward()
    assert isinstance(seen[0], DTensor)
    (got,) = rgrad.autograd.grad((x**2).sum(), x)
    close(got.full_tensor(), 2 * whole(5, 3) * 2)
    close(x.grad.full_tensor(), rgrad.full((5, 3), 6.0).double())


def check_operations_of_elements() -> None:
    x, w = whole(5, 3, start=7.5), whole(5, 3) + 0.5
    calls: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a + b,
        lambda a, b: 2 - a,
        lambda a, b: a / b,
        lambda a, b: a**2,
        lambda a, b: rgrad.addcmul(a, a, b, value=0.5),
        lambda a, b: a.lerp(b, 0.25),
        lambda a, b: rgrad.where(a > 0, a, b),
        lambda a, b: a.clamp(-1, 1),
        lambda a, b: nn.functional.gelu(a),
        lambda a, b: a.to(rgrad.float32),
        lambda a, b: rgrad.maximum(a, b).exp().sqrt().neg().abs(),
        lambda a, b: rgrad.zeros_like(a) + 1,
        lambda a, b: a.clone().mul_(b).add_(1),
        lambda a, b: a.detach().clone().copy_(b),
        lambda a, b: rgrad.lerp(a, b, 0.5).masked_fill(b > 2, 0.0),
        lambda a, b: a.sum() + b,
        lambda a, b: a * b.max(),
        lambda a, b: a / (b.norm(2) + 1),
    ]
    for mesh in (line(), grids()[0]):
        for place in (Shard(0), Shard(1), Replicate()):
            places = [place] * mesh.ndim if isinstance(place, Replicate) else [place, Replicate()][: mesh.ndim]
            a, b = (distribute_tensor(t, mesh, places) for t in (x, w))
            for number, call in enumerate(calls):
                got, expected = call(a, b), call(x, w)
                assert isinstance(got, DTensor), number
                assert got.placements == tuple(places), number
                assert got.dtype == expected.dtype, number
                assert rgrad.allclose(got.full_tensor().double(), expected.double()), number
    lists = [distribute_tensor(t, line(), [Shard(0)]) for t in (x, w)]
    for got, expected in zip(rgrad._foreach_mul(lists, 2.0), (x, w), strict=True):
        assert rgrad.equal(got.full_tensor(), 2 * expected)
    rgrad._foreach_add_(lists, lists)
    assert rgrad.equal(lists[0].full_tensor(), 2 * x)


def check_reductions_of_all_elements() -> None:
    mesh = line()
    for shape in ((5, 3), (1, 2)):
        x = whole(*shape, start=4.0)
        for places in ([Shard(0)], [Replicate()]):
            y = distribute_tensor(x, mesh, places)
            for name in ("sum", "mean", "max", "min", "amax", "prod"):
                close(getattr(y, name)().full_tensor(), getattr(x, name)(), 1e-12)
            for order in (1, 2, 3.0, float("inf"), float("-inf")):
                close(y.norm(order).full_tensor(), x.norm(order), 1e-12)
                close(rgrad.linalg.vector_norm(y, order).full_tensor(), x.norm(order), 1e-12)
            close(
                rgrad.stack([y.norm(2), y.norm(2)]).norm(2).full_tensor(), rgrad.stack([x.norm(2)] * 2).norm(2), 1e-12
            )
            for test in (y > 0, y > -100, y > 100):
                expected = test.full_tensor()
                assert (test.any().item(), test.all().item()) == (expected.any().item(), expected.all().item())
            assert abs(y.sum().item() - x.sum().item()) < 1e-12
            assert bool((y * 0).sum() == 0)
            assert rgrad.equal(y, y.clone())
            assert not rgrad.equal(y, y + 1)
            assert y.long().max().item() == x.long().max().item()


def check_everything_works_on_whole_tensors() -> None:
    x = distribute_tensor(whole(4, 3), line())
    assert rgrad.equal((x @ x.T).to_local(), whole(4, 3) @ whole(4, 3).T)
    assert x.reshape(-1)[2:].shape == (10,)
    assert x.tolist() == whole(4, 3).tolist()
    values, places = x.sort(dim=1, descending=True)
    assert isinstance(values, DTensor)
    assert isinstance(places, DTensor)


def check_what_cannot_be_computed_from_parts_is_refused() -> None:
    mesh = line()
    x = distribute_tensor(whole(4, 3), mesh, [Shard(0)])
    for name, call in {
        "matmul": lambda: rgrad.matmul(x, x),
        "T": lambda: x.T,
        "__getitem__": lambda: x[0],
        "reshape": lambda: x.reshape(-1),
        "softmax": lambda: x.softmax(0),
        "sum": lambda: x.sum(0),
        "item": lambda: x.item(),
    }.items():
        raises(NotImplementedError, name, call)
        raises(NotImplementedError, ".full_tensor()", call)
    y = x.redistribute(mesh, [Replicate()])
    raises(NotImplementedError, "same placements", lambda: x + y)
    raises(RuntimeError, "mixed torch.Tensor and DTensor", lambda: x + whole(4, 3))
    raises(RuntimeError, "mixed torch.Tensor and DTensor", lambda: x.detach().copy_(whole(4, 3)))
    raises(NotImplementedError, "dropout", lambda: nn.functional.dropout(y))
    raises(RuntimeError, "internal use only", lambda: x.redistribute(mesh, [Partial()]))
    raises(ValueError, "same length", lambda: distribute_tensor(whole(2), mesh, [Shard(0)] * 2))
    raises(IndexError, "out of range", lambda: distribute_tensor(whole(2), mesh, [Shard(1)]))
    raises(RuntimeError, "No device mesh", lambda: distribute_tensor(whole(2)))
    raises(ValueError, "redistribute", lambda: distribute_tensor(x, mesh, [Replicate()]))
    raises(RuntimeError, "has the shape", lambda: DTensor.from_local(whole(7), mesh, [Shard(0)], shape=[3]))
    raises(TypeError, "must be a DTensor", lambda: setattr(x, "grad", whole(4, 3)))
    raises(TypeError, "expected a DTensor", lambda: setattr(x, "data", whole(4, 3)))
    raises(NotImplementedError, "checkpoint.save", lambda: x.__reduce_ex__(2))
    raises(NotImplementedError, "derivative", lambda: x.clone().requires_grad_().norm(2))


def check_optimizers_step_parts() -> None:
    mesh = line()
    start, weight = whole(5, 3, start=3.0), whole(5, 3) + 1
    kinds: dict[type[optim.Optimizer], dict[str, Any]] = {
        optim.SGD: {"momentum": 0.9},
        optim.Adam: {"amsgrad": True},
        optim.AdamW: {},
        optim.NAdam: {},
        optim.RAdam: {},
        optim.Adamax: {},
        optim.Adagrad: {},
        optim.Adadelta: {},
        optim.RMSprop: {"centered": True},
        optim.Rprop: {},
        optim.ASGD: {},
    }
    for kind, options in kinds.items():
        one = nn.Parameter(start.clone())
        parts = nn.Parameter(distribute_tensor(start, mesh, [Shard(0)]))
        assert isinstance(parts, DTensor)
        assert isinstance(parts, nn.Parameter)
        steppers = [kind([p], lr=0.01, **options) for p in (one, parts)]  # type: ignore[call-arg]
        for step in range(4):
            for p, stepper, w in zip(
                (one, parts), steppers, (weight, distribute_tensor(weight, mesh, [Shard(0)])), strict=True
            ):
                stepper.zero_grad(set_to_none=step % 2 == 0)
                (p**3 * w).sum().backward()
                (p * w).sum().backward()
                nn.utils.clip_grad_norm_([p], 0.7)
                stepper.step()
            if step == 1:
                for stepper in steppers:
                    stepper.load_state_dict(deepcopy(stepper.state_dict()))
        assert rgrad.allclose(parts.full_tensor(), one, rtol=1e-12, atol=1e-12), kind
        for value in steppers[1].state[parts].values():
            assert not isinstance(value, rgrad.Tensor) or value.dim() == 0 or isinstance(value, DTensor), kind
    norms = []
    for make in (lambda t: nn.Parameter(t), lambda t: nn.Parameter(distribute_tensor(t, mesh, [Shard(0)]))):
        p = make(start.clone())
        (p**2).sum().backward()
        norm = nn.utils.clip_grad_norm_([p], 0.5)
        norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
        nn.utils.clip_grad_value_([p], 0.1)
    close(norms[0], norms[1], 1e-12)


def check_random_numbers_are_those_of_one_process() -> None:
    mesh = line()
    fills: list[Callable[[Any], Any]] = [
        nn.init.normal_,
        nn.init.kaiming_uniform_,
        nn.init.xavier_normal_,
        nn.init.trunc_normal_,
        nn.init.orthogonal_,
        nn.init.zeros_,
        nn.init.eye_,
        lambda t: t.uniform_(-1, 1),
    ]
    for fill in fills:
        parts = nn.Parameter(distribute_tensor(whole(5, 3), mesh, [Shard(0)]))
        one = whole(5, 3)
        for t in (parts, one):
            rgrad.manual_seed(3)
            with rgrad.no_grad():
                fill(t)
        assert rgrad.equal(parts.full_tensor(), one), fill
    rgrad.manual_seed(5)
    drawn = rand(5, 2, device_mesh=mesh, placements=[Shard(0)])
    like = rgrad.rand_like(drawn)
    rgrad.manual_seed(5)
    assert rgrad.equal(drawn.full_tensor(), rgrad.rand(5, 2))
    assert rgrad.equal(like.full_tensor(), rgrad.rand(5, 2))
    assert ones(3, device_mesh=mesh, placements=[Shard(0)]).full_tensor().tolist() == [1.0] * 3


def check_modules_of_parts() -> None:
    mesh = line()
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))

    def cut(name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(distribute_tensor(module.weight, mesh, [Shard(0)]))

    made = distribute_module(net, mesh, cut, lambda m, inputs, mesh: (distribute_tensor(inputs[0], mesh),))
    assert made is net
    assert net[0].weight.placements == (Shard(0),)
    assert net[1].running_mean.placements == (Replicate(),)
    copy = deepcopy(net[0].weight)
    assert rgrad.equal(copy, net[0].weight)
    assert copy is not net[0].weight
    net.double()
    assert net[0].weight.dtype == rgrad.float64
    assert isinstance(net[0].weight, DTensor)
    raises(RuntimeError, "only be called once", lambda: distribute_module(net, mesh))
