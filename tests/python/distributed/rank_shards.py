"""Checks of ``fully_shard``, made by several processes at the same time; test_ranks.py reads what they say."""

from __future__ import annotations

import gc
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import rgrad
from rank_training import close, raises
from rgrad import distributed as dist
from rgrad import nn
from rgrad.distributed._composable.fsdp import fully_shard as older_name
from rgrad.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from rgrad.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from rgrad.utils.checkpoint import checkpoint

DOUBLE = rgrad.float64


def batch(count: int = 12) -> rgrad.Tensor:
    return rgrad.randn(count, 5, generator=rgrad.Generator().manual_seed(1)).double()


def mine(x: rgrad.Tensor) -> rgrad.Tensor:
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def plain() -> nn.Sequential:
    """Sizes that do not divide evenly."""
    rgrad.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, 3)).double()


def sharded(**options: Any) -> Any:
    net = plain()
    fully_shard(net[2], **options)
    fully_shard([net[0], net[4]], **options)
    return fully_shard(net, **options)


def mean_square(net: Any, x: rgrad.Tensor) -> rgrad.Tensor:
    return (net(x) ** 2).mean()


def gradients(loss: Callable[[Any, rgrad.Tensor], rgrad.Tensor] = mean_square) -> list[rgrad.Tensor | None]:
    net = plain()
    loss(net, batch()).backward()
    return [p.grad for p in net.parameters()]


def same_gradients(net: Any, expected: list[Any], tolerance: float = 1e-10) -> None:
    for p, gradient in zip(net.parameters(), expected, strict=True):
        assert isinstance(p, DTensor)
        assert p.grad is None or isinstance(p.grad, DTensor)
        close(None if p.grad is None else p.grad.full_tensor().double(), gradient, tolerance)


def units(net: Any) -> list[Any]:
    found: list[Any] = net._get_fsdp_state().context.units
    return found


def nothing_is_left(net: Any) -> None:
    gc.collect()
    for unit in units(net):
        assert unit.wholes is None
        assert unit.references == 0
    assert not net._get_fsdp_state().context.memories


def check_training_is_that_of_one_process() -> None:
    size, x = dist.get_world_size(), batch()
    y = rgrad.randn(12, 3, generator=rgrad.Generator().manual_seed(2)).double()

    def train(net: Any, x: rgrad.Tensor, y: rgrad.Tensor, parts: bool) -> list[float]:
        optimizer = rgrad.optim.AdamW(net.parameters(), lr=0.01)
        seen = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            total = loss.detach().clone()
            if parts:
                dist.all_reduce(total, dist.ReduceOp.AVG)
                norm = norm.full_tensor()
            seen += [total.item(), norm.item()]
        return seen

    one = plain()
    expected = train(one, x, y, False)
    grids = [init_device_mesh("cpu", shape, mesh_dim_names=("r", "s")) for shape in ((size, 1), (1, size))]
    options: list[dict[str, Any]] = [
        {},
        {"reshard_after_forward": False},
        {"reshard_after_forward": True},
        {"reshard_after_forward": size},
        {"offload_policy": CPUOffloadPolicy()},
        *({"mesh": mesh} for mesh in grids),
    ]
    for chosen in options:
        net = sharded(**chosen)
        assert isinstance(net, FSDPModule)
        assert isinstance(net, nn.Sequential)
        assert type(net).__name__ == "FSDPSequential"
        assert type(net[0:2]) is nn.Sequential
        got = train(net, mine(x), mine(y), True)
        for a, b in zip(got, expected, strict=True):
            assert abs(a - b) < 1e-10, (chosen, got, expected)
        for p, q in zip(net.parameters(), one.parameters(), strict=True):
            close(p.full_tensor(), q)
        assert net[0].weight.placements[-1] == Shard(0)
        nothing_is_left(net)


def check_each_process_has_its_share() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    net = sharded()
    optimizer = rgrad.optim.Adam(net.parameters())
    mean_square(net, mine(batch())).backward()
    optimizer.step()
    for p, q in zip(net.parameters(), plain().parameters(), strict=True):
        rows = q.chunk(size)
        expected = rows[rank].shape if rank < len(rows) else q[:0].shape
        state = optimizer.state[p]
        for part in (p, p.grad, state["exp_avg"], state["exp_avg_sq"]):
            assert part.to_local().shape == expected
            assert part.to_local().untyped_storage().nbytes() == 8 * expected.numel()


def check_whole_parameters_are_freed() -> None:
    """The peak is what stays, and the whole parameters and gradients of the largest units."""
    width, depth, size = 256, 6, dist.get_world_size()
    rgrad.manual_seed(0)
    net: Any = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(depth)))
    bytes_of_unit = 4 * (width * width + width)
    for block in net:
        fully_shard(block)
    fully_shard(net)
    x = rgrad.randn(2, width)
    gc.collect()

    def peak(call: Callable[[], Any]) -> tuple[Any, float]:
        before = rgrad.memory.allocated("cpu")
        rgrad.memory.reset_peak("cpu")
        made = call()
        # The largest of all processes, so that all find the same.
        most = rgrad.tensor([rgrad.memory.peak("cpu") - before])
        dist.all_reduce(most, dist.ReduceOp.MAX)
        return made, most.item() / bytes_of_unit

    out, forward = peak(lambda: net(x))
    # A shard with fewer rows is copied with padding.
    padding = 1 / size if width % size else 0
    assert 0.9 < forward < 1.4 + padding, forward
    assert not any(unit.wholes for unit in units(net))
    _, backward = peak(out.square().mean().backward)
    shards = depth / size
    # Gradients of shards, a unit that is used with its gradients, and one that comes next.
    assert shards < backward < shards + 3.0 + padding, backward
    nothing_is_left(net)


def check_gradients_are_summed_over_passes() -> None:
    expected = gradients()
    net = sharded()
    net.set_requires_gradient_sync(False)
    mean_square(net, mine(batch())).backward()
    assert all(p.grad is None for p in net.parameters())
    net.set_requires_gradient_sync(True)
    mean_square(net, mine(batch())).backward()
    same_gradients(net, [2 * g for g in expected])
    mean_square(net, mine(batch())).backward()
    same_gradients(net, [3 * g for g in expected])
    net.zero_grad()
    net.set_gradient_divide_factor(1.0)
    for unit in units(net):
        unit.divisor = 1.0
    mean_square(net, mine(batch())).backward()
    same_gradients(net, [dist.get_world_size() * g for g in expected])
    size = dist.get_world_size()
    net = sharded(mesh=init_device_mesh("cpu", (size, 1), mesh_dim_names=("r", "s")))
    net.set_requires_all_reduce(False)
    mean_square(net, mine(batch())).backward()
    assert all(p.grad is None for p in net.parameters())
    net.set_requires_all_reduce(True)
    mean_square(net, mine(batch())).backward()
    same_gradients(net, [2 * g for g in expected])


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        rgrad.manual_seed(0)
        self.experts = nn.ModuleList(nn.Linear(5, 3).double() for _ in range(2))

    def forward(self, x: rgrad.Tensor, which: int) -> rgrad.Tensor:
        return self.experts[which](x)


def check_gradients_of_units_that_the_last_pass_has_not_used() -> None:
    one, net = Experts(), Experts()
    for expert in net.experts:
        fully_shard(expert)
    fully_shard(net)
    for round_ in range(2):
        for which in (0, 1):
            (one(batch(), which) ** 2).mean().backward()
            net.set_requires_gradient_sync(which == 1)  # type: ignore[operator]
            (net(mine(batch()), which) ** 2).mean().backward()
        same_gradients(net, [p.grad for p in one.parameters()])
        assert all(not unit._sums for unit in units(net)), round_
    nothing_is_left(net)


def check_graphs_of_several_kinds() -> None:
    net = sharded()
    both = lambda net, x: mean_square(net, x) + mean_square(net, 2 * x)  # noqa: E731
    loss = both(net, mine(batch()))
    net.set_is_last_backward(False)
    loss.backward(retain_graph=True)
    net.set_is_last_backward(True)
    loss.backward()
    same_gradients(net, [2 * g for g in gradients(both)])
    del loss
    nothing_is_left(net)

    class Blocks(nn.Module):
        def __init__(self, reentrant: bool) -> None:
            super().__init__()
            self.net, self.reentrant = plain(), reentrant

        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            x = self.net[1](self.net[0](x))
            x = checkpoint(self.net[2], x, use_reentrant=self.reentrant)
            return checkpoint(self.net[4], self.net[3](x), use_reentrant=self.reentrant)

    for reentrant in (False, True):
        blocks: Any = Blocks(reentrant)
        fully_shard(blocks.net[2])
        fully_shard(blocks.net[4])
        fully_shard(blocks)
        mean_square(blocks, mine(batch())).backward()
        same_gradients(blocks, gradients())
        nothing_is_left(blocks)
    # Frozen parameters are gathered for the gradients behind them.
    net = plain()
    for p in net[2].parameters():
        p.requires_grad_(False)
    one = deepcopy(net)
    fully_shard(net[2])
    fully_shard(net)
    x = mine(batch()).requires_grad_()
    mean_square(net, x).backward()
    z = batch().requires_grad_()
    mean_square(one, z).backward()
    same_gradients(net, [p.grad for p in one.parameters()])
    close(x.grad, mine(z.grad) * dist.get_world_size())
    nothing_is_left(net)


class Branches(nn.Module):
    """Processes use different parameters, and nobody uses the last ones."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
        return (self.a if dist.get_rank() == 0 else self.b)(x)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        rgrad.manual_seed(0)
        self.table, self.out = nn.Embedding(11, 4), nn.Linear(4, 11, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
        return self.out(self.table(x))


def check_parameters_that_are_shared_or_not_used() -> None:
    net = fully_shard(Branches())
    net(rgrad.ones(1, 2)).sum().backward()
    share = 1 / dist.get_world_size()
    close(net.a.weight.grad.full_tensor(), rgrad.full((2, 2), share))
    assert net.unused.weight.grad is None
    x = rgrad.arange(12) % 11
    one = Tied()
    mean_square(one, x).backward()
    tied = fully_shard(Tied())
    mean_square(tied, mine(x)).backward()
    assert tied.out.weight is tied.table.weight
    close(tied.table.weight.grad.full_tensor(), one.table.weight.grad, 1e-6)
    kept = plain()
    ignored = {kept[0].weight}
    fully_shard(kept, ignored_params=ignored)
    assert not isinstance(kept[0].weight, DTensor)
    assert isinstance(kept[0].bias, DTensor)


def check_dtypes_of_a_policy() -> None:
    policy = MixedPrecisionPolicy(param_dtype=rgrad.bfloat16, reduce_dtype=rgrad.float32, output_dtype=DOUBLE)
    net = sharded(mp_policy=policy)
    seen: list[Any] = []
    net[2].register_forward_hook(lambda module, args, out: seen.append((module.weight.dtype, args[0].dtype, out.dtype)))
    out = net(mine(batch()))
    assert seen == [(rgrad.bfloat16, rgrad.bfloat16, rgrad.bfloat16)]
    assert out.dtype == DOUBLE
    (out**2).mean().backward()
    assert all(p.dtype == DOUBLE and p.grad.dtype == DOUBLE for p in net.parameters())
    same_gradients(net, gradients(), 0.05)


def check_a_scaler_skips_the_step_of_all() -> None:
    net = sharded()
    optimizer = rgrad.optim.SGD(net.parameters(), lr=0.1)
    scaler = rgrad.amp.GradScaler("cpu", init_scale=8.0)
    for step, bad in enumerate((False, True, False)):
        before = [p.full_tensor().clone() for p in net.parameters()]
        optimizer.zero_grad()
        x = mine(batch())
        if bad and dist.get_rank() == 0:
            x = x * float("inf")
        scaler.scale(mean_square(net, x)).backward()
        scaler.unscale_(optimizer)
        if step == 0:
            same_gradients(net, gradients())
        scaler.step(optimizer)
        scaler.update()
        moved = [not rgrad.equal(p.full_tensor(), q) for p, q in zip(net.parameters(), before, strict=True)]
        assert not any(moved) if bad else all(moved)
    assert scaler.get_scale() == 4.0


def check_the_user_gathers_and_frees() -> None:
    net = sharded()
    net[2].unshard()
    assert not isinstance(net[2].weight, DTensor)
    assert isinstance(net[2].weight, nn.Parameter)
    assert rgrad.equal(net[2].weight, plain()[2].weight)
    assert all(isinstance(value, DTensor) for value in net.state_dict().values())
    net[2].reshard()
    assert isinstance(net[2].weight, DTensor)
    handle = net[2].unshard(async_op=True)
    handle.wait()
    mean_square(net, mine(batch())).backward()
    same_gradients(net, gradients())
    nothing_is_left(net)
    net.zero_grad()
    net.set_modules_to_forward_prefetch([net[0], net[2]])
    net[4].set_modules_to_backward_prefetch([net[2]])
    net.set_reshard_after_forward(False)
    net.set_reshard_after_backward(False)
    mean_square(net, mine(batch())).backward()
    same_gradients(net, gradients())
    assert all(unit.wholes is not None for unit in units(net) if unit.parameters)
    # What was kept is gathered again after the shards have changed.
    with rgrad.no_grad():
        before = net(batch())
        for p in net.parameters():
            p.mul_(2)
        assert not rgrad.allclose(net(batch()), before)

    net = sharded()
    net[2].unshard(async_op=True)
    with rgrad.no_grad():
        for p in net[2]._get_fsdp_state().parameters:
            p.sharded.add_(1)
    one = plain()
    with rgrad.no_grad():
        for p in one[2].parameters():
            p.add_(1)
    close(net(batch()), one(batch()))

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def encode(self, x: rgrad.Tensor) -> rgrad.Tensor:
            assert not isinstance(self.inner.weight, DTensor)
            return self.inner(x)

    encoder: Any = fully_shard(Encoder())
    register_fsdp_forward_method(encoder, "encode")
    encoder.encode(rgrad.ones(1, 2)).sum().backward()
    assert isinstance(encoder.inner.weight.grad, DTensor)


def check_errors_leave_shards() -> None:
    net = fully_shard(plain(), reshard_after_forward=True)
    loss = mean_square(net, mine(batch()))
    with rgrad.no_grad():
        net[2].weight.mul_(1.0)
    raises(RuntimeError, "modified by an inplace operation", loss.backward)
    raises(RuntimeError, "mat1 and mat2", lambda: net(batch()[:, :2]))
    assert all(isinstance(p, DTensor) for p in net.parameters())
    net.zero_grad()
    mean_square(net, mine(batch())).backward()
    same_gradients(net, gradients())
    loss = mean_square(net, mine(batch()))
    raises(
        NotImplementedError,
        "derivatives of derivatives",
        lambda: rgrad.autograd.grad(loss, net[0].weight, create_graph=True),
    )
    net.reset_iter_state()
    raises(AssertionError, "deepcopy", lambda: deepcopy(net))
    raises(ValueError, "before", lambda: fully_shard(net))
    raises(ValueError, "containers", lambda: fully_shard(nn.ModuleList([nn.Linear(1, 1)])))
    raises(ValueError, "factor of", lambda: fully_shard(plain(), reshard_after_forward=dist.get_world_size() + 1))
    raises(TypeError, "expected a Module", lambda: fully_shard(3))
    raises(ValueError, "expected an FSDPModule", lambda: net.set_modules_to_forward_prefetch([nn.Linear(1, 1)]))
    scalar = nn.Module()
    scalar.scale = nn.Parameter(rgrad.tensor(1.0))
    raises(ValueError, "scalar parameters", lambda: fully_shard(scalar))
    cut = nn.Linear(2, 2)
    cut.weight = nn.Parameter(distribute_tensor(cut.weight, init_device_mesh("cpu", (dist.get_world_size(),))))
    raises(NotImplementedError, "DTensor already", lambda: fully_shard(cut))
    if dist.get_world_size() > 1:
        raises(NotImplementedError, "uneven", lambda: fully_shard(plain(), shard_placement_fn=lambda p: Shard(-1)))
    assert older_name is fully_shard
    for value, text in ((nn.Parameter(rgrad.ones(9, 5).double()), "an ordinary one"), (None, "nothing")):
        changed = fully_shard(plain())
        changed[0].weight = value
        raises(RuntimeError, f"replaced by {text}", lambda net=changed: net(batch()))
    changed = fully_shard(plain())
    changed[0].weight = nn.Parameter(distribute_tensor(rgrad.ones(9, 4), changed[0].weight.device_mesh, [Shard(0)]))
    raises(RuntimeError, "was replaced by one of shape (9, 4)", lambda: changed(batch()))


def check_modules_without_elements_are_filled() -> None:
    with rgrad.device("meta"):
        net: Any = nn.Sequential(nn.Linear(5, 9), nn.LayerNorm(9), nn.Linear(9, 3))
    fully_shard(net[0])
    fully_shard(net)
    raises(RuntimeError, "meta device", lambda: net(rgrad.ones(1, 5)))
    net.to_empty(device="cpu")
    one = nn.Sequential(nn.Linear(5, 9), nn.LayerNorm(9), nn.Linear(9, 3))
    for module in (net, one):
        rgrad.manual_seed(4)
        for layer in module:
            layer.reset_parameters()
    for p, q in zip(net.parameters(), one.parameters(), strict=True):
        assert rgrad.equal(p.full_tensor(), q)
    state = net.state_dict()
    other = fully_shard(nn.Sequential(nn.Linear(5, 9), nn.LayerNorm(9), nn.Linear(9, 3)))
    other.load_state_dict(state)
    close(other(rgrad.ones(1, 5)), one(rgrad.ones(1, 5)), 1e-6)
    net.load_state_dict({key: value + 1 for key, value in state.items()}, assign=True)
    with rgrad.no_grad():
        for q in one.parameters():
            q += 1
    close(net(rgrad.ones(1, 5)), one(rgrad.ones(1, 5)), 1e-5)
    wide = fully_shard(
        nn.Linear(2 * dist.get_world_size(), 3), shard_placement_fn=lambda p: Shard(1 if p.dim() > 1 else 0)
    )
    x = rgrad.ones(1, 2 * dist.get_world_size())
    wide(x).sum().backward()
    assert wide.weight.placements == (Shard(1),)
    close(wide.weight.grad.full_tensor(), rgrad.ones(3, 2 * dist.get_world_size()))
    assert Replicate() != Shard(0)
