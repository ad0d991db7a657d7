"""Parts of graphs that look like a pattern are replaced; the module computes what the replacement does."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import rgrad
from rgrad import fx, nn
from rgrad.fx import subgraph_rewriter


def kinds(module: fx.GraphModule) -> list[Any]:
    return [n.target for n in module.graph.nodes if n.op not in ("placeholder", "output")]


def f(x, y):
    a = (x * y + y).relu()
    b = a * x + x
    return b - (a * 2 + 3)


def pattern(a, b):
    return a * b + b


def replacement(a, b):
    return (a + 1) * b


def test_each_place_is_replaced_and_values_and_gradients_stay() -> None:
    traced = fx.symbolic_trace(f)
    found = fx.replace_pattern(traced, pattern, replacement)
    assert [m.anchor.name for m in found] == ["add", "add_1"]
    assert kinds(traced)[:3] == [operator.add, operator.mul, "relu"]
    traced.graph.lint()
    x, y = (rgrad.randn(5, dtype=rgrad.float64, requires_grad=True) for _ in range(2))
    assert rgrad.allclose(traced(x, y), f(x, y))
    assert rgrad.autograd.gradcheck(traced, (x, y))
    assert rgrad.autograd.gradgradcheck(traced, (x, y))
    # The nodes of the second match are computed from the first replacement.
    assert found[1].nodes_map[next(n for n in found[1].nodes_map if n.name == "a")].graph is traced.graph


def test_a_value_that_somebody_else_uses_keeps_its_place() -> None:
    def shared(x, y):
        product = x * y
        return product + y, product

    traced = fx.symbolic_trace(shared)
    assert fx.replace_pattern(traced, pattern, replacement) == []
    # As a result of the pattern it may be used.
    both = fx.replace_pattern(traced, lambda a, b: (a * b, a * b + b), lambda a, b: (a * b, (a + 1) * b))
    assert both == [] or len(both) == 1
    x, y = rgrad.tensor(2.0), rgrad.tensor(3.0)
    assert [t.item() for t in traced(x, y)] == [9, 6]


def test_one_input_of_the_pattern_is_one_value() -> None:
    traced = fx.symbolic_trace(lambda x, y: (x * x) + (x * y))
    found = fx.replace_pattern(traced, lambda a: a * a, lambda a: a.square())
    assert len(found) == 1
    assert traced(rgrad.tensor(2.0), rgrad.tensor(5.0)).item() == 14


def test_constants_are_compared_unless_they_are_ignored() -> None:
    def twice(x):
        return (x + 1).add(2)

    assert not fx.replace_pattern(fx.symbolic_trace(twice), lambda x: x + 7, lambda x: x * 7)
    traced = fx.symbolic_trace(twice)
    done = subgraph_rewriter.replace_pattern_with_filters(
        traced, lambda x: x + 7, lambda x: x * 7, ignore_literals=True
    )
    assert len(done) == 1
    assert [n.target for n in done[0].replacements] == [operator.mul]
    assert traced(rgrad.tensor(2.0)).item() == 16


def test_filters_and_callbacks_choose() -> None:
    def chain(x):
        return x.relu().relu().relu()

    seen = []

    def third(match: Any, graph: fx.Graph, wanted: fx.Graph) -> bool:
        seen.append(match.returning_nodes[0].name)
        return bool(match.returning_nodes[0].name == "relu_2")

    traced = fx.symbolic_trace(chain)
    made = subgraph_rewriter.replace_pattern_with_filters(
        traced,
        lambda x: x.relu(),
        match_filters=[third],
        replacement_callback=lambda match, graph, wanted: fx.symbolic_trace(lambda x: x.tanh()).graph,
    )
    assert seen == ["relu", "relu_1", "relu_2"]
    assert len(made) == 1
    assert kinds(traced) == ["relu", "relu", "tanh"]
    with pytest.raises(AssertionError, match="Must provide either a replacement"):
        subgraph_rewriter.replace_pattern_with_filters(traced, lambda x: x.relu())


def test_modules_and_attributes_come_along_and_go() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.act, self.last = nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)

        def forward(self, x):
            return self.last(self.act(self.first(x)))

    class Act(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x)

    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(4, 4)
            self.register_buffer("scale", rgrad.tensor(2.0))

        def forward(self, x):
            return self.gate(x).sigmoid() * self.scale

    net, gated = Net(), fx.symbolic_trace(Gated())
    traced = fx.symbolic_trace(net)
    assert len(fx.replace_pattern(traced, fx.symbolic_trace(Act()), gated)) == 1
    x = rgrad.randn(5, 3)
    assert rgrad.allclose(traced(x), net.last(gated(net.first(x))))
    assert not hasattr(traced, "act")
    assert len(list(traced.parameters())) == 6


def test_a_long_chain_needs_no_stack() -> None:
    def long(x):
        for _ in range(3000):
            x = x + 1
        return x

    traced = fx.symbolic_trace(long)
    assert len(fx.replace_pattern(traced, lambda x: x + 1, lambda x: x + 2)) == 3000
    assert traced(rgrad.tensor(0.0)).item() == 6000


def test_what_does_not_fit_is_an_error() -> None:
    traced = fx.symbolic_trace(f)
    with pytest.raises(AssertionError, match="Placeholder count mismatch"):
        fx.replace_pattern(traced, pattern, lambda a: a)
    with pytest.raises(ValueError, match="no operation to look for"):
        fx.replace_pattern(traced, lambda a: a, lambda a: a + 1)
