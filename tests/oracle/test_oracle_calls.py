"""Creation, conversion and bad input on rgrad and on torch: values, dtypes, error types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bad_input_shapes import DIMS, SHAPES, Case, Inputs  # noqa: E402 - torch must be there first
from bad_input_values import CREATION, DTYPES, INDICES  # noqa: E402
from compare import both  # noqa: E402
from expressions import EXPRESSIONS  # noqa: E402

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    both(lambda T: eval(expression, {"T": T, "np": np}), history=False)


TABLES = [("shape", SHAPES), ("dim", DIMS), ("index", INDICES), ("dtype", DTYPES), ("creation", CREATION)]
# torch reads beyond the end, calls a number that is too large a wrong type or value, or warns before it refuses.
OWN_WAY = {"take_along_dim", "huge index", "size not an int64", "string"}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id=f"{group}-{c[0]}".replace(" ", "_"))
        for group, cases in TABLES
        for c in cases
        if c[0] not in OWN_WAY
    ],
)
def test_errors_have_torchs_type(case: Case) -> None:
    mine, theirs = both(lambda T: case[1](T, Inputs(T)))
    assert theirs.error is not None
    assert mine.message


@pytest.mark.parametrize("name", sorted(OWN_WAY))
def test_what_goes_its_own_way_does_so(name: str) -> None:
    cases = [c for _, cases in TABLES for c in cases if c[0] == name]
    assert cases
    for case in cases:
        with pytest.raises(AssertionError):
            test_errors_have_torchs_type(case)


def test_random_numbers_have_their_distribution() -> None:
    """Our generator is our own; only what it promises is compared."""
    import rgrad

    rgrad.manual_seed(3)
    a = rgrad.randn(200_000)
    u = rgrad.rand(200_000)
    assert abs(a.mean().item()) < 0.01
    assert abs(a.std().item() - 1) < 0.01
    assert u.min().item() >= 0.0
    assert u.max().item() < 1.0
    assert abs(u.mean().item() - 0.5) < 0.005
    rgrad.manual_seed(3)
    assert rgrad.equal(rgrad.randn(200_000), a)
    g = rgrad.Generator().manual_seed(3)
    again = rgrad.Generator().manual_seed(3)
    assert rgrad.equal(rgrad.randn(5, generator=g), rgrad.randn(5, generator=again))
    k = rgrad.randint(0, 10, (100_000,))
    counts: list[Any] = [(k == n).sum().item() for n in range(10)]
    assert min(counts) > 9_500
    assert max(counts) < 10_500
