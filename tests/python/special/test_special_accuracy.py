"""Special functions beside stored values with 25 digits, which `tests/data/special_functions.py` has made."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.special

LINES = [
    line.split()
    for line in (Path(__file__).parents[2] / "data/special_functions.txt").read_text().splitlines()
    if not line.startswith("#")
]
NAMES = sorted({line[0] for line in LINES})

# The height beside which errors of functions with zeros are seen; 0 where they have none.
HEIGHT = {
    "_airy_ai_prime": 1.5,
    "_spherical_bessel_j1": 0.4,
    "airy_ai": 0.5,
    "bessel_j0": 1.0,
    "bessel_j1": 1.0,
    "bessel_y0": 1.0,
    "bessel_y1": 1.0,
    "digamma": 1.0,
    "gammaln": 1.0,
    "laguerre_polynomial_l": 10.0,
    "legendre_polynomial_p": 1.0,
    "polygamma": 1.0,
    "shifted_chebyshev_polynomial_u": 1.0,
    "sinc": 0.1,
}
# Units in the last place of float64, where it is not 4; what limits it is beside it.
UNITS = {
    "_dirichlet_grad": 100,  # b is the difference of two arguments
    "_standard_gamma_grad": 100,  # sums of up to some hundred terms
    "bessel_j0": 10,  # sums of 44 Chebyshev polynomials
    "bessel_j1": 16,
    "bessel_y0": 80,  # the same, and a logarithm that cancels
    "bessel_y1": 16,
    "gammainc": 120,  # the exponential of up to 300
    "gammaincc": 60,
    "gammaln": 8,  # the product of a logarithm
    "hermite_polynomial_h": 120,  # the recurrence near zeros
    "i1": 6,
    "log_ndtr": 12,  # erfc of a rounded quotient
    "ndtr": 160,  # the exponential of up to 70
    "polygamma": 8,
    "xlog1py": 4,
}


def function(name: str) -> Any:
    return getattr(rgrad._core if name.startswith("_") else rgrad.special, name)


def errors(name: str, dtype: str) -> list[tuple[float, str]]:
    """Each error in units in the last place of the value."""
    found = []
    for _, *given, value in (line for line in LINES if line[0] == name):
        # An order is a number, not a tensor.
        parts = [rgrad.tensor([float(v)], dtype=getattr(rgrad, dtype)) for v in given]
        first = int(float(given[0])) if name == "polygamma" else parts[0]
        got = function(name)(first, *parts[1:]).item()
        true = Decimal(value)
        if abs(true) < Decimal(repr(float(np.finfo(dtype).tiny))):
            continue
        unit = Decimal(float(np.spacing(np.abs(np.array(value, dtype)))))
        height = Decimal(HEIGHT.get(name, 0.0) * float(np.finfo(dtype).eps))
        found.append((float(abs(Decimal(got) - true) / max(unit, height)), " ".join([*given, str(got), value])))
    assert len(found) > 12
    return found


@pytest.mark.parametrize("name", NAMES)
def test_doubles(name: str) -> None:
    worst = max(errors(name, "float64"))
    assert worst[0] <= UNITS.get(name, 4), worst


@pytest.mark.parametrize("name", NAMES)
def test_singles(name: str) -> None:
    worst = max(errors(name, "float32"))
    # These are computed in float32 themselves.
    assert worst[0] <= (64 if name == "ndtr" else 2 if name in ("entr", "xlog1py") else 0.51), worst
