"""Hooks around saved tensors: what they see and in which order, what they may return, and the blocks made of them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)

pytestmark = pytest.mark.usefixtures("device")


class Log:
    """A pair of hooks that write down what they see."""

    def __init__(self) -> None:
        self.packed: list[Any] = []
        self.unpacked: list[Any] = []

    def pack(self, x: Any) -> Any:
        self.packed.append((x.tolist(), type(x.grad_fn).__name__ if x.grad_fn is not None else None))
        return x.detach()

    def unpack(self, x: Any) -> Any:
        self.unpacked.append(x.tolist())
        return x

    def block(self) -> Any:
        return saved_tensors_hooks(self.pack, self.unpack)


def test_order_of_packing_and_unpacking_is_by_name() -> None:
    x, y = leaf(2.0), leaf(3.0)
    log = Log()
    with log.block():
        z = x * y  # other before self, as in PyTorch
        w = z.exp()
    assert log.packed == [([3.0], None), ([2.0], None), (w.tolist(), "ExpBackward0")]
    w.backward()
    assert log.unpacked == [w.tolist(), [3.0], [2.0]]
    assert x.grad.item() == pytest.approx(3.0 * w.item(), rel=1e-5)


def test_each_saved_tensor_is_unpacked_once_for_each_run_of_its_node() -> None:
    x, y = leaf(2.0), leaf(4.0)
    log = Log()
    with log.block():
        z = x / y  # both gradients read y
    z.backward(retain_graph=True)
    assert log.unpacked == [[4.0], [2.0]]
    z.backward()
    assert len(log.unpacked) == 4
    assert y.grad.item() == -0.25  # two runs


def test_innermost_hooks_pack_and_hooks_go_with_their_block() -> None:
    x = leaf(1.0, 2.0)
    outer, inner = Log(), Log()
    with outer.block():
        a = x * x
        with inner.block():
            b = a * a
        c = b * b
    d = c * c
    assert (len(outer.packed), len(inner.packed)) == (4, 2)
    d.sum().backward()
    assert (len(outer.unpacked), len(inner.unpacked)) == (4, 2)
    assert x.grad.tolist() == [16.0, 16.0 * 2.0**15]


def test_what_hooks_return_is_what_backward_computes_with() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with saved_tensors_hooks(
        lambda t: (t.detach().cpu().numpy() * 2, str(t.device)), lambda p: rgrad.tensor(p[0], device=p[1])
    ):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]


def test_pack_hooks_run_without_history_and_see_the_very_tensor() -> None:
    x = leaf(1.0, 2.0)
    seen = []

    def pack(t: Any) -> Any:
        seen.append((t, rgrad.is_grad_enabled(), (t * 1).requires_grad))
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        _ = x.sin()
    ((t, recording, recorded),) = seen
    assert t is x
    assert not recording
    assert not recorded


def test_unpacked_values_have_their_history_again() -> None:
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        a = x.exp()
        y = a * x
    (first,) = rgrad.autograd.grad(y, x, create_graph=True)
    (second,) = rgrad.autograd.grad(first, x, retain_graph=True)
    e = a.item()
    assert first.item() == pytest.approx(3 * e, rel=1e-5)
    assert second.item() == pytest.approx(4 * e, rel=1e-5)
    saved = a.grad_fn._saved_result
    assert saved.grad_fn is a.grad_fn
    assert saved is not a
    assert y.grad_fn._saved_other.is_leaf
    assert y.grad_fn._saved_other.requires_grad
    assert y.grad_fn._saved_self.grad_fn is a.grad_fn


def test_python_numbers_are_not_packed() -> None:
    log = Log()
    x = leaf(1.0)
    with log.block():
        (x * 2 / 3).backward()
    assert log.packed == []
    assert x.grad.item() == pytest.approx(2 / 3, rel=1e-6)


def test_hooks_see_what_functions_save_default_and_intermediates() -> None:
    class F(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None, x * 3, y := x * 2)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, nothing, three, y = ctx.saved_tensors
            assert nothing is None
            return g * (x + three + y)

    x = leaf(1.0, 2.0)
    log = Log()
    with log.block():
        y = F.apply(x)
    assert log.packed == [([1.0, 2.0], None), ([3.0, 6.0], None), ([2.0, 4.0], "FBackward")]
    y.sum().backward()
    assert len(log.unpacked) == 3
    assert x.grad.tolist() == [6.0, 12.0]


def test_in_place_operations_save_through_hooks() -> None:
    log = Log()
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with log.block():
        a = x.clone()
        a.mul_(y)
        a.exp_()
    assert [p[0] for p in log.packed][:2] == [[3.0, 4.0], [1.0, 2.0]]
    assert log.packed[2] == (a.tolist(), "ExpBackward0")
    a.sum().backward()
    assert x.grad.tolist() == pytest.approx([3 * a[0].item(), 4 * a[1].item()], rel=1e-5)


def test_versions_are_not_checked_through_hooks() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = (a * a).sum()
    a.add_(100)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("unpack", "error", "words"),
    [
        (
            lambda _: 1,
            TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int",
        ),
        (lambda _: None, TypeError, "NoneType"),
        (lambda t: t.detach()[:1], RuntimeError, r"MulBackward0: .* shape \[2\], but got shape \[1\]"),
        (lambda t: t.detach().long(), RuntimeError, "dtype"),
        (lambda _: 1 / 0, ZeroDivisionError, "division by zero"),
    ],
    ids=["int", "None", "shape", "dtype", "raises"],
)
def test_rubbish_from_unpack_hooks(unpack: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = x * x
    with pytest.raises(error, match=words) as caught:
        y.sum().backward()
    assert any("test_saved_tensors.py" in note for note in caught.value.__notes__)
    assert x.grad is None


@pytest.mark.wgpu_only
def test_another_device_from_an_unpack_hook(device: str) -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t.cpu()):
        y = x * x
    with pytest.raises(RuntimeError, match="on device wgpu, but got one on cpu"):
        y.sum().backward()


def test_errors_of_pack_hooks() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ZeroDivisionError), saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        x * x
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
    ):
        (x * 1).exp()
    with pytest.raises(TypeError, match="pack_hook to be callable, got int"), saved_tensors_hooks(3, lambda t: t):  # type: ignore[arg-type]
        pass
    (x * x).sum().backward()  # no hook is left behind
    assert x.grad.tolist() == [2.0, 4.0]


def test_disabled_hooks() -> None:
    x = leaf(1.0)
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), save_on_cpu():
            pass
        with (
            disable_saved_tensors_hooks("nor here"),
            pytest.raises(RuntimeError, match="nor here"),
            save_on_cpu(),
        ):
            pass
        with pytest.raises(RuntimeError, match="not here"), save_on_cpu():
            pass
        (x * x).backward()
    with save_on_cpu():
        with pytest.raises(RuntimeError, match="too late"), disable_saved_tensors_hooks("too late"):
            pass
        y = x * x
    y.backward()
    assert x.grad.item() == 4.0


def test_hooks_belong_to_their_thread_and_follow_nested_passes() -> None:
    log = Log()
    x = leaf(1.0)
    with log.block():
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
        assert log.packed == []

        class Deep(rgrad.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, depth: int) -> Any:
                ctx.depth = depth
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                with rgrad.enable_grad():
                    y = leaf(2.0)
                    (Deep.apply(y, ctx.depth - 1) if ctx.depth else y * y).backward()
                return g, None

        Deep.apply(x, 70).backward()  # beyond 60 levels on a fresh thread
    assert len(log.packed) == len(log.unpacked) == 2


def test_raw_saved_tensors_take_hooks() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    assert raw.data is x
    assert raw.unpack_hook is None
    assert raw.unpack() is x
    seen = []

    def pack(t: Any) -> Any:
        seen.append(t.requires_grad)
        return t * 10

    raw.register_hooks(pack, lambda t: t)
    assert seen == [False]
    assert raw.data.tolist() == [10.0, 20.0]
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        raw.register_hooks(pack, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [11.0, 22.0]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_other.register_hooks(pack, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(pack, lambda t: t)
    with pytest.raises(TypeError, match="callable"):
        (x * x).grad_fn._raw_saved_self.register_hooks(1, 2)


def test_save_on_cpu(device: str) -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    for pin in (False, True):
        with save_on_cpu(pin_memory=pin, device_type=device):
            z = (x * y).exp() * x
        kept = z.grad_fn._raw_saved_self.data
        assert kept[0].type == device
        assert kept[1].device.type == "cpu"
        z.sum().backward()
        assert x.grad.device.type == device
    want = [(3 * 1 + 1) * 20.085536923187668 * 2, (4 * 2 + 1) * 2980.9579870417283 * 2]
    assert x.grad.tolist() == pytest.approx(want, rel=1e-5)


def test_packed_values_are_freed_with_the_graph() -> None:
    class Box:
        def __init__(self, t: Any) -> None:
            self.t = t.detach()

    alive: list[Any] = []

    def pack(t: Any) -> Box:
        box = Box(t)
        alive.append(weakref.ref(box))
        return box

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda b: b.t):
        y = (x * x).exp().sum()
    assert len(alive) == 3
    assert all(r() is not None for r in alive)
    y.backward(retain_graph=True)
    assert all(r() is not None for r in alive)
    y.backward()
    assert all(r() is None for r in alive)


def test_a_cycle_through_a_packed_output_is_collected() -> None:
    gc.collect()
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: t, lambda t: t):  # the tensor itself: output -> node -> packed -> output
        y = x.exp()
    y.mark = type("Mark", (), {})()
    mark = weakref.ref(y.mark)
    del y
    gc.collect()
    assert mark() is None


def test_a_long_chain_of_packed_tensors_is_dropped_without_recursion() -> None:
    x = leaf(1.0)
    y = x
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        for _ in range(20_000):
            y = y * x
    del y
    assert x.grad is None


@pytest.mark.parametrize(
    "write",
    [
        lambda a: a.add_(100),
        lambda a: a[0].fill_(100),
        lambda a: a.data.zero_(),
        lambda a: a.detach().mul_(2),
        lambda a: a.__setitem__(0, 7.0),
    ],
    ids=["add_", "view", "data", "detach", "setitem"],
)
def test_mutation_of_saved_tensors_allowed(write: Callable[[Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        a = x * 1
        y = (a * a).sum() + a.exp().sum()
        with rgrad.no_grad():
            write(a)
        y.backward()
    assert x.grad.tolist() == pytest.approx([2 + 2.718281828459045, 4 + 7.38905609893065], rel=1e-5)


def test_mutation_copies_each_value_once_and_only_what_is_written() -> None:
    x = leaf(*range(64))
    with allow_mutation_on_saved_tensors() as context:
        a = x * 1
        b = x * 2
        y = (a * a * a * b).sum()
        first = {id(k.tensor) for k in context._all}
        a.zero_()
        changed = [k for k in context._all if id(k.tensor) not in first]
        assert len(changed) == 1
        a.add_(1)
        assert [k for k in context._all if id(k.tensor) not in first] == changed
        y.backward()
    assert x.grad[2].item() == 8 * 8


def test_limits_of_allowed_mutation() -> None:
    x = leaf(1.0)
    with allow_mutation_on_saved_tensors() as context:
        with pytest.raises(RuntimeError, match="cannot be nested"), allow_mutation_on_saved_tensors():
            pass
        y = x * x
        z = x * x
        context.clear()
        with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
            z.backward()
        y = x * x
    with pytest.raises(AssertionError, match="outside of"):
        y.backward()
    a = x * 1
    y = a * a
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5]])
def test_losses_with_and_without_weights_under_hooks(weight: list[float] | None) -> None:
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.detach()

    x = rgrad.tensor([[0.5, 1.0, -1.0], [2.0, 0.0, 1.0]], dtype=real(), requires_grad=True)
    w = None if weight is None else rgrad.tensor(weight, dtype=real())
    target = rgrad.tensor([2, 0], device=x.device)
    plain = rgrad.nn.functional.nll_loss(x, target, weight=w)
    with saved_tensors_hooks(pack, lambda t: t):
        hooked = rgrad.nn.functional.nll_loss(x, target, weight=w)
    assert len(packed) == (1 if weight is None else 2)
    (a,), (b,) = rgrad.autograd.grad(plain, x), rgrad.autograd.grad(hooked, x)
    assert a.tolist() == b.tolist()


def test_increment_version() -> None:
    x, a = leaf(1.0), rgrad.ones(2)
    y = x * 1
    z = (y * y).sum()
    increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    before = a._version
    increment_version([a, a])
    assert a._version == before + 2
    with rgrad.inference_mode():
        t = rgrad.ones(2)
    increment_version((t, a))  # the one without a version is left alone
    assert a._version == before + 3
    with pytest.raises(TypeError):
        increment_version([1])  # type: ignore[list-item]


def test_a_value_copied_before_a_write_is_not_taken_for_one_in_the_same_place() -> None:
    x = rgrad.tensor([2.0, 3.0], requires_grad=True)
    with allow_mutation_on_saved_tensors():
        results = []
        for k in range(50):
            # What is saved here is copied, and its memory is free for the next round.
            y = x * (k + 1)
            results.append(y.square().sum())
            y.zero_()
        got = [rgrad.autograd.grad(r, x)[0].tolist() for r in results]
    assert got == [[4.0 * (k + 1) ** 2, 6.0 * (k + 1) ** 2] for k in range(50)]
