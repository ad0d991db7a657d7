"""Graphs: traced with proxies, changed, run node by node and as modules."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor, fx, nn


@fx.wrap
def own_kernel(x: Tensor, n: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise AssertionError("it is not looked into")
    return x * n if x.sum() > 0 else x


fx.wrap("len")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.weight = nn.Parameter(rgrad.randn(4))
        self.register_buffer("shift", rgrad.ones(4))
        self.inner = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    def forward(self, x: Tensor, k: int = 2, *, flag: bool = False) -> dict[str, Any]:
        y = self.linear(x) * self.weight + self.shift
        a, b = y.chunk(2, -1)
        z = rgrad.cat([a, b], dim=-1)
        z = F.relu(z, inplace=False).view(x.shape[0], -1)
        z = rgrad.ones(4) * (z + rgrad.arange(4))
        return {
            "out": self.inner(z.clamp(min=0)),
            "more": [z[:, 1:], F.pad(z, (1, 1)), 1 - z, -z, z.T, F.linear(z, self.weight), z.size(0) + k, 2**z],
        }


def same(a: Any, b: Any) -> None:
    rgrad.testing.assert_close(a["out"], b["out"])
    for x, y in zip(a["more"], b["more"], strict=True):
        rgrad.testing.assert_close(x, y)


def test_a_traced_module_gives_what_the_module_gives() -> None:
    net, x = Net(), rgrad.randn(3, 4)
    traced = fx.symbolic_trace(net)
    same(traced(x), net(x))
    same(traced(x[:2], k=3), net(x[:2], k=3))
    assert type(traced).__name__ == "Net"
    assert set(traced.state_dict()) == set(net.state_dict())
    assert traced.weight is net.weight
    traced(x)["out"].sum().backward()
    assert net.linear.weight.grad is not None
    kinds = [(n.op, n.target) for n in traced.graph.nodes]
    assert kinds[0] == ("placeholder", "x")
    assert ("call_module", "inner.1") in kinds
    assert ("get_attr", "shift") in kinds
    assert ("call_function", rgrad.cat) in kinds
    assert ("call_method", "chunk") in kinds
    assert kinds[-1] == ("output", "output")
    assert "linear = self.linear(x)" in traced.code
    assert "rgrad.cat([getitem, getitem_1], dim = -1)" in traced.code


def test_copies_are_apart() -> None:
    net, x = Net(), rgrad.randn(3, 4)
    traced = fx.symbolic_trace(net)
    copied = copy.deepcopy(traced)
    same(copied(x), net(x))
    assert copied.weight is not net.weight
    for node in copied.graph.nodes:
        if node.target is operator.neg:
            node.target = operator.pos
    copied.recompile()
    assert rgrad.equal(copied(x)["more"][3], -net(x)["more"][3])
    same(traced(x), net(x))
    with pytest.raises(NotImplementedError, match="GraphModule is not pickled"):
        pickle.dumps(traced)


def test_graphs_are_changed() -> None:
    traced = fx.symbolic_trace(lambda x: rgrad.relu(x + 1) * 2)
    graph = traced.graph
    assert [n.name for n in graph.nodes] == ["x", "add", "relu", "mul", "output"]
    relu = graph.find_nodes(op="call_function", target=rgrad.relu)[0]
    assert [n.name for n in relu.users] == ["mul"]
    with graph.inserting_after(relu):
        new = graph.call_function(rgrad.neg, (relu,))
        relu.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    traced.recompile()
    assert traced(rgrad.ones(1)).item() == -4
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(relu)
    new.replace_all_uses_with(relu, lambda user: True)
    assert graph.eliminate_dead_code()
    assert not graph.eliminate_dead_code()
    graph.lint()
    traced.recompile()
    assert traced(rgrad.ones(1)).item() == 4
    relu.append(graph.find_nodes(op="call_function", target=operator.add)[0])
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    with pytest.raises(TypeError, match="does not support mutation"):
        fx.immutable_collections.immutable_list([1]).append(2)
    assert "%relu : [num_users=1] = call_function[target=rgrad._core.relu](args = (%add,), kwargs = {})" in str(graph)


def test_a_graph_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    inner = graph.call_module("layer", (x,))
    k = graph.get_attr("factor")
    out = graph.call_method("mul", (inner, k))
    graph.output((out, [x, 3.5, math.inf, rgrad.float64, slice(0, 2), None, "a"]))
    module = fx.GraphModule({"layer": nn.Linear(2, 2), "factor": rgrad.tensor(2.0)}, graph, "ByHand")
    found, rest = module(rgrad.ones(1, 2))
    assert found.shape == (1, 2)
    assert rest[1:] == [3.5, math.inf, rgrad.float64, slice(0, 2), None, "a"]
    assert list(module.state_dict()) == ["factor", "layer.weight", "layer.bias"]
    module.graph.print_tabular()
    assert "call_module" in capsys.readouterr().out
    module.print_readable()
    assert "class ByHand(rgrad.nn.Module):" in capsys.readouterr().out
    module.add_submodule("more.deep", nn.ReLU())
    assert isinstance(module.more.deep, nn.ReLU)
    module.delete_all_unused_submodules()
    assert not hasattr(module, "more")
    assert module.delete_submodule("layer")
    assert not module.delete_submodule("layer")
    with pytest.raises(RuntimeError, match="nonexistent attribute layer"):
        module.graph.lint()
    with pytest.raises(RuntimeError, match="was not provided in `root`"):
        fx.GraphModule({}, graph)
    copied = fx.Graph()
    values: dict[Any, Any] = {}
    copied.output(copied.graph_copy(graph, values))
    assert [n.op for n in copied.nodes] == [n.op for n in graph.nodes]
    assert values[x].graph is copied


def test_wrapped_functions_are_one_node() -> None:
    def f(x: Tensor, xs: list[Tensor]) -> Any:
        return own_kernel(x, len(xs)) + math.floor(x.size(0))

    traced = fx.symbolic_trace(f)
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"][:2] == [len, own_kernel]
    x = rgrad.ones(2)
    assert rgrad.equal(traced(x, [x, x]), f(x, [x, x]))
    assert own_kernel(x, 3).tolist() == [3, 3]
    assert len([1]) == 1
    assert math.floor(1.5) == 1
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("abs")
    with pytest.raises(RuntimeError, match="Must be either a callable or string"):
        fx.wrap(3)  # type: ignore[arg-type]


def test_what_depends_on_values_is_refused() -> None:
    for function, match in (
        (lambda x: x if x.sum() > 0 else -x, "control flow"),
        (lambda x: [y for y in x], "cannot be iterated"),  # noqa: C416
        (lambda x: int(x), "cannot become a number"),
        (lambda x: rgrad.zeros(3)[x : float(x)], "cannot become a number"),
    ):
        with pytest.raises(fx.proxy.TraceError, match=match):  # type: ignore[attr-defined]
            fx.symbolic_trace(function)
    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(lambda x: rgrad.add(x, object()))
    with pytest.raises(NotImplementedError, match="concrete_args"):
        fx.symbolic_trace(lambda *xs: xs[0])
    assert not fx._symbolic_trace.is_fx_tracing()  # type: ignore[attr-defined]


def test_concrete_arguments_and_tracers() -> None:
    def f(x: Tensor, flag: bool, *xs: Tensor) -> Tensor:
        return x + 1 if flag else x - xs[0]

    traced = fx.symbolic_trace(f, concrete_args={"flag": True, "xs": ()})
    assert traced(rgrad.ones(1)).item() == 2

    class Deep(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    graph = Deep().trace(net)
    assert all(n.op != "call_module" for n in graph.nodes)
    x = rgrad.randn(1, 2)
    rgrad.testing.assert_close(fx.GraphModule(net, graph)(x), net(x))

    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(rgrad.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight if self.weight.shape[0] == 3 else x

    sized = Sized()
    traced = fx.GraphModule(sized, fx.Tracer(param_shapes_constant=True).trace(sized))
    assert traced(rgrad.ones(3)).tolist() == [1, 1, 1]


def test_interpreters() -> None:
    net, x = Net(), rgrad.randn(3, 4)
    traced = fx.symbolic_trace(net)
    same(fx.Interpreter(traced).run(x), net(x))
    seen: list[str] = []

    class Named(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            seen.append(n.name)
            return super().run_node(n)

        def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
            return super().call_method(
                "abs" if target == "clamp" else target, args, {} if target == "clamp" else kwargs
            )

    Named(traced).run(x)
    assert seen == [n.name for n in traced.graph.nodes]
    same(fx.Transformer(traced).transform()(x), net(x))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()
    with pytest.raises(RuntimeError) as caught:
        fx.Interpreter(traced).run(rgrad.ones(3, 5))
    assert any("While executing %linear" in note for note in caught.value.__notes__)


def test_what_is_refused() -> None:
    traced = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(NotImplementedError, match="to_folder"):
        traced.to_folder("x")
    with pytest.raises(AssertionError, match="Expected a Graph"):
        traced.graph = 3  # type: ignore[assignment]
    with pytest.raises(ValueError, match="a Callable is expected"):
        traced.graph.create_node("call_function", "relu")
