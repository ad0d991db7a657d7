"""Checks of training in several processes, which rank_program.py runs. The whole batch is known to all, so each "
"can compute it alone."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import rgrad
import rgrad.distributed.device_mesh
import rgrad.distributed.nn
import rgrad.distributed.optim
from rgrad import distributed as dist
from rgrad import nn
from rgrad.nn.parallel import DistributedDataParallel

F = nn.functional


def raises(kind: type[BaseException], text: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"expected {text!r}") from error
    else:
        raise AssertionError(f"nothing raised; expected {kind.__name__} with {text!r}")


def close(a: rgrad.Tensor | None, b: rgrad.Tensor | None, tolerance: float = 1e-10) -> None:
    assert (a is None) == (b is None), (a, b)
    if a is not None and b is not None:
        assert rgrad.allclose(a.detach(), b.detach(), rtol=tolerance, atol=tolerance), (a, b)


def network(*, norm: bool = False) -> nn.Module:
    rgrad.manual_seed(3)
    layers = [
        nn.Linear(6, 8),
        nn.Tanh(),
        *([nn.BatchNorm1d(8)] if norm else []),
        nn.Linear(8, 8),
        nn.ReLU(),
        nn.Linear(8, 2),
    ]
    return nn.Sequential(*layers).double()


def batches(steps: int, seed: int = 0) -> Iterator[tuple[rgrad.Tensor, rgrad.Tensor]]:
    generator = rgrad.Generator().manual_seed(seed)
    for _ in range(steps):
        x = rgrad.randn(16, 6, generator=generator).double()
        yield x, x[:, :2].sin()


def part(x: rgrad.Tensor) -> rgrad.Tensor:
    return x.chunk(dist.get_world_size())[dist.get_rank()]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"deterministic": False},
    {"gradient_as_bucket_view": True},
    {"bucket_cap_mb": 0.0001},
    {"bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True, "deterministic": False},
    {"find_unused_parameters": True},
    {"static_graph": True},
    {"virtual_shards": 2, "static_graph": True, "gradient_as_bucket_view": True},
]


def check_gradients_are_those_of_the_whole_batch() -> None:
    """Steps, gradients that add up over passes, and passes without sums."""
    for options in OPTIONS:
        alone, wrapped = network(), DistributedDataParallel(network(), **options)
        ours, theirs = (rgrad.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (wrapped, alone))
        for step, (x, y) in enumerate(batches(6)):
            own = step % 3 == 1
            with wrapped.no_sync() if own else nullcontext():
                F.mse_loss(wrapped(part(x)), part(y)).backward()
            F.mse_loss(alone(x), y).backward()
            if own:
                continue
            for a, b in zip(wrapped.parameters(), alone.parameters(), strict=True):
                close(a.grad, b.grad)
            if step % 3 == 2:
                # Gradients stay and grow in the next pass.
                ours.zero_grad(set_to_none=step > 3)
                theirs.zero_grad(set_to_none=step > 3)
            ours.step()
            theirs.step()


def check_batch_norm_over_all_processes() -> None:
    for options in ({}, {"deterministic": False}, {"virtual_shards": 4}):
        alone = network(norm=True)
        wrapped = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(network(norm=True)), **options)
        for x, y in batches(3):
            mine, whole = wrapped(part(x)), alone(x)
            close(mine, part(whole))
            F.mse_loss(mine, part(y)).backward()
            F.mse_loss(whole, y).backward()
            for a, b in zip(wrapped.parameters(), alone.parameters(), strict=True):
                close(a.grad, b.grad)
        for a, b in zip(wrapped.buffers(), alone.buffers(), strict=True):
            close(a.double(), b.double())
        wrapped.eval()
        alone.eval()
        close(wrapped(part(x)), part(alone(x)))


class Branches(nn.Module):
    """Uses one of two layers."""

    def __init__(self) -> None:
        super().__init__()
        rgrad.manual_seed(1)
        self.first, self.second, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: rgrad.Tensor, second: bool) -> rgrad.Tensor:
        return (self.second if second else self.first)(x)


def check_parameters_without_a_gradient() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for options in ({}, {"deterministic": False}, {"gradient_as_bucket_view": True}):
        wrapped = DistributedDataParallel(Branches(), find_unused_parameters=True, **options)
        for step in range(2):
            # In the second step a process has used only the other layer, and each gradient grows all the same.
            wrapped(rgrad.ones(8, 2), rank == size - 1).sum().backward()
            model = wrapped.module
            assert model.never.weight.grad is None
            for layer, share in ((model.first, (size - 1) / size), (model.second, 1 / size)):
                assert layer.weight.grad is not None
                assert layer.weight.grad.tolist() == [[8.0 * share * (step + 1)] * 2]
    strict = DistributedDataParallel(Branches())
    strict(rgrad.ones(8, 2), False).sum().backward()
    raises(RuntimeError, "find_unused_parameters=True", lambda: strict(rgrad.ones(8, 2), False))


def check_processes_begin_alike() -> None:
    rgrad.manual_seed(dist.get_rank())
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    model[1].running_mean.fill_(dist.get_rank() + 7.0)
    before = copy.deepcopy(model.state_dict())
    wrapped = DistributedDataParallel(model)
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, before)
    for name, value in wrapped.module.state_dict().items():
        close(value, every[0][name])
    model[1].running_mean.fill_(dist.get_rank() + 9.0)
    model.eval()
    wrapped(rgrad.ones(8, 2))
    assert model[1].running_mean.tolist() == [9.0] * 3
    wide = nn.Linear(2 + dist.get_rank(), 1)
    raises(RuntimeError, "DDP expects same model across all ranks", lambda: DistributedDataParallel(wide))
    more = nn.Sequential(*(nn.Linear(1, 1) for _ in range(1 + dist.get_rank())))
    raises(RuntimeError, "has inconsistent", lambda: DistributedDataParallel(more))


def check_unequal_numbers_of_batches() -> None:
    """A process without batches counts with gradients of zero."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for over_all in (True, False):
        wrapped = DistributedDataParallel(nn.Linear(1, 1, bias=False).double())
        rgrad.nn.init.zeros_(wrapped.module.weight)
        optimizer = rgrad.optim.SGD(wrapped.parameters(), lr=1.0)
        with wrapped.join(divide_by_initial_world_size=over_all):
            for _ in range(1 + 2 * rank):
                optimizer.zero_grad()
                wrapped(rgrad.ones(8, 1).double()).mean().backward()
                optimizer.step()
        steps = [1 + 2 * r for r in range(size)]
        active = [sum(step < n for n in steps) for step in range(max(steps))]
        expected = -sum(count / (size if over_all else count) for count in active)
        close(wrapped.module.weight, rgrad.tensor([[expected]]).double())

    def unequal() -> None:
        with wrapped.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                wrapped(rgrad.ones(8, 1).double()).mean().backward()

    raises(RuntimeError, "exhausted inputs", unequal)


def check_communication_hooks() -> None:
    calls = []

    def hook(state: str, bucket: Any) -> Any:
        calls.append((state, bucket.index(), bucket.is_last(), len(bucket.gradients()), len(bucket.parameters())))
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    alone, wrapped = network(), DistributedDataParallel(network(), bucket_cap_mb=0.0001)
    wrapped.register_comm_hook("mine", hook)
    raises(RuntimeError, "only be called once", lambda: wrapped.register_comm_hook(None, hook))
    x, y = next(batches(1))
    F.mse_loss(wrapped(part(x)), part(y)).backward()
    F.mse_loss(alone(x), y).backward()
    for a, b in zip(wrapped.parameters(), alone.parameters(), strict=True):
        close(a.grad, b.grad)
    assert [call[1] for call in calls] == list(range(len(calls)))
    assert [call[2] for call in calls] == [False] * (len(calls) - 1) + [True]
    assert sum(call[3] for call in calls) == 6
    assert {call[0] for call in calls} == {"mine"}


def check_what_cannot_be_divided_is_whole() -> None:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: rgrad.Tensor, y: rgrad.Tensor) -> rgrad.Tensor:
            return F.mse_loss(self.inner(x), y, reduction="sum")

    alone, wrapped = Loss(), DistributedDataParallel(Loss())
    x, y = next(batches(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrapped(part(x), y=part(y)).backward()
    assert "compute the loss outside of the module" in str(caught[0].message)
    alone(x, y).backward()
    for a, b in zip(wrapped.parameters(), alone.parameters(), strict=True):
        close(a.grad, b.grad / dist.get_world_size())


def check_blocks_that_are_computed_again() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            return rgrad.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)

    alone, wrapped = network(), DistributedDataParallel(Block())
    x, y = next(batches(1))
    F.mse_loss(wrapped(part(x)), part(y)).backward()
    F.mse_loss(alone(x), y).backward()
    for a, b in zip(wrapped.parameters(), alone.parameters(), strict=True):
        close(a.grad, b.grad)


def check_samplers_divide_a_dataset() -> None:
    sampler = rgrad.utils.data.DistributedSampler(range(12), shuffle=True)
    mine = list(sampler)
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    assert sorted(number for numbers in every for number in numbers) == list(range(12))
    sampler.set_epoch(1)
    assert list(sampler) != mine


def check_states_in_parts() -> None:
    """Each process steps some parameters; the weights are those of the whole optimizer, bit for bit."""
    rank, size = dist.get_rank(), dist.get_world_size()
    alone, ours = network(), network()
    whole = rgrad.optim.AdamW(alone.parameters(), lr=0.1, weight_decay=0.1)
    parts = dist.optim.ZeroRedundancyOptimizer(ours.parameters(), rgrad.optim.AdamW, lr=0.1, weight_decay=0.1)
    schedulers = [rgrad.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (whole, parts)]

    def step(x: rgrad.Tensor, y: rgrad.Tensor) -> None:
        for model, optimizer in ((alone, whole), (ours, parts)):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        for a, b in zip(alone.parameters(), ours.parameters(), strict=True):
            assert rgrad.equal(a, b)

    for x, y in batches(3):
        step(x, y)
    held = [len(parts.optim.state)]
    every: list[Any] = [None] * size
    dist.all_gather_object(every, held)
    assert sum(count for (count,) in every) == 6
    if size > 1:
        assert max(count for (count,) in every) < 6
    raises(RuntimeError, "has not been consolidated", parts.state_dict)
    parts.consolidate_state_dict(0)
    saved = [parts.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(saved, 0)
    # It is that of the whole optimizer, and another number of processes could take it.
    assert set(saved[0]["state"]) == set(whole.state_dict()["state"])
    for number, state in whole.state_dict()["state"].items():
        for name, value in state.items():
            assert rgrad.equal(value, saved[0]["state"][number][name])
    parts = dist.optim.ZeroRedundancyOptimizer(ours.parameters(), rgrad.optim.AdamW, lr=7.0)
    parts.load_state_dict(saved[0])
    schedulers.pop()
    for x, y in batches(2, seed=1):
        parts.param_groups[0]["lr"] = whole.param_groups[0]["lr"]
        step(x, y)


def check_meshes() -> None:
    size = dist.get_world_size()
    mesh = dist.device_mesh.init_device_mesh("cpu", (1, size), mesh_dim_names=("outer", "inner"))
    assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size(1)) == ((1, size), 2, size, size)
    assert mesh.get_coordinate() == [0, dist.get_rank()]
    assert (mesh.get_local_rank("inner"), mesh.get_local_rank("outer")) == (dist.get_rank(), 0)
    x = rgrad.ones(1)
    dist.all_reduce(x, group=mesh["inner"].get_group())
    assert x.item() == size
    dist.all_reduce(x, group=mesh.get_group("outer"))
    assert x.item() == size
    raises(RuntimeError, "have 2 dimensions", mesh.get_group)
    raises(KeyError, "Invalid mesh_dim_name", lambda: mesh["middle"])
    raises(
        RuntimeError, "bigger than default world size", lambda: dist.device_mesh.init_device_mesh("cpu", (size + 1,))
    )


def check_derivatives_of_collectives() -> None:
    """The loss is the sum of all processes' losses; numeric derivatives change one number in one process at a time."""
    rank, size = dist.get_rank(), dist.get_world_size()
    nnf = dist.nn.functional
    weights = rgrad.arange(1.0, 1 + 2 * size).double().reshape(size, 2) * (rank + 1)
    calls: dict[str, Callable[[rgrad.Tensor], rgrad.Tensor]] = {
        "broadcast": lambda x: (nnf.broadcast(x, size - 1) * weights).sum(),
        "reduce": lambda x: (nnf.reduce(x, size - 1) ** 2 * weights).sum(),
        "all_reduce": lambda x: (nnf.all_reduce(x) ** 2 * weights).sum(),
        "all_gather": lambda x: sum((k + 1) * (t**2 * weights).sum() for k, t in enumerate(nnf.all_gather(x))),
        "gather": lambda x: sum((k + 1) * (t**2 * weights).sum() for k, t in enumerate(nnf.gather(x, 0))),
        "scatter": lambda x: (nnf.scatter(list(x.unbind()), 0) ** 2 * weights[0]).sum(),
        "reduce_scatter": lambda x: (nnf.reduce_scatter(x[0], list(x.unbind())) ** 2 * weights[0]).sum(),
        "all_to_all": lambda x: sum(
            (k + 1) * (t**2 * weights[0]).sum()
            for k, t in enumerate(nnf.all_to_all(list(x.unbind()), list(x.unbind())))
        ),
        "all_to_all_single": lambda x: (nnf.all_to_all_single(x, x) ** 2 * weights).sum(),
    }
    for name, call in calls.items():
        rgrad.manual_seed(rank)
        x = rgrad.randn(size, 2).double().requires_grad_()

        def total(value: rgrad.Tensor, call: Any = call) -> float:
            with rgrad.no_grad():
                loss = call(value).reshape(1).clone()
                dist.all_reduce(loss)
            return float(loss.item())

        (first,) = rgrad.autograd.grad(call(x), x, create_graph=True)
        # The derivative of the gradients' squares, in the same way.
        second = rgrad.autograd.grad((first**2).sum(), x)[0] if first.requires_grad else rgrad.zeros_like(x)

        def squares(value: rgrad.Tensor, call: Any = call) -> float:
            value = value.detach().requires_grad_()
            (gradient,) = rgrad.autograd.grad(call(value), value)
            sum_of_squares = (gradient.detach() ** 2).sum().reshape(1)
            dist.all_reduce(sum_of_squares)
            return float(sum_of_squares.item())

        for got, function in ((first.detach(), total), (second, squares)):
            for owner in range(size):
                for row, column in ((0, 0), (size - 1, 1)):
                    nudge = rgrad.zeros_like(x)
                    nudge[row, column] = 1e-5 if owner == rank else 0.0
                    slope = (function(x.detach() + nudge) - function(x.detach() - nudge)) / 2e-5
                    if owner == rank:
                        assert abs(slope - float(got[row, column])) < 1e-5 * (1 + abs(slope)), (name, slope, got)
    raises(NotImplementedError, "derivative of", lambda: nnf.all_reduce(rgrad.ones(1), dist.ReduceOp.MAX))
