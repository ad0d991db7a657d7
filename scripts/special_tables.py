"""Write ``src/kernels/simd/math/special/expansions.rs``: coefficients of series of special functions.

They are computed with 60 digits by mpmath, which has to be installed, and rounded once.
``python scripts/special_tables.py`` writes the file anew.
"""

from pathlib import Path
from typing import Any

from mpmath import airyai, besselj, besselk, bessely, cos, exp, factorial, log, mp, mpf, pi, sqrt, zeta

mp.dps = 60
PATH = Path(__file__).parents[1] / "src/kernels/simd/math/special/expansions.rs"
# Up to here J and Y are sums of Chebyshev polynomials, and up to here K is its power series.
FAR, NEAR = 25, 2
# Airy's function is a sum of Chebyshev polynomials from -AIRY_FAR to 0, and from 0 to AIRY_NEAR.
AIRY_FAR, AIRY_NEAR = 10, 2


def chebyshev(f: Any, count: Any) -> Any:
    """The coefficients of Chebyshev polynomials for a function on -1..1."""
    nodes = [cos(pi * (k + mpf(0.5)) / count) for k in range(count)]
    values = [f(x) for x in nodes]
    made = [
        2 / mpf(count) * sum(v * cos(pi * j * (k + mpf(0.5)) / count) for k, v in enumerate(values))
        for j in range(count)
    ]
    made[0] /= 2
    return made


def bessel_near(order: Any, second: Any) -> Any:
    """Of 2 (x / FAR)^2 - 1: J / x^order, or the rest of Y / x^order without its logarithm and pole."""

    def value(u: Any) -> Any:
        x = FAR * sqrt((u + 1) / 2)
        j = besselj(order, x)
        if not second:
            return j / x**order
        pole = 2 / (pi * x) if order else 0
        return (bessely(order, x) - 2 / pi * log(x) * j + pole) / x**order

    return chebyshev(value, 44)


def hankel(order: Any) -> Any:
    """The coefficients of P and of Q, of 1 / x^2 (the latter times x)."""
    made, factor = [], mpf(1)
    for k in range(1, 25):
        made.append(factor)
        factor *= (4 * order * order - (2 * k - 1) ** 2) / (k * mpf(8))
    signed = [(-1) ** (k // 2) * c for k, c in enumerate(made)]
    return signed[::2], signed[1::2]


def k_series(order: Any) -> Any:
    """Of x^2 / 4: I / (x / 2)^order, and the part of K without the logarithm."""
    first = [1 / (factorial(k) * factorial(k + order)) for k in range(20)]
    sums = [sum((1 / mpf(j) for j in range(1, k + 1)), mpf(0)) for k in range(22)]
    return first, [c * ((sums[k] + sums[k + order]) / 2 - mp.euler) for k, c in enumerate(first)]


def k_far(order: Any) -> Any:
    """Of 4 / x - 1 for x from 2 up: K times exp(x) sqrt(x)."""

    def value(u: Any) -> Any:
        x = 2 * NEAR / (u + 1)
        return besselk(order, x) * exp(x) * sqrt(x)

    return chebyshev(value, 34)


def airy_angle(x: Any) -> Any:
    return 2 * x * sqrt(x) / 3


def airy_wave(order: Any) -> Any:
    """Of 2 x / AIRY_FAR + 1: Ai, or its derivative."""
    return chebyshev(lambda u: airyai(AIRY_FAR * (u - 1) / 2, derivative=order), 46)


def airy_near(order: Any) -> Any:
    """Of 2 x / AIRY_NEAR - 1: Ai, or its derivative."""
    return chebyshev(lambda u: airyai(AIRY_NEAR * (u + 1) / 2, derivative=order), 24)


def airy_far(order: Any) -> Any:
    """Of 2 angle(AIRY_NEAR) / angle(x) - 1 for x from AIRY_NEAR up: Ai, or its derivative, over its leading term."""

    def value(u: Any) -> Any:
        angle = 2 * airy_angle(mpf(AIRY_NEAR)) / (u + 1)
        x = (mpf(3) / 2 * angle) ** (mpf(2) / 3)
        leading = exp(-angle) / (2 * sqrt(pi)) * (-(x ** mpf(0.25)) if order else x ** mpf(-0.25))
        return airyai(x, derivative=order) / leading

    return chebyshev(value, 34)


def airy_terms(order: Any) -> Any:
    """u[k], or v[k], of DLMF 9.7.2 with the signs of 9.7.9: those of even k, and those of odd k."""
    made = [mpf(1)]
    for k in range(1, 20):
        made.append(made[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (mpf(216) * k * (2 * k - 1)))
    if order:
        made = [c * (6 * k + 1) / (1 - mpf(6) * k) for k, c in enumerate(made)]
    signed = [(-1) ** (k // 2) * c for k, c in enumerate(made)]
    return signed[::2], signed[1::2]


def times(a: Any, b: Any, n: Any) -> Any:
    return [sum((a[i] * b[k - i] for i in range(k + 1)), mpf(0)) for k in range(n)]


def inverse(a: Any, n: Any) -> Any:
    made = [1 / a[0]]
    for k in range(1, n):
        made.append(-sum(a[i] * made[k - i] for i in range(1, k + 1)) / a[0])
    return made


def slope(a: Any) -> Any:
    return [k * c for k, c in enumerate(a)][1:]


def lgamma_series(count: Any) -> Any:
    """lgamma(2 + z) / z for small z (Abramowitz, Stegun 6.1.33)."""
    return [1 - mp.euler] + [(-1) ** k * (zeta(k) - 1) / k for k in range(2, count + 1)]


def stirling(count: Any) -> Any:
    """g[k] of the expansion of Gamma(a) / (sqrt(2 pi / a) (a / e)^a) in 1 / a (DLMF 5.11.3)."""
    n = 2 * count + 1
    logs = [mpf(0)] * n
    for k in range(1, count + 1):
        if 2 * k - 1 < n:
            logs[2 * k - 1] = mp.bernoulli(2 * k) / (2 * k * (2 * k - 1))
    made = [mpf(1)]
    for k in range(1, n):
        made.append(sum(j * logs[j] * made[k - j] for j in range(1, k + 1)) / k)
    return made[: count + 1]


def temme(terms: Any, length: Any) -> Any:
    """The coefficients c[k] of DLMF 8.12.10 as series in eta."""
    n = length + 2 * terms + 4
    # mu as a series in eta: eta d(eta) = mu / (1 + mu) d(mu), so mu mu' = eta (1 + mu).
    mu = [mpf(0), mpf(1)]
    for k in range(2, n + 1):
        known = sum(mu[i] * mu[k + 1 - i] * (k + 1 - i) for i in range(2, k))
        mu.append((mu[k - 1] - known) / (k + 1))
    inverse_mu = inverse(mu[1:], n)
    made = [inverse_mu[1:]]
    g = stirling(terms)
    # 1 / mu is inverse_mu / eta.
    for k in range(1, terms):
        of = slope(made[-1])
        sign = (-1) ** k * g[k]
        whole = [of[i] + sign * inverse_mu[i] for i in range(len(of))]
        assert abs(whole[0]) < mpf(10) ** -30, whole[0]
        made.append(whole[1:])
    return [c[:length] for c in made]


def gamma_slopes(terms: Any, length: Any) -> Any:
    """The slope dx / da at a constant probability: sum of h[k](t) / a^k with t = x / a - 1.

    It follows from h' + ((a - 1) / x - 1) h = digamma(a) - log(x), the derivative of p h = -dP / da.
    """
    n = length + 2 * terms + 6
    x = [mpf(1), mpf(1)] + [mpf(0)] * n
    over = inverse(x, n)
    logs = [mpf(0)] + [(-1) ** (k + 1) / mpf(k) for k in range(1, n)]
    # psi(a) - log(a) = sum of q[k] / a^k
    q = [mpf(0)] * (terms + 2)
    q[1] = -mpf(1) / 2
    for k in range(2, terms + 2, 2):
        q[k] = -mp.bernoulli(k) / k
    made: list[Any] = []
    for k in range(terms):
        if k == 0:
            rest = [-c for c in logs]
        else:
            before, of = made[-1], slope(made[-1])
            rest = [-of[i] + times(before, over, len(of))[i] for i in range(len(of))]
            rest[0] += q[k]
        # (1 / lambda - 1) h = -t / lambda h
        assert abs(rest[0]) < mpf(10) ** -30, (k, rest[0])
        made.append([-c for c in times(rest, x, len(rest))][1:])
    return [c[:length] for c in made]


def lines(numbers: Any, indent: Any) -> Any:
    """Four numbers in a line."""
    texts = [f"{float(c)!r}," for c in numbers]
    return "".join(f"{indent}{' '.join(texts[k : k + 4])}\n" for k in range(0, len(texts), 4))


def array(name: Any, doc: Any, numbers: Any) -> Any:
    """A constant, with one or two dimensions."""
    if isinstance(numbers[0], list):
        kind = f"[[f64; {len(numbers[0])}]; {len(numbers)}]"
        rows = "".join(f"    [\n{lines(row, ' ' * 8)}    ],\n" for row in numbers)
    else:
        kind = f"[f64; {len(numbers)}]"
        rows = lines(numbers, " " * 4)
    return f"/// {doc}\n#[rustfmt::skip]\npub(super) const {name}: {kind} = [\n{rows}];\n"


def main() -> None:
    p0, q0 = hankel(0)
    p1, q1 = hankel(1)
    near = [bessel_near(order, second) for second in (False, True) for order in (0, 1)]
    series = [k_series(order) for order in (0, 1)]
    waves, beyond = [airy_wave(k) for k in (0, 1)], [airy_far(k) for k in (0, 1)]
    terms = [airy_terms(k) for k in (0, 1)]
    parts = [
        "//! Coefficients of expansions; `scripts/special_tables.py` writes this file.\n",
        array("LGAMMA", "lgamma(2 + z) / z for small z (Abramowitz, Stegun 6.1.33).", lgamma_series(31)),
        array(
            "BESSEL_J",
            "J / x^order up to 25 in Chebyshev polynomials of 2 (x / 25)^2 - 1.",
            near[:2],
        ),
        array("BESSEL_Y", "The same of Y without its logarithm and pole.", near[2:]),
        array("HANKEL_P", "Hankel's expansion (DLMF 10.17.3), the cosine's part.", [p0, p1]),
        array("HANKEL_Q", "Hankel's expansion, the sine's part times x.", [q0, q1]),
        array("K_FIRST", "I / (x / 2)^order in powers of x^2 / 4.", [s[0] for s in series]),
        array("K_REST", "K without its logarithm, of x^2 / 4 (DLMF 10.31.1).", [s[1] for s in series]),
        array("K_FAR", "K exp(x) sqrt(x) from 2 up in Chebyshev polynomials of 4 / x - 1.", [k_far(k) for k in (0, 1)]),
        array("AIRY_WAVE", "Ai and its derivative from -10 to 0 in Chebyshev polynomials of x / 5 + 1.", waves),
        array("AIRY_NEAR", "The same from 0 to 2 in those of x - 1.", [airy_near(k) for k in (0, 1)]),
        array("AIRY_FAR", "The same from 2 up over the leading term, in those of 2 angle(2) / angle(x) - 1.", beyond),
        array("AIRY_EVEN", "u and v of DLMF 9.7.2, of even k, in powers of 1 / angle^2.", [t[0] for t in terms]),
        array("AIRY_ODD", "The same of odd k, times the angle.", [t[1] for t in terms]),
        array("TEMME", "c[k] of DLMF 8.12.10 in powers of eta.", temme(7, 24)),
        array("GAMMA_SLOPE", "dx / da at a constant probability: h[k] in powers of x / a - 1.", gamma_slopes(7, 32)),
    ]
    PATH.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
