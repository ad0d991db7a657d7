"""Draws random programs from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dtypes
from fusion_programs import FLOATS, LOSSES, NUMBERS_OF, SHAPES, Step, V, rows

DTYPES = tuple(n for n in dtypes.ALL if n not in (*dtypes.COMPLEX, *dtypes.UNSIGNED))
NUMBERS = (0.5, -1.25, 2, 3, -1, 0.0, 1e-3, True)
SLICES = (
    (slice(None), slice(None, None, 2)),
    (slice(1, None, 3),),
    (slice(5, 200), slice(3, 250)),
    (slice(None), 7),
    (11,),
    (slice(None),),
)

# Rows that keep values in [-1, 1] there, and are smooth: a program of them can be compared with float64.
SMOOTH = ("tanh", "sin", "cos", "sigmoid", "neg", "square", "erf", "atan")
CHAINED = (*SMOOTH, "exp", "abs", "sqrt", "relu", "gelu", "log1p", "floor", "sign", "reciprocal", "softplus")
REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "std", "norm", "logsumexp", "prod", "max", "argmax", "any", "all")
PRODUCTS = ("matmul", "turned", "linear", "addmm", "conv1", "conv3", "conv2d")
IN_PLACE_1 = ("exp_", "tanh_", "neg_", "abs_", "sigmoid_", "sqrt_", "floor_", "relu_", "sin_", "reciprocal_", "zero_")
IN_PLACE_2 = ("add_", "sub_", "mul_", "div_", "copy_", "pow_", "fmod_", "atan2_", "clamp_min_", "eq_", "logical_and_")


@dataclass
class Info:
    """What the generator knows about a value."""

    shape: str
    dtype: str


class Maker:
    """Draws programs."""

    def __init__(self, seed: int, smooth: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.smooth = smooth
        self.infos: list[Info] = []
        self.steps: list[Step] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def value(self, shape: str | None = None, dtypes: tuple[str, ...] = DTYPES) -> V:
        """A value of these kinds, the newest ones more often; a new one if there is none."""
        have = [n for n, i in enumerate(self.infos) if i.dtype in dtypes and (shape is None or i.shape == shape)]
        if not have:
            return self.leaf(shape or "whole", self.pick(dtypes))
        back = min(int(self.rng.exponential(4.0)), len(have) - 1)
        return V(have[-1 - back])

    def operand(self, shape: str, dtypes: tuple[str, ...] = DTYPES) -> Any:
        """Something that broadcasts to `shape`."""
        if self.rng.random() < 0.25:
            return float(self.pick(NUMBERS[:2])) if self.smooth else self.pick(NUMBERS)
        fits = [shape] * 3 + ["number", *{"whole": ("row", "column"), "turned": ("short",)}.get(shape, ())]
        return self.value(self.pick(fits), dtypes)

    def emit(self, verb: str, args: tuple[Any, ...], shape: str | None, dtype: str, **kw: Any) -> V:
        out = -1
        if shape is not None:
            out = len(self.infos)
            self.infos.append(Info(shape, dtype))
        no_grad = bool(self.rng.random() < 0.15)
        self.steps.append(Step(verb, args, out, no_grad, tuple(kw.items())))
        return V(out)

    def leaf(self, shape: str, dtype: str) -> V:
        grad = dtype in FLOATS and bool(self.rng.random() < 0.5)
        shared = not grad and bool(self.rng.random() < 0.3)
        verb = "from_numpy" if shared else "leaf"
        return self.emit(verb, (SHAPES[shape], dtype, int(self.rng.integers(1 << 30)), grad), shape, dtype)

    def program(self, length: int) -> list[Step]:
        for _ in range(3):
            self.leaf("whole", "float32")
        kinds: list[tuple[float, Callable[[], object]]] = [
            (6, self.unary),
            (6, self.binary),
            (1, self.ternary),
            (2, self.view),
            (1.5, self.reduce),
            (1, self.softmax),
            (2.5, self.consume),
            (1, self.softmax_gradient),
            (3, self.chain),
            (1.5, self.product),
            (1, self.keep),
            (0.7, self.look),
            (2.5, self.forget),
            (0.7, self.backward),
            (0.4, self.gradients),
        ]
        if not self.smooth:
            kinds += [
                (2, self.cast),
                (2, self.in_place),
                (0.7, self.add_product),
                (1, self.through_view),
                (1, self.through_turned),
                (0.7, self.host_write),
                (0.7, self.optimizer),
                (0.5, self.choose),
            ]
        weights = np.array([w for w, _ in kinds])
        for n in self.rng.choice(len(kinds), size=length, p=weights / weights.sum()):
            kinds[int(n)][1]()
        return self.steps

    def shape(self) -> str:
        return "turned" if self.rng.random() < 0.15 else "whole"

    def floats(self) -> tuple[str, ...]:
        return ("float32",) if self.smooth else FLOATS

    def unary(self) -> None:
        shape = self.shape()
        if self.smooth:
            self.emit(self.pick(SMOOTH), (self.value(shape, ("float32",)),), shape, "float32")
            return
        x = self.value(shape, FLOATS if self.rng.random() < 0.8 else DTYPES)
        name = self.pick(rows()[1])
        dtype = "bool" if name.startswith(("is", "logical")) else self.infos[x.n].dtype
        self.emit(name, (x, *NUMBERS_OF.get(name, ())), shape, dtype)

    def binary(self) -> None:
        shape = self.shape()
        x = self.value(shape, self.floats() if self.rng.random() < 0.8 else DTYPES)
        if self.smooth:
            y = self.operand(shape, ("float32",))
            verb = self.pick(("mul", "mean_of_two"))
            self.emit(verb, (x, y), shape, "float32")
            return
        name, y = self.pick(rows()[2]), self.operand(shape)
        if isinstance(y, V) and self.rng.random() < 0.2:
            x, y = y, x
        kw = {"alpha": self.pick((2, -0.5))} if name in ("add", "sub") and self.rng.random() < 0.3 else {}
        compares = name in ("eq", "ne", "lt", "le", "gt", "ge") or name.startswith(("logical", "not", "less", "great"))
        self.emit(name, (x, y), shape, "bool" if compares else self.infos[x.n].dtype, **kw)

    def chain(self) -> None:
        """Several operations, of which only the last result is kept."""
        shape = self.shape()
        x, y = self.value(shape, self.floats()), self.operand(shape, self.floats())
        names = (*SMOOTH, "mul") if self.smooth else (*CHAINED, "add", "mul", "sub", "div", "maximum")
        drawn = tuple(self.pick(names) for _ in range(int(self.rng.integers(2, 9))))
        self.emit("chain", (x, y, drawn), shape, self.infos[x.n].dtype)

    def product(self) -> None:
        """A matrix product, which steps after it join."""
        dtype = self.pick(self.floats())
        a, b, row = self.value("whole", (dtype,)), self.value("whole", (dtype,)), self.value("row", (dtype,))
        small = self.smooth or bool(self.rng.random() < 0.5)
        self.emit("product", (a, b, row, self.pick(PRODUCTS), small), "whole", dtype)

    def add_product(self) -> None:
        dtype = self.pick(FLOATS)
        x, a, b = (self.value("whole", (dtype,)) for _ in range(3))
        self.emit("add_product", (x, a, b, self.pick(("add_", "addmm_", "out"))), None, "")

    def ternary(self) -> None:
        shape = self.shape()
        if self.smooth:
            a, b = self.value(shape, ("float32",)), self.value(shape, ("float32",))
            self.emit("lerp", (a, b, 0.375), shape, "float32")
            return
        a, b = self.value(shape, FLOATS), self.operand(shape)
        match int(self.rng.integers(4)):
            case 0:
                self.emit("where", (self.value(shape, ("bool",)), a, b), shape, self.infos[a.n].dtype)
            case 1:
                self.emit("masked_fill", (a, self.value(shape, ("bool",)), 0.75), shape, self.infos[a.n].dtype)
            case 2:
                self.emit("clamp", (a, -0.5, self.pick((0.5, 2))), shape, self.infos[a.n].dtype)
            case _:
                name = self.pick(rows()[3])
                self.emit(name, (a, self.value(shape, FLOATS), self.value(shape, FLOATS)), shape, "float32")

    def cast(self) -> None:
        shape, dtype = self.shape(), self.pick(DTYPES)
        self.emit("to", (self.value(shape), dtype), shape, dtype)

    def view(self) -> None:
        match int(self.rng.integers(4)):
            case 0:
                x = self.value("whole", self.floats())
                self.emit("t", (x,), "turned", self.infos[x.n].dtype)
            case 1:
                x = self.value("turned", self.floats())
                self.emit("t", (x,), "whole", self.infos[x.n].dtype)
            case 2:
                x = self.value("row", self.floats())
                self.emit("expand", (x, SHAPES["whole"]), "whole", self.infos[x.n].dtype)
            case _:
                x = self.value("whole", self.floats())
                self.emit("there_and_back", (x,), "whole", self.infos[x.n].dtype)

    def choose(self) -> None:
        """A row, or a column, of a value."""
        x = self.value("whole", FLOATS)
        n = int(self.rng.integers(200))
        if self.rng.random() < 0.5:
            self.emit("item", (x, (n,)), "row", self.infos[x.n].dtype)
        else:
            self.emit("item", (x, (slice(None), slice(n, n + 1))), "column", self.infos[x.n].dtype)

    def reduce(self) -> None:
        x = self.value("whole", self.floats())
        name = "mean" if self.smooth else self.pick(REDUCTIONS)
        dtype = {"any": "bool", "all": "bool", "argmax": "int64"}.get(name, self.infos[x.n].dtype)
        match int(self.rng.integers(3)):
            case 0 if name != "logsumexp":
                self.emit(name, (x,), "number", dtype)
            case 1:
                self.emit("first_of", (name, x, 0, False), "row", dtype)
            case _:
                self.emit("first_of", (name, x, 1, True), "column", dtype)

    def softmax(self) -> None:
        x = self.value("whole", self.floats())
        dtype = self.infos[x.n].dtype
        name = self.pick(("softmax", "log_softmax") if not self.smooth else ("softmax",))
        self.emit(name, (x, int(self.rng.integers(2))), "whole", dtype)

    def chained(self) -> tuple[V, Any, tuple[str, ...]]:
        """Operands and names of a chain."""
        x, y = self.value("whole", self.floats()), self.operand("whole", self.floats())
        names = (*SMOOTH, "mul") if self.smooth else (*CHAINED, "add", "mul", "sub", "maximum")
        return x, y, tuple(self.pick(names) for _ in range(int(self.rng.integers(1, 6))))

    def consume(self) -> None:
        """A chain of which only what a reduction, a softmax or a loss makes of it is kept."""
        x, y, names = self.chained()
        dtype = self.infos[x.n].dtype
        match int(self.rng.integers(4)):
            case 0:
                how, dim, shape = self.pick(("softmax", "log_softmax")), int(self.rng.integers(3)), "whole"
            case 1:
                how, dim, shape = self.pick(LOSSES), 0, "number"
            case _:
                how = self.pick(("mean", "var", "logsumexp") if self.smooth else REDUCTIONS)
                dim = int(self.rng.integers(3))
                shape = ("row", "outer", "column")[dim]
        dtype = {"any": "bool", "all": "bool", "argmax": "int64"}.get(how, dtype)
        if how == "max" and self.rng.random() < 0.7:
            self.emit("both_of_max", (x, y, names, int(self.rng.integers(2)), bool(self.rng.integers(2))), "row", dtype)
            return
        self.emit("consumed", (x, y, names, how, dim), shape, dtype)

    def softmax_gradient(self) -> None:
        """The backward pass of a softmax with a chain as gradient."""
        g, y, names = self.chained()
        x = self.value("whole", ("float32",))
        name = self.pick(("softmax", "log_softmax"))
        self.emit("softmax_gradient", (x, g, y, names, name, int(self.rng.integers(3))), "whole", "float32")

    def keep(self) -> None:
        x = self.value(self.shape(), self.floats())
        i = self.infos[x.n]
        self.emit(self.pick(("detach", "clone", "contiguous")), (x,), i.shape, i.dtype)

    def look(self) -> None:
        self.emit(self.pick(("look", "look", "item_of_sum")), (self.value(),), None, "")

    def forget(self) -> None:
        self.emit("forget", (self.value(),), None, "")

    def in_place(self) -> None:
        x = self.value(self.shape(), FLOATS if self.rng.random() < 0.8 else DTYPES)
        if self.rng.random() < 0.3:
            self.emit(self.pick(IN_PLACE_1), (x,), None, "")
        else:
            self.emit(self.pick(IN_PLACE_2), (x, self.operand(self.infos[x.n].shape)), None, "")

    def through_view(self) -> None:
        x = self.value(self.shape(), FLOATS)
        self.emit("write_part", (x, self.pick(SLICES), self.pick(("mul_", "add_", "fill_", "exp_")), 0.5), None, "")

    def through_turned(self) -> None:
        x = self.value("whole", FLOATS)
        self.emit("write_turned", (x, self.operand("turned"), self.pick(("mul_", "add_", "sub_", "copy_"))), None, "")

    def host_write(self) -> None:
        """Through NumPy, to memory that a tensor shares with it."""
        self.emit("host_write", (self.value(None, FLOATS), self.pick((0.5, 2.0))), None, "")

    def optimizer(self) -> None:
        p, g = self.value("whole", ("float32",)), self.value("whole", ("float32",))
        m, v = self.value("whole", ("float32",)), self.value("whole", ("float32",))
        self.emit(self.pick(("sgd_step", "adam_step")), (p, g, m, v), None, "")

    def backward(self) -> None:
        self.emit("backward", (self.value(None, self.floats()),), None, "")

    def gradients(self) -> None:
        x = self.value("whole", ("float32",))
        y = self.value(None, self.floats())
        self.emit("gradient_of", (y, x, bool(self.rng.random() < 0.5)), "whole", "float32")


def make(seed: int, length: int = 30, smooth: bool = False) -> list[Step]:
    return Maker(seed, smooth).program(length)
