"""Functions written in Python refuse the arguments that PyTorch refuses, with its types and words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

CALLS: dict[str, Callable[[Any], Any]] = {
    "text for a dimension": lambda T: T.ones(2).cumsum("a"),
    "a fraction for a count": lambda T: T.ones(2).chunk(1.5),
    "nothing for a dimension": lambda T: T.ones(2).cumprod(None),
    "text for a tensor": lambda T: T.zeros_like("a"),
    "a number for a tensor": lambda T: T.ones(2).view_as(3),
    "text for an index": lambda T: T.ones(2).gather(0, "a"),
    "text for a tolerance": lambda T: T.allclose(T.ones(2), T.ones(2), "a"),
    "a number for a first tensor": lambda T: T.cumsum(1, 0),
    "text for a bound in place": lambda T: T.ones(2).clamp_("a"),
    "text for the other bound in place": lambda T: T.ones(2).clamp_(0, "a"),
    "text for one bound in place": lambda T: T.ones(2).clamp_min_("a"),
    "nothing for one bound in place": lambda T: T.ones(2).clamp_max_(None),
    "two numbers": lambda T: T.special.zeta(2.0, 3.0),
    "a string for a number": lambda T: T.special.zeta("a", T.ones(1)),
    "None for a number": lambda T: T.special.xlog1py(None, T.ones(1)),
    "a string for a degree": lambda T: T.special.chebyshev_polynomial_t(T.ones(1), "a"),
    "two numbers for a polynomial": lambda T: T.special.chebyshev_polynomial_t(2.0, 3),
    "a list": lambda T: T.special.entr([1.0]),
    "a number for integers": lambda T: T.gcd(T.tensor([2]), 2),
    "a number in place": lambda T: T.tensor([4]).gcd_(2),
    "nextafter": lambda T: T.nextafter(T.ones(1), 2.0),
    "float_power of numbers": lambda T: T.float_power(3, 2),
    "float_power of a string": lambda T: T.float_power("a", 2),
    "float_power_ of a string": lambda T: T.ones(1, dtype=T.float64).float_power_("a"),
    "a fraction for an int": lambda T: T.mvlgamma(T.ones(1), 1.5),
    "a bool for an int": lambda T: T.linalg.matrix_power(T.eye(2), True),
    "an int for a bool": lambda T: T.linalg.cholesky(T.eye(2), upper=1),
    "None for a bool": lambda T: T.linalg.cholesky(T.eye(2), upper=None),
    "a string for a bool": lambda T: T.linalg.solve(T.eye(2), T.ones(2, 1), left="a"),
    "a number for a string": lambda T: T.linalg.eigh(T.eye(2), 3),
    "a number for a mode": lambda T: T.linalg.qr(T.eye(2), 3),
    "a number for a driver": lambda T: T.linalg.svd(T.eye(2), driver=3),
    "a string for a float": lambda T: T.ones(2).cauchy_("a"),
    "None for a float": lambda T: T.ones(2).geometric_(None),
    "a string for a tolerance": lambda T: T.linalg.pinv(T.eye(2), "a"),
    "no order": lambda T: T.linalg.matrix_norm(T.eye(2), None),
    "no source": lambda T: T.as_strided_scatter(T.ones(2), None, (1,), (1,)),
    "no index": lambda T: T.put(T.ones(2), None, T.ones(1)),
    "no index of a reduction": lambda T: T.ones(2).index_reduce(0, None, T.ones(1), "mean"),
    "no reduction": lambda T: T.ones(2).scatter_reduce(0, T.tensor([0]), T.ones(1), None),
    "a string to fill with": lambda T: T.fill(T.ones(2), "a"),
    "a string for the diagonal": lambda T: T.eye(2).fill_diagonal_("a"),
    "weights as a list": lambda T: T.cov(T.ones(2, 2), fweights=[1]),
    "a fraction for a correction": lambda T: T.cov(T.ones(2, 2), correction=1.5),
    "counts as a list": lambda T: T.binomial([1.0], T.ones(1)),
    "no pivots": lambda T: T.linalg.lu_solve(T.eye(2), None, T.ones(2, 1)),
    "a vector of factors": lambda T: T.lu_unpack(T.ones(2), T.ones(2, dtype=T.int32)),
    "no factors": lambda T: T.linalg.householder_product(T.eye(2), None),
    "a number for a matrix": lambda T: T.linalg.diagonal(3),
    "a number among matrices": lambda T: T.linalg.multi_dot([T.ones(2, 2), 3]),
    "a number copied": lambda T: T.alias_copy(3),
    "a number compared": lambda T: T.ones(2).is_set_to(3),
    "a number's sign": lambda T: T.is_signed(3),
    "what is ambiguous": lambda T: T.ones(2, 2).dim_order(ambiguity_check=3),
    "an endless range": lambda T: T.range(0, float("inf")),
    "no range": lambda T: T.range(0, float("nan")),
    "out is a string": lambda T: T.special.entr(T.ones(2), out="a"),
    "out is a list": lambda T: T.linalg.inv(T.eye(2), out=[1]),
    "out is one": lambda T: T.frexp(T.ones(1), out=T.ones(1)),
    "out is one of three": lambda T: T.linalg.svd(T.eye(2), out=T.eye(2)),
    "out is two of three": lambda T: T.linalg.svd(T.eye(2), out=(T.eye(2), T.eye(2))),
    "out is a number of two": lambda T: T.linalg.qr(T.eye(2), out=(T.eye(2), 3)),
    "out of another dtype": lambda T: T.linalg.inv(T.eye(2), out=T.tensor([1])),
    "out of a lower category": lambda T: T.special.entr(T.ones(2), out=T.tensor([1, 2])),
    "out with a gradient": lambda T: T.erfinv(T.zeros(2, requires_grad=True), out=T.zeros(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((IndexError, TypeError, ValueError, RuntimeError)) as theirs:
            CALLS[name](torch)
        with pytest.raises(type(theirs.value)) as ours:
            CALLS[name](rgrad)
    for words in re.findall(r"argument '\w+'|must be \w+, not \w+|but got \d", str(theirs.value)):
        # rgrad takes numbers for tensors, too.
        wanted = words.replace("must be Number", "must be (Tensor or Number|float)")
        wanted = wanted.replace("must be Tensor,", "must be Tensor( or Number)?,")
        assert re.search(wanted, str(ours.value)), f"{words}: {ours.value}"


def test_what_is_taken() -> None:
    """Tensors without dimensions and NumPy's numbers stand for numbers, integers of any kind for integers."""
    import numpy as np

    for T in (torch, rgrad):
        assert T.linalg.matrix_power(2 * T.eye(1), np.int64(2)).item() == 4
        assert T.linalg.matrix_power(2 * T.eye(1), T.tensor(2)).item() == 4
        assert T.histc(T.ones(2), 3, T.tensor(0.0), np.float32(2)).tolist() == [0, 2, 0]
        assert T.special.zeta(T.tensor([2.0]), np.float32(2)).item() == pytest.approx(0.644934, abs=1e-5)
        made = T.linalg.qr(T.eye(2), out=[T.empty(0), T.empty(0)])
        assert made.Q.shape == (2, 2)
