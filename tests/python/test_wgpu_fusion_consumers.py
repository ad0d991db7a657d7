"""What reads a pending program in its own shader: one dispatch, nothing of the program written, the unfused bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor, _core, wgpu
from rgrad.nn import functional as F

pytestmark = pytest.mark.wgpu
SHAPE = (12, 10, 14)
N = 12 * 10 * 14


@pytest.fixture(autouse=True)
def _small_programs() -> Iterator[None]:
    """Results stay pending from a hundred elements on."""
    before = _core._set_fusion_least(100)
    try:
        with rgrad.fusion(True):
            yield
    finally:
        wgpu.synchronize()
        _core._set_fusion_least(before)


def values(seed: int, *shape: int, dtype: Any = rgrad.float32) -> Tensor:
    x = np.random.default_rng(seed).standard_normal(shape or SHAPE)
    return rgrad.tensor(x).to(dtype).to("wgpu")


def program(x: Tensor, y: Tensor) -> Tensor:
    return (x * y + 0.5) * 2


def unwritten(work: Callable[[], Tensor]) -> int:
    """Bytes of results that were never written."""
    wgpu.synchronize()
    before = rgrad.fusion.counts().bytes_not_written
    work().cpu()
    return rgrad.fusion.counts().bytes_not_written - before


def dispatches(work: Callable[[], Tensor]) -> int:
    made = work()
    before = _core._wgpu_counts()[2]
    made.cpu()
    return _core._wgpu_counts()[2] - before


def same_bits(work: Callable[[], Tensor]) -> None:
    got = work().cpu().numpy()
    with rgrad.fusion(False):
        want = work().cpu().numpy()
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == want.tobytes()


REDUCTIONS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "sum": lambda t, d: t.sum(d),
    "mean": lambda t, d: t.mean(d),
    "prod": lambda t, d: t.prod(d) if isinstance(d, int) else t.prod(),
    "amax": lambda t, d: t.amax(d),
    "amin": lambda t, d: t.amin(d),
    "var": lambda t, d: t.var(d),
    "std": lambda t, d: t.std(d, correction=0),
    "logsumexp": lambda t, d: t.logsumexp(d),
    "norm": lambda t, d: t.norm(2, d),
    "norm 1": lambda t, d: t.norm(1, d),
    "norm inf": lambda t, d: t.norm(float("inf"), d),
}


@pytest.mark.parametrize("dims", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_reads_what_is_never_written(name: str, dims: Any) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return REDUCTIONS[name](program(x, y), dims)

    assert unwritten(work) == 3 * 4 * N
    # What is done to the result is a second dispatch, and a third where a root follows a division.
    assert dispatches(work) <= 2
    if name in ("sum", "amax", "logsumexp", "norm"):
        assert dispatches(work) == 1
    same_bits(work)


@pytest.mark.parametrize("name", ["norm 3", "max with places", "argmax", "cumsum"])
def test_others_have_it_written(name: str) -> None:
    x, y = values(1), values(2)
    others: dict[str, Callable[[Tensor], Tensor]] = {
        "norm 3": lambda t: t.norm(3, 1),
        "max with places": lambda t: t.max(1)[0],
        "argmax": lambda t: t.argmax(1),
        "cumsum": lambda t: t.cumsum(1),
    }
    same_bits(lambda: others[name](program(x, y)))


@pytest.mark.parametrize("dtype", [rgrad.int32, rgrad.int64, rgrad.uint8, rgrad.bool, rgrad.float64])
def test_other_types(dtype: Any) -> None:
    x = (values(1) * 3).to(dtype)

    def made() -> Tensor:
        return (x > 0) if dtype == rgrad.bool else x * 2 - x

    for f in (
        lambda t: t.sum(1),
        lambda t: t.sum((0, 2)),
        lambda t: t.amax(0),
        lambda t: (t != 0).sum(),
        lambda t: t.any(2),
    ):
        same_bits(lambda f=f: f(made()))


def test_infinities_and_nan() -> None:
    x = values(1)
    x[0, 0, 0], x[1, 1], x[2, :, 3], x[4, 4, 4] = float("inf"), -float("inf"), float("nan"), -float("inf")
    for f in (lambda t: t.logsumexp(2), lambda t: t.amax(1), lambda t: t.softmax(2), lambda t: t.var(0)):
        got = f(x * 1.0).cpu()
        assert rgrad.allclose(got, f(x.cpu()), equal_nan=True, rtol=1e-4, atol=1e-5)


def test_variance_and_logsumexp_are_accurate() -> None:
    x = np.random.default_rng(0).standard_normal(300_000).astype(np.float32) + np.float32(1000)
    t = rgrad.tensor(x).to("wgpu")
    wide = x.astype(np.float64)
    assert abs((t * 1.0).var().item() / wide.var(ddof=1) - 1) < 1e-4
    want = wide.max() + np.log(np.exp(wide - wide.max()).sum())
    assert abs((t * 1.0).logsumexp(0).item() - want) < 2e-4


@pytest.mark.parametrize("shape", [SHAPE, (3, 700), (2, 20_000), (300, 7), (1, 5, 300)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_reads_what_is_never_written(name: str, shape: tuple[int, ...]) -> None:
    x, y = values(1, *shape), values(2, *shape)
    for dim in range(len(shape)):

        def work(dim: int = dim) -> Tensor:
            return getattr(program(x, y), name)(dim)

        assert unwritten(work) == 3 * 4 * int(np.prod(shape))
        if shape[dim] < 10_000:
            assert dispatches(work) == 1
        same_bits(work)


@pytest.mark.parametrize("shape", [SHAPE, (3, 700), (2, 20_000)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_backward_pass_of_a_softmax_reads_gradients_that_are_never_written(
    name: str, shape: tuple[int, ...]
) -> None:
    x, y = values(1, *shape).requires_grad_(), values(2, *shape)
    for dim in range(len(shape)):
        out = getattr(x, name)(dim)
        out.sum().item()

        def work(out: Tensor = out) -> Tensor:
            return rgrad.autograd.grad(out, x, program(y, out.detach()), retain_graph=True)[0]

        assert unwritten(work) >= 3 * 4 * int(np.prod(shape))
        same_bits(work)


def test_strided_and_broadcast_operands() -> None:
    x, row, column = values(1, 40, 30), values(2, 30), values(3, 40, 1)
    for f in (
        lambda t: t.sum(0),
        lambda t: t.sum(1),
        lambda t: t.softmax(1),
        lambda t: t.logsumexp(0),
        lambda t: t.mean(),
    ):
        same_bits(lambda f=f: f((x * row + column).exp()))
        same_bits(lambda f=f: f((x.t() * 2 + row[:, None]).contiguous()))
        same_bits(lambda f=f: f(x.t() * row[:, None] + x.t()))


def test_what_somebody_holds_is_written_once() -> None:
    x, y = values(1), values(2)
    middle = x * y
    held = middle + 1
    total = held.sum(1)
    before = rgrad.fusion.counts()
    got = total.cpu().numpy()
    middle.cpu()
    held.cpu()
    assert rgrad.fusion.counts().programs == before.programs + 1
    with rgrad.fusion(False):
        assert np.array_equal(got, (x * y + 1).sum(1).cpu().numpy())
        assert np.array_equal(middle.cpu().numpy(), (x * y).cpu().numpy())


def test_many_inputs() -> None:
    many = [values(k) for k in range(12)]

    def work() -> Tensor:
        t = many[0]
        for m in many[1:]:
            t = t * 0.5 + m
        return t.sum(1)

    same_bits(work)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": lambda t, u: F.mse_loss(t, u),
    "l1": lambda t, u: F.l1_loss(t, u, reduction="sum"),
    "smooth l1": lambda t, u: F.smooth_l1_loss(t, u),
    "bce with logits": lambda t, u: F.binary_cross_entropy_with_logits(t, u.sigmoid()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_what_is_never_written(name: str) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return LOSSES[name](program(x, y), y)

    assert unwritten(work) >= 4 * 4 * N
    same_bits(work)


def test_other_sizes_need_no_other_pipelines() -> None:
    def some(rows: int) -> None:
        x, y = values(1, rows, 60), values(2, rows, 60)
        for f in (lambda t: t.sum(1), lambda t: t.logsumexp(1), lambda t: t.softmax(1), lambda t: t.mean()):
            f(program(x, y)).cpu()

    some(40)
    before = _core._wgpu_counts()[1]
    some(50)
    assert _core._wgpu_counts()[1] == before


def test_memory_of_inputs_that_nobody_holds_is_taken_over() -> None:
    def run(x: Tensor) -> Tensor:
        for _ in range(4):
            x = x * 1.5
            x[0].item()
        return x

    x = values(1, 1 << 18)
    want = x.cpu().numpy() * np.float32(1.5) ** 4
    wgpu.synchronize()
    assert np.allclose(run(x).cpu().numpy(), want, rtol=1e-6)
    y = values(3, 1 << 18)
    y[0].item()
    wgpu.synchronize()
    before = _core._wgpu_memory()[0]
    _core._wgpu_reset_peak()
    y = (y * 2).relu() + 1
    y[0].item()
    assert _core._wgpu_memory()[1] - before < (1 << 18)


def test_no_memory_for_a_reduction_leaves_it_waiting() -> None:
    x = values(1)
    total = (x * 2).exp().sum(1)
    _core._wgpu_fail_in(0)
    with pytest.raises(MemoryError, match="cannot allocate") as caught:
        total.cpu()
    assert "exp" in "".join(caught.value.__notes__)
    with rgrad.fusion(False):
        want = (x * 2).exp().sum(1).cpu().numpy()
    assert np.array_equal(total.cpu().numpy(), want)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_float64(dim: int) -> None:
    x = values(1, dtype=rgrad.float64)
    for f in (
        lambda t: t.var(dim),
        lambda t: t.logsumexp(dim),
        lambda t: t.norm(2, dim),
        lambda t: t.norm(float("inf"), dim),
        lambda t: t.softmax(dim),
        lambda t: t.log_softmax(dim),
    ):
        same_bits(lambda f=f: f(x * 2 + 1))
        assert rgrad.allclose(f(x * 2 + 1).cpu(), f(x.cpu() * 2 + 1), rtol=1e-12, atol=1e-12)
