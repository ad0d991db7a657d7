"""Nodes and edges as Python sees them: names, what they keep, hooks, edges, hooks that wait for several gradients."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad.autograd import graph

pytestmark = pytest.mark.usefixtures("device")


class Double(rgrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, None)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


# ---- nodes ---------------------------------------------------------------------------------------------------------


def test_every_kind_of_node_is_a_node() -> None:
    x = leaf(1.0, 2.0)
    view = x[0:1].clone()
    view[0] = 3.0
    results = [x * x, x.sum(), Double.apply(x), x.view(2), view]
    nodes = [t.grad_fn for t in results]
    nodes.append(nodes[0].next_functions[0][0])
    names = ["MulBackward0", "SumBackward0", "DoubleBackward", "ViewBackward0", "CopySlices", "AccumulateGrad"]
    for node, name in zip(nodes, names, strict=True):
        assert isinstance(node, graph.Node)
        assert issubclass(type(node), graph.Node)
        assert node.name() == type(node).__name__ == name
        assert node.metadata == {}
        node.metadata["key"] = 1
        assert node.metadata == {"key": 1}
    with pytest.raises(TypeError, match="by operations"):
        graph.Node()


def test_what_a_node_keeps() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    mul = (x * y).grad_fn
    assert mul._saved_self is x
    assert mul._saved_other is y
    assert (x * 2).grad_fn._saved_self is None  # not needed
    exp = (out := x.exp()).grad_fn
    assert exp._saved_result.tolist() == out.tolist()
    assert exp._saved_result.grad_fn is exp
    power = (x**3).grad_fn
    assert power._saved_self is x
    assert power._saved_exponent == 3
    total = x.reshape(2, 1).sum(0, keepdim=True).grad_fn
    assert total._saved_dim == (0,)
    assert total._saved_keepdim is True
    assert total._saved_self_sym_sizes == (2, 1)
    top = x.max(0)
    assert top.values.grad_fn._saved_dim == 0
    assert top.values.grad_fn._saved_indices.item() == 1
    product = (x.reshape(1, 2) @ y.reshape(2, 1)).grad_fn
    assert product._saved_self.shape == (1, 2)
    assert product._saved_mat2.shape == (2, 1)
    picked = x[rgrad.tensor([1, 0])].grad_fn
    assert [i.tolist() for i in picked._saved_indices] == [[1, 0]]
    cut = x[1:].grad_fn
    assert (cut._saved_dim, cut._saved_start, cut._saved_end, cut._saved_step) == (0, 1, 2, 1)
    assert x.add(y, alpha=2).grad_fn._saved_alpha == 2


def test_attributes_of_a_node_are_listed_and_others_are_errors() -> None:
    x = leaf(1.0)
    node = (x * x).grad_fn
    for name in ("_saved_self", "_saved_other", "_raw_saved_self", "_raw_saved_other", "name", "next_functions"):
        assert name in dir(node)
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute '_saved_result'"):
        _ = node._saved_result
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'nonsense'"):
        _ = node.nonsense
    assert not hasattr(x.sum().grad_fn, "_raw_saved_self_sym_sizes")  # no tensor


def test_saved_values_after_the_graph_was_freed() -> None:
    x = leaf(1.0)
    y = x * x
    node, raw = y.grad_fn, y.grad_fn._raw_saved_self
    y.backward()
    for read in (lambda: node._saved_self, raw.unpack, lambda: raw.data):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            read()
    f = Double.apply(x)
    node = f.grad_fn
    assert [s.unpack() for s in node._raw_saved_tensors] == [x, None]
    f.backward()
    for read in (lambda: node.saved_tensors, lambda: node._raw_saved_tensors):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            read()


def test_saved_values_that_were_written_since() -> None:
    x = leaf(1.0)
    a = x * 1
    node = (a * a).grad_fn
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = node._saved_self


def test_a_saved_tensor_keeps_its_graph() -> None:
    x = leaf(1.0, 2.0)
    raw = x.exp().grad_fn._raw_saved_result
    gc.collect()
    assert raw.unpack().tolist() == x.exp().tolist()


def test_metadata_of_a_nodes_outputs(device: str) -> None:
    x = leaf(1.0, 2.0)
    (meta,) = (x.reshape(2, 1) * 2).grad_fn._input_metadata
    assert meta.shape == (2, 1)
    assert meta.dtype == real()
    assert meta.device.type == device


# ---- edges ---------------------------------------------------------------------------------------------------------


def test_gradient_edges() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    assert edge.ownership_token is None
    assert isinstance(edge, tuple)
    assert len(edge) == 3
    acc = graph.get_gradient_edge(x)
    assert acc.node.name() == "AccumulateGrad"
    assert acc.node.variable is x
    assert acc.node is y.grad_fn.next_functions[0][0]
    _, second = (x * 3).split(1)
    assert graph.get_gradient_edge(second).output_nr == 1
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(rgrad.ones(2))


def test_an_edge_of_a_function_keeps_the_graph() -> None:
    x = leaf(1.0)
    edge = graph.get_gradient_edge(Double.apply(x))
    gc.collect()
    assert edge.node.next_functions[0][0].variable is x
    assert edge.ownership_token is not None


# ---- hooks on several gradients --------------------------------------------------------------------------------------


def test_all_gradients() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    c, d = a * b, a * b
    calls: list[list[Any]] = []
    handle = graph.register_multi_grad_hook((a, b, c, d), lambda grads: calls.append([g is not None for g in grads]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    rgrad.autograd.grad(d.sum(), (b, d), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    assert calls == [
        [True, True, True, False],
        [True, False, True, False],
        [False, True, False, True],
        [True, True, True, True],
    ]
    handle.remove()
    c.sum().backward()
    assert len(calls) == 4


def test_all_gradients_come_as_they_are_and_last() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    got: list[Any] = []

    def fn(grads: Any) -> None:
        got.extend(g.tolist() for g in grads)

    with graph.register_multi_grad_hook([a, b], fn):
        (a * b).sum().backward()
        (a * b).sum().backward()
    (a * b).sum().backward()
    assert got == [[3.0, 4.0], [1.0, 2.0]] * 2


def test_any_gradient() -> None:
    a, b = leaf(1.0), leaf(3.0)
    constant = rgrad.ones(1)
    calls: list[float] = []
    c = a * b
    graph.register_multi_grad_hook((a, b, c, constant), lambda g: calls.append(g.item()), mode="any")
    c.backward(retain_graph=True)
    assert calls == [1.0]  # that of c comes first
    c.backward(inputs=[b])
    assert calls == [1.0, 1.0]
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook((a,), print, mode="some")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        graph.register_multi_grad_hook((constant,), print)


def test_multi_hooks_in_nested_passes_and_threads() -> None:
    x, w = leaf(1.0), leaf(2.0)
    calls: list[list[float]] = []
    graph.register_multi_grad_hook((x, w), lambda grads: calls.append([g.item() for g in grads if g is not None]))

    class Inner(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with rgrad.enable_grad():
                (w * 5).backward()  # a pass of its own, which reaches w only
            return g

    (Inner.apply(x) * w).backward()
    assert calls == [[5.0], [2.0, 1.0]]
    calls.clear()
    threads = [threading.Thread(target=lambda: (x * w).backward()) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert calls == [[2.0, 1.0]] * 8


def test_a_multi_hook_dies_with_its_tensors() -> None:
    class Mark:
        pass

    mark = Mark()
    ref = weakref.ref(mark)
    x = leaf(1.0)
    graph.register_multi_grad_hook((x * 2, x * 3), lambda grads, mark=mark: None)
    del mark
    gc.collect()
    assert ref() is None


def test_an_error_in_a_multi_hook_comes_out() -> None:
    x = leaf(1.0)

    def fn(grads: Any) -> None:
        raise KeyError("mine")

    graph.register_multi_grad_hook((x,), fn)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).backward()
