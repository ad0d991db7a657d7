"""Panics in the core become one kind of exception, and missing memory is a MemoryError wherever it is found missing."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rgrad
from op_kit import Op, Sample
from op_table import OPS
from rgrad import Tensor, _core

WORDS = "three blind mice"


@contextmanager
def panicking_in(n: int) -> Iterator[None]:
    """The n-th request for memory from now on panics."""
    _core._fail_allocation_in(n, panic=True)
    try:
        yield
    finally:
        _core._fail_allocation_in(-1)


INDEX = rgrad.arange(64)


def large() -> Tensor:
    return rgrad.full((64, 64), 3.0)


def check(error: BaseException, *names: str) -> None:
    assert type(error) is rgrad.InternalError
    assert isinstance(error, RuntimeError)
    assert isinstance(error, rgrad.RgradError)
    text = str(error)
    assert text.startswith("internal error in ")
    assert text.endswith(". This is a bug in rgrad; please report it")
    for name in names:
        assert name in text, text


def test_a_panic_is_an_internal_error() -> None:
    with pytest.raises(RuntimeError) as caught:
        _core._panic(WORDS)
    check(caught.value, WORDS, "src/python/errors.rs:")
    assert caught.value.__traceback__ is not None


ENTRIES: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "function": (lambda x: rgrad.cumsum(x, 0), "cumsum"),
    "row": (lambda x: rgrad.exp(x), "exp"),
    "row with an argument by name": (lambda x: rgrad.add(x, other=x), "add"),
    "method": (lambda x: x.sort(0), "sort"),
    "method of a row": (lambda x: x.exp(), "exp"),
    "method in place": (lambda x: x.index_fill_(0, INDEX, 1.0), "index_fill_"),
    "slot": (lambda x: x + x, "add"),
    "slot of other operators": (lambda x: x @ x, "matmul"),
    "reflected slot": (lambda x: 2.0 - x, ""),
    "index": (lambda x: x[[0, 1]], "index"),
    "assignment": (lambda x: x.__setitem__(INDEX, 3.0), "index_put_"),
    "conversion": (lambda x: x.to(rgrad.float64), ""),
    "creation": (lambda x: rgrad.ones(64, 64), ""),
    "out of data": (lambda x: rgrad.tensor([[1.0] * 50] * 50), ""),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_panic_leaves_through_every_entry(name: str) -> None:
    call, operation = ENTRIES[name]
    x = large()
    with pytest.raises(BaseException) as caught, panicking_in(0):  # noqa: PT011
        call(x)
    check(caught.value, operation)
    # Everything goes on as if nothing had been.
    assert np.array_equal(x.numpy(), np.full((64, 64), 3.0, np.float32))
    assert str(caught.value).count("internal error") == 1
    call(x)


@pytest.mark.parametrize("direct", [True, False])
def test_a_panic_in_backward(direct: bool) -> None:
    x = large().requires_grad_()
    y = x.exp() if direct else x.cumsum(0)
    out = y.sum()
    g = rgrad.ones(())
    names = []
    for n in range(6):
        x.grad = None
        try:
            with panicking_in(n):
                out.backward(g, retain_graph=True)
        except BaseException as e:
            check(e)
            names.append(str(e))
    assert names
    # On x86-64 without AVX2 derivatives have no kernels of their own, and the one that this is made of is named.
    exp = "in mul" if rgrad.backends.cpu.get_cpu_capability() == "NO AVX" else "ExpBackward0"
    assert any((exp if direct else "cumsum") in name for name in names), names
    x.grad = None
    out.backward()
    assert x.grad is not None
    assert bool(rgrad.isfinite(x.grad).all())


def test_a_panic_in_a_hook_passes_through_backward() -> None:
    x = large().requires_grad_()
    y = x * 2

    def hook(g: Tensor) -> Tensor:
        _core._panic(WORDS)
        return g

    handle = y.register_hook(hook)
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        y.sum().backward()
    check(caught.value, WORDS)
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad is not None


def test_a_panic_in_a_custom_function() -> None:
    class Double(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            _core._panic(WORDS)
            return g

    x = large().requires_grad_()
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        Double.apply(x).sum().backward()
    check(caught.value, WORDS)


def test_a_panic_in_a_pass_on_a_thread_of_its_own() -> None:
    depth = 0

    class Deeper(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            nonlocal depth
            depth += 1
            if depth > 70:
                _core._panic(WORDS)
            with rgrad.enable_grad():
                x = rgrad.ones(2, requires_grad=True)
                Deeper.apply(x).sum().backward()
            return g

    x = rgrad.ones(2, requires_grad=True)
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        Deeper.apply(x).sum().backward()
    check(caught.value, WORDS)
    assert depth == 71


def test_a_panic_in_what_overrides_call() -> None:
    class Mine(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            _core._panic(WORDS)

    x = rgrad.ones(3).as_subclass(Mine)
    for call in (lambda: rgrad.exp(x), lambda: x + 1, lambda: x.sum(), lambda: x.shape):
        with pytest.raises(BaseException) as caught:  # noqa: PT011
            call()
        check(caught.value, WORDS)


@pytest.mark.usefixtures("small_programs")
def test_a_panic_while_a_program_runs() -> None:
    x = large()
    y = x.exp().cumsum(0)
    with pytest.raises(BaseException) as caught, panicking_in(0):  # noqa: PT011
        y[0, 0].item()
    check(caught.value)
    want = np.cumsum(np.exp(np.full((64, 64), 3.0, np.float32)), 0)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-5)


def test_a_panic_nobody_catches_ends_as_an_ordinary_traceback() -> None:
    code = f"""
        from rgrad import _core
        def f(): _core._panic({WORDS!r})
        f()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().splitlines()[-1].startswith("rgrad.InternalError: internal error in ")
    assert "PanicException" not in done.stderr


# ---- memory ----


def sample_of(op: Op) -> Sample | None:
    """The sample with most elements."""
    full = [s for s in op.all_samples() if s.args and all(a.base.size for a in s.args)]
    return max(full, key=lambda s: sum(a.array().size for a in s.args), default=None)


def looked_at(made: Any) -> list[np.ndarray[Any, Any]]:
    all_of_it = made if isinstance(made, (tuple, list)) else (made,)
    return [t.detach().numpy().copy() for t in all_of_it if isinstance(t, Tensor)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_memory_for_pending_inputs_of_any_operation(op: Op) -> None:
    sample = sample_of(op)
    if sample is None:
        return

    def call() -> list[np.ndarray[Any, Any]]:
        args = []
        for a in sample.args:
            t = a.view(rgrad.tensor(a.base))
            # Bits stay, and what is large enough waits to be computed; an index stays an index.
            args.append(t * 1 if t.dtype != rgrad.bool else t)
        return looked_at(op.call(rgrad, *args, **sample.params))

    rgrad.manual_seed(1)
    want = call()
    least = _core._set_fusion_least(1)
    try:
        with rgrad.fusion(True):
            for n in range(8):
                rgrad.manual_seed(1)
                _core._fail_allocation_in(n)
                try:
                    call()
                except MemoryError:
                    pass
                finally:
                    _core._fail_allocation_in(-1)
            rgrad.manual_seed(1)
            got = call()
    finally:
        _core._set_fusion_least(least)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


READERS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda t: t[0, 0].item(),
    "numpy": lambda t: t.numpy(),
    "tolist": lambda t: t.tolist(),
    "repr": repr,
    "bool": lambda t: bool((t > 0).all()),
    "iteration": lambda t: [float(row.sum()) for row in t],
    "data_ptr": lambda t: t.data_ptr(),
    "copy": lambda t: rgrad.empty(64, 64).copy_(t),
    "write": lambda t: t.fill_(2.0),
    "write to a part": lambda t: t[0].zero_(),
    "index": lambda t: t[[0, 1]],
    "as an index": lambda t: rgrad.arange(10)[t.to(rgrad.int64)],
    "mask": lambda t: rgrad.zeros(64, 64)[t > 1],
    "matmul": lambda t: t @ t,
    "sort": lambda t: t.sort(0),
    "comparison": lambda t: rgrad.equal(t, t.clone()),
    "allclose": lambda t: rgrad.allclose(t, t),
    "concatenation": lambda t: rgrad.cat([t, t]),
    "deepcopy": lambda t: __import__("copy").deepcopy(t),
    "pickle": lambda t: __import__("pickle").dumps(t),
    "array": lambda t: np.asarray(t),
    "dlpack or buffer": lambda t: memoryview(t.numpy()),
    "set": lambda t: rgrad.zeros(64, 64).__setitem__(slice(None), t),
    "unique": lambda t: t.unique(),
    "multinomial": lambda t: rgrad.multinomial(t, 3),
    "format": lambda t: f"{t.sum()}",
    "contains": lambda t: 3.0 in t,
    "len of nonzero": lambda t: len(t.nonzero()),
    "repeat_interleave": lambda t: rgrad.repeat_interleave(t[0], t[0].to(rgrad.int64) % 3),
    "saved for backward": lambda t: (rgrad.ones(64, 64, requires_grad=True) * t).sum().backward(),
    "garbage": lambda t: (t.sum(), gc.collect()),
}


@pytest.mark.usefixtures("small_programs")
@pytest.mark.parametrize("name", READERS)
def test_no_memory_for_whoever_looks(name: str) -> None:
    read, x = READERS[name], large()

    def pending() -> Tensor:
        return (x * 0.5).exp() - 1

    want = pending().numpy().copy()
    failures = 0
    for n in range(6):
        t = pending()
        _core._fail_allocation_in(n)
        try:
            read(t)
        except MemoryError:
            failures += 1
            _core._fail_allocation_in(-1)
            # What could not be had then may be had now.
            if "write" not in name:
                assert np.array_equal(t.numpy(), want)
        finally:
            _core._fail_allocation_in(-1)
    assert failures > 0 or name == "garbage"
    read(pending())


def test_a_node_refuses_more_index_tensors_than_it_can_save() -> None:
    x, i = rgrad.full([1] * 30, 2.0, requires_grad=True), rgrad.tensor([0, 0, 0])
    out = x[(i,) * 26]
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.item() == 3
    for call in (
        lambda: x[(i,) * 27],
        lambda: x.detach().index_put((i,) * 27, rgrad.ones(3, 1, 1, 1, requires_grad=True)),
        lambda: x.clone().__setitem__((i,) * 28, 1.0),
    ):
        with pytest.raises(RuntimeError, match="at most 26 index tensors can be differentiated through, but got 2[78]"):
            call()
    assert x.detach()[(i,) * 30].tolist() == [2.0, 2.0, 2.0]
