"""Write ``saturated_slopes.txt`` beside this file: first and second derivatives that mpmath computes with 60 digits.

``python tests/data/saturated_slopes.py`` writes the file anew; mpmath has to be installed. Each function is one of a
single number. Its derivatives are written in terms that do not cancel where the function is constant, so that they have
all digits there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as m

PATH = Path(__file__).with_suffix(".txt")

m.mp.dps = 60

# Float32 numbers: where functions bend, where float32 and then float64 have lost the slope, and where the slope itself
# vanishes.
SIZES = [0.25, 0.75, 1.0, 2.5, 2.90625, 2.96875, 3.0625, 4.0, 5.1875, 5.25, 5.3125, 6.5, 8.0, 9.0, 9.25, 12.0, 13.5]
SIZES += [17.0, 19.5, 26.0, 37.5, 43.0, 60.0, 80.0, 87.0, 110.0, 250.0, 352.0, 500.0, 700.0]
POINTS = [0.0] + [s * x for x in SIZES for s in (1, -1)]
SCALE = 2 * m.sqrt(2 / m.pi)
CUBIC = m.mpf("0.044715")


def sig(x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def density(x: Any) -> Any:
    return m.exp(-x * x / 2) / m.sqrt(2 * m.pi)


def gelu_tanh(x: Any) -> tuple[Any, Any]:
    u, rise, bend = SCALE * (x + CUBIC * x**3), SCALE * (1 + 3 * CUBIC * x * x), SCALE * 6 * CUBIC * x
    s, q = sig(u), sig(-u)
    return s + x * s * q * rise, s * q * (2 * rise + x * bend + x * (q - s) * rise * rise)


def mish(x: Any) -> tuple[Any, Any]:
    w = m.exp(x)
    d = w * w + 2 * w + 2
    rise, bend = 4 * w * (1 + w) / d**2, 4 * w * (2 + 2 * w - 3 * w**2 - 2 * w**3) / d**3
    return w * (w + 2) / d + x * rise, 2 * rise + x * bend


def chosen(x: Any) -> tuple[Any, Any]:
    """Of minus the logarithm of the share of e^x in e^x + 1 + e^-1."""
    z = x - m.log(1 + m.exp(-1))
    return -sig(-z), sig(z) * sig(-z)


def not_chosen(x: Any) -> tuple[Any, Any]:
    """Of minus the logarithm of the share of 1."""
    z = x - m.log(1 + m.exp(-1))
    return sig(z), sig(z) * sig(-z)


FUNCTIONS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "sigmoid": lambda x: (sig(x) * sig(-x), sig(x) * sig(-x) * (sig(-x) - sig(x))),
    "tanh": lambda x: (m.sech(x) ** 2, -2 * m.tanh(x) * m.sech(x) ** 2),
    "softplus": lambda x: (sig(x), sig(x) * sig(-x)),
    "logsigmoid": lambda x: (sig(-x), -sig(x) * sig(-x)),
    "log_softmax_chosen": lambda x: (-chosen(x)[0], -chosen(x)[1]),
    "log_softmax_other": lambda x: (-not_chosen(x)[0], -not_chosen(x)[1]),
    "cross_entropy_chosen": chosen,
    "cross_entropy_other": not_chosen,
    "bce_with_logits_0": lambda x: (sig(x), sig(x) * sig(-x)),
    "bce_with_logits_1": lambda x: (-sig(-x), sig(x) * sig(-x)),
    "gelu": lambda x: (m.ncdf(x) + x * density(x), (2 - x * x) * density(x)),
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: (sig(x) + x * sig(x) * sig(-x), sig(x) * sig(-x) * (2 + x * (sig(-x) - sig(x)))),
    "mish": mish,
    "erf": lambda x: (2 / m.sqrt(m.pi) * m.exp(-x * x), -4 / m.sqrt(m.pi) * x * m.exp(-x * x)),
}


def main() -> None:
    lines = [
        "# Written by saturated_slopes.py: a function, its argument, its first and second derivative with 20 digits.\n"
    ]
    for name, function in FUNCTIONS.items():
        for x in POINTS:
            first, second = (m.nstr(v, 20, min_fixed=1, max_fixed=0) for v in function(m.mpf(x)))
            lines.append(f"{name} {x} {first} {second}\n")
    PATH.write_text("".join(lines))


if __name__ == "__main__":
    main()
