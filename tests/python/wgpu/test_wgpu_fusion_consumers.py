"""What reads a pending program in its own shader: one dispatch, nothing of the program written, the unfused bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reductions
import rgrad
from reductions import program
from rgrad import Tensor, _core, wgpu
from rgrad.nn import functional as F

pytestmark = pytest.mark.wgpu
SHAPE = (12, 10, 14)
N = 12 * 10 * 14


@pytest.fixture(autouse=True)
def _finished(small_programs: None) -> Iterator[None]:
    yield
    wgpu.synchronize()


def values(seed: int, *shape: int, dtype: Any = rgrad.float32) -> Tensor:
    x = np.random.default_rng(seed).standard_normal(shape or SHAPE)
    return rgrad.tensor(x).to(dtype).to("wgpu")


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


# The elements of nansum are made of more steps.
REDUCTIONS = {name: call for name, call in reductions.REDUCTIONS.items() if name != "nansum"} | {
    "norm 0": lambda t, d: t.norm(0, d),
    "norm 0.5": lambda t, d: t.norm(0.5, d),
    "norm -2": lambda t, d: t.norm(-2, d),
    "norm -inf": lambda t, d: t.norm(-float("inf"), d),
    "count_nonzero": lambda t, d: t.count_nonzero(d),
}


@pytest.mark.needs(max_storage_buffers_per_shader_stage=9)
@pytest.mark.rotate("name", take=2)
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


def test_the_elements_of_nansum_are_never_written() -> None:
    x, y = values(1), values(2)
    x[3, 1] = float("nan")

    def work() -> Tensor:
        return program(x, y).nansum(1)

    assert unwritten(work) >= 3 * 4 * N
    same_bits(work)


@pytest.mark.rotate("name", take=4)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.int64])
@pytest.mark.parametrize("shape", [SHAPE, (3, 700), (300, 7), (2, 20_000)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_a_scan_reads_what_is_never_written(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    x = values(1, *shape).to(dtype)
    for dim in range(len(shape)):

        def work(dim: int = dim) -> Tensor:
            return getattr(x * 2 - 1, name)(dim)

        assert unwritten(work) == 2 * x.element_size() * x.numel()
        same_bits(work)
        same_bits(lambda dim=dim: getattr((x * 2 - 1).transpose(0, 1), name)(dim))


@pytest.mark.rotate("name")
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.int32, rgrad.int16, rgrad.int8])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_with_places_read_what_is_never_written(name: str, dtype: Any) -> None:
    x = (values(1) * 4).to(dtype)
    x[1, 1] = x[2, 2] = x[4, 4, 5]

    def call(dim: int | None, k: int) -> Tensor:
        made = getattr(x * 3 - 1, name)(*() if dim is None else (dim,))
        return made if isinstance(made, Tensor) else made[k]

    for dim in (0, 1, 2, None):
        for k in (0, 1):
            assert unwritten(lambda dim=dim, k=k: call(dim, k)) == 2 * max(4, x.element_size()) * N
            same_bits(lambda dim=dim, k=k: call(dim, k))
    big = values(2, 70_000).to(dtype)
    same_bits(lambda: getattr(big * 3, name)(0)[1] if name in ("max", "min") else getattr(big * 3, name)())


@pytest.mark.rotate(take=3)
@pytest.mark.parametrize(
    "dtype", [rgrad.int8, rgrad.int16, rgrad.int32, rgrad.int64, rgrad.uint8, rgrad.bool, rgrad.float64]
)
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


@pytest.mark.rotate("name", take=2)
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


@pytest.mark.needs(max_storage_buffers_per_shader_stage=12)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_what_is_never_written(name: str) -> None:
    x, y = values(1), values(2)

    def work() -> Tensor:
        return LOSSES[name](program(x, y), y)

    assert unwritten(work) >= 4 * 4 * N
    same_bits(work)


NLL: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "each": {"reduction": "none"},
    "weighted": {"weight": True},
    "ignoring": {"ignore_index": 1},
}


@pytest.mark.rotate("how", take=2)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64])
@pytest.mark.parametrize("shape", [(90, 7), (4, 5, 60), (9000, 3)])
@pytest.mark.parametrize("how", NLL)
def test_nll_loss_reads_what_is_never_written(how: str, shape: tuple[int, ...], dtype: Any) -> None:
    x = values(1, *shape, dtype=dtype)
    classes = rgrad.arange(shape[1], device="wgpu")
    target = classes[(values(2, shape[0], *shape[2:]) * 100).to(rgrad.int64).abs() % shape[1]]
    weight = values(3, shape[1], dtype=dtype).abs() if how == "weighted" else None
    rest = {k: v for k, v in NLL[how].items() if k != "weight"}
    target.cpu()

    def work() -> Tensor:
        return F.nll_loss(x * 2 - 1, target, weight, **rest)

    assert unwritten(work) == 2 * x.element_size() * x.numel()
    same_bits(work)
    assert rgrad.allclose(
        work().cpu(), F.nll_loss(x.cpu() * 2 - 1, target.cpu(), None if weight is None else weight.cpu(), **rest)
    )


def test_weights_that_the_program_reads_too() -> None:
    x, weight = values(1, 90, 7), values(2, 7).abs()
    target = rgrad.arange(90, device="wgpu") % 7
    target.cpu()
    same_bits(lambda: F.nll_loss(x * weight, target, weight))


def test_a_target_that_is_no_class_is_told_of_at_the_line_of_the_loss() -> None:
    x = values(1, 90, 7)
    target = rgrad.full((90,), 7, device="wgpu")
    loss = F.nll_loss(x * 2, target)  # the line
    with pytest.raises(IndexError, match="(?s)index 7 is out of bounds.*nll_loss") as caught:
        loss.item()
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    lines = Path(__file__).read_text().splitlines()
    line = 1 + next(k for k, t in enumerate(lines) if t.endswith("# the line"))
    assert f"{Path(__file__).name}:{line} in" in text


def test_the_input_of_cross_entropy_is_never_written() -> None:
    x, target = values(1, 90, 7), rgrad.arange(90, device="wgpu") % 7
    target.cpu()

    def work() -> Tensor:
        return F.cross_entropy(x * 2 - 1, target)

    assert unwritten(work) >= 2 * 4 * 630
    same_bits(work)
    held = x.detach().clone().requires_grad_()
    logits = held * 2 - 1
    before = rgrad.fusion.counts().bytes_not_written
    F.cross_entropy(logits, target).backward()
    held.grad.cpu()
    assert rgrad.fusion.counts().bytes_not_written > before


@pytest.mark.parametrize("shape", [(14,), (10, 1), (12, 1, 1), (1, 10, 14), ()])
def test_gradients_are_summed_to_a_shape_as_they_are_made(shape: tuple[int, ...]) -> None:
    x, small = values(1), values(2, *shape) if shape else values(2, 1)[0]
    small.requires_grad_()
    out = x * small
    g = values(3)

    def work() -> Tensor:
        return rgrad.autograd.grad(out, small, g * 2, retain_graph=True)[0]

    assert unwritten(work) == 2 * 4 * N
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


@pytest.mark.needs("float64")
@pytest.mark.rotate
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
