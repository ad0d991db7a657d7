"""Write ``special_functions.txt`` beside this file: values of special functions that mpmath computes with 50 digits.

``python tests/data/special_functions.py`` writes the file anew; mpmath and NumPy have to be installed. Arguments are
float32 numbers, so that both dtypes are compared at the same places.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as m
import numpy as np

PATH = Path(__file__).with_suffix(".txt")
COUNT = 24
RNG = np.random.default_rng(7)

m.mp.dps = 50


def between(low: float, high: float) -> Callable[[], float]:
    return lambda: float(RNG.uniform(low, high))


def decades(low: float, high: float) -> Callable[[], float]:
    return lambda: float(10 ** RNG.uniform(low, high))


def whole(low: int, high: int) -> Callable[[], float]:
    return lambda: float(RNG.integers(low, high))


def near_gamma(a: float) -> float:
    """An argument where the distribution of this order has its mass, or in one of its tails."""
    spread = 10 ** RNG.uniform(-1, 1) if RNG.random() < 0.3 else 1.0
    return max(float(RNG.gamma(a)) * spread, 1e-30)


def gamma_density(a: Any, x: Any) -> Any:
    return m.exp((a - 1) * m.log(x) - x - m.loggamma(a))


def lower(a: Any, x: Any) -> Any:
    return m.gammainc(a, 0, x, regularized=True)


def upper(a: Any, x: Any) -> Any:
    return m.gammainc(a, x, regularized=True)


def gamma_slope(a: Any, x: Any) -> Any:
    """-dP / da over the density, from the smaller of P and Q."""
    with m.workdps(70):
        step = a * m.mpf(10) ** -20
        of = (lambda s: lower(s, x)) if x < a else (lambda s: -upper(s, x))
        return -m.diff(of, a, h=step) / gamma_density(a, x)


def beta_slope(x: Any, a: Any, total: Any) -> Any:
    with m.workdps(70):
        b = total - a
        slope = m.diff(lambda s: m.betainc(s, b, 0, x, regularized=True), a, h=a * m.mpf(10) ** -20)
        return -slope / (x ** (a - 1) * (1 - x) ** (b - 1) / m.beta(a, b)) / (1 - x)


# Name: where the arguments lie, and the function.
CASES: dict[str, tuple[list[Callable[..., float]], Callable[..., Any]]] = {
    "bessel_j0": ([between(-60, 60)], lambda x: m.besselj(0, x)),
    "bessel_j1": ([between(-60, 60)], lambda x: m.besselj(1, x)),
    "bessel_y0": ([decades(-3, 2)], lambda x: m.bessely(0, x)),
    "bessel_y1": ([decades(-3, 2)], lambda x: m.bessely(1, x)),
    "digamma": ([between(-9, 20)], lambda x: m.psi(0, x)),
    "entr": ([decades(-5, 2)], lambda x: -x * m.log(x)),
    "erfcx": ([between(-5, 60)], lambda x: m.exp(x * x) * m.erfc(x)),
    "erfinv": ([between(-1, 1)], m.erfinv),
    "gammainc": ([decades(-2, 3), near_gamma], lower),
    "gammaincc": ([decades(-2, 3), near_gamma], upper),
    "gammaln": ([decades(-3, 4)], lambda x: m.loggamma(x).real),
    "hermite_polynomial_h": ([between(-3, 3), whole(0, 20)], lambda x, n: m.hermite(int(n), x)),
    "i0": ([between(-50, 50)], lambda x: m.besseli(0, x)),
    "i0e": ([between(-50, 50)], lambda x: m.besseli(0, x) * m.exp(-abs(x))),
    "i1": ([between(-50, 50)], lambda x: m.besseli(1, x)),
    "i1e": ([between(-50, 50)], lambda x: m.besseli(1, x) * m.exp(-abs(x))),
    "laguerre_polynomial_l": ([between(-3, 8), whole(0, 12)], lambda x, n: m.laguerre(int(n), 0, x)),
    "legendre_polynomial_p": ([between(-1, 1), whole(0, 20)], lambda x, n: m.legendre(int(n), x)),
    "log_ndtr": ([between(-40, 8)], lambda x: m.log(m.ncdf(x)) if x < 0 else m.log1p(-m.ncdf(-x))),
    "modified_bessel_k0": ([decades(-3, 1.9)], lambda x: m.besselk(0, x)),
    "modified_bessel_k1": ([decades(-3, 1.9)], lambda x: m.besselk(1, x)),
    "ndtr": ([between(-12, 8)], m.ncdf),
    "ndtri": ([between(0, 1)], lambda p: m.sqrt(2) * m.erfinv(2 * p - 1)),
    "scaled_modified_bessel_k0": ([decades(-3, 3)], lambda x: m.besselk(0, x) * m.exp(x)),
    "scaled_modified_bessel_k1": ([decades(-3, 3)], lambda x: m.besselk(1, x) * m.exp(x)),
    "shifted_chebyshev_polynomial_u": ([between(0, 1), whole(0, 12)], lambda x, n: m.chebyu(int(n), 2 * x - 1)),
    "sinc": ([between(-9, 9)], lambda x: m.sinpi(x) / (m.pi * x)),
    "xlog1py": ([between(-9, 9), decades(-6, 3)], lambda a, b: a * m.log1p(b)),
    "zeta": ([between(1.1, 9), decades(-1, 2)], m.zeta),
    "polygamma": ([whole(1, 6), between(-5, 10)], lambda n, x: m.psi(int(n), x)),
    "_standard_gamma_grad": ([decades(-2, 3.2), near_gamma], gamma_slope),
    "_dirichlet_grad": ([between(0.01, 0.99), decades(-1, 2), lambda a: a + 10 ** RNG.uniform(-1, 2)], beta_slope),
    "airy_ai": ([between(-40, 20)], m.airyai),
    "spherical_bessel_j0": ([between(-60, 60)], lambda x: m.sin(x) / x),
    "_airy_ai_prime": ([between(-40, 20)], lambda x: m.airyai(x, derivative=1)),
    "_spherical_bessel_j1": ([between(-60, 60)], lambda x: m.sin(x) / x**2 - m.cos(x) / x),
}


# Orders at which series end and formulas change, and arguments far below the order.
FURTHER: list[tuple[str, list[Callable[..., float]]]] = [
    ("gammainc", [whole(1, 9), near_gamma]),
    ("gammaincc", [whole(1, 9), near_gamma]),
    ("_standard_gamma_grad", [whole(1, 9), near_gamma]),
    ("_dirichlet_grad", [between(0.01, 0.99), whole(1, 9), lambda a: a + float(RNG.integers(1, 9))]),
    ("gammainc", [between(2, 20), decades(-12, 0)]),
]


def arguments(parts: list[Callable[..., float]]) -> list[float]:
    made: list[float] = []
    for part in parts:
        takes_last = part is near_gamma or len(made) == 2
        made.append(float(np.float32(part(made[-1]) if takes_last else part())))
    return made


def main() -> None:
    lines = ["# Written by special_functions.py: a function, its arguments, and its value with 25 digits.\n"]
    cases = [(name, parts, COUNT) for name, (parts, _) in CASES.items()]
    cases += [(name, parts, COUNT // 2) for name, parts in FURTHER]
    for name, parts, count in cases:
        function = CASES[name][1]
        for _ in range(count):
            given = arguments(parts)
            value = function(*map(m.mpf, given))
            lines.append(" ".join([name, *map(repr, given), m.nstr(value, 25)]) + "\n")
    PATH.write_text("".join(lines))


if __name__ == "__main__":
    main()
