"""Checkpointing: the same gradients from less memory, in all of PyTorch's variations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad import nn
from rgrad.autograd.graph import save_on_cpu
from rgrad.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

pytestmark = pytest.mark.usefixtures("device")

both = pytest.mark.parametrize("reentrant", [False, True], ids=["saved", "reentrant"])


class Calls:
    """A function that counts how often it runs, and how far."""

    def __init__(self) -> None:
        self.starts = self.ends = 0

    def __call__(self, x: Any, factor: float = 1.0) -> Any:
        self.starts += 1
        y = ((x * factor).exp() * x).sin()
        y = y * x
        self.ends += 1
        return y


@both
def test_the_same_gradients(reentrant: bool) -> None:
    x, plain = leaf(0.5, 1.0), leaf(0.5, 1.0)
    f = Calls()
    y = checkpoint(f, x, use_reentrant=reentrant)
    assert y.requires_grad
    assert f.starts == 1
    y.sum().backward()
    assert f.starts == 2
    Calls()(plain).sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()


@both
def test_several_inputs_and_outputs_some_without_gradient(reentrant: bool) -> None:
    x, y = leaf(2.0), rgrad.tensor([3.0], dtype=real())

    def f(x: Any, n: int, y: Any, nothing: None) -> Any:
        assert nothing is None
        return x * n, y.long(), (x * y).exp()

    a, b, c = checkpoint(f, x, 4, y, None, use_reentrant=reentrant)
    assert b.tolist() == [3]
    assert not b.requires_grad
    (a + c).backward()
    assert x.grad.item() == pytest.approx(4 + 3 * c.item(), rel=1e-5)


def test_recomputation_stops_early_unless_told_not_to() -> None:
    x = leaf(1.0)
    for stop in (None, True, False):
        f = Calls()
        with contextlib.nullcontext() if stop is None else set_checkpoint_early_stop(stop):
            y = checkpoint(f, x, use_reentrant=False)
        y.backward()
        assert (f.starts, f.ends) == (2, 2 if stop is False else 1)
    f = Calls()
    checkpoint(f, x, use_reentrant=False, early_stop=False).backward()
    assert f.ends == 2


def test_grad_inputs_second_passes_and_keyword_arguments() -> None:
    x = leaf(0.5)
    f = Calls()
    y = checkpoint(f, x, factor=2.0, use_reentrant=False)
    (g,) = rgrad.autograd.grad(y, x, retain_graph=True, create_graph=True)
    assert f.starts == 2
    (gg,) = rgrad.autograd.grad(g, x, retain_graph=True)
    y.backward(inputs=[x])
    p = leaf(0.5)
    z = Calls()(p, factor=2.0)
    (h,) = rgrad.autograd.grad(z, p, create_graph=True)
    (hh,) = rgrad.autograd.grad(h, p)
    assert (g.item(), x.grad.item()) == (h.item(), h.item())
    assert gg.item() == pytest.approx(hh.item(), rel=1e-5)


def test_reentrant_refuses_what_it_cannot_do() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="use_reentrant=True, rgrad.utils.checkpoint is incompatible with .grad"):
        rgrad.autograd.grad(checkpoint(Calls(), x, use_reentrant=True), x)
    with pytest.raises(RuntimeError, match="use_reentrant=True"):
        checkpoint(Calls(), x, use_reentrant=True).backward(inputs=[x])
    with pytest.raises(ValueError, match="Unexpected keyword arguments: factor"):
        checkpoint(Calls(), x, factor=2.0, use_reentrant=True)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(Calls(), x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(Calls(), x.detach(), use_reentrant=True).requires_grad
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        checkpoint(lambda t: t.detach() * 1, x, use_reentrant=True).backward()
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(Calls(), x).backward()


def test_structures_and_closures_take_part() -> None:
    w = leaf(3.0)
    pair = {"a": [leaf(1.0)], "b": (leaf(2.0),)}
    y = checkpoint(lambda d: d["a"][0] * d["b"][0] * w, pair, use_reentrant=False)
    y.backward()
    assert (pair["a"][0].grad.item(), pair["b"][0].grad.item(), w.grad.item()) == (6.0, 3.0, 2.0)


@both
def test_random_numbers_are_the_same_again(reentrant: bool) -> None:
    x = rgrad.ones(1000, dtype=real(), requires_grad=True)
    y = checkpoint(lambda t: nn.functional.dropout(t, 0.5) * t, x, use_reentrant=reentrant)
    after = rgrad.get_rng_state()
    y.sum().backward()
    assert rgrad.equal(after, rgrad.get_rng_state())
    kept = y.detach()
    assert x.grad.tolist() == (kept * 2).tolist()


def test_random_numbers_left_alone() -> None:
    x = rgrad.ones(1000, dtype=real(), requires_grad=True)
    rgrad.manual_seed(1)
    y = checkpoint(lambda t: nn.functional.dropout(t, 0.5) * t, x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not rgrad.equal((x.grad > 1).long(), (y.detach() > 1).long())


def test_nested() -> None:
    x, plain = leaf(0.5, 0.25), leaf(0.5, 0.25)
    counts = [Calls(), Calls(), Calls()]

    def innermost(t: Any) -> Any:
        return counts[2](t)

    def inner(t: Any) -> Any:
        return checkpoint(innermost, counts[1](t), use_reentrant=False).sin()

    def outer(t: Any) -> Any:
        return checkpoint(inner, counts[0](t), use_reentrant=False).cos()

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    free = Calls()
    free(free(free(plain))).sin().cos().sum().backward()
    assert x.grad.tolist() == pytest.approx(plain.grad.tolist(), rel=1e-5)
    assert [c.starts for c in counts] == [2, 3, 4]


def test_inside_save_on_cpu(device: str) -> None:
    x, plain = leaf(0.5, 1.0), leaf(0.5, 1.0)
    with save_on_cpu():
        y = checkpoint(Calls(), x * 2, use_reentrant=False)
    y.sum().backward()
    Calls()(plain * 2).sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()
    assert x.grad.device.type == device


def test_functions_inside() -> None:
    class Cube(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.twice:
                _ = ctx.saved_tensors
            return 3 * x**2 * g

    x = leaf(2.0)
    Cube._backward_cls.twice = False
    checkpoint(lambda t: Cube.apply(t) * t, x, use_reentrant=False).backward()
    assert x.grad.item() == 32.0
    Cube._backward_cls.twice = True
    with pytest.raises(CheckpointError, match="already unpacked once"):
        checkpoint(lambda t: Cube.apply(t) * t, x, use_reentrant=False).backward()


def test_saved_values_outside_of_backward() -> None:
    x = leaf(1.0, 2.0)
    f = Calls()
    y = checkpoint(f, x, use_reentrant=False)
    assert y.grad_fn._saved_other is not None
    assert f.starts == 2
    assert y.grad_fn._saved_other.tolist() == [1.0, 2.0]
    assert f.starts == 3
    y.sum().backward()
    assert f.starts == 4


# ---- what differs the second time ------------------------------------


class Changing:
    """A function that is another one when it is called again."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    def __call__(self, x: Any) -> Any:
        return self.steps.pop(0)(x)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (lambda x: x.exp().sin() * x, lambda x: x.exp(), "A different number of tensors was saved"),
        (lambda x: x.exp().sin(), lambda x: x.exp()[:1].sin(), "have different metadata"),
        (lambda x: x.exp() * x, lambda x: x.exp().long() * 1.5 * x, "A different number|different metadata"),
    ],
    ids=["fewer", "shape", "dtype"],
)
def test_another_recomputation_is_an_error(first: Any, second: Any, words: str) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        checkpoint(Changing(first, second), leaf(1.0, 2.0), use_reentrant=False).sum().backward()
    assert "debug=True" in str(caught.value)


def test_more_tensors_than_before_are_an_error() -> None:
    f = Changing(lambda x: x.exp(), lambda x: x.exp().sin() * x)
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        checkpoint(f, leaf(1.0), use_reentrant=False, early_stop=False).backward()


def test_the_check_can_be_switched_off() -> None:
    x = leaf(1.0, 2.0)
    f = Changing(lambda t: t.exp() * 2.0, lambda t: t.reshape(2).exp() * 3.0)
    checkpoint(f, x, use_reentrant=False, determinism_check="none").sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828459045, 2 * 7.38905609893065], rel=1e-5)
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got all"):
        checkpoint(f, x, use_reentrant=False, determinism_check="all")


def test_debug_names_the_lines() -> None:
    def first(x: Any) -> Any:
        return x.exp().sin()

    def second(x: Any) -> Any:
        return x[:1].exp().sin()

    with pytest.raises(CheckpointError) as caught:
        checkpoint(Changing(first, second), leaf(1.0, 2.0), use_reentrant=False, debug=True).sum().backward()
    text = str(caught.value)
    assert f"test_checkpoint.py:{first.__code__.co_firstlineno + 1} in first" in text
    assert f"test_checkpoint.py:{second.__code__.co_firstlineno + 1} in second" in text
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="Tensors saved during recomputation"):
        checkpoint(Changing(first, second), leaf(1.0, 2.0), use_reentrant=False).sum().backward()
    with set_checkpoint_debug_enabled(False), pytest.raises(CheckpointError, match="Tip: pass"):
        checkpoint(Changing(first, second), leaf(1.0, 2.0), use_reentrant=False, debug=True).sum().backward()


def test_an_argument_written_in_between_is_noticed() -> None:
    x = leaf(1.0)
    a = x * 1
    y = checkpoint(Calls(), a, use_reentrant=False)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_exceptions_come_out_and_leave_nothing_behind() -> None:
    def fails(x: Any) -> Any:
        x.exp()
        raise KeyError("forward")

    x = leaf(1.0)
    with pytest.raises(KeyError, match="forward"):
        checkpoint(fails, x, use_reentrant=False)
    f = Changing(Calls(), fails, Calls())
    y = checkpoint(f, x, use_reentrant=False)
    with pytest.raises(KeyError, match="forward"):
        y.backward(retain_graph=True)
    y.backward()  # the third time it works
    Calls()(p := leaf(1.0)).backward()
    assert x.grad.item() == p.grad.item()


# ---- contexts ------------------------------------


def test_contexts() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def context(name: str) -> Iterator[None]:
        log.append(f"{name} in")
        try:
            yield
        finally:
            log.append(f"{name} out")

    def f(x: Any) -> Any:
        log.append("f")
        return x.exp()

    y = checkpoint(f, leaf(1.0), use_reentrant=False, context_fn=lambda: (context("forward"), context("again")))
    assert log == ["forward in", "f", "forward out"]
    y.backward()
    assert log[3:] == ["again in", "f", "again out"]
    with pytest.raises(ValueError, match="incompatible with non-default context_fn"):
        checkpoint(f, leaf(1.0), use_reentrant=False, debug=True, context_fn=lambda: (context("a"), context("b")))
    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(
            lambda x: 1 / 0,
            leaf(1.0),
            use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(ZeroDivisionError), contextlib.nullcontext()),
        )


def test_without_recording_the_function_just_runs() -> None:
    f = Calls()
    with rgrad.no_grad():
        y = checkpoint(f, leaf(1.0), use_reentrant=False)
    assert f.starts == 1
    assert not y.requires_grad


# ---- sequential, modules, memory ------------------------------------


@both
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(segments: int, reentrant: bool) -> None:
    rgrad.manual_seed(3)
    model = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(4, 4), nn.Tanh())]).to(dtype=real())
    x = rgrad.randn(2, 4, dtype=real(), requires_grad=True)
    model(x).sum().backward()
    want = [x.grad, *(p.grad for p in model.parameters())]
    model.zero_grad()
    x.grad = None
    checkpoint_sequential(model, segments, x, use_reentrant=reentrant).sum().backward()
    for got, w in zip([x.grad, *(p.grad for p in model.parameters())], want, strict=True):
        assert rgrad.allclose(got, w)


def test_bad_arguments_of_sequential() -> None:
    with pytest.raises(ValueError, match="Unexpected keyword arguments: debug"):
        checkpoint_sequential([Calls()], 1, leaf(1.0), use_reentrant=False, debug=True)
    with pytest.raises(ValueError, match="3 segments for 1 functions"):
        checkpoint_sequential([Calls()], 3, leaf(1.0), use_reentrant=False)


@pytest.mark.cpu_only
@both
def test_memory_falls(reentrant: bool) -> None:
    size, depth, bytes_each = 1 << 16, 24, 8 << 16

    def block(x: Any) -> Any:
        for _ in range(depth // 4):
            x = x.sin()
        return x

    def peak(run: Any) -> int:
        x = rgrad.ones(size, dtype=rgrad.float64, requires_grad=True)
        rgrad.reset_peak_memory_stats()
        before = rgrad.memory_allocated()
        run(x).sum().backward()
        return (rgrad.max_memory_allocated() - before) // bytes_each

    with rgrad.fusion(False):  # pending results are not kept at all
        plain = peak(lambda x: block(block(block(block(x)))))
        saved = peak(lambda x: checkpoint_sequential([block] * 4, 4, x, use_reentrant=reentrant))
    assert plain >= depth
    assert saved <= 4 + 2 * depth // 4 + 4
