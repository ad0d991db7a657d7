"""What a case of `hashes` is made of: seeded operands in a dtype and a layout, the call, its gradients, one hash."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import rgrad

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
ALL = (*FLOATS, *INTEGERS, "bool")
LAYOUTS = ("dense", "transposed", "strided")

# At the front of operands that may hold anything: what kernels treat apart. Periodic functions of 1e5 do not vectorise.
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, 1e5, 1e10, -1e5, -2.5, 0.5)

Call = Callable[..., Any]


class Case(NamedTuple):
    """A name, and parts that each give tensors whose bytes are hashed."""

    name: str
    parts: Sequence[Callable[[], Iterable[Any]]]


class Operand(NamedTuple):
    """How to draw one operand; the default range is that of most functions."""

    shape: tuple[int, ...]
    low: float = -3.0
    high: float = 3.0
    special: bool = False
    dtype: str = ""  # if it is not that of the case; such an operand has no gradient
    layout: str = ""  # if it is not that of the case


@cache
def numbers(seed: int, shape: tuple[int, ...], low: float, high: float) -> Any:
    return np.random.default_rng(seed).uniform(low, high, shape)


def base_of(operand: Operand, dtype: str, layout: str, seed: int) -> tuple[Any, Call]:
    """The tensor that owns the memory, and the view of it that the call is given."""
    shape = operand.shape
    if layout == "transposed" and len(shape) > 1:
        stored, view = (*shape[:-2], shape[-1], shape[-2]), lambda t: t.transpose(-1, -2)
    elif layout == "strided" and shape:
        stored, view = (*shape[:-1], 2 * shape[-1]), lambda t: t[..., ::2]
    else:
        stored, view = shape, lambda t: t
    values = numbers(seed, stored, operand.low, operand.high)
    if dtype == "bool":
        values = values > (operand.low + operand.high) / 2
    elif dtype in INTEGERS:
        values = np.floor(values)
        values = (np.abs(values) if dtype == "uint8" else values).astype(np.int64)
    elif operand.special and values.size > len(SPECIAL):
        values = values.copy()
        values.reshape(-1)[: len(SPECIAL)] = SPECIAL
    return rgrad.tensor(values).to(getattr(rgrad, dtype)), view


def flat(result: Any) -> Iterator[Any]:
    """The tensors of a result."""
    if isinstance(result, rgrad.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from flat(part)


def with_gradients(call: Call, bases: Sequence[Any], seed: int) -> list[Any]:
    """The results of `call(*bases)`, and the gradients of the bases that ask for one, for seeded cotangents."""
    results = list(flat(call(*bases)))
    leaves = [b for b in bases if b.requires_grad]
    ends = [r for r in results if r.requires_grad]
    if not leaves or not ends:
        return results
    # Drawn where the result lies densely: how it lies in memory must not change its cotangent.
    cotangents = [rgrad.tensor(numbers(seed + i, tuple(r.shape), -1.0, 1.0)).to(r.dtype) for i, r in enumerate(ends)]
    return [*results, *rgrad.autograd.grad(ends, leaves, cotangents, allow_unused=True)]


def case(name: str, call: Call, operands: Sequence[Operand], dtype: str, layout: str, gradient: bool = True) -> Case:
    """`call` of these operands, drawn with a seed that the name gives."""
    full = f"{name} {dtype} {layout}"

    def run() -> list[Any]:
        rgrad.manual_seed(0)
        made = [
            base_of(o, o.dtype or dtype, o.layout or layout, zlib.crc32(repr((o, i)).encode()))
            for i, o in enumerate(operands)
        ]
        for (base, _), operand in zip(made, operands, strict=True):
            if gradient and not operand.dtype and dtype in FLOATS:
                base.requires_grad_()
        return with_gradients(
            lambda *t: call(*(view(b) for b, (_, view) in zip(t, made, strict=True))), [b for b, _ in made], 7
        )

    return Case(full, [run])


def cases(
    name: str,
    call: Call,
    operands: Sequence[Operand],
    dtypes: Sequence[str] = FLOATS,
    layouts: Sequence[str] = ("dense",),
    gradient: bool = True,
) -> Iterator[Case]:
    for dtype in dtypes:
        for layout in layouts:
            yield case(name, call, operands, dtype, layout, gradient)


def some(*shapes: tuple[int, ...], low: float = -3.0, high: float = 3.0, special: bool = False) -> list[Operand]:
    return [Operand(s, low, high, special) for s in shapes]


def bytes_of(tensor: Any) -> bytes:
    """Dtype, shape and elements in logical order; all nans are one, the sign of zero counts."""
    t = tensor.detach()
    head = f"{t.dtype}{tuple(t.shape)}".encode()
    if t.dtype in (rgrad.float16, rgrad.bfloat16):
        t = t.float()
    a = np.array(t.numpy(), order="C")
    if a.dtype.kind == "f":
        a[np.isnan(a)] = np.nan
    return head + a.tobytes()


def digest(made: Case) -> str:
    """SHA-256 of what the parts give; if all of them are refused the type of the last error."""
    total, error_name = hashlib.sha256(), ""
    has_result = False
    for part in made.parts:
        try:
            for tensor in part():
                total.update(b"none" if tensor is None else bytes_of(tensor))
            has_result = True
        except Exception as error:
            error_name = type(error).__name__
            total.update(error_name.encode())
    return total.hexdigest() if has_result else error_name
