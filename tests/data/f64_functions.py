"""Writes f64_functions.txt: true values of the elementary functions at chosen and random points. Needs mpmath.

Each line is a row's name, its operands, and the value as the sum of two doubles, all as hexadecimal floats.
"""

import random
from pathlib import Path

import mpmath as mp

mp.mp.prec = 1300  # enough for sin(1e300)
rng = random.Random(2026)
COUNT = 24


def wide(low, high):
    """Evenly spread exponents."""
    return float(mp.exp(rng.uniform(float(mp.log(low)), float(mp.log(high)))))


def signed(x):
    return rng.choice((-1, 1)) * x


def points(*makers):
    return [m() for m in makers for _ in range(COUNT)]


def near_one():
    return 1 + signed(wide(1e-15, 0.5))


TINY = 5e-324
UNARY = {
    "exp": (
        mp.exp,
        points(lambda: rng.uniform(-745, 709.7), lambda: signed(wide(1e-18, 2)), lambda: rng.uniform(-745, -705)),
    ),
    "exp2": (lambda x: mp.power(2, x), points(lambda: rng.uniform(-1074, 1023.9), lambda: signed(wide(1e-18, 2)))),
    "expm1": (
        mp.expm1,
        points(lambda: rng.uniform(-50, 709.7), lambda: signed(wide(TINY, 2)), lambda: rng.uniform(-2, 2)),
    ),
    "log": (mp.log, points(lambda: wide(TINY, 1e308), near_one, lambda: rng.uniform(0.3, 3))),
    "log2": (lambda x: mp.log(x) / mp.log(2), points(lambda: wide(TINY, 1e308), near_one, lambda: rng.uniform(0.3, 3))),
    "log10": (
        lambda x: mp.log(x) / mp.log(10),
        points(lambda: wide(TINY, 1e308), near_one, lambda: rng.uniform(0.3, 3)),
    ),
    "log1p": (mp.log1p, points(lambda: wide(TINY, 1e308), lambda: -wide(TINY, 1), lambda: rng.uniform(-0.9999, 3))),
    "sin": (
        mp.sin,
        points(lambda: rng.uniform(-10, 10), lambda: signed(wide(TINY, 1e6)), lambda: signed(wide(1e6, 1e308))),
    ),
    "tanh": (mp.tanh, points(lambda: rng.uniform(-20, 20), lambda: rng.uniform(-1, 1), lambda: signed(wide(TINY, 1)))),
    "sinh": (
        mp.sinh,
        points(lambda: rng.uniform(-710, 710), lambda: rng.uniform(-3, 3), lambda: signed(wide(TINY, 1))),
    ),
    "cosh": (mp.cosh, points(lambda: rng.uniform(-710, 710), lambda: rng.uniform(-3, 3), lambda: rng.uniform(38, 47))),
    "sigmoid": (
        lambda x: 1 / (1 + mp.exp(-x)),
        points(lambda: rng.uniform(-745, 50), lambda: rng.uniform(-3, 3), lambda: rng.uniform(-745, -700)),
    ),
    "asin": (mp.asin, points(lambda: rng.uniform(-1, 1), lambda: signed(wide(TINY, 1)), lambda: 1 - wide(1e-16, 1e-3))),
    "atan": (mp.atan, points(lambda: rng.uniform(-5, 5), lambda: signed(wide(TINY, 1e308)))),
    "asinh": (
        mp.asinh,
        points(lambda: rng.uniform(-5, 5), lambda: signed(wide(TINY, 1e308)), lambda: signed(wide(1e-3, 1e3))),
    ),
    "acosh": (mp.acosh, points(lambda: 1 + wide(1e-15, 5), lambda: wide(1, 1e308))),
    "atanh": (
        mp.atanh,
        points(lambda: rng.uniform(-1, 1), lambda: signed(wide(TINY, 1)), lambda: 1 - wide(1e-16, 1e-3)),
    ),
    "erf": (mp.erf, points(lambda: rng.uniform(-6, 6), lambda: signed(wide(TINY, 1)))),
    "erfc": (mp.erfc, points(lambda: rng.uniform(-6, 26.5), lambda: signed(wide(TINY, 1)))),
}
UNARY["cos"] = (mp.cos, UNARY["sin"][1])
UNARY["tan"] = (mp.tan, UNARY["sin"][1])
UNARY["acos"] = (mp.acos, UNARY["asin"][1])

SPREAD = points(
    lambda: (signed(wide(1e-308, 1e307)), signed(wide(1e-308, 1e307))), lambda: (rng.uniform(-3, 3), rng.uniform(-3, 3))
)
SPREAD += points(lambda: (signed(wide(1e-314, 1e-300)), signed(wide(1e-314, 1e-300))))
BINARY = {
    "pow": (
        mp.power,
        points(
            lambda: (wide(1e-3, 1e3), rng.uniform(-100, 100)),
            lambda: (wide(TINY, 1e308), rng.uniform(-1, 1)),
            lambda: (near_one(), rng.uniform(-1000, 1000)),
        ),
    ),
    "atan2": (mp.atan2, SPREAD),
    "hypot": (mp.hypot, SPREAD),
}

# Where roundings added up to more than one unit when instructions that multiply and add were missing.
ADDED_UP = {
    "exp": [-304.63187190665803, -21.13417441960283, 0.36593586068332934],
    "expm1": [358.71227784205985],
}


def line(name, operands, value):
    high = float(value)
    low = 0.0 if mp.isinf(high) else float(value - mp.mpf(high))
    return "\t".join([name, *(float(x).hex() for x in operands), high.hex(), low.hex()])


def main():
    lines = []
    for name, (function, xs) in UNARY.items():
        lines += [line(name, [x], function(mp.mpf(x))) for x in xs]
    for name, (function, pairs) in BINARY.items():
        lines += [line(name, pair, function(*map(mp.mpf, pair))) for pair in pairs]
    for name, xs in ADDED_UP.items():
        lines += [line(name, [x], UNARY[name][0](mp.mpf(x))) for x in xs]
    Path(__file__).with_name("f64_functions.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
