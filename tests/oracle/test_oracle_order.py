"""Sorting, quantiles, unique elements, blocks and out= beside torch: corner cases, errors, refused derivatives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, both, same  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

NAN = float("nan")
SETUP = """
x = T.tensor([3.0, 1.0, 3.0, NAN, 2.0, NAN])
i = T.tensor([[2, 1, 2], [1, 1, 3]])
b = T.tensor([True, False])
m = T.tensor([[0.5, -1.0, 2.0], [2.5, 0.0, -3.0]])
s = T.tensor(2.0)
z = T.zeros(0)
r = T.tensor([[0.5, -1.0], [2.5, 0.0]], requires_grad=True)
"""

CASES = (
    *(f"{t}.{f}(0)" for t in "xibsz" for f in ("cummax", "cummin")),
    "i.cummax(2)",
    "s.cummin(1)",
    *(f"{t}.mode()" for t in "xibmsz"),
    "i.mode(0, True)",
    "i.mode(5)",
    "T.zeros(2, 0).mode(1)",
    "T.zeros(0, 2).mode(1)",
    *(f"{t}.{f}()" for t in "xibmsz" for f in ("median", "nanmedian")),
    "T.tensor([NAN, NAN]).nanmedian()",
    "T.tensor([NAN, NAN]).nanmedian(0)",
    "T.zeros(2, 0).nanmedian(1)",
    "x.nanmedian(0)",
    "m.nanmedian(1, keepdim=True)",
    "x.nanmean()",
    "i.nanmean()",
    "m.nanmean(0, keepdim=True)",
    "m.nanmean((0, 1))",
    "m.nanmean(dtype=T.float64)",
    "m.quantile(2)",
    "m.quantile(-0.1)",
    "m.quantile(0.5, interpolation='x')",
    "m.quantile('a')",
    "i.quantile(0.5)",
    "z.quantile(0.5)",
    "T.zeros(2, 0).quantile(0.5, 1)",
    "m.quantile(T.tensor([0.1, 0.2]).double())",
    "m.quantile(T.tensor([[0.1]]))",
    "m.quantile(T.tensor([1.5]))",
    "m.quantile(T.tensor([]), 1)",
    "m.quantile(T.tensor(0.5))",
    "m.quantile(1)",
    "m.quantile(0.5, 3)",
    "s.quantile(0.5, 0)",
    "s.quantile(0.5, keepdim=True)",
    "s.quantile(T.tensor([0.5, 0.25]), 0, True)",
    "T.tensor([NAN, 1.0, 2.0]).quantile(0.5)",
    "T.tensor([NAN, 1.0, 2.0]).nanquantile(0.5)",
    "T.tensor([NAN, NAN]).nanquantile(0.5)",
    *(
        f"{t}.unique({a})"
        for t in "xibsz"
        for a in ("", "return_inverse=True", "return_counts=True", "True, True, True", "sorted=False")
    ),
    *(f"{t}.unique_consecutive({a})" for t in "xibsz" for a in ("", "True", "return_counts=True", "True, True")),
    "i.unique(dim=0)",
    "i.unique(dim=1, return_inverse=True, return_counts=True)",
    "i.unique(dim=2)",
    "s.unique(dim=0)",
    "T.zeros(0, 2).unique(dim=0)",
    "T.zeros(0, 2).unique(dim=1)",
    "T.zeros(2, 0).unique(dim=0)",
    "i.unique_consecutive(dim=1, return_inverse=True, return_counts=True)",
    "i.unique_consecutive(dim=0)",
    "r.unique()",
    "r.unique(dim=0)",
    "r.unique().sum().backward()",
    "r.unique(dim=0).sum().backward()",
    "r.unique_consecutive().sum().backward()",
    "T.bincount(T.tensor([1, 2, 2]))",
    "T.bincount(T.tensor([1, 2, 2]), minlength=6)",
    "T.bincount(T.tensor([1, 2, 2]), T.tensor([0.5, 1, 1]), 5)",
    "T.bincount(T.tensor([1, 2]), T.tensor([1, 2]))",
    "T.bincount(T.tensor([], dtype=T.int64))",
    "T.bincount(T.tensor([-1]))",
    "T.bincount(T.tensor([[1]]))",
    "T.bincount(T.tensor([1.0]))",
    "T.bincount(T.tensor([1]), T.tensor([1.0, 2.0]))",
    "T.bincount(T.tensor([1]), minlength=-1)",
    "T.hsplit(s, 1)",
    "T.hsplit(T.zeros(4), 3)",
    "T.hsplit(T.zeros(2, 4), 0)",
    "T.hsplit(T.zeros(2, 4), -1)",
    "T.hsplit(T.zeros(2, 4), [3, 1])",
    "T.vsplit(T.zeros(4), 2)",
    "T.vsplit(T.zeros(4, 2), 3)",
    "T.dsplit(T.zeros(2, 2), 1)",
    "T.zeros(2, 2, 4).dsplit(3)",
    "T.block_diag()",
    "T.block_diag(T.ones(1, 1, 1))",
    "T.block_diag(T.ones(2), 3)",
    "T.block_diag([T.ones(2)])",
    "T.block_diag(T.ones(0), T.ones(2))",
    "T.block_diag(T.ones(2, dtype=T.int32), T.ones(1, dtype=T.float64))",
    "T.kron(i, b)",
    "T.kron(i, 2)",
    "s.diff()",
    "b.diff()",
    "i.diff(5)",
    "i.diff(-1)",
    "i.diff(dim=3)",
    "i.diff(prepend=T.tensor([[0], [0]]))",
    "i.diff(prepend=T.tensor([0]))",
    "T.zeros(3).sum_to_size(2)",
    "T.zeros(2, 3).sum_to_size((1, 3))",
    "T.zeros(2, 3).sum_to_size(2, 3)",
    "T.zeros(3).sum_to_size(1, 3)",
    "i.msort()",
)


@pytest.mark.parametrize("case", CASES)
def test_corners(case: str) -> None:
    def run(T: Any) -> Any:
        space = {"T": T, "NAN": NAN}
        exec(SETUP, space)
        return eval(case, space)

    both(run)


OUT = (
    *(
        f"T.{f}(m{a}, out=o)"
        for f in (
            "sum",
            "mean",
            "var",
            "std",
            "amax",
            "amin",
            "argmax",
            "argmin",
            "all",
            "any",
            "nansum",
            "nanmean",
            "norm",
        )
        for a in ("", ", dim=0")
        if (f, a) not in {("var", ""), ("std", ""), ("norm", "")}
    ),
    "T.prod(m, 1, out=o)",
    "T.cumsum(m, 1, out=o)",
    "T.cumprod(m, 0, out=o)",
    "T.logsumexp(m, 1, out=o)",
    "T.softmax(m, 1, out=o)",
    "T.quantile(m, 0.5, 1, out=o)",
    "T.max(m, out=o)",
)
PAIRS = ("max", "min", "sort", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
@pytest.mark.parametrize("case", OUT)
def test_out(case: str, dtype: str) -> None:
    """Filled and given back, or refused for its dtype as torch refuses it."""

    if dtype == "float64" and case[2:].startswith(("std", "logsumexp")):
        pytest.skip("torch computes in the wider type")

    def run(T: Any) -> Any:
        space: dict[str, Any] = {"T": T, "NAN": NAN, "o": T.empty(0, dtype=getattr(T, dtype))}
        exec(SETUP, space)
        result = eval(case, space)
        assert result is space["o"]
        return result

    mine, theirs = attempt(lambda: run(rgrad)), attempt(lambda: run(torch))
    # torch's kernels refuse some dtypes of out= that the conversion rules allow; never the other way.
    assert theirs.error is not None or mine.error is None, mine.message
    if theirs.error is None:
        same(mine.value, theirs.value)


@pytest.mark.parametrize("name", PAIRS)
def test_out_of_pairs(name: str) -> None:
    def run(T: Any) -> Any:
        m = T.tensor([[0.5, -1.0, 2.0], [2.5, 0.0, -3.0]])
        values, places = T.empty(0), T.empty(0, dtype=T.int64)
        args = (m, 2) if name in ("topk", "kthvalue") else (m, 1)
        got = getattr(T, name)(*args, out=(values, places))
        assert got[0] is values
        assert got[1] is places
        return got.values, got.indices

    both(run)


def test_no_gradient_with_out() -> None:
    both(lambda T: T.sum(T.ones(2, requires_grad=True), 0, out=T.empty(())))
    both(lambda T: T.cummax(T.ones(2, requires_grad=True), 0, out=(T.empty(2), T.empty(2, dtype=T.int64))))


def test_out_aminmax() -> None:
    both(lambda T: tuple(T.aminmax(T.tensor([[1.0, 2.0], [0.0, 5.0]]), dim=0, out=(T.empty(0), T.empty(0)))))


@pytest.mark.parametrize("bounds", [("lo", None), (None, "hi"), ("lo", "hi"), ("hi", "lo")])
def test_gradients_of_clamp_by_tensors(bounds: tuple[str | None, str | None]) -> None:
    """At a bound, and with bounds that cross."""

    def run(T: Any) -> Any:
        x = T.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, NAN, float("inf")], dtype=T.float64, requires_grad=True)
        named = {
            "lo": T.tensor(0.0, dtype=T.float64, requires_grad=True),
            "hi": T.tensor([1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0], dtype=T.float64, requires_grad=True),
        }
        lo, hi = (named[b] if b else None for b in bounds)
        y = T.clamp(x, lo, hi)
        grads = T.autograd.grad(y.sum(), [x, *named.values()], materialize_grads=True)
        return y, type(y.grad_fn).__name__, grads

    both(run)


def test_as_strided_over_memory_that_its_input_shares() -> None:
    def run(T: Any) -> Any:
        x = T.arange(4.0, dtype=T.float64).requires_grad_()
        y = (x * x).unfold(0, 2, 1).as_strided((2, 3), (1, 1), 0)
        (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
        (h,) = T.autograd.grad((g * g).sum(), x)
        return y, g, h

    both(run, factor=10)


def test_broadcasting_to_a_shape() -> None:
    both(lambda T: T.ones(3).broadcast_to(2, 3))
    both(lambda T: T.ones(3).broadcast_to((2, 3)))
    both(lambda T: T.ones(3).broadcast_to(size=(2, 3)))
    both(lambda T: T.broadcast_to(T.ones(3), (2, 3)))
    both(lambda T: T.ones(3).broadcast_to(2))
    both(lambda T: T.ones(3).broadcast_to())
    both(lambda T: T.broadcast_tensors(T.ones(3, requires_grad=True), T.ones(2, 1, requires_grad=True)))
    both(lambda T: T.broadcast_tensors(T.ones(3, requires_grad=True), T.ones(1)))
