"""grad and backward in full: roots, inputs, gradient edges, callbacks, and when leaves get what is theirs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad.autograd import Variable

pytestmark = pytest.mark.usefixtures("device")


def edge(t: Any) -> tuple[Any, int]:
    """A gradient edge by hand: the node and the number of its output."""
    node = t.grad_fn if t.grad_fn is not None else t.view_as(t).grad_fn.next_functions[0][0]
    return (node, t.output_nr)


# ------------------------------------------------------------------------- edges


def test_edges_as_inputs_and_roots() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    (g,) = rgrad.autograd.grad(z, edge(y), retain_graph=True)
    assert g.tolist() == [4.0, 8.0]
    g, h = rgrad.autograd.grad(z, [edge(x), y], retain_graph=True)
    assert (g.tolist(), h.tolist()) == ([8.0, 16.0], [4.0, 8.0])
    (g,) = rgrad.autograd.grad(edge(z), x, retain_graph=True)
    assert g.tolist() == [8.0, 16.0]
    (g,) = rgrad.autograd.grad(edge(y), x, rgrad.ones(2, dtype=real()), retain_graph=True)
    assert g.tolist() == [2.0, 2.0]
    z.backward(inputs=[edge(x)])
    assert x.grad.tolist() == [8.0, 16.0]


def test_edges_that_do_not_fit() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        rgrad.autograd.grad(edge(y), x)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        rgrad.autograd.grad(edge(y), x, rgrad.ones(3, dtype=real()))
    with pytest.raises(IndexError, match="none with the number 7"):
        rgrad.autograd.grad((y.grad_fn, 7), x, rgrad.ones(2, dtype=real()))
    with pytest.raises(RuntimeError, match="at index 0 appears to not have been used in the graph"):
        rgrad.autograd.grad(y.sum(), (y.grad_fn, 7))
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        rgrad.autograd.grad(y.sum(), edge((x * 3).sum()), materialize_grads=True)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got tuple"):
        rgrad.autograd.grad(y.sum(), [(x, 0)])


def test_an_edge_of_an_inner_tensor_leaves_its_grad_alone() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    (y * y).sum().backward(inputs=[edge(y)])
    assert not y.retains_grad
    assert x.grad is None


# ------------------------------------------------------------------------- inputs


def test_backward_inputs_that_are_inner_keep_their_gradient_from_then_on() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.retains_grad
    assert y.grad.tolist() == [4.0, 8.0]
    assert x.grad is None
    z.backward()
    assert y.grad.tolist() == [8.0, 16.0]
    assert x.grad.tolist() == [8.0, 16.0]


def test_an_input_given_twice_accumulates_once() -> None:
    x = leaf(1.0)
    (x * 2).sum().backward(inputs=[x, x])
    assert x.grad.tolist() == [2.0]
    g, h = rgrad.autograd.grad((x * 2).sum(), [x, x])
    assert (g.tolist(), h.tolist()) == ([2.0], [2.0])


def test_the_same_root_twice() -> None:
    x = leaf(1.0)
    y = (x * 2).sum()
    g, h = rgrad.autograd.grad([y, y], [x, y])
    assert (g.tolist(), h.item()) == ([4.0], 2.0)


def test_hooks_with_inputs() -> None:
    x = leaf(1.0)
    seen: list[str] = []
    x.register_hook(lambda g: seen.append("gradient"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    (x * 2).sum().backward(inputs=[x])
    assert seen == ["gradient", "accumulated"]
    rgrad.autograd.grad((x * 2).sum(), x)
    assert seen == ["gradient", "accumulated", "gradient"]


def test_a_captured_gradient_is_seen_before_the_node_s_own_hooks() -> None:
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    (g,) = rgrad.autograd.grad(y.sum(), y, retain_graph=True)
    assert g.tolist() == [1.0]
    (g,) = rgrad.autograd.grad(y.sum(), x)
    assert g.tolist() == [20.0]


def test_inner_inputs_in_front_of_each_other() -> None:
    x = leaf(3.0)
    a = x * x
    b = a * a
    c = b * x
    gx, ga, gb = rgrad.autograd.grad(c.sum(), [x, a, b])
    assert (gx.item(), ga.item(), gb.item()) == (5 * 3.0**4, 2 * 9.0 * 3, 3.0)


def test_grad_of_a_chain_of_small_operations_frees_what_it_ran() -> None:
    x, w = leaf(2.0), leaf(5.0)
    y = ((x * w).tanh() * w).sum()
    (g,) = rgrad.autograd.grad(y, x)
    t = float(rgrad.tanh(rgrad.tensor(10.0, dtype=real())))
    assert g.item() == pytest.approx(25 * (1 - t * t), rel=1e-3, abs=1e-9)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        rgrad.autograd.grad(y, x)


def test_an_input_that_the_graph_does_not_lead_to() -> None:
    x, w = leaf(1.0), leaf(1.0)
    with pytest.raises(
        RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"
    ):
        rgrad.autograd.grad((x * 2).sum(), [x, w])
    assert rgrad.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)[1] is None
    g = rgrad.autograd.grad((x * 2).sum(), [x, w], materialize_grads=True, create_graph=True)[1]
    assert g.tolist() == [0.0]
    assert g.requires_grad
    (x * 2).sum().backward(inputs=[w])
    assert w.grad is None


# ------------------------------------------------------------------------- callbacks


def test_callbacks_run_at_the_end_of_their_pass() -> None:
    x = leaf(1.0)
    seen: list[str] = []
    queue = Variable._execution_engine.queue_callback

    def first() -> None:
        seen.append("first")
        queue(lambda: seen.append("second"))

    y = x * 2
    y.register_hook(lambda g: queue(first))
    x.register_hook(lambda g: seen.append("leaf"))
    y.sum().backward()
    assert seen == ["leaf", "first", "second"]
    assert x.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue(first)


def test_a_callback_belongs_to_the_innermost_pass() -> None:
    x = leaf(1.0)
    seen: list[str] = []

    def hook(g: Any) -> None:
        with rgrad.enable_grad():
            z = x * 3
            z.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: seen.append("inner")))
            z.sum().backward()
        seen.append("between")

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert seen == ["inner", "between"]


def test_a_callback_that_raises_and_one_that_never_runs() -> None:
    x = leaf(1.0)
    ran: list[int] = []

    def fail() -> None:
        raise KeyError("callback")

    y = x * 2
    handle = y.register_hook(lambda g: Variable._execution_engine.queue_callback(fail))
    with pytest.raises(KeyError, match="callback"):
        y.sum().backward()
    handle.remove()

    def stop(g: Any) -> None:
        Variable._execution_engine.queue_callback(lambda: ran.append(1))
        raise ValueError("stop")

    z = x * 2
    z.register_hook(stop)
    with pytest.raises(ValueError, match="stop"):
        z.sum().backward()
    (x * 2).sum().backward()
    assert ran == []


def test_a_pass_has_a_number_of_its_own() -> None:
    current = rgrad._core._current_graph_task_id
    x = leaf(1.0)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(current()))
    x.register_hook(lambda g: seen.append(current()))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen[0] == seen[1] > 0
    assert seen[2] == seen[3] > seen[1]
    assert current() == -1


# ------------------------------------------------------------------------- when leaves get theirs


@pytest.mark.cpu_only
def test_an_optimizer_step_in_a_hook_frees_each_gradient_before_the_next_is_made() -> None:
    n, layers = 512, 12
    weights = [rgrad.zeros(n, n, requires_grad=True) for _ in range(layers)]

    def step(p: Any) -> None:
        with rgrad.no_grad():
            p.add_(p.grad, alpha=-0.1)
        p.grad = None

    def peak(hooked: bool) -> int:
        handles = [w.register_post_accumulate_grad_hook(step) for w in weights] if hooked else []
        y = rgrad.ones(1, n)
        for w in weights:
            y = y @ w
            w.grad = None
        out = y.sum()
        rgrad.reset_peak_memory_stats()
        before = rgrad.memory_allocated()
        out.backward(retain_graph=True)
        for h in handles:
            h.remove()
        for w in weights:
            (w if w.grad is None else w.grad).data_ptr()  # nothing is pending any more
        return rgrad.max_memory_allocated() - before

    held, freed = peak(False), peak(True)
    one = 4 * n * n
    assert held >= (layers - 2) * one
    assert freed <= 4 * one


def test_leaves_get_theirs_while_the_rest_still_runs() -> None:
    x, w = leaf(1.0), leaf(1.0)
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(w.grad is not None))
    (y * w).sum().backward()
    assert seen == [True]


# ------------------------------------------------------------------------- nested passes and threads


def nested(depth: int, x: Any) -> Any:
    class Deeper(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, left: int) -> Any:
            ctx.left = left
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.left:
                with rgrad.enable_grad():
                    inner = rgrad.ones(1, dtype=real(), requires_grad=True)
                    Deeper.apply(inner, ctx.left - 1).sum().backward()
                    assert inner.grad is not None
            return g, None

    return Deeper.apply(x, depth)


def test_passes_inside_each_other_beyond_one_thread() -> None:
    x = leaf(1.0)
    nested(2000, x).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_set_multithreading_enabled() -> None:
    assert rgrad._core._is_multithreading_enabled()
    with rgrad.autograd.set_multithreading_enabled(False):
        assert not rgrad._core._is_multithreading_enabled()
        x = leaf(1.0)
        nested(30, x).sum().backward()
        assert x.grad.tolist() == [1.0]
        with pytest.raises(RuntimeError, match=r"set_multithreading_enabled\(False\)"):
            nested(100, x).sum().backward()
    assert rgrad._core._is_multithreading_enabled()
    rgrad.autograd.set_multithreading_enabled(False)
    rgrad.autograd.set_multithreading_enabled(True)
    assert rgrad._core._is_multithreading_enabled()


# ------------------------------------------------------------------------- warnings


@pytest.mark.cpu_only
def test_backward_with_create_graph_warns_once() -> None:
    code = (
        "import warnings, rgrad\n"
        "x = rgrad.ones(1, requires_grad=True)\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    rgrad.autograd.grad((x * x).sum(), x, create_graph=True)\n"
        "    assert not seen\n"
        "    for _ in range(3): (x * x).sum().backward(create_graph=True)\n"
        "print([(w.category.__name__, str(w.message)[:60], w.filename) for w in seen])\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert (
        out.strip() == "[('UserWarning', 'Using backward() with create_graph=True will create a refere', '<string>')]"
    )
