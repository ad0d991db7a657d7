"""Writes complex_functions.txt: true values of functions of complex numbers at chosen and random points. Needs mpmath.

Each line is a row's name, the bits of a part (32 or 64), the operands, and the value's real and imaginary part, as
hexadecimal floats: two for an operand, and two for a part of the value, which is their sum.
"""

import random
import struct
from pathlib import Path

import mpmath as mp

mp.mp.prec = 2600  # enough for the difference of 1 and the smallest numbers, squared
rng = random.Random(2026)
COUNT = 5
BITS = {32: (1e-45, 3e38, 88.0), 64: (5e-324, 1.7e308, 709.0)}


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def wide(low, high):
    """Evenly spread exponents."""
    return float(mp.exp(rng.uniform(float(mp.log(low)), float(mp.log(high)))))


def signed(x):
    return rng.choice((-1, 1)) * x


def polar(r, angle):
    return (r * float(mp.cos(angle)), r * float(mp.sin(angle)))


def near(x):
    return x + signed(wide(1e-16, 0.5))


def anywhere(low, high, _):
    yield signed(wide(low, high)), signed(wide(low, high))
    yield signed(wide(1e-10, 1e10)), signed(wide(1e-10, 1e10))
    yield rng.uniform(-4, 4), rng.uniform(-4, 4)
    # Near the branch points 1, -1, i and -i; and near a cut.
    yield near(signed(1)), signed(wide(1e-16, 0.5))
    yield near(signed(1)), signed(wide(low, 1e-16))
    yield signed(wide(1e-16, 0.5)), near(signed(1))
    yield rng.uniform(-4, 4), signed(wide(low, 1e-6))
    # Near the unit circle, and near another one around -1.
    yield polar(1 + signed(wide(1e-16, 0.1)), rng.uniform(-4, 4))
    angle = wide(1e-12, 1)
    yield float(mp.cos(angle)) - 1, float(mp.sin(angle))


def exponents(low, _, high):
    yield signed(wide(low, 3)), signed(wide(low, 3))
    yield rng.uniform(-4, 4), rng.uniform(-4, 4)
    # Near zeros and poles.
    yield signed(wide(1e-18, 1e-2)), rng.randint(-8, 8) * float(mp.pi / 2) + signed(wide(1e-17, 0.1))
    yield wide(1e-12, 1), wide(1e-12, 1)
    yield rng.uniform(-high, high), signed(wide(1e-10, 1e9))
    yield signed(rng.uniform(high - 40, high)), signed(wide(low * 1e10, 10))


def turned(points):
    def both(*of):
        for x, y in points(*of):
            yield x, y
            yield y, x

    return both


def log2(z):
    return mp.log(z) / mp.log(2)


def sigmoid(z):
    return 1 / (1 + mp.exp(-z))


UNARY = {
    "abs": (abs, anywhere),
    "sgn": (lambda z: z / abs(z), anywhere),
    "sqrt": (mp.sqrt, anywhere),
    "rsqrt": (lambda z: 1 / mp.sqrt(z), anywhere),
    "reciprocal": (lambda z: 1 / z, anywhere),
    "angle": (mp.arg, anywhere),
    "log": (mp.log, anywhere),
    "log2": (log2, anywhere),
    "log10": (lambda z: mp.log(z) / mp.log(10), anywhere),
    "log1p": (lambda z: mp.log(1 + z), anywhere),
    "asin": (mp.asin, anywhere),
    "acos": (mp.acos, anywhere),
    "atan": (mp.atan, anywhere),
    "asinh": (mp.asinh, anywhere),
    "acosh": (mp.acosh, anywhere),
    "atanh": (mp.atanh, anywhere),
    "exp": (mp.exp, exponents),
    "exp2": (lambda z: mp.exp(z * mp.log(2)), exponents),
    "expm1": (mp.expm1, exponents),
    "sigmoid": (sigmoid, exponents),
    "silu": (lambda z: z * sigmoid(z), exponents),
    "sin": (mp.sin, turned(exponents)),
    "cos": (mp.cos, turned(exponents)),
    "tan": (mp.tan, turned(exponents)),
    "sinh": (mp.sinh, turned(exponents)),
    "cosh": (mp.cosh, turned(exponents)),
    "tanh": (mp.tanh, turned(exponents)),
}


def powers(low, high, _):
    yield (signed(wide(low, high)), signed(wide(low, high))), (rng.uniform(-1, 1), rng.uniform(-1, 1))
    yield (rng.uniform(-4, 4), rng.uniform(-4, 4)), (rng.uniform(-9, 9), rng.uniform(-9, 9))
    yield (rng.uniform(-4, 4), rng.uniform(-4, 4)), (float(rng.randint(-40, 40)), 0.0)
    yield (near(1), signed(wide(1e-16, 0.1))), (rng.uniform(-300, 300), rng.uniform(-300, 300))


def quotients(*of):
    for a, b in zip(anywhere(*of), reversed(list(anywhere(*of))), strict=True):
        yield a, b
        # Of the same size, and so not out of range.
        yield a, polar(1, rng.uniform(-4, 4))
        yield a, (a[0] * rng.uniform(0.1, 0.9), a[1] * rng.uniform(0.1, 0.9))


BINARY = {
    "div": (lambda a, b: a / b, quotients),
    "pow": (lambda z, w: mp.exp(w * mp.log(z)), powers),
}


def hexadecimal(value):
    high = float(value)
    low = 0.0 if mp.isinf(mp.mpf(high)) else float(value - mp.mpf(high))
    return [high.hex(), low.hex()]


def line(name, bits, operands, function):
    if bits == 32:
        operands = [tuple(map(single, z)) for z in operands]
    if any(x == 0 for x, _ in operands) or operands[0][1] == 0 or (name == "div" and operands[1][1] == 0):
        return []
    value = mp.mpc(function(*(mp.mpc(*z) for z in operands)))
    # What is on the edge of the range is looked at with special values.
    if not mp.mpf(10) ** (-40 if bits == 32 else -320) < abs(value) < (mp.mpf(3e38) if bits == 32 else mp.mpf(1.7e308)):
        return []
    parts = [x.hex() for z in operands for x in z]
    return ["\t".join([name, str(bits), *parts, *hexadecimal(value.real), *hexadecimal(value.imag)])]


def main():
    lines = []
    for bits, of in BITS.items():
        for _ in range(COUNT if bits == 64 else 2):
            for name, (function, points) in UNARY.items():
                for z in points(*of):
                    lines += line(name, bits, [z], function)
            for name, (function, pairs) in BINARY.items():
                for pair in pairs(*of):
                    lines += line(name, bits, pair, function)
    Path(__file__).with_name("complex_functions.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
