"""Cases of `hashes` that are walked: the rows of pointwise operations, and the table that the tests have."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import rgrad
from case_kit import ALL, FLOATS, LAYOUTS, Call, Case, Operand, cases, with_gradients

ROOT = Path(__file__).resolve().parents[2]
HELPERS = ROOT / "tests" / "python" / "helpers"

ROW = re.compile(r'^    (?:[A-Z]\w+) \w+ = "(\w+)" \w+ \[[^\]]*\]\(([^)]*)\)', re.MULTILINE)
INPUT = re.compile(r"^(\w+)(?: as \"\w+\")?(: mask)?(?: in (\S+) to (\S+))?$")
PARAMETER = re.compile(r"(\w+) = (-?[\d.]+)")

# Few elements, more than the fast path takes, and more than one task.
SHAPES = ((3, 7), (33, 35), (181, 183))

functional = rgrad.nn.functional


def cut(x: rgrad.Tensor, gate: rgrad.Tensor) -> rgrad.Tensor:
    """The gradient of a factor of ``x`` whose product is left out where the gate is 0."""
    factor = rgrad.ones_like(x).requires_grad_()
    kept = (factor * x).masked_fill(gate == 0, 0)
    return rgrad.autograd.grad(kept, factor, rgrad.ones_like(kept), create_graph=True)[0]


def slope(f: Call) -> Call:
    """The derivative of a function of one number, recorded."""

    def made(x: rgrad.Tensor) -> rgrad.Tensor:
        x = x.detach().requires_grad_()
        y = f(x)
        return rgrad.autograd.grad(y, x, rgrad.ones_like(y), create_graph=True)[0]

    return made


# Rows that Python reaches by another name, or with other arguments than those of the row.
BY_HAND: dict[str, Call] = {
    "_cut": cut,
    "_sigmoid_of": slope(lambda x: functional.softplus(x, threshold=1e4)),
    "_tanh_of": slope(functional.mish),
    "add_scaled": lambda a, b: rgrad.add(a, b, alpha=0.7),
    "logaddexp_of_complex": rgrad.logaddexp,
    "sub_scaled": lambda a, b: rgrad.sub(a, b, alpha=0.7),
    "div_floor": lambda a, b: rgrad.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: rgrad.div(a, b, rounding_mode="trunc"),
    "pow_scalar": lambda x: rgrad.pow(x, 2.5),
    "round_to": lambda x: rgrad.round(x, decimals=2),
    "clamp_tensor": rgrad.clamp,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "masked_fill": lambda x, c, v: rgrad.masked_fill(x, c, 1.5),
    "prelu": lambda x, w: functional.prelu(x, w.reshape(-1)[:1]),
    "mse_loss": lambda a, b: functional.mse_loss(a, b, reduction="none"),
    "smooth_l1_loss": lambda a, b: functional.smooth_l1_loss(a, b, reduction="none", beta=1.7),
    "huber_loss": lambda a, b: functional.huber_loss(a, b, reduction="none", delta=1.7),
    "binary_cross_entropy": lambda x, t: functional.binary_cross_entropy(x, t.detach(), reduction="none"),
    "binary_cross_entropy_with_logits": lambda x, t: functional.binary_cross_entropy_with_logits(
        x, t, reduction="none"
    ),
    "elu": lambda x: functional.elu(x, 0.8),
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
    "nan_to_num": lambda x: rgrad.nan_to_num(x, 0.25, 8.0, -8.0),
    "_polygamma_of": lambda n, x: rgrad._core._polygamma_of(n.round(), x),
    "_gamma_density": rgrad._core._gamma_density,
    "_spherical_bessel_j1": rgrad._core._spherical_bessel_j1,
    "_airy_ai_prime": rgrad._core._airy_ai_prime,
    "_frexp_mantissa": lambda x: rgrad.frexp(x)[0],
    "_frexp_exponent": lambda x: rgrad.frexp(x)[1],
}

# Rows that refuse operands beyond their range.
BOUNDED = {"binary_cross_entropy"}


class Row(NamedTuple):
    """A pointwise operation: its name, its tensors, and the values of its parameters."""

    name: str
    inputs: tuple[tuple[float, float, bool], ...]
    parameters: dict[str, float]


def rows() -> list[Row]:
    """All rows, wherever under src/ their folder lies."""
    found = []
    for path in sorted((ROOT / "src").rglob("rows/**/*.rs")):
        for name, text in ROW.findall(path.read_text(encoding="utf-8")):
            inputs, _, parameters = text.partition(";")
            ranges = []
            for part in re.split(r",\s*", inputs.strip()):
                if read := INPUT.match(part):
                    _, mask, low, high = read.groups()
                    ranges.append((float(low or -3.0), float(high or 3.0), bool(mask)))
            found.append(Row(name, tuple(ranges), {k: float(v) for k, v in PARAMETER.findall(parameters)}))
    return found


def call_of(row: Row) -> Call | None:
    """The function of a row, or None if Python has none of its name."""
    if row.name in BY_HAND:
        return BY_HAND[row.name]
    name = row.name.removeprefix("special_").removeprefix("_")
    for module, own in ((rgrad, row.name), (functional, row.name), (rgrad.special, name), (rgrad, name)):
        if function := getattr(module, own, None):
            return lambda *tensors: function(*tensors, **row.parameters)
    return None


def pointwise() -> Iterator[Case]:
    """One case for each row, dtype and layout; in the strided one the second operand is broadcast."""
    for row in rows():
        call = call_of(row)
        if call is None:
            continue
        for dtype in ALL:
            for layout in LAYOUTS:
                parts: list[Case] = []
                for shape in SHAPES:
                    operands = [
                        Operand(
                            shape[-1:] if i == 1 and layout == "strided" else shape,
                            low,
                            high,
                            special=row.name not in BOUNDED,
                            dtype="bool" if mask else "",
                        )
                        for i, (low, high, mask) in enumerate(row.inputs)
                    ]
                    parts += cases(f"pointwise/{row.name}", call, operands, [dtype], [layout])
                yield Case(parts[0].name, [run for part in parts for run in part.parts])


def in_dtype(op: Any, sample: Any, dtype: str, seed: int) -> list[Any]:
    """What a sample of a row of the table gives."""
    rgrad.manual_seed(0)
    bases = []
    for a in sample.args:
        base = rgrad.tensor(a.base)
        base = base.to(getattr(rgrad, dtype)) if a.floating else base
        bases.append(base.requires_grad_() if a.differentiable and op.grad != "none" and dtype in FLOATS else base)

    def call(*tensors: Any) -> Any:
        return op.call(rgrad, *(a.view(t) for a, t in zip(sample.args, tensors, strict=True)), **sample.params)

    return with_gradients(call, bases, seed)


def table() -> Iterator[Case]:
    """One case for each row of the tests' table and each dtype, with all samples as parts."""
    sys.path.append(str(HELPERS))
    for op in import_module("op_table").OPS:
        samples = op.all_samples()
        for dtype in ALL:
            yield Case(f"table/{op.name} {dtype}", [partial(in_dtype, op, s, dtype, i) for i, s in enumerate(samples)])
