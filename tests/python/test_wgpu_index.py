"""Indexing, sorting and rearranging on the device beside the CPU; repeated positions, positions out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtypes
import rgrad
from devices import widest
from rgrad import Tensor, wgpu

Function = Callable[..., Any]
DTYPES = dtypes.of(dtypes.ON_WGPU)
NUMBERS = [d for d in DTYPES if d != rgrad.bool]
DOUBLE = [rgrad.float64]


def values(shape: tuple[int, ...], dtype: Any = rgrad.float32, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed + 7 * len(shape) + sum(shape))
    if dtype.is_floating_point:
        return rgrad.tensor(rng.standard_normal(shape).astype(np.float32)).to(dtype)
    if dtype == rgrad.bool:
        return rgrad.tensor(rng.random(shape) < 0.5)
    if dtype == rgrad.int64:
        return rgrad.tensor(rng.integers(-(2**40), 2**40, size=shape))
    return rgrad.tensor(rng.integers(0, 200, size=shape)).to(dtype)


def positions(shape: tuple[int, ...], below: int, seed: int = 0) -> Tensor:
    return rgrad.tensor(np.random.default_rng(seed + sum(shape)).integers(0, below, size=shape))


def parts(out: Any) -> list[Tensor]:
    return [out] if isinstance(out, Tensor) else list(out)


def same(got: Any, want: Any, tol: float = 0.0) -> None:
    """Shapes and dtypes equal; elements equal, or floats as close as `tol` says."""
    for g, w in zip(parts(got), parts(want), strict=True):
        assert g.device.type == "wgpu"
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        a, b = dtypes.array(g), dtypes.array(w)
        if tol and b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol)
        else:
            np.testing.assert_array_equal(a, b)


def on_both(f: Function, *args: Tensor, tol: float = 0.0) -> None:
    """Runs `f` here and there and compares values, then the gradients of float arguments for the same cotangents."""
    here = [a.detach().clone() for a in args]
    there = [a.detach().to("wgpu") for a in args]
    same(f(*there), f(*here), tol)
    floats = [i for i, a in enumerate(args) if a.dtype.is_floating_point]
    for side in (here, there):
        for i in floats:
            side[i].requires_grad_()
    want, got = parts(f(*here)), parts(f(*there))
    for g, w in zip(got, want, strict=True):
        assert g.requires_grad == w.requires_grad
        if not w.requires_grad:
            continue
        assert type(g.grad_fn).__name__ == type(w.grad_fn).__name__
        cotangent = values(tuple(w.shape), seed=5)
        grads = [
            rgrad.autograd.grad(y, [x[i] for i in floats], c, allow_unused=True, retain_graph=True)
            for y, x, c in ((g, there, cotangent.to("wgpu")), (w, here, cotangent))
        ]
        for a, b in zip(*grads, strict=True):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                same(a, b, tol or 1e-6)


AT = rgrad.tensor([2, 0, -1, 2])
J = rgrad.tensor([[1], [3], [-2]])
MASK = rgrad.tensor(np.random.default_rng(3).random((5, 4)) < 0.5)

READS: dict[str, Function] = {
    "rows": lambda x, w: x[w(AT)],
    "rows by int32": lambda x, w: x[w(AT.int())],
    "columns": lambda x, w: x[:, w(AT)],
    "last": lambda x, w: x[..., w(AT[:3])],
    "two": lambda x, w: x[w(AT[:3]), w(J)],
    "two apart": lambda x, w: x[w(AT), :, w(AT[[0, 1, 2, 1]])],
    "three": lambda x, w: x[w(AT), w(AT[[1, 0, 2, 3]]), w(AT[:1])],
    "with a slice": lambda x, w: x[1:, w(AT), ::2],
    "with an int": lambda x, w: x[2, w(AT)],
    "with None": lambda x, w: x[None, w(AT)],
    "a mask": lambda x, w: x[w(MASK)],
    "a mask of bytes": lambda x, w: x[w(MASK[0]).new_tensor([1, 0, 1, 0, 1], dtype=rgrad.bool)],
    "a mask behind": lambda x, w: x[:, w(MASK[0]), 1],
    "all": lambda x, w: x[w(MASK | True)],
    "nothing": lambda x, w: x[w(MASK & False)],
    "no positions": lambda x, w: x[w(AT[:0])],
    "0-d": lambda x, w: x[w(AT[1])],
    "True": lambda x, w: x[True],
    "False": lambda x, w: x[False],
}


@pytest.mark.rotate("name", take=2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", READS)
def test_reads(name: str, dtype: Any) -> None:
    def f(x: Tensor) -> Any:
        return READS[name](x, lambda i: i.to(x.device))

    on_both(f, values((5, 4, 3), dtype))
    on_both(lambda x: f(x.permute(2, 0, 1)), values((4, 3, 5), dtype))


@pytest.mark.parametrize("name", READS)
def test_positions_may_lie_on_the_cpu(name: str) -> None:
    x = values((5, 4, 3))
    same(READS[name](x.to("wgpu"), lambda i: i), READS[name](x, lambda i: i))


def test_positions_on_the_device_do_not_index_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="either on cpu or on the same device as the indexed tensor"):
        values((5,))[AT.to("wgpu")]
    with pytest.raises(RuntimeError, match="same device.*wgpu.*input 1"):
        rgrad.index_select(values((5,)).to("wgpu"), 0, AT)


@pytest.mark.rotate("name", take=2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [n for n in READS if n not in ("True", "False")])
def test_writes(name: str, dtype: Any) -> None:
    """A number, one value for each position, and (positions do not repeat where the values differ) rows of values."""
    x = values((5, 4, 3), dtype)
    read = READS[name]
    spot = rgrad.arange(60).reshape(5, 4, 3)

    def entries(t: Tensor) -> Tensor:
        return read(t, lambda i: i.to(t.device))

    def written(t: Tensor, value: Any) -> Tensor:
        out = t.clone()
        flat = out.reshape(-1)
        flat[entries(spot.to(t.device)).reshape(-1)] = value
        return flat.reshape(5, 4, 3)

    on_both(lambda t: written(t, 1), x)
    n = entries(spot).numel()
    on_both(written, x, values((n,), dtype, seed=2))
    on_both(lambda t, v: written(t, v), x, values((), dtype, seed=4))


def test_assignments_reach_through_views() -> None:
    def f(x: Tensor, v: Tensor) -> Tensor:
        y = x.clone()
        y[1:, AT.to(x.device)[:2]] = v
        y[:, 0].masked_fill_(y[:, 0] > 0, 3.0)
        y.t()[rgrad.tensor([1, 3]).to(x.device)] += 1
        return y

    on_both(f, values((5, 4)), values((4, 2), seed=1))


@pytest.mark.rotate("dtype")
@pytest.mark.parametrize("count", [3, 300, 5000])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_last_of_equal_positions_is_written(count: int, dtype: Any) -> None:
    x, at, v = values((40, 3), dtype), positions((count,), 40), values((count, 3), dtype, seed=1)
    want = dtypes.array(x).copy()
    for k, row in zip(at.numpy(), dtypes.array(v), strict=True):
        want[k] = row
    there = x.to("wgpu")
    there[at.to("wgpu")] = v.to("wgpu")
    np.testing.assert_array_equal(dtypes.array(there), want)
    pairs = x.to("wgpu")
    pairs[at.to("wgpu"), at.to("wgpu") % 3] = v.to("wgpu")[:, 0]
    want = dtypes.array(x).copy()
    for k, e in zip(at.numpy(), dtypes.array(v)[:, 0], strict=True):
        want[k, k % 3] = e
    np.testing.assert_array_equal(dtypes.array(pairs), want)


@pytest.mark.rotate("dtype")
@pytest.mark.parametrize("count", [5, 300, 20000])
@pytest.mark.parametrize("dtype", DTYPES + DOUBLE, ids=str)
def test_equal_positions_add_up(count: int, dtype: Any) -> None:
    x, at, v = values((11, 2), dtype), positions((count,), 11), values((count, 2), dtype, seed=1)
    tol = {rgrad.float32: 1e-4, rgrad.float64: 1e-12}.get(dtype, 0.0)
    on_both(lambda x, at, v: x.index_put((at,), v, accumulate=True), x, at, v, tol=tol)
    on_both(lambda x, at, v: x.index_add(0, at, v), x, at, v, tol=tol)
    wide = at.reshape(-1, 1).expand(count, 2)
    on_both(lambda x, at, v: x.scatter_add(0, at, v), x, wide, v, tol=tol)


@pytest.mark.parametrize("spread", [1, 3, 1000])
def test_sums_are_the_same_bits_in_every_run_and_close_to_the_exact_ones(spread: int) -> None:
    n = 200_000
    at, v = positions((n,), spread), values((n,))
    runs = [rgrad.zeros(1000, device="wgpu").index_add_(0, at.to("wgpu"), v.to("wgpu")).cpu().numpy() for _ in range(3)]
    assert runs[0].tobytes() == runs[1].tobytes() == runs[2].tobytes()
    exact = np.zeros(1000)
    np.add.at(exact, at.numpy(), v.numpy().astype(np.float64))
    size = np.abs(v.numpy()).sum() / spread
    assert np.abs(runs[0] - exact).max() < 1e-6 * size


def test_products_of_equal_positions() -> None:
    at = positions((2000, 3), 5)
    v = values((2000, 3)).sign() * 1.0
    here = values((5, 3)).scatter(0, at, v, reduce="multiply")
    there = values((5, 3)).to("wgpu").scatter(0, at.to("wgpu"), v.to("wgpu"), reduce="multiply")
    same(there, here)
    if widest("wgpu") == rgrad.float64:
        here = values((5, 3), rgrad.float64).scatter(0, at[:200], v[:200].double(), reduce="multiply")
        there = values((5, 3), rgrad.float64).to("wgpu")
        same(there.scatter(0, at[:200].to("wgpu"), v[:200].double().to("wgpu"), reduce="multiply"), here)


def test_numbers_are_written_across_devices() -> None:
    """As in PyTorch: a tensor without dimensions goes where it is written, a larger one does not."""
    x, there = values((5, 4)), values((5, 4)).to("wgpu")
    x[AT] = rgrad.tensor(3.0, device="wgpu")
    there[AT.to("wgpu")] = rgrad.tensor(3.0)
    same(there, x)
    there.masked_fill_(there > 2, rgrad.tensor(-1.0))
    there.index_fill_(1, rgrad.tensor([2], device="wgpu"), rgrad.tensor(7.0))
    same(there, x.masked_fill(x > 2, -1.0).index_fill(1, rgrad.tensor([2]), 7.0))
    with pytest.raises(RuntimeError, match="same device"):
        there[AT.to("wgpu")] = values((4, 4))


def test_more_workgroups_than_one_dimension_of_a_dispatch_has() -> None:
    n = 8_400_000  # twice as many elements need some 65,600 workgroups of 256
    x = rgrad.arange(2 * n, device="wgpu", dtype=rgrad.int32).reshape(2, n)
    y = x.index_select(0, rgrad.tensor([1, 0], device="wgpu"))
    assert [y[0, 0].item(), y[0, -1].item(), y[1, 0].item(), y[1, -1].item()] == [n, 2 * n - 1, 0, n - 1]
    assert (y - x.flip(0)).count_nonzero().item() == 0


def test_an_index_may_be_what_is_written() -> None:
    def f(x: Tensor) -> Tensor:
        x = x.clone()
        x[x] = rgrad.arange(6, device=x.device)
        return x

    on_both(f, rgrad.tensor([3, 0, 5, 1, 4, 2]))


CASES: dict[str, Function] = {
    "gather": lambda x, i: x.gather(1, i),
    "gather fewer": lambda x, i: x.gather(0, i[:2, :3] % 5),
    "take_along_dim": lambda x, i: rgrad.take_along_dim(x, i - 4, 1),
    "take": lambda x, i: x.take(i - 4),
    "index_select": lambda x, i: x.index_select(1, i[0]),
    "index_fill": lambda x, i: x.index_fill(1, i[0], 1),
    "index_copy": lambda x, i: x.index_copy(1, i[0, :1], x[:, :1]),
    "scatter": lambda x, i: x.scatter(1, i[:, :1], x[:, 1:2]),
    "scatter number": lambda x, i: x.scatter(1, i, 1),
    "masked_select": lambda x, i: x.masked_select(i > 1),
    "masked_fill": lambda x, i: x.masked_fill(i > 1, 1),
    "masked_scatter": lambda x, i: x.masked_scatter(i > 1, x.flip(0)),
    "where": lambda x, i: rgrad.where(i > 1, x, x.flip(1)),
    "nonzero": lambda x, i: (i > 1).nonzero(),
    "nonzero tuple": lambda x, i: x.nonzero(as_tuple=True),
    "argwhere of a transpose": lambda x, i: (i > 2).t().nonzero(),
    "flip": lambda x, i: x.flip(0, 1),
    "roll": lambda x, i: x.roll((1, -2), (0, 1)),
    "roll flat": lambda x, i: x.roll(3),
    "rot90": lambda x, i: rgrad.rot90(x, 1, (0, 1)),
    "repeat": lambda x, i: x.repeat(2, 1, 3),
    "tile": lambda x, i: x.tile((2,)),
    "repeat_interleave": lambda x, i: x.repeat_interleave(3, 1),
    "repeat_interleave by": lambda x, i: x.repeat_interleave(i[0], 1),
    "tril": lambda x, i: x.tril(-1),
    "triu": lambda x, i: x.t().triu(1),
    "cat": lambda x, i: rgrad.cat([x, x.flip(0), x[:0]], 0),
    "cat with promotion": lambda x, i: rgrad.cat([x, i], 1),
    "stack": lambda x, i: rgrad.stack([x, x.flip(1)], 1),
    "diag_embed": lambda x, i: rgrad.diag_embed(x, 1),
    "diag": lambda x, i: x[0].diag(),
    "diagonal": lambda x, i: x.diagonal(1).clone(),
    "meshgrid": lambda x, i: rgrad.meshgrid(x[0], x[:, 0], indexing="ij"),
    "unfold": lambda x, i: x.unfold(1, 2, 1).clone(),
}


@pytest.mark.rotate("name", take=2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_functions(name: str, dtype: Any) -> None:
    i = rgrad.tensor(np.argsort(np.random.default_rng(1).random((5, 4)), axis=1))
    on_both(CASES[name], values((5, 4), dtype), i)


@pytest.mark.rotate("dtype", take=3)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((), 0), ((1,), 0), ((9,), 0), ((5, 33, 2), 1), ((3, 1024), -1), ((2, 3, 1100), 2), ((40, 1500), 1), ((3000,), 0)],
    ids=str,
)
def test_sorting(shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    """Ties keep their order, nan is last, zeros of both signs are equal."""
    x = values(shape, dtype) % 50 if not dtype.is_floating_point else (values(shape) * 4).round() / 4
    if dtype.is_floating_point and x.numel() > 8:
        x.reshape(-1)[rgrad.tensor([1, 5, 7, 3])] = rgrad.tensor([float("nan"), -0.0, float("inf"), -float("inf")])
    for descending in (False, True):
        on_both(lambda t: t.sort(dim=dim, descending=descending, stable=True), x)  # noqa: B023
    on_both(lambda t: t.argsort(dim=dim, stable=True), x)
    if shape:
        k = max(1, x.shape[dim] // 3)
        on_both(lambda t: t.topk(k, dim), x)
        on_both(lambda t: t.topk(k, dim, largest=False), x)
        on_both(lambda t: t.kthvalue(k, dim), x)
        on_both(lambda t: t.median(dim), x)


@pytest.mark.rotate("dtype")
@pytest.mark.parametrize("dtype", NUMBERS + DOUBLE, ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_running_extremes_and_modes(dim: int, dtype: Any) -> None:
    x = values((5, 40, 3), dtype) % 4 if not dtype.is_floating_point else (values((5, 40, 3), dtype) * 2).round() / 2
    if dtype.is_floating_point:
        x[1, 7, 0], x[2, 9, 1], x[3, 0, 2] = float("nan"), -0.0, -float("inf")
    for seen in (lambda t: t, lambda t: t.transpose(0, 2)):
        on_both(lambda t: seen(t).cummax(dim), x)  # noqa: B023
        on_both(lambda t: seen(t).cummin(dim), x)  # noqa: B023
        on_both(lambda t: seen(t).mode(dim), x)  # noqa: B023
        on_both(lambda t: seen(t).mode(dim, keepdim=True), x)  # noqa: B023


@pytest.mark.rotate("dtype", take=2)
@pytest.mark.parametrize("dtype", NUMBERS + DOUBLE, ids=str)
@pytest.mark.parametrize(("shape", "dim"), [((1300,), 0), ((3, 700), 1), ((600, 2), 0), ((20000, 3), 1)], ids=str)
def test_running_extremes_and_modes_of_long_rows(shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    x = values(shape, dtype)
    x = x % 90 if not dtype.is_floating_point else (x * 20).round() / 16
    if dtype.is_floating_point and max(shape) < 20000:
        x.reshape(-1)[rgrad.tensor([501, 530, 590])] = float("nan")
    for f in (lambda t: t.cummax(dim), lambda t: t.cummin(dim), lambda t: t.mode(dim), lambda t: -(-t).cummax(dim)[0]):
        on_both(f, x, tol=1e-5)  # of gradients that meet; values are exact


def test_sorting_other_layouts() -> None:
    x = values((6, 7, 3))
    on_both(lambda t: t.permute(2, 0, 1).sort(2), x)
    on_both(lambda t: t[::2, 1:, 1].sort(0, descending=True), x)
    on_both(lambda t: t[:, :1].expand(6, 4, 3).sort(1), x)


def test_second_derivatives() -> None:
    i = positions((4, 3), 5)

    def f(x: Tensor) -> Tensor:
        at = i.to(x.device)
        y = x.gather(0, at) * x[at[0]][:, :1].sum()
        (g,) = rgrad.autograd.grad(y.pow(2).sum(), x, create_graph=True)
        return g * g

    x = values((5, 3))
    here, there = x.clone().requires_grad_(), x.to("wgpu").requires_grad_()
    same(f(there), f(here), 1e-4)
    (want,) = rgrad.autograd.grad(f(here).sum(), here)
    (got,) = rgrad.autograd.grad(f(there).sum(), there)
    same(got, want, 1e-3)


# ---- positions out of range ------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Function, str]] = {
    "index": (lambda x, i: x[i], "index 9 is out of bounds for dimension 0 with size 5"),
    "below": (lambda x, i: x[-i], "index -9 is out of bounds for dimension 0 with size 5"),
    "second": (lambda x, i: x[i * 0, i], "index 9 is out of bounds for dimension 1 with size 4"),
    "assignment": (lambda x, i: x.__setitem__(i, 1.0), "index 9 is out of bounds"),
    "many": (lambda x, i: x.__setitem__(i.repeat(200), 1.0), "index 9 is out of bounds"),
    "gather": (lambda x, i: x.gather(0, i.reshape(1, 3)), "index 9 is out of bounds"),
    "negative gather": (lambda x, i: x.gather(0, -i.reshape(1, 3)), "index -1 is out of bounds"),
    "scatter": (lambda x, i: x.scatter_(0, i.reshape(1, 3), 7.0), "index 9 is out of bounds"),
    "index_add": (lambda x, i: x.index_add_(0, i, x[:3]), "index 9 is out of bounds"),
    "index_select": (lambda x, i: x.index_select(1, i), "index 9 is out of bounds for dimension 1 with size 4"),
    "huge": (lambda x, i: x[i + 2**32], "index 429496729[79] is out of bounds"),
}


def finished(f: Function, *args: Any) -> None:
    f(*args)
    wgpu.synchronize()


@pytest.mark.parametrize("name", WRONG)
def test_positions_out_of_range(name: str) -> None:
    """The error names the operation's line, nothing else is touched, and the device goes on."""
    f, message = WRONG[name]
    whole = values((7, 4)).to("wgpu")
    before = whole.cpu().numpy()
    i = rgrad.tensor([1, 9, 3], device="wgpu")
    with pytest.raises(IndexError, match=message) as error:
        finished(f, whole[1:6], i)
    assert "test_wgpu_index.py" in "".join(error.value.__notes__)
    np.testing.assert_array_equal(whole.cpu().numpy()[[0, 6]], before[[0, 6]])
    wgpu.synchronize()
    same(whole[rgrad.tensor([6], device="wgpu")], values((7, 4))[6:])


def test_what_can_be_seen_without_the_device_is_an_error_at_once() -> None:
    x = values((5, 4)).to("wgpu")
    i = rgrad.tensor([1, 2], device="wgpu")
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor"):
        x[i] = rgrad.ones(3, 4, device="wgpu")
    with pytest.raises(IndexError, match="could not be broadcast"):
        x[i, rgrad.tensor([1, 2, 3], device="wgpu")]
    with pytest.raises(IndexError, match="too many indices"):
        x[i, i, i]
    with pytest.raises(IndexError, match="size 0"):
        rgrad.empty(0, 3, device="wgpu")[i]
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        x.gather(0, i)
