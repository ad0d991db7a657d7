"""What a graph keeps in memory: to the byte, by line, operation and module, and who keeps it alive."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import memory, nn
from rgrad.autograd import Function
from rgrad.autograd.graph import memory_report, save_on_cpu, saved_tensors_hooks
from rgrad.nn import functional as F

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    """What earlier tests have left in cycles is not freed in between."""
    gc.collect()


def here() -> int:
    return sys._getframe(1).f_lineno - 1


def settled(t: Any) -> Any:
    t.sum().item()
    return t


def chain(x: Any) -> Any:
    return (x * 2).exp().sin().sum()


def shared(x: Any) -> Any:
    a = x.exp()
    return (a * a).sum() + (a * x).sum()


def network(x: Any) -> Any:
    w = rgrad.rand(64, 64, requires_grad=True)
    return F.layer_norm((x @ w).relu(), (64,)).square().mean()


def losses(x: Any) -> Any:
    return F.cross_entropy(x * 3, rgrad.zeros(len(x), dtype=rgrad.int64))


def convolution(x: Any) -> Any:
    w = rgrad.rand(4, 1, 3, 3, requires_grad=True)
    return F.max_pool2d(F.conv2d(x.reshape(1, 1, *x.shape), w), 2).sum()


def views(x: Any) -> Any:
    y = x * 1
    y[3:9].mul_(2)
    return (y.T[2:].contiguous() * y.T[2:]).sum()


def in_place(x: Any) -> Any:
    y = (x * 2).sigmoid()
    y = y * 3
    y.pow_(2)
    return (y + 1).sqrt().sum()


def indexing(x: Any) -> Any:
    rows = rgrad.tensor([0, 5, 7, 7])
    return (x[rows].log() * x.gather(0, rows.reshape(4, 1))).cumsum(0).prod()


def random(x: Any) -> Any:
    return F.dropout(x * 1, 0.5).sum() + F.scaled_dot_product_attention(x[None] * 1, x[None] * 2, x[None] * 3).sum()


class Cubes(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.square = x * x
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * ctx.square * g


def function(x: Any) -> Any:
    return Cubes.apply(x * 2).sum()


PROGRAMS = [chain, shared, network, losses, convolution, views, in_place, indexing, random, function]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_only_the_graph_holds_is_freed_with_it(device: str, program: Callable[[Any], Any]) -> None:
    x = settled(rgrad.rand(64, 64) + 0.5).requires_grad_()
    settled(program(x).detach())  # what is made once, such as caches
    gc.collect()
    before = memory.allocated()
    loss = settled(program(x))
    gc.collect()
    held = memory.allocated() - before
    report = memory_report(loss)
    own = rgrad._core._tensor_memory(loss)[3]
    # Besides what is saved there is the value of the loss, which the variable holds. (Numbers are saved on the CPU.)
    assert sum(s.bytes for s in report.storages if s.device == device and not s.outside) + own == held, str(report)
    assert report.bytes == report.saved + report.outside == sum(s.bytes for s in report.storages)
    for groups in (report.by_line, report.by_operation, report.by_module):
        assert sum(groups.values()) == report.bytes
        assert list(groups.values()) == sorted(groups.values(), reverse=True)
    assert report.outside >= rgrad._core._tensor_memory(x)[3]
    del loss
    gc.collect()
    assert memory.allocated() == before


def test_storages_that_are_shared_count_once() -> None:
    x = settled(rgrad.rand(128, 128)).requires_grad_()
    a = x.exp()
    b = (a * a).sum() + (a[2:] * a[:-2]).sum() + a.T.sin().sum()
    settled(b)
    report = memory_report(b)
    one = rgrad._core._tensor_memory(x)[3]
    (of_a,) = [s for s in report.storages if s.operation == "ExpBackward0"]
    assert of_a.bytes == one
    assert of_a.nodes >= 5
    assert of_a.outside
    assert {"input", "output"} <= set(of_a.kinds)
    del a
    gc.collect()
    (of_a,) = [s for s in memory_report(b).storages if s.operation == "ExpBackward0"]
    assert not of_a.outside


def test_lines_operations_and_modules() -> None:
    net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    x = settled(rgrad.rand(100, 64))
    loss = net(x).square().sum()
    line = here()
    settled(loss)
    report = memory_report(loss)
    assert [entry.number for entry in report.by_line] == [line]
    assert set(report.by_operation) >= {"TanhBackward0", "PowBackward0"} - {"PowBackward0"}
    assert set(report.by_module) == {None}
    by_parameter = memory_report(loss, model=net).by_module
    assert {"0", "2"} <= set(by_parameter)
    with memory.record():
        loss = settled(net(x).square().sum())
        by_call = memory_report(loss).by_module
    assert {"Sequential.0", "Sequential.1"} <= set(by_call)
    text = str(memory_report(loss))
    assert "Sequential.1" in text
    assert "TanhBackward0" in text
    assert f"test_graph_memory.py:{line + 10}" in text or "test_graph_memory.py:" in text


def test_a_freed_graph_holds_nothing_of_its_own() -> None:
    x = settled(rgrad.rand(64, 64)).requires_grad_()
    loss = chain(x)
    report = memory_report(loss)
    assert (report.nodes, report.freed) == (5, 0)
    assert report.saved > 0
    loss.backward()
    report = memory_report(loss)
    assert (report.nodes, report.freed, report.saved) == (5, 4, 0)
    assert "(4 of them freed by backward)" in str(report)


def test_what_hooks_have_packed_is_the_graphs(device: str) -> None:
    x = settled(rgrad.rand(128, 128)).requires_grad_()
    with saved_tensors_hooks(lambda t: [t.detach().clone()], lambda packed: packed[0]):
        y = settled(x.exp().sum())
    report = memory_report(y)
    (packed,) = [s for s in report.storages if s.kinds == ("packed",)]
    assert (packed.bytes, packed.device, packed.operation) == (rgrad._core._tensor_memory(x)[3], device, "ExpBackward0")
    with save_on_cpu():
        y = settled(x.exp().sum())
    assert any(s.device == "cpu" and "packed" in s.kinds for s in memory_report(y).storages)


@pytest.mark.cpu_only
def test_memory_of_somebody_else_counts_no_bytes() -> None:
    import numpy as np

    x = rgrad.from_numpy(np.ones((300, 300))).requires_grad_()
    report = memory_report((x * x).sum())
    (own,) = [s for s in report.storages if s.size == 300 * 300 * 8]
    assert own.bytes == 0
    assert report.bytes == memory_report((x * x).sum()).bytes


def test_roots_may_be_nodes_edges_and_several() -> None:
    x = settled(rgrad.rand(64, 64)).requires_grad_()
    y, z = x.exp(), x.sin()
    loss = y.sum()
    nodes = memory_report(loss).nodes
    assert memory_report(loss.grad_fn).nodes == nodes
    assert memory_report(rgrad.autograd.graph.get_gradient_edge(loss)).nodes == nodes
    assert memory_report([y, z]).nodes == 3
    for wrong in (None, 3, "loss", [], {}):
        with pytest.raises(TypeError, match="memory_report: expected a tensor"):
            memory_report(wrong)
    with pytest.raises(RuntimeError, match="the tensor has no graph: it is a leaf"):
        memory_report(x)
    with pytest.raises(RuntimeError, match="the tensor has no graph: it does not require grad"):
        memory_report(rgrad.ones(2))


class Trainer:
    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {"train": []}


def test_the_owner_of_many_graphs_is_named() -> None:
    w = rgrad.ones(3, requires_grad=True)
    loss_sum: Any = 0
    for _ in range(7):
        loss = (w * w).sum()
        loss.backward()
        loss_sum = loss_sum + loss
        line = here()
    (owner,) = memory_report(loss_sum).owners
    assert owner.owners == ("loss_sum in test_the_owner_of_many_graphs_is_named()",)
    assert owner.graphs == 7
    assert owner.line.number == line
    assert str(owner).startswith("loss_sum in test_the_owner_of_many_graphs_is_named() at ")
    assert "holds 7 graphs: 22 nodes" in str(owner)
    # Also from below: what keeps the first loss's nodes alive.
    node = loss_sum.grad_fn
    del loss
    for _ in range(6):
        node = node.next_functions[0][0]
    assert [o.owners for o in memory_report(node).owners] == [owner.owners]


def test_owners_are_found_through_containers_and_attributes() -> None:
    trainer = Trainer()
    w = rgrad.ones(3, requires_grad=True)
    for _ in range(5):
        trainer.history["train"].append((w * w).sum())
    report = memory_report(trainer.history["train"][2])
    names = [name for owner in report.owners for name in owner.owners]
    assert names == ["trainer.history['train'][2] in test_owners_are_found_through_containers_and_attributes()"]
    of_all = [o for o in memory.report().graphs if o.owners and o.owners[0].startswith("trainer.history['train'][...]")]
    assert [o.graphs for o in of_all] == [5]
    assert "Graphs that are kept alive" in str(memory.report())


def test_a_report_changes_nothing() -> None:
    x = rgrad.rand(300, 300).requires_grad_()
    y = (x * 2).exp()
    loss = y.sum()
    before = memory.allocated()
    memory_report(loss)
    assert memory.allocated() == before, "nothing that is pending was computed"
    loss.backward()
    assert x.grad is not None


def test_deep_graphs() -> None:
    y: Any = rgrad.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y * 1.0
    report = memory_report(y)
    assert report.nodes == 20_001


def test_modules_between_those_with_parameters_are_guessed() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            return self.b(self.a(x).tanh())

    model = nn.Sequential(Block(), nn.Sigmoid(), Block())
    loss = model(rgrad.rand(3, 4)).exp().sum()
    found = {(s.operation, s.module) for s in memory_report(loss, model=model, owners=False).storages}
    assert ("TanhBackward0", "0") in found
    assert ("TanhBackward0", "2") in found
    assert ("SigmoidBackward0", "the model itself") in found
    # Behind the last module.
    assert ("ExpBackward0", None) in found
    assert {s.module for s in memory_report(loss, owners=False).storages} == {None}
