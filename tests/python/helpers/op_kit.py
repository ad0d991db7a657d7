"""What a row of the operation table is made of: arguments with a memory layout, samples, operations.

A row runs on any library that speaks PyTorch: its `call` gets the library as first argument, then tensors.
All sample values are drawn in float64 from a generator seeded by the row's name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

LAYOUTS = ("dense", "transposed", "strided", "offset", "expanded")


@dataclass(frozen=True)
class Arg:
    """One tensor argument: `base` is what the leaf holds, `layout` how the argument is a view of it.

    `base` has the memory the leaf owns; `array()` is what the operation sees. Indices and masks set
    `floating=False`: they are never cast and never differentiated. `differentiable=False` is a floating
    argument for which the operation defines no gradient (the weights of a loss).
    """

    base: np.ndarray
    layout: str = "dense"
    size: int = 0  # of dimension 0 after expansion; only for layout "expanded"
    floating: bool = True
    differentiable: bool = True

    def array(self, base: np.ndarray | None = None) -> np.ndarray:
        b = self.base if base is None else base
        if self.layout == "transposed":
            return b.transpose(tuple(reversed(range(b.ndim))))
        if self.layout == "strided":
            return b[..., 1::2]
        if self.layout == "offset":
            return b[1:]
        if self.layout == "expanded":
            return np.broadcast_to(b, (self.size, *b.shape[1:]))
        return b

    def view(self, leaf: Any) -> Any:
        """The same view, of a tensor."""
        if self.layout == "transposed":
            return leaf.permute(*reversed(range(leaf.dim())))
        if self.layout == "strided":
            return leaf[..., 1::2]
        if self.layout == "offset":
            return leaf[1:]
        if self.layout == "expanded":
            return leaf.expand(self.size, *leaf.shape[1:])
        return leaf

    def cast(self, dtype: Any) -> Arg:
        return replace(self, base=self.base.astype(dtype)) if self.floating else self


def arg(array: np.ndarray, layout: str = "dense") -> Arg:
    """An argument that equals `array` (its row 0 repeated, for "expanded"), stored in the given layout."""
    a = np.asarray(array)
    if layout == "transposed":
        return Arg(a.transpose(tuple(reversed(range(a.ndim)))).copy("C"), layout)
    if layout == "strided":
        base = np.full((*a.shape[:-1], 2 * a.shape[-1]), 0.625).astype(a.dtype)
        base[..., 1::2] = a
        return Arg(base, layout)
    if layout == "offset":
        return Arg(np.concatenate([np.full((1, *a.shape[1:]), 0.625).astype(a.dtype), a]), layout)
    if layout == "expanded":
        return Arg(a[:1].copy("C"), layout, a.shape[0])
    return Arg(a.copy("C"), layout)


def index(array: Any) -> Arg:
    return Arg(np.asarray(array), floating=False, differentiable=False)


@dataclass(frozen=True)
class Sample:
    args: tuple[Arg, ...]
    params: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def id(self) -> str:
        shapes = "-".join(
            "x".join(map(str, a.array().shape or ("0d",))) + ("" if a.layout == "dense" else a.layout[0].upper())
            for a in self.args
        )
        params = ",".join(f"{k}={v}" for k, v in self.params.items()).replace(" ", "")
        return "/".join(p for p in (shapes, params, self.label) if p)


@dataclass(frozen=True)
class Op:
    """One row.

    call(T, *tensors, **params) -> tensor or tuple of tensors.
    samples(rng) yields samples; `ref(*arrays, **params)` is the NumPy truth or None.
    grad: "smooth" (numeric gradients at every sample), "zero" (defined, zero almost everywhere), "kink" (defined,
    samples where differences say nothing), "none".
    """

    name: str
    call: Callable[..., Any]
    samples: Callable[[np.random.Generator], Iterator[Sample]]
    ref: Callable[..., Any] | None = None
    grad: str = "smooth"
    family: str = "other"
    inplace: str | None = None
    tol: float = 1.0  # factor on the tolerance of value comparisons
    composed: bool = False  # several nodes here, one in PyTorch

    def all_samples(self) -> list[Sample]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return list(self.samples(rng))


def uniform(lo: float, hi: float, avoid: Sequence[float] = (), step: float = 0.0) -> Callable[..., np.ndarray]:
    """A drawer of values in [lo, hi], at least 0.05 away from `avoid` and 0.1*step from multiples of `step`."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        out = rng.uniform(lo, hi, shape)
        for _ in range(200):
            bad = np.zeros(shape, bool)
            for point in avoid:
                bad |= np.abs(out - point) < 0.05
            if step:
                bad |= np.abs(out / step - np.round(out / step)) < 0.1
            if not bad.any():
                return out
            out = np.where(bad, rng.uniform(lo, hi, shape), out)
        raise AssertionError("domain too narrow")

    return draw


normal = uniform(-2.0, 2.0)


def distinct(rng: np.random.Generator, shape: tuple[int, ...], shift: float = 0.0) -> np.ndarray:
    """Values no two of which are closer than 0.1: for maxima, sorting and other selections."""
    n = int(np.prod(shape))
    return (rng.permutation(n) * 0.17 - 0.08 * n + 0.03 + shift).reshape(shape)


SHAPES1: tuple[tuple[tuple[int, ...], str], ...] = (
    ((), "dense"),
    ((0,), "dense"),
    ((1,), "dense"),
    ((2, 3), "dense"),
    ((2, 3), "transposed"),
    ((3, 2), "strided"),
    ((3,), "offset"),
    ((3, 2), "expanded"),
    ((2, 0, 3), "transposed"),
)

SHAPES2: tuple[tuple[tuple[tuple[int, ...], str], ...], ...] = (
    (((), "dense"), ((), "dense")),
    (((0,), "dense"), ((1,), "dense")),
    (((3,), "dense"), ((3,), "dense")),
    (((2, 3), "dense"), ((3,), "strided")),
    (((2, 1), "dense"), ((1, 3), "dense")),
    (((), "dense"), ((2, 3), "transposed")),
    (((2, 3), "transposed"), ((2, 3), "dense")),
    (((2, 2), "strided"), ((2, 1), "offset")),
    (((3, 2), "expanded"), ((3, 2), "dense")),
    (((2, 1, 2), "dense"), ((3, 1), "dense")),
    (((0, 3), "dense"), ((1, 3), "dense")),
)

SHAPES3: tuple[tuple[tuple[tuple[int, ...], str], ...], ...] = (
    (((), "dense"), ((), "dense"), ((), "dense")),
    (((2, 3), "dense"), ((2, 3), "dense"), ((2, 3), "dense")),
    (((2, 3), "dense"), ((3,), "dense"), ((2, 1), "dense")),
    (((2, 2), "transposed"), ((2, 2), "strided"), ((2, 2), "expanded")),
    (((0, 2), "dense"), ((2,), "dense"), ((1, 1), "dense")),
)


def pointwise_samples(
    *draws: Callable[..., np.ndarray],
    smooth: Callable[..., bool] | None = None,
    params: Sequence[dict[str, Any]] = ({},),
) -> Callable[[np.random.Generator], Iterator[Sample]]:
    """Samples over the broadcasting and layout cases, one drawer for each argument.

    `smooth(*arrays)` rejects a draw that comes near a kink which depends on several arguments.
    """
    cases: Any = {1: [(s,) for s in SHAPES1], 2: SHAPES2, 3: SHAPES3}[len(draws)]

    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for case in cases:
            for p in params:
                for _ in range(2000):
                    args = tuple(arg(d(rng, shape), layout) for d, (shape, layout) in zip(draws, case, strict=True))
                    if smooth is None or smooth(*(a.array() for a in args)):
                        break
                else:
                    raise AssertionError("no smooth sample found")
                yield Sample(args, dict(p))

    return samples


def leaves(T: Any, sample: Sample, dtype: str | None = None, requires_grad: bool = False) -> list[Any]:
    """The tensors that own the memory of the sample's arguments."""
    out = []
    for a in sample.args:
        c = a if dtype is None else a.cast(dtype)
        t = T.tensor(c.base)
        out.append(t.requires_grad_() if requires_grad and a.differentiable else t)
    return out


def views(sample: Sample, tensors: Sequence[Any]) -> list[Any]:
    return [a.view(t) for a, t in zip(sample.args, tensors, strict=True)]


def run(T: Any, op: Op, sample: Sample, dtype: str | None = None) -> tuple[Any, ...]:
    return as_tuple(op.call(T, *views(sample, leaves(T, sample, dtype)), **sample.params))


@contextmanager
def told(op: Op, sample: Sample, dtype: str = "") -> Iterator[None]:
    """Says with what goes wrong which operation, sample and dtype it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"{op.name}: sample {sample.id}{dtype and ' of ' + dtype}")
        raise


def as_tuple(out: Any) -> tuple[Any, ...]:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def to_numpy(t: Any) -> np.ndarray:
    """A copy of the values, whatever history or laziness the tensor has."""
    return np.array(t.detach().cpu().clone().numpy())
