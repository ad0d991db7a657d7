"""What reads a pending program as its elements are made: it is never written, and the bits are the unfused ones."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rgrad
from reductions import REDUCTIONS, program
from rgrad import Tensor, _core
from rgrad.nn import functional as F

SHAPE = (64, 48, 80)
N = 64 * 48 * 80
BYTES = 4 * N
DIMS = {"leading": 0, "middle": 1, "trailing": 2}


@pytest.fixture(autouse=True)
def switched_on() -> Iterator[None]:
    with rgrad.fusion(True):
        yield


def values(seed: int, *shape: int) -> Tensor:
    return rgrad.randn(*(shape or SHAPE), generator=rgrad.Generator().manual_seed(seed))


def classes(*shape: int) -> Tensor:
    return (rgrad.arange(int(np.prod(shape))) % SHAPE[1]).view(shape)


def taken(work: Callable[[], Tensor]) -> float:
    """The most memory that the work takes beside what is there, its result included, in bytes of a whole tensor."""
    work().reshape(-1)[0].item()
    gc.collect()
    held = _core.memory_allocated()
    _core.reset_peak_memory_stats()
    made = work()
    made.reshape(-1)[0].item()
    return (_core.max_memory_allocated() - held) / BYTES


def unfused(work: Callable[[], Tensor]) -> np.ndarray:
    with rgrad.fusion(False):
        return work().numpy().copy()


@pytest.mark.rotate("name", take=3)
@pytest.mark.parametrize("dims", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_reads_what_is_never_written(name: str, dims: Any) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return REDUCTIONS[name](program(x, y), dims)

    assert taken(work) < 0.3
    assert np.array_equal(work().numpy(), unfused(work))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", DIMS)
def test_a_softmax_reads_what_is_never_written(name: str, dim: str) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return getattr(program(x, y), name)(DIMS[dim])

    assert taken(work) < 1.3
    assert np.array_equal(work().numpy(), unfused(work))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", DIMS)
def test_the_backward_pass_of_a_softmax_reads_gradients_that_are_never_written(name: str, dim: str) -> None:
    x, y = values(1).requires_grad_(), values(2)
    out = getattr(x, name)(DIMS[dim])
    out.sum().item()

    def work() -> Tensor:
        return rgrad.autograd.grad(out, x, program(y, y), retain_graph=True)[0]

    assert taken(work) < 1.3
    assert np.array_equal(work().numpy(), unfused(work))


@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.int64])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", DIMS)
def test_a_scan_reads_what_is_never_written(name: str, dim: str, dtype: Any) -> None:
    x, y = values(1).to(dtype), values(2).to(dtype)

    def work() -> Tensor:
        return getattr(x * y - 1, name)(DIMS[dim])

    assert taken(work) < 1.3 * x.element_size() / 4
    assert np.array_equal(work().numpy(), unfused(work), equal_nan=True)


@pytest.mark.parametrize("shape", [(2, 20_000), (20_000, 2), (5, 20_000), (80_000,)])
@pytest.mark.parametrize("dtype", [rgrad.int8, rgrad.int16, rgrad.int32, rgrad.float32])
def test_scans_of_long_rows(shape: tuple[int, ...], dtype: Any) -> None:
    x = (values(1, *shape) * 9).to(dtype)
    before = _core._set_fusion_least(100)
    try:
        for dim in range(len(shape)):
            for name in ("cumsum", "cumprod"):

                def work(dim: int = dim, name: str = name) -> Tensor:
                    return getattr(x * 2 - 3, name)(dim)

                assert np.array_equal(work().numpy(), unfused(work), equal_nan=True)
    finally:
        _core._set_fusion_least(before)


@pytest.mark.rotate("name", take=4)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.int32, rgrad.int16, rgrad.int8, rgrad.uint8])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dim", [0, 1, 2, None])
def test_extremes_with_places_read_what_is_never_written(name: str, dim: int | None, dtype: Any) -> None:
    # Many equals, so that it matters which is the first.
    x = (values(1) * 4).abs().to(dtype)
    if dtype.is_floating_point:
        x[7, 7, 7] = x[7, 9, 7] = float("nan")
        x[1, 1] = -0.0

    def call(k: int) -> Tensor:
        made = getattr(x * 3 - 1, name)(*() if dim is None else (dim,))
        return made if isinstance(made, Tensor) else made[k]

    for k in (0, 1):
        assert taken(lambda k=k: call(k)) < 0.3 * x.element_size() / 4
        assert call(k).numpy().tobytes() == unfused(lambda k=k: call(k)).tobytes()


def test_both_results_of_max() -> None:
    x = values(1).requires_grad_()
    for fused in (True, False):
        with rgrad.fusion(fused):
            largest, places = (x * 2).max(1)
            g = rgrad.autograd.grad(largest.sum(), x)[0].numpy()
            if fused:
                want = largest.detach().numpy(), places.numpy(), g
            else:
                assert all(np.array_equal(a, b) for a, b in zip(want, (largest.detach(), places, g), strict=True))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("device", ["cpu", pytest.param("wgpu", marks=pytest.mark.wgpu)])
def test_both_results_of_max_are_computed_in_one_pass(device: str, first: int) -> None:
    x = values(1).to(device)
    x.sum().item()
    made = (x * 2 - 1).max(1)
    before = rgrad.fusion.counts()
    made[first].cpu().numpy()
    between = rgrad.fusion.counts()
    made[1 - first].cpu().numpy()
    after = rgrad.fusion.counts()
    # The product and the difference, which is never written, are computed once.
    assert between.programs - before.programs == 1
    assert between.bytes_not_written - before.bytes_not_written == 2 * BYTES
    assert after == between
    want = unfused(lambda: (x * 2 - 1).max(1)[0].cpu()), unfused(lambda: (x * 2 - 1).max(1)[1].cpu())
    assert all(np.array_equal(a.cpu().numpy(), b) for a, b in zip(made, want, strict=True))


def test_a_result_written_to_meanwhile_keeps_what_was_written() -> None:
    x = values(1)
    largest, places = (x * 2 - 1).max(1)
    largest.mul_(3.0)
    want = unfused(lambda: (x * 2 - 1).max(1)[0] * 3.0)
    places.numpy()
    assert np.array_equal(largest.numpy(), want)
    assert np.array_equal(places.numpy(), unfused(lambda: (x * 2 - 1).max(1)[1]))


def test_who_reads_what_somebody_holds_writes_it_once() -> None:
    x, y, target = values(1), values(2), classes(64, 80)
    for f in (lambda t: t.softmax(1), lambda t: t.logsumexp(1), lambda t: t.var(), lambda t: F.nll_loss(t, target)):
        held = program(x, y)
        made = f(held)
        before = rgrad.fusion.counts().programs
        assert np.array_equal(made.numpy(), unfused(lambda f=f: f(program(x, y))))
        held[0, 0, 0].item()
        assert rgrad.fusion.counts().programs == before + 1
        assert np.array_equal(held.numpy(), unfused(lambda: program(x, y)))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": lambda t, u: F.mse_loss(t, u),
    "l1": lambda t, u: F.l1_loss(t, u, reduction="sum"),
    "smooth l1": lambda t, u: F.smooth_l1_loss(t, u),
    "bce with logits": lambda t, u: F.binary_cross_entropy_with_logits(t, u.sigmoid()),
    "nll": lambda t, u: F.nll_loss(t, classes(64, 80)),
    "nll of each": lambda t, u: F.nll_loss(t, classes(64, 80), reduction="none"),
    "weighted nll": lambda t, u: F.nll_loss(t, classes(64, 80), rgrad.arange(48.0)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_what_is_never_written(name: str) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return LOSSES[name](program(x, y), y)

    assert taken(work) < 0.3
    assert np.array_equal(work().numpy(), unfused(work))


def test_cross_entropy_writes_the_logarithms_alone() -> None:
    x, y, target = values(1, N // 48, 48), values(2, N // 48, 48), classes(N // 48)

    def work() -> Tensor:
        return F.cross_entropy(program(x, y), target)

    assert taken(work) < 1.3
    assert np.array_equal(work().numpy(), unfused(work))


def test_bad_targets_are_refused_at_once() -> None:
    x = values(1)
    with pytest.raises(IndexError, match="Target 48 is out of bounds"):
        F.nll_loss(x * 2, rgrad.full((64, 80), 48))


def test_targets_that_change_are_read_as_they_were() -> None:
    x, target = values(1), classes(64, 80)
    lent = target.numpy().copy()
    want = unfused(lambda: F.nll_loss(x * 2, target))
    loss, late = F.nll_loss(x * 2, target), F.nll_loss(x * 2, rgrad.from_numpy(lent))
    target.zero_()
    lent[:] = 0
    assert np.array_equal(loss.numpy(), want)
    assert np.array_equal(late.numpy(), want)


def test_outputs_that_change_are_read_as_they_were() -> None:
    x, y = values(1).requires_grad_(), values(2)

    def run(change: bool) -> np.ndarray:
        out = x.softmax(1)
        (g,) = rgrad.autograd.grad(out, x, y * 2)
        if change:
            out.detach().fill_(0)
        return g.numpy().copy()

    assert np.array_equal(run(True), run(False))


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------

STRIKE = 0.06  # seconds


class Struck:
    """Sends this process an interrupt while the block runs. The kernel keeps the time, however busy the machine is."""

    def __init__(self, handler: Callable[..., object] = signal.default_int_handler) -> None:
        self.handler = handler

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self.handler)
        signal.setitimer(signal.ITIMER_REAL, STRIKE)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def long(x: Tensor) -> Tensor:
    for _ in range(20):
        x = (x * 0.9).sin()
    return x


def duration(x: Tensor) -> float:
    before = time.perf_counter()
    long(x)[0].item()
    return time.perf_counter() - before


@pytest.fixture(scope="module")
def halves() -> Tensor:
    """So many that `long` of them takes four times as long as the strike waits, however fast the machine is.

    More than 4M, after which a program asks for interrupts: a busy machine takes long for fewer.
    """
    x = rgrad.full((1 << 23,), 0.5, dtype=rgrad.float64)
    while min(duration(x), duration(x)) < 4 * STRIKE:
        x = rgrad.cat([x, x])
    return x


@pytest.mark.rotate
@pytest.mark.parametrize("consumer", ["item", "sum", "var"])
def test_an_interrupt_stops_a_long_program_which_stays_pending(halves: Tensor, consumer: str) -> None:
    def begin() -> Tensor:
        z = long(halves)
        return z if consumer == "item" else getattr(z, consumer)()

    def look(t: Tensor) -> float:
        return t.reshape(-1)[0].item()

    want = look(begin())
    made = begin()
    with pytest.raises(KeyboardInterrupt) as caught, Struck():
        look(made)
    before = rgrad.fusion.counts().programs
    assert look(made) == want
    assert rgrad.fusion.counts().programs > before, "it had run to its end"
    assert caught.traceback[-1].name == "look"


def test_an_interrupt_finds_writes_in_place_done_once(halves: Tensor) -> None:
    p = rgrad.zeros_like(halves)
    p.add_(long(halves) * 0 + 1)

    def look() -> None:
        p[0].item()
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt), Struck():
        look()
    assert (p == 1).all().item()


def test_a_handler_may_look_at_what_is_being_computed(halves: Tensor) -> None:
    x = halves.clone()
    want = long(x)[7].item()
    made = long(x)
    seen: list[float] = []

    def handle(*_: object) -> None:
        seen.append(made[7].item())
        x.add_(1)

    with Struck(handle):
        assert made[7].item() == want
    assert seen == [want]
    assert x[0].item() == 1.5
