"""backward(strict=True): which parameters get no gradient, and the line where the path to them was cut."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


def line_of(function: Callable[..., Any], mark: str) -> str:
    """ "file:line" of the one line of a function that ends in a comment with `mark`."""
    lines, first = inspect.getsourcelines(function)
    (at,) = [i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}")]
    return f"{__file__}:{first + at} in "


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(RuntimeError, match="strict=True") as e:
        call()
    return str(e.value)


def detached(w: Any) -> Any:
    h = w * 2
    return h.detach() * 3  # cut: detach


def taken_as_data(w: Any) -> Any:
    return w.data * 3  # cut: data


def without_grad(w: Any) -> Any:
    with rgrad.no_grad():
        h = w * 2  # cut: no_grad
        return (h + 1).tanh()


def a_view_without_grad(w: Any) -> Any:
    with rgrad.no_grad():
        h = w[:]  # cut: view
    return h * 2


def inferred(w: Any) -> Any:
    with rgrad.inference_mode():
        return w * 2  # cut: inference


def cast(w: Any) -> Any:
    return (w * 3).long()  # cut: cast


def compared(w: Any) -> Any:
    return w > 0.5  # cut: gt


def places(w: Any) -> Any:
    return w.argmax(0)  # cut: argmax


def sorted_places(w: Any) -> Any:
    return w.sort()[1]  # cut: sort


def positions(w: Any) -> Any:
    return w.nonzero()  # cut: nonzero


def columns(w: Any) -> Any:
    return w.nonzero(as_tuple=True)[0]  # cut: nonzero_tuple


def written_without_grad(w: Any) -> Any:
    buffer = rgrad.zeros(2, dtype=real())
    with rgrad.no_grad():
        buffer.copy_(w)  # cut: copy_
    return buffer


WAYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "detach": (detached, "detach() at"),
    "data": (taken_as_data, ".data at"),
    "no_grad": (without_grad, "mul under no_grad at"),
    "view": (a_view_without_grad, "a view under no_grad at"),
    "inference": (inferred, "mul in inference mode at"),
    "cast": (cast, "a cast to a type without gradients at"),
    "gt": (compared, "gt, which has no derivative, at"),
    "argmax": (places, "argmax, which has no derivative, at"),
    "sort": (sorted_places, "sort, which has no derivative, at"),
    "nonzero": (positions, "nonzero, which has no derivative, at"),
    "nonzero_tuple": (columns, "nonzero, which has no derivative, at"),
    "copy_": (written_without_grad, "copy_ under no_grad at"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_line_where_the_path_was_cut(way: str) -> None:
    cut, words = WAYS[way]
    w, v = leaf(1.0, 2.0), leaf(1.0, 2.0)
    loss = (v * 2 + cut(w)).sum()
    text = refused(lambda: loss.backward(inputs={"body.w": w, "head.v": v}, strict=True))
    assert text.startswith("backward(strict=True): 1 of 2 inputs would get no gradient\n")
    assert f"body.w of shape [2]: the path was cut by {words} {line_of(cut, f'cut: {way}')}" in text
    assert "head.v" not in text
    # Nothing was computed, so the same graph can still run.
    assert v.grad is None
    # Without inputs the leaf that the cut path comes from is known.
    assert "of shape [2]" in refused(lambda: loss.backward(strict=True))
    loss.backward(inputs=[v], strict=True)
    assert v.grad is not None


def test_a_line_that_runs_again_names_the_parameter_of_that_time() -> None:
    """Records are kept for a line and its parameters; those of other parameters at the same line are their own."""
    a, b, v = leaf(1.0), leaf(1.0), leaf(1.0)
    # The second time they are there already.
    for _ in range(2):
        cut_a, cut_b = without_grad(a), without_grad(b)
        for way, own, other in ((cut_a, a, b), (cut_b, b, a)):
            for w, found in ((own, "the path was cut by mul under no_grad at"), (other, "not reached; the graph")):
                text = refused(lambda w=w, way=way: (v * way).sum().backward(inputs={"w": w}, strict=True))
                assert f"w of shape [1]: {found}" in text
    # What has ended twice is both.
    text = refused(lambda: (v * without_grad(a) * without_grad(b)).sum().backward(inputs={"a": a, "b": b}, strict=True))
    assert text.count("the path was cut by mul under no_grad at") == 2


def test_the_parameters_of_a_model_that_was_cut_off() -> None:
    body, head = rgrad.nn.Linear(3, 4), rgrad.nn.Linear(4, 1)
    named = {f"body.{k}": p for k, p in body.named_parameters()} | {f"head.{k}": p for k, p in head.named_parameters()}

    def loss() -> Any:
        return head(body(rgrad.ones(2, 3)).relu().detach()).sum()  # cut: here

    text = refused(lambda: loss().backward(inputs=named, strict=True))
    assert "2 of 4 inputs" in text
    for name, shape in (("body.weight", "[4, 3]"), ("body.bias", "[4]")):
        assert f"{name} of shape {shape}: the path was cut by detach() at {line_of(loss, 'cut: here')}" in text


def test_what_took_no_part() -> None:
    w, v = leaf(1.0), leaf(1.0)
    text = refused(lambda: (v * 2).sum().backward(inputs=[v, w], strict=True))
    assert "it took no part in computing the outputs" in text


def test_other_ends_are_named_where_none_is_known_to_be_the_one() -> None:
    w, v, u = leaf(1.0), leaf(1.0), leaf(1.0)
    text = refused(lambda: (v * u.detach()).sum().backward(inputs=[w], strict=True))
    assert "not reached; the graph of the outputs ends at detach() at" in text


def test_a_whole_graph_passes() -> None:
    w, v = leaf(1.0), leaf(2.0)
    (w * v).sum().backward(strict=True)
    assert w.grad.item() == 2.0
    (w * v + w.detach()).sum().backward(strict=True)
    assert w.grad.item() == 4.0
    rgrad.autograd.backward((w * v).sum(), strict=True)
    (g,) = rgrad.autograd.grad((w * v).sum(), w, strict=True)
    assert g.item() == 2.0


def test_grad_strict() -> None:
    w, v = leaf(1.0), leaf(2.0)
    text = refused(lambda: rgrad.autograd.grad((v * w.detach()).sum(), [v, w], strict=True))
    assert "the path was cut by detach() at" in text


def test_a_function_that_returns_none() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    w, v = leaf(1.0), leaf(2.0)

    def loss() -> Any:
        return Half.apply(w, v).sum()  # cut: function

    text = refused(lambda: loss().backward(inputs={"w": w, "v": v}, strict=True))
    assert f"v of shape [1]: None was returned by HalfBackward, recorded at {line_of(loss, 'cut: function')}" in text
    assert w.grad.item() == 1.0
    assert "None was returned by HalfBackward" in refused(lambda: rgrad.autograd.grad(loss(), [w, v], strict=True))


def test_a_root_without_history_says_why() -> None:
    def loss(w: Any) -> Any:
        h = w.detach()  # cut: root
        return (h * 2).sum()

    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ) as e:
        loss(leaf(1.0)).backward()
    assert e.value.__notes__ == [f"the path to it was cut by detach() at {line_of(loss, 'cut: root')}loss"]


def test_grad_says_why_an_input_was_not_used() -> None:
    w, v = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph") as e:
        rgrad.autograd.grad((v * w.detach()).sum(), [v, w])
    assert e.value.__notes__[0].startswith("the path to it was cut by detach() at ")


@pytest.mark.cpu_only
def test_records_hold_nothing_alive() -> None:
    w = rgrad.ones(256, 256, requires_grad=True)
    before = rgrad.memory_allocated()
    one = 4 << 16
    h = w @ w @ w
    cut = h.detach()
    cut.data_ptr()
    assert rgrad.memory_allocated() - before >= 2 * one
    del h
    assert rgrad.memory_allocated() - before == one
    del cut
    assert rgrad.memory_allocated() == before


@pytest.mark.cpu_only
def test_records_do_not_grow_in_a_running_mean() -> None:
    w = leaf(1.0)
    mean = rgrad.zeros(1, dtype=real())
    before = rgrad.memory_allocated()
    for _ in range(3000):
        with rgrad.no_grad():
            mean = mean * 0.9 + w * 0.1
    assert rgrad.memory_allocated() - before < 4096
    v = leaf(1.0)
    assert "under no_grad" in refused(lambda: (v * mean).sum().backward(inputs=[w], strict=True))


def test_a_leaf_made_from_a_detached_tensor_is_a_leaf_like_others() -> None:
    w = leaf(1.0)
    x = w.detach().requires_grad_()
    (x * 2).sum().backward(strict=False)
    assert x.grad.item() == 2.0
    assert "the path was cut by detach()" in refused(lambda: (x * 2).sum().backward(inputs=[w], strict=True))
