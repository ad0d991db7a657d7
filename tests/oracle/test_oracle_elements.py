"""Functions of elements, statistics and writes at positions beside PyTorch: values, dtypes, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(3, 4))
INDEX = RNG.integers(0, 3, size=(5, 4))
SOURCE = RNG.normal(size=(5, 4))
SOURCE[0] = 0
SOURCE[1, 2] = 0


def flat(made: Any) -> list[Any]:
    return [x for part in made for x in flat(part)] if isinstance(made, (tuple, list)) else [made]


VALUES: dict[str, Callable[[Any], Any]] = {
    "gcd": lambda T: T.gcd(T.tensor([4, -9, 0]), T.tensor([6, 15, 0])),
    "gcd mixed": lambda T: T.gcd(T.tensor([4], dtype=T.uint8), T.tensor([6])),
    "lcm": lambda T: T.tensor([4, -9, 0]).lcm_(T.tensor([6, 15, 0])),
    "signbit": lambda T: T.signbit(T.tensor([0.0, -0.0, float("nan"), -1, -float("inf")])),
    "signbit int": lambda T: T.signbit(T.tensor([1, -1])),
    "signbit bool": lambda T: T.signbit(T.tensor([True])),
    "heaviside": lambda T: T.heaviside(T.tensor([-1.0, 0, float("nan"), 2]), T.tensor([0.5])),
    "heaviside int": lambda T: T.heaviside(T.tensor([-1, 0, 2]), T.tensor([5])),
    "nextafter": lambda T: T.nextafter(T.tensor([1.0, 0, -1]), T.tensor([2.0, -1, -1])) * 1e30,
    "nextafter half": lambda T: T.nextafter(T.tensor([1.0, 0, -1, 3]).half(), T.tensor([2.0, -1, 5, 3]).half()).float(),
    "nextafter bfloat16": lambda T: T.nextafter(
        T.tensor([1.0, 0, -1, 3, -0.0, 1e-40, float("nan"), float("inf"), -float("inf")]).bfloat16(),
        T.tensor([2.0, -1, 5, 3, 1.0, 0.0, 1.0, 0.0, 0.0]).bfloat16(),
    ).float(),
    "heaviside bfloat16": lambda T: T.heaviside(T.tensor([-1.0, 0, 2]).bfloat16(), T.ones(1).bfloat16()).float(),
    "ldexp half": lambda T: T.ldexp(T.tensor([1e-4, 2.0]).half(), T.tensor([20, 3])).float(),
    "ldexp bfloat16": lambda T: T.ldexp(T.tensor([1.0, 2.0]).bfloat16(), T.tensor([2, 3])).float(),
    "histogram empty": lambda T: T.histogram(T.ones(0), 2),
    "polynomial of bytes": lambda T: T.special.chebyshev_polynomial_w(T.tensor([1, 2], dtype=T.uint8), -1),
    "var of nothing": lambda T: T.var(T.ones(0, 3), 0, correction=-1),
    "float_power": lambda T: T.float_power(T.tensor([2, 3]), 2),
    "float_power of number": lambda T: T.float_power(2, T.tensor([0.5, 3])),
    "float_power broadcast": lambda T: T.float_power(T.tensor([2.0]), T.tensor([0.5, 3])),
    "frexp": lambda T: T.frexp(T.tensor([3.0, 0.25, 0, -1e-40, float("inf"), 1e38])),
    "frexp double": lambda T: T.frexp(T.tensor([3.0, 5e-324, 1e308], dtype=T.float64)),
    "fill": lambda T: T.fill(T.ones(2, 2), 3),
    "range": lambda T: T.range(1, 4, 0.5),
    "range int": lambda T: T.range(5, 1, -2, dtype=T.int64),
    "cov": lambda T: T.cov(T.tensor(POINTS)),
    "cov of one": lambda T: T.cov(T.tensor(POINTS[0])),
    "cov fweights": lambda T: T.cov(T.tensor(POINTS), fweights=T.tensor([1, 2, 1, 3])),
    "cov aweights": lambda T: T.cov(
        T.tensor(POINTS), aweights=T.tensor([0.1, 2, 1, 3], dtype=T.float64), fweights=T.tensor([1, 2, 1, 3])
    ),
    "cov correction": lambda T: T.cov(T.tensor(POINTS), correction=0),
    "cov degenerate": lambda T: T.cov(T.ones(2, 1)),
    "cov int": lambda T: T.cov(T.tensor([[1, 2], [3, 5]])),
    "corrcoef": lambda T: T.tensor(POINTS).corrcoef(),
    "corrcoef of one": lambda T: T.corrcoef(T.tensor(POINTS[0])),
    "histc": lambda T: T.histc(T.tensor(POINTS), 5),
    "histc ends": lambda T: T.histc(T.tensor([1.0, 2, 1, 3, -1]), 4, 0, 3),
    "histc of one value": lambda T: T.histc(T.ones(3), 3),
    "histc float32": lambda T: T.histc(T.tensor(POINTS).float(), 7, -1, 1),
    "histogram": lambda T: T.histogram(T.tensor(POINTS), 5),
    "histogram density": lambda T: T.histogram(
        T.tensor([1.0, 2, 1, 3, -1]), 4, range=(0.0, 3.0), weight=T.tensor([1.0, 2, 4, 1, 1]), density=True
    ),
    "histogram edges": lambda T: T.histogram(T.tensor(POINTS), T.tensor([-1, 0, 0.5, 2.0], dtype=T.float64)),
    "histogramdd": lambda T: flat(T.histogramdd(T.tensor(POINTS.reshape(6, 2)), [2, 3])),
    "cross": lambda T: T.cross(T.tensor(POINTS), T.tensor(POINTS**2)),
    "cross dim": lambda T: T.cross(T.tensor(POINTS[:, :3]), T.tensor(POINTS[:, :3] ** 2), 1),
    "put": lambda T: T.put(T.tensor(POINTS), T.tensor([[1, -1]]), T.tensor([[5.0, 6]], dtype=T.float64)),
    "put_ accumulate": lambda T: T.tensor(POINTS).put_(
        T.tensor([1, 1]), T.tensor([5.0, 6], dtype=T.float64), accumulate=True
    ),
    "as_strided_scatter": lambda T: T.as_strided_scatter(T.zeros(3, 3), T.ones(2, 2), (2, 2), (1, 2), 1),
    "fill_diagonal_ wrap": lambda T: T.zeros(7, 3).fill_diagonal_(2, wrap=True),
    "fill_diagonal_ cube": lambda T: T.zeros(3, 3, 3).fill_diagonal_(2),
    "fill_diagonal_ wide": lambda T: T.zeros(2, 5).fill_diagonal_(1),
    "fill_diagonal_ transposed": lambda T: T.zeros(3, 5).t().fill_diagonal_(1),
    "fill_diagonal_ one more row": lambda T: T.zeros(4, 3).fill_diagonal_(1, True),
    "nonzero_static": lambda T: T.nonzero_static(T.tensor([[0, 3], [4, 5]]), size=2),
    "nonzero_static padded": lambda T: T.tensor([[0, 3], [4, 5]]).nonzero_static(size=5, fill_value=7),
    "copies": lambda T: [
        T.diagonal_copy(T.tensor(POINTS)),
        T.narrow_copy(T.tensor(POINTS), 0, 1, 2),
        T.t_copy(T.tensor(POINTS)),
        *T.split_copy(T.tensor(POINTS), 2),
        T.unsqueeze_copy(T.tensor(POINTS), 0),
        T.view_copy(T.tensor(POINTS), (4, 3)),
        T.expand_copy(T.ones(1), (3,)),
        T.permute_copy(T.tensor(POINTS), (1, 0)),
        *T.unbind_copy(T.tensor(POINTS), 1),
        T.select_copy(T.tensor(POINTS), 0, 1),
    ],
    "addmm_": lambda T: T.ones(2, 2).addmm_(T.ones(2, 3), T.ones(3, 2), beta=0.5, alpha=2),
    "addmv_": lambda T: T.addmv_(T.ones(2), T.ones(2, 3), T.ones(3)),
    "addr_": lambda T: T.ones(2, 2).addr_(T.ones(2), T.ones(2)),
    "addbmm_": lambda T: T.ones(2, 2).addbmm_(T.ones(5, 2, 3), T.ones(5, 3, 2)),
    "baddbmm_": lambda T: T.ones(5, 2, 2).baddbmm_(T.ones(5, 2, 3), T.ones(5, 3, 2)),
    "ldexp bool of bool": lambda T: T.ldexp(T.tensor([True, False]), T.tensor([True])),
    "ldexp bool of integer": lambda T: T.ldexp(T.tensor([3, -4]), T.tensor([True, False])),
    "ldexp_": lambda T: T.ones(2).ldexp_(T.tensor([1, 2])),
    "renorm_": lambda T: T.tensor(POINTS).renorm_(2, 0, 1.0),
    "dim_order": lambda T: T.tensor(T.ones(2, 3, 4).permute(2, 0, 1).dim_order()),
    "apply_": lambda T: T.tensor([1.0, 2]).apply_(lambda v: v * 3),
    "map_": lambda T: T.tensor([1.0, 2]).map_(T.tensor([5.0, 6]), lambda a, b: a + b),
    "positive": lambda T: T.positive(T.ones(2)),
}


def reduced(name: str, reduce: str, include: bool) -> Callable[..., Any]:
    if name == "scatter_reduce":
        return lambda T, a, s: T.scatter_reduce(a, 0, T.tensor(INDEX), s, reduce, include_self=include)
    return lambda T, a, s: T.index_reduce(a, 0, T.tensor([0, 0, 2, 1, 2]), s, reduce, include_self=include)


REDUCED = [
    (name, reduce, include)
    for name in ("scatter_reduce", "index_reduce")
    for reduce in ("sum", "prod", "mean", "amax", "amin")
    for include in (True, False)
    if (name, reduce) != ("index_reduce", "sum")
]
DIFFERENTIABLE: dict[str, Callable[..., Any]] = {
    "put": lambda T, a, s: T.put(a, T.tensor([[1, 5]]), s[2, :2][None]),
    "cov": lambda T, a, s: T.cov(a),
    "cov weights": lambda T, a, s: T.cov(a, aweights=s[3].abs()),
    "corrcoef": lambda T, a, s: T.corrcoef(a * s[2:5]),
    "frexp": lambda T, a, s: T.frexp(a)[0] * s[:3],
    "cross": lambda T, a, s: T.cross(a, s[2:], 0),
    "float_power": lambda T, a, s: T.float_power(a.abs(), s[:3]),
    "addmm_": lambda T, a, s: (a * 1)[:3, :3].addmm_(a, s[:4, :3]),
    "fill": lambda T, a, s: T.fill(a, s[2, 0]),
    "nextafter": lambda T, a, s: T.nextafter(a, s[:3]),
    "renorm": lambda T, a, s: T.renorm(a, 2, 0, 1.0),
    "scatter_reduce_ of a constant": lambda T, a, s: (
        T.ones(3, 4).double().scatter_reduce_(0, T.tensor(INDEX[:1]), s[2:3], "prod") * a
    ),
    "igamma_ of a constant": lambda T, a, s: T.ones(3, 4).double().igamma_(a.abs() + 1),
}


def same(wanted: Any, got: Any) -> None:
    for w, g in zip(flat(wanted), flat(got), strict=True):
        assert str(w.dtype).rpartition(".")[2] == str(g.dtype).rpartition(".")[2]
        assert tuple(w.shape) == tuple(g.shape)
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    same(VALUES[name](torch), VALUES[name](rgrad))


@pytest.mark.parametrize(("name", "reduce", "include"), REDUCED)
def test_reductions_at_positions(name: str, reduce: str, include: bool) -> None:
    call = reduced(name, reduce, include)
    for kind in ("float64", "float32", "int64", "float16"):
        made = []
        for T in (torch, rgrad):
            dtype = getattr(T, kind)
            made.append(call(T, T.tensor(POINTS * 4).to(dtype), T.tensor(SOURCE * 4).to(dtype)))
        np.testing.assert_allclose(made[1].double().numpy(), made[0].double().numpy(), rtol=5e-3, atol=1e-3)
        assert str(made[0].dtype).rpartition(".")[2] == str(made[1].dtype).rpartition(".")[2]


@pytest.mark.parametrize(("name", "reduce", "include"), REDUCED)
def test_gradients_of_reductions(name: str, reduce: str, include: bool) -> None:
    compare(reduced(name, reduce, include), second=reduce == "prod" and name == "scatter_reduce")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    compare(DIFFERENTIABLE[name], second=name not in ("put", "fill", "nextafter"))


def compare(call: Callable[..., Any], second: bool) -> None:
    start, source = POINTS.copy(), SOURCE.copy()
    start[0, 0] = start[1, 1]
    source[4] = source[3]  # equal ones share a gradient
    found = []
    for T in (torch, rgrad):
        leaves = T.tensor(start, requires_grad=True), T.tensor(source, requires_grad=True)
        y = call(T, *leaves)
        weights = T.tensor(np.random.default_rng(1).normal(size=tuple(y.shape)))
        grads = T.autograd.grad((y * weights).sum(), leaves, create_graph=True, allow_unused=True)
        made = list(grads)
        if second:
            total = sum((g * g.cos()).sum() for g in grads if g is not None and g.requires_grad)
            made += T.autograd.grad(total, leaves, allow_unused=True)
        found.append([np.zeros(1) if g is None else g.detach().numpy() for g in made])
    for w, g in zip(*found, strict=True):
        np.testing.assert_allclose(
            np.broadcast_to(g, w.shape) if w.size > 1 else g + 0 * w, w + 0 * g, rtol=1e-7, atol=1e-9
        )


REFUSED: dict[str, Callable[[Any], Any]] = {
    "gcd": lambda T: T.gcd(T.ones(1), T.ones(1)),
    "ldexp": lambda T: T.ldexp(T.ones(1), T.tensor([True])),
    "mvlgamma": lambda T: T.mvlgamma(T.tensor([True]), 2),
    "range nan": lambda T: T.range(float("nan"), 1),
    "trapezoid": lambda T: T.trapezoid(T.tensor([True])),
    "cov of nothing": lambda T: T.cov(T.ones(2, 0), fweights=T.ones(0).long()),
    "cross dtype": lambda T: T.cross(T.ones(3), T.ones(3).double(), 0),
    "vecdot dtype": lambda T: T.linalg.vecdot(T.ones(3), T.ones(3).double()),
    "tensordot dtype": lambda T: T.tensordot(T.ones(3), T.ones(3).double(), 1),
    "vector_norm of integers": lambda T: T.linalg.vector_norm(T.ones(3).long(), dtype=T.float64),
    "vander": lambda T: T.linalg.vander(T.ones(3), N=1),
    "householder": lambda T: T.linalg.householder_product(T.ones(2, 2), T.ones(2, 2)),
    "det half": lambda T: T.linalg.det(T.ones(2, 2).half()),
    "eigh of integers": lambda T: T.linalg.eigh(T.ones(2, 2).long()),
    "scatter into nothing": lambda T: T.ones(0, 3).scatter(0, T.tensor([[2]]), 1.0),
    "index_fill": lambda T: T.ones(3).index_fill(0, T.tensor([[1]]), 1.0),
    "pad": lambda T: T.nn.functional.pad(T.ones(1, dtype=T.uint8), (1, 1), value=-1),
    "heaviside": lambda T: T.heaviside(T.ones(1), T.ones(1).double()),
    "heaviside backward": lambda T: T.heaviside(T.ones(1, requires_grad=True), T.ones(1)).sum().backward(),
    "float_power out": lambda T: T.float_power(T.ones(1), 2, out=T.ones(1)),
    "float_power_": lambda T: T.ones(1).float_power_(2),
    "frexp": lambda T: T.frexp(T.ones(1).long()),
    "positive": lambda T: T.positive(T.tensor([True])),
    "range": lambda T: T.range(1, 5, -1),
    "cov": lambda T: T.cov(T.ones(1, 1, 1)),
    "cov weights": lambda T: T.cov(T.ones(2, 2), fweights=T.ones(2)),
    "cov negative": lambda T: T.cov(T.ones(2, 2), fweights=T.tensor([-1, 1])),
    "histc bins": lambda T: T.histc(T.ones(2), 0),
    "histc ends": lambda T: T.histc(T.ones(2), 2, 3, 1),
    "histc ints": lambda T: T.histc(T.ones(2).long()),
    "histogram weight": lambda T: T.histogram(T.ones(2), 2, weight=T.ones(3)),
    "put": lambda T: T.put(T.ones(2), T.tensor([0, 1]), T.ones(1)),
    "put index": lambda T: T.put(T.ones(2), T.tensor([5]), T.ones(1)),
    "put dtype": lambda T: T.put(T.ones(2), T.tensor([0]), T.ones(1).double()),
    "scatter_reduce": lambda T: T.scatter_reduce(T.ones(2), 0, T.tensor([0]), T.ones(1), "median"),
    "scatter_reduce index": lambda T: T.scatter_reduce(T.ones(2), 0, T.tensor([2]), T.ones(1), "amax"),
    "scatter_reduce dim": lambda T: T.scatter_reduce(T.ones(2), 1, T.tensor([0]), T.ones(1), "sum"),
    "scatter_reduce dtype": lambda T: T.scatter_reduce(T.ones(2), 0, T.tensor([0]), T.ones(1).long(), "prod"),
    "index_reduce": lambda T: T.index_reduce(T.ones(2), 0, T.tensor([0]), T.ones(1), "sum"),
    "index_reduce index": lambda T: T.index_reduce(T.ones(2), 0, T.tensor([3]), T.ones(1), "amax"),
    "as_strided_scatter": lambda T: T.as_strided_scatter(T.ones(4), T.ones(3), (2,), (1,)),
    "fill_diagonal_": lambda T: T.ones(2).fill_diagonal_(1),
    "fill_diagonal_ sizes": lambda T: T.ones(2, 2, 3).fill_diagonal_(1),
    "nonzero_static": lambda T: T.nonzero_static(T.ones(2), size=-1),
    "cross": lambda T: T.cross(T.ones(2), T.ones(2)),
    "apply_": lambda T: T.ones(2, requires_grad=True).apply_(abs),
    "cauchy_": lambda T: T.ones(2).cauchy_(0, -1),
    "geometric_": lambda T: T.ones(2).geometric_(2),
    "poisson": lambda T: T.poisson(-T.ones(2)),
    "cuda": lambda T: T.ones(2).cuda(),
    "xpu": lambda T: T.ones(2).xpu(),
    "addmm_": lambda T: T.ones(2, 3).addmm_(T.ones(2, 2), T.ones(2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    kinds = (AssertionError, IndexError, NotImplementedError, TypeError, ValueError, RuntimeError)
    with pytest.raises(kinds) as theirs:
        REFUSED[name](torch)
    kind = next(k for k in kinds if isinstance(theirs.value, k))
    with pytest.raises(kind):
        REFUSED[name](rgrad)


def test_the_methods_and_functions_that_pytorch_has() -> None:
    """No name is left behind that numerical code uses; what is not here is of devices, formats and kinds of numbers."""
    from rgrad._functions.late_methods import LATE

    for names in LATE.values():
        for name, forms in names.items():
            if "f" in forms:
                assert hasattr(torch, name), name
                assert callable(getattr(rgrad, name))
            if "m" in forms:
                assert hasattr(torch.Tensor, name), name
                assert callable(getattr(rgrad.Tensor, name))
            if "i" in forms:
                assert hasattr(torch.Tensor, f"{name}_"), name
                assert callable(getattr(rgrad.Tensor, f"{name}_"))
            assert ("j" in forms) == (hasattr(torch, f"{name}_") and "i" in forms), name
