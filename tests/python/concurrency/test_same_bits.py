"""Results are the same bits for any number of threads: work is split by its size alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import rgrad

THREADS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = rgrad.get_num_threads()
    yield
    rgrad.set_num_threads(before)


def numbers(*shape: int, dtype: str = "float32") -> rgrad.Tensor:
    # Of many magnitudes, so that every order of additions rounds differently.
    rng = np.random.default_rng(sum(shape))
    return rgrad.from_numpy((rng.standard_normal(shape) * np.exp(4 * rng.standard_normal(shape))).astype(dtype))


def bits(result: object) -> list[bytes]:
    if isinstance(result, rgrad.Tensor):
        return [result.detach().contiguous().numpy().tobytes()]
    assert isinstance(result, tuple)
    return [b for part in result for b in bits(part)]


def same(call: Callable[[], object]) -> None:
    results = []
    for n in THREADS:
        rgrad.set_num_threads(n)
        assert rgrad.get_num_threads() == n
        # Twice: which piece a thread takes first is a matter of chance.
        results += [bits(call()), bits(call())]
    assert results[0]
    assert all(r == results[0] for r in results)


SHAPES: list[tuple[int, ...]] = [(1_000_003,), (700, 1500), (100_000, 7), (3, 300_001), (40, 50, 600), (64, 3, 70, 90)]


def dims_of(rank: int) -> list[tuple[int, ...]]:
    return [tuple(d for d in range(rank) if mask >> d & 1) for mask in range(1, 1 << rank)]


REDUCTIONS: dict[str, Callable[[rgrad.Tensor, tuple[int, ...]], object]] = {
    "sum": lambda x, d: x.sum(d),
    "var": lambda x, d: x.var(d),
    "norm": lambda x, d: x.norm(dim=d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "amax": lambda x, d: x.amax(d),
}


@pytest.mark.rotate("name", take=3)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_over_every_set_of_dims(shape: tuple[int, ...], name: str) -> None:
    x = numbers(*shape)
    for dims in dims_of(len(shape)):
        same(lambda dims=dims: REDUCTIONS[name](x, dims))


def test_reductions_of_strided_and_of_double_precision_memory() -> None:
    x = numbers(300, 40, 170, dtype="float64")
    for view in (x.transpose(0, 2), x[:, ::3], x[::2, :, 5:], x.permute(1, 2, 0)):
        for dims in dims_of(3):
            same(lambda view=view, dims=dims: view.sum(dims))
    same(lambda: (x.prod(2), x.argmax(0), x.max(1)[1], (x > 0).count_nonzero(1), x.mean(), x.std()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_pointwise(dtype: str) -> None:
    x, y = numbers(1001, 999, dtype=dtype), numbers(999, dtype=dtype)
    same(lambda: (x + y, x * x.T[:999, :1].T, rgrad.where(x > 0, x, -x), x.clamp(-1, 1)))
    if dtype != "int64":
        same(lambda: tuple(f(x) for f in (rgrad.exp, rgrad.tanh, rgrad.sin, rgrad.erf, rgrad.sigmoid)))
        same(lambda: (rgrad.pow(x.abs(), y), rgrad.fmod(x, y), rgrad.atan2(x, y)))


@pytest.mark.parametrize("shape", [(2000, 300), (60_000, 9), (20, 30_000), (50, 70, 80)], ids=str)
def test_softmax_and_running_sums(shape: tuple[int, ...]) -> None:
    x = numbers(*shape) / 100
    for d in range(len(shape)):
        same(lambda d=d: (x.softmax(d), x.log_softmax(d), x.cumsum(d), x.sort(d)))
    same(lambda: (x.reshape(-1).cumsum(0), x.reshape(-1).double().cumsum(0), (1 + x * 1e-3).reshape(-1).cumprod(0)))


@pytest.mark.parametrize(
    "shape", [(2000, 300), (60_000, 9), (3, 200_000), (20, 6, 50, 70), (2, 2, 300, 400), (9, 40, 5)], ids=str
)
def test_normalisation(shape: tuple[int, ...]) -> None:
    F = rgrad.nn.functional
    x, g = numbers(*shape).requires_grad_(), numbers(*shape)
    c = shape[1]
    w, b = numbers(c).requires_grad_(), numbers(c).requires_grad_()
    last = numbers(shape[-1]).requires_grad_()

    def all_of() -> tuple[rgrad.Tensor, ...]:
        made: tuple[rgrad.Tensor, ...] = ()
        for y, leaves in [
            (F.batch_norm(x, None, None, w, b, training=True), (x, w, b)),
            (F.group_norm(x, 2 if c % 2 == 0 else 1, w, b), (x, w, b)),
            (F.layer_norm(x, shape[-1:], last), (x, last)),
            (F.rms_norm(x, shape[-1:], last), (x, last)),
        ]:
            made += (y.detach(), *rgrad.autograd.grad(y, leaves, g))
        return made

    same(all_of)


FACTORS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((300, 700), (700, 500)),
    ((1, 5000), (5000, 800)),
    ((900, 3), (3, 1100)),
    ((40, 65, 33), (40, 33, 50)),
    ((2000, 800), (800,)),
    ((200_000,), (200_000,)),
]


@pytest.mark.parametrize(("a", "b"), FACTORS, ids=str)
def test_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for dtype in ("float32", "float64"):
        x, y = numbers(*a, dtype=dtype), numbers(*b, dtype=dtype)
        same(lambda x=x, y=y: x @ y)


def test_gradients() -> None:
    def step() -> object:
        x = numbers(256, 300).requires_grad_()
        w = (numbers(100, 300) / 50).requires_grad_()
        b = rgrad.zeros(100, requires_grad=True)
        y = rgrad.nn.functional.linear(x, w, b).tanh()
        rgrad.nn.functional.cross_entropy(y, rgrad.arange(256) % 100).backward()
        return (x.grad, w.grad, b.grad)

    same(step)


def test_adding_up_at_equal_positions() -> None:
    x, index = numbers(200_000), rgrad.from_numpy(np.random.default_rng(1).integers(0, 50, 200_000))
    rows = numbers(20_000, 40)
    same(lambda: (rgrad.zeros(50).index_add(0, index, x), rgrad.zeros(50, 40).index_add(0, index[:20_000], rows)))
    same(lambda: rgrad.zeros(50).scatter_add(0, index, x))


def test_random_numbers() -> None:
    def draw() -> object:
        rgrad.manual_seed(5)
        x = rgrad.empty(100_001)
        wide = rgrad.randn(300_001, dtype=rgrad.float64)
        return (rgrad.rand(300_001), wide, x.exponential_(), rgrad.randperm(70_001))

    same(draw)
