"""Pending results: when they run, what they write, what they hold, and that nobody sees a difference."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import rgrad
from rgrad import _core

N = 1 << 17


@pytest.fixture(autouse=True)
def switched_on() -> Iterator[None]:
    with rgrad.fusion(True):
        yield


def vector(seed: int = 0) -> rgrad.Tensor:
    return rgrad.randn(N, generator=rgrad.Generator().manual_seed(seed))


PRODUCTS_WAIT = rgrad.backends.cpu.get_cpu_capability() not in ("NO AVX", "DEFAULT")


def programs() -> int:
    return rgrad.fusion.counts().programs


def unfused(f):
    with rgrad.fusion(False):
        return f().numpy().copy()


def test_nothing_runs_until_somebody_looks() -> None:
    x, y = vector(1), vector(2)
    before = rgrad.fusion.counts()
    z = (x * y + x).tanh() * y
    assert programs() == before.programs
    values = z.numpy()
    after = rgrad.fusion.counts()
    assert (after.programs - before.programs, after.steps - before.steps) == (1, 4)
    assert after.bytes_not_written - before.bytes_not_written == 3 * N * 4
    assert np.array_equal(values, unfused(lambda: (x * y + x).tanh() * y))


def test_what_is_held_is_written_in_the_same_pass() -> None:
    x = vector()
    middle = x.exp()
    end = middle.sin() + 1
    before = programs()
    end[0].item()
    middle[0].item()
    assert programs() == before + 1
    assert np.array_equal(middle.numpy(), unfused(x.exp))


@pytest.mark.parametrize(
    "reduce",
    [
        lambda t: t.sum(),
        lambda t: t.mean(),
        lambda t: t.sum(0),
        lambda t: t.mean(1, keepdim=True),
        lambda t: t.amax((0, 1)),
        lambda t: t.norm(),
        lambda t: t.logsumexp(1),
        lambda t: t.var(0),
        lambda t: t.view(4, -1, 512).sum((0, 2)),
        lambda t: (t > 0).sum(1),
        lambda t: t.log_softmax(1),
        lambda t: t.softmax(-1),
        lambda t: t.log_softmax(0),
        lambda t: rgrad.nn.functional.cross_entropy(t, rgrad.arange(t.shape[0]) % 512),
    ],
)
def test_reductions_of_pending_results(reduce) -> None:
    x, y = vector(1).view(-1, 512), vector(2).view(-1, 512)
    assert np.array_equal(reduce(x * y + 1).numpy(), unfused(lambda: reduce(x * y + 1)))


def test_a_sum_reads_what_is_never_written() -> None:
    x, y = vector(1), vector(2)
    gc.collect()
    held = _core.memory_allocated()
    _core.reset_peak_memory_stats()
    ((x * y + x).tanh() * y).sum().item()
    assert _core.max_memory_allocated() - held < 0.3 * 4 * N


def test_a_softmax_reads_rows_that_are_never_written() -> None:
    x = vector().view(-1, 512)
    before = programs()
    y = (x * 2 + 1).log_softmax(1)
    assert programs() == before
    held = _core.memory_allocated()
    _core.reset_peak_memory_stats()
    y[0, 0].item()
    assert programs() == before + 1
    assert _core.max_memory_allocated() - held < 1.2 * 4 * N


def test_ten_steps_take_the_memory_of_one() -> None:
    x = vector()
    x[0].item()
    held = _core.memory_allocated()
    _core.reset_peak_memory_stats()
    y = x
    for k in range(10):
        y = y * 1.01 + k
    y[0].item()
    assert _core.max_memory_allocated() - held <= 1.6 * 4 * N


def test_a_running_sum_holds_no_more_than_eager() -> None:
    def peak() -> int:
        total = rgrad.zeros(N)
        base = _core.memory_allocated()
        _core.reset_peak_memory_stats()
        for k in range(20):
            total = total + rgrad.full((N,), float(k))
        total[0].item()
        return _core.max_memory_allocated() - base

    with rgrad.fusion(False):
        eager = peak()
    assert peak() <= eager


def test_a_sum_of_new_tensors_holds_no_more_than_eager() -> None:
    """Each is larger than what waits: what would be kept alive for it is computed before more memory is asked for."""

    def peak() -> int:
        kept = vector()
        base = _core.memory_allocated()
        _core.reset_peak_memory_stats()
        for k in range(10):
            kept = kept + rgrad.full_like(kept, 0.5 * k)
        kept[0].item()
        return _core.max_memory_allocated() - base

    with rgrad.fusion(False):
        eager = peak()
    assert peak() <= eager


def test_what_only_steps_read_is_not_written_for_others() -> None:
    x, y = vector(1), vector(2)
    want = unfused(lambda: (x * y).tanh())
    z = (x * y).tanh()
    before = rgrad.fusion.counts().bytes_not_written
    x.add_(1)
    assert rgrad.fusion.counts().bytes_not_written - before == 4 * N
    assert np.array_equal(z.numpy(), want)


SIDE = 512  # from so many rows and columns on products wait


def matrices(n: int = 2) -> list[rgrad.Tensor]:
    return [vector(k).reshape(SIDE, SIDE // 2) for k in range(n)]


def test_steps_join_a_product() -> None:
    x, w = matrices()
    bias, before = vector(9)[:SIDE].clone(), rgrad.fusion.counts()

    def made() -> rgrad.Tensor:
        return (rgrad.nn.functional.linear(x, w, bias) * 0.5).tanh()

    threads = rgrad.get_num_threads()
    rgrad.set_num_threads(1)
    try:
        z = made()
        assert programs() == before.programs
        base = _core.memory_allocated()
        _core.reset_peak_memory_stats()
        z[0, 0].item()
        # Nothing but the result, and packed operands, of which each thread has its own.
        assert _core.max_memory_allocated() - base < 1.9 * 4 * SIDE * SIDE
    finally:
        rgrad.set_num_threads(threads)
    after = rgrad.fusion.counts()
    assert after.programs - before.programs == 1
    assert after.bytes_not_written - before.bytes_not_written >= 2 * 4 * SIDE * SIDE
    assert np.array_equal(z.numpy(), unfused(made))


@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.float16, rgrad.bfloat16])
@pytest.mark.parametrize("sizes", [(6, 224, 40), (2, 512, 120)])  # batches in parallel, and products that are parallel
def test_steps_join_products_of_batches(dtype: rgrad.dtype, sizes: tuple[int, int, int]) -> None:
    batch, side, depth = sizes
    x, w = (vector(k)[: batch * side * depth].reshape(batch, side, depth).to(dtype) for k in (1, 2))
    total = rgrad.ones(batch, side, side, dtype=dtype)

    def made() -> tuple[rgrad.Tensor, rgrad.Tensor]:
        scores = x @ w.mT
        return (scores * 0.125).tanh(), total.clone().add_(rgrad.matmul(x, w[0].t()))

    with rgrad.fusion(False):
        want = [t.double().numpy().copy() for t in made()]
    before = rgrad.fusion.counts()
    got = [t.double().numpy() for t in made()]
    after = rgrad.fusion.counts()
    assert after.bytes_not_written - before.bytes_not_written >= total.nbytes
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    exact = np.matmul(x.double().numpy(), w.double().mT.numpy())
    allowed = {rgrad.float64: 1e-12, rgrad.float32: 1e-5, rgrad.float16: 3e-3}.get(dtype, 2e-2)
    assert np.abs(got[0] - np.tanh(exact * 0.125)).max() <= allowed


def test_steps_join_a_product_of_floats_of_16_bits() -> None:
    x, w = (m.half() for m in matrices())
    bias, before = vector(9)[:SIDE].half(), rgrad.fusion.counts()

    def made() -> rgrad.Tensor:
        return (rgrad.nn.functional.linear(x, w, bias) * 0.5).tanh()

    z = made()
    assert programs() == before.programs
    assert z.dtype == rgrad.float16
    got = z.numpy()
    after = rgrad.fusion.counts()
    assert after.programs - before.programs == 1
    assert after.bytes_not_written - before.bytes_not_written >= 2 * 2 * SIDE * SIDE
    assert np.array_equal(got, unfused(made))


def test_of_two_products_in_one_expression_one_is_joined() -> None:
    x, w = matrices()

    def made() -> tuple[rgrad.Tensor, ...]:
        gate = (x @ w.t()).sigmoid()
        z = gate * (w @ x.t()) + gate
        return z, z * z + (x @ x.t())

    before = programs()
    got = [t.numpy() for t in made()]
    # Without AVX2 products run at once, and what is left is one program.
    assert programs() - before == (3 if PRODUCTS_WAIT else 1)
    with rgrad.fusion(False):
        want = [t.numpy().copy() for t in made()]
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def test_a_product_that_is_held_is_written_and_so_are_its_readers() -> None:
    x, w = matrices()
    p = x @ w.t()
    q = p.relu()
    r = q - p
    total = rgrad.ones(SIDE, SIDE)
    total.add_(p, alpha=2)
    assert np.array_equal(total.numpy(), unfused(lambda: rgrad.ones(SIDE, SIDE).add_(x @ w.t(), alpha=2)))
    assert np.array_equal(p.numpy(), unfused(lambda: x @ w.t()))
    assert np.array_equal(r.numpy(), unfused(lambda: (x @ w.t()).relu() - x @ w.t()))
    assert np.array_equal(q.numpy(), np.maximum(p.numpy(), 0))


def test_a_product_sees_what_was_there_before_a_write() -> None:
    x, w = matrices()
    want = unfused(lambda: (x @ w.t()).exp())
    z = (x @ w.t()).exp()
    w.zero_()
    assert np.array_equal(z.numpy(), want)
    # Small operands, too, whose writes nobody tracks, and memory that somebody else may write at any time.
    long, small = rgrad.cat([vector(3), vector(4)]).reshape(-1, 4), vector(4)[:16].clone().reshape(4, 4)
    want = unfused(lambda: (long @ small).exp())
    z = (long @ small).exp()
    small.zero_()
    assert np.array_equal(z.numpy(), want)
    array = np.array(matrices()[0])
    shared = rgrad.from_numpy(array)
    want = unfused(lambda: (x @ shared.t()).exp())
    z = (x @ shared.t()).exp()
    array[:] = 0
    assert np.array_equal(z.numpy(), want)


@pytest.mark.parametrize("images", [1, 4, 9])
@pytest.mark.parametrize("kernel", [1, 3])
def test_steps_join_a_convolution(images: int, kernel: int) -> None:
    x = rgrad.cat([vector(), vector(1)])[: images * 24 * 900].reshape(images, 24, 30, 30)
    w = vector(2)[: 80 * 24 * kernel**2].reshape(80, 24, kernel, kernel)
    total = rgrad.ones(images, 80, 30, 30)

    def made(x: rgrad.Tensor = x) -> tuple[rgrad.Tensor, rgrad.Tensor]:
        y = rgrad.nn.functional.conv2d(x, w, padding=kernel // 2)
        return y.relu() * 2, total.clone().add_(y)

    with rgrad.fusion(False):
        want = [t.numpy().copy() for t in made()]
    before = rgrad.fusion.counts()
    got = [t.numpy() for t in made()]
    after = rgrad.fusion.counts()
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    if images > 1:  # a single result is small
        assert after.bytes_not_written - before.bytes_not_written >= total.nbytes
    # Infinite numbers, which another way of computing takes over: no step is done twice on the same numbers.
    x[0, 3, 7, 7] = float("inf")
    with rgrad.fusion(False):
        want = [t.numpy().copy() for t in made()]
    assert not np.isfinite(want[1]).all()
    got = [t.numpy() for t in made()]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("images", [2, 5])
def test_steps_join_a_transposed_convolution_and_the_gradient_of_an_image(images: int, stride: int) -> None:
    functional, generator = rgrad.nn.functional, rgrad.Generator().manual_seed(0)
    sizes = ((images, 40, 60, 60), (images, 24, 60 // stride, 60 // stride), (24, 40, 3, 3), (40,))
    image, small, w, bias = (rgrad.randn(size, generator=generator) for size in sizes)

    def transposed() -> rgrad.Tensor:
        y = functional.conv_transpose2d(small, w, bias, stride=stride, padding=1, output_padding=stride - 1)
        return y.relu() * 2

    def gradient() -> rgrad.Tensor:
        x = image.clone().requires_grad_()
        return rgrad.autograd.grad(functional.conv2d(x.relu(), w, stride=stride, padding=1), x, small)[0]

    for made in (transposed, gradient):
        want = unfused(made)
        before = rgrad.fusion.counts()
        got = made().numpy()
        after = rgrad.fusion.counts()
        assert np.array_equal(got, want)
        assert after.bytes_not_written - before.bytes_not_written >= image.nbytes
        # Infinite weights: where results reach beyond the image, all are computed again, and no step is done twice.
        for place in ((0, 0), (1, 1)):
            kept = w[3, 5][place].item()
            w[3, 5][place] = float("inf")
            want = unfused(made)
            assert not np.isfinite(want).all()
            assert np.array_equal(made().numpy(), want, equal_nan=True)
            w[3, 5][place] = kept


def test_in_place_writes_wait_too() -> None:
    def step(p, g, m):
        m.mul_(0.9).add_(g)
        p.add_(m, alpha=-0.1)
        return p

    p, g, m = vector(1), vector(2), vector(3)
    want = unfused(lambda: step(p.clone(), g, m.clone()))
    q, n = p.clone(), m.clone()
    before = programs()
    step(q, g, n)
    assert programs() == before
    assert np.array_equal(q.numpy(), want)
    assert programs() == before + 1
    assert q.data_ptr() == q.numpy().ctypes.data


@pytest.mark.usefixtures("small_programs")
def test_writes_through_a_view_of_another_order(device: str) -> None:
    """What was read expanded to the one order of dimensions is not read in the other."""
    rng = np.random.default_rng(0)
    a, row, short = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((30, 50), (50,), (30,)))
    x, r, s = (rgrad.tensor(v) for v in (a, row, short))

    y = x + r
    y.t().mul_(s)
    assert np.array_equal(y.cpu().numpy(), (a + row) * short[:, None])

    y = x + r
    y.t().mul_(2)
    z = y.t() + s
    assert np.array_equal(z.cpu().numpy(), (a + row).T * 2 + short)

    y = x * 2
    y.t().add_(s)
    z = y - r
    assert np.array_equal(z.cpu().numpy(), a * 2 + short[:, None] - row)

    y = x.t().contiguous().t() * r
    y.t().sub_(s).t().add_(r)
    assert np.allclose(y.cpu().numpy(), a * row - short[:, None] + row, atol=1e-6)


def test_a_reader_sees_what_was_there_before_a_write() -> None:
    x = vector()
    old = x.numpy().copy()
    x = rgrad.tensor(old)
    double = x * 2
    x.add_(1)
    x[0] = 7.0
    assert np.array_equal(double.numpy(), old * 2)
    assert x[0].item() == 7.0
    assert np.array_equal(x[1:].numpy(), old[1:] + 1)


def test_views_of_pending_results_are_views() -> None:
    x = vector()
    y = x + 1
    v = y.view(2, -1)[1]
    v.mul_(3)
    assert np.array_equal(y[N // 2 :].numpy(), (x[N // 2 :].numpy() + np.float32(1)) * np.float32(3))


def test_memory_that_is_known_outside_is_never_read_late() -> None:
    array = np.ones(N, np.float32)
    y = rgrad.from_numpy(array) * 2
    array[:] = 5
    assert y[0].item() == 2
    x = rgrad.ones(N)
    out = x.numpy()
    y = x * 2
    out[:] = 5
    assert y[0].item() == 2
    before = programs()
    assert (x * 2)[0].item() == 10
    assert programs() == before
    del out
    gc.collect()
    assert (x * 2)[0].item() == 10
    assert programs() == before + 1


def test_gradients_have_the_same_bits() -> None:
    x, y = vector(1), vector(2)

    def run():
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        ((a * b + a).tanh() * b).sum().backward()
        return rgrad.stack([a.grad, b.grad])

    assert np.array_equal(run().numpy(), unfused(run))


def test_second_order() -> None:
    x = vector()

    def run():
        a = x.clone().requires_grad_()
        (g,) = rgrad.autograd.grad((a * a).sin().sum(), a, create_graph=True)
        (h,) = rgrad.autograd.grad((g * g).sum(), a)
        return h

    assert np.array_equal(run().numpy(), unfused(run))


def test_a_saved_value_that_was_written_is_noticed() -> None:
    x = vector().requires_grad_()
    y = x.exp()
    z = y * 2
    with rgrad.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_errors_come_at_once() -> None:
    x = vector()
    with pytest.raises(RuntimeError, match="must match the size"):
        x + rgrad.ones(N - 1)
    with pytest.raises(RuntimeError, match="ZeroDivisionError|division by zero"):
        rgrad.ones(N, dtype=rgrad.int64) // rgrad.zeros(N, dtype=rgrad.int64)


def test_no_memory_for_a_program_names_its_lines() -> None:
    x = vector()
    y = x.exp() + 1
    _core._fail_allocation_in(0)
    try:
        with pytest.raises(MemoryError) as caught:
            y[0].item()
    finally:
        _core._fail_allocation_in(-1)
    notes = "".join(getattr(caught.value, "__notes__", []))
    assert "exp at" in notes
    assert "test_fusion.py" in notes
    assert np.array_equal(y.numpy(), unfused(lambda: x.exp() + 1))


def test_long_chains_run_in_between() -> None:
    x = vector()

    def run():
        y = x
        for _ in range(200):
            y = y * 0.99 + 0.01
        return y

    assert np.array_equal(run().numpy(), unfused(run))


def test_several_threads_look_at_one_result() -> None:
    x = vector()
    want = unfused(lambda: (x.sin() * 2).tanh())
    for _ in range(20):
        y = (x.sin() * 2).tanh()
        got: list[bool] = []
        threads = [
            threading.Thread(target=lambda y=y, got=got: got.append(np.array_equal(y.numpy(), want))) for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert got == [True] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes_its_own() -> None:
    x = vector()
    y = x.exp() * 2
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(y.numpy(), unfused(lambda: x.exp() * 2)) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.array_equal(y.numpy(), unfused(lambda: x.exp() * 2))


def test_the_switch() -> None:
    assert rgrad.fusion.is_enabled()
    with rgrad.fusion(False):
        assert not rgrad.fusion.is_enabled()
        before = programs()
        vector().exp().sum().item()
        assert programs() == before
    assert rgrad.fusion.is_enabled()

    @rgrad.fusion(False)
    def inside() -> bool:
        return rgrad.fusion.is_enabled()

    assert not inside()
    assert rgrad.fusion.is_enabled()
    with pytest.raises(TypeError, match="expects a bool"):
        rgrad.fusion(1)


def test_small_results_never_wait() -> None:
    before = programs()
    (rgrad.ones(4, 4) * 2 + 1).numpy()
    assert programs() == before
