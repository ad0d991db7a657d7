"""Random programs as data: made once from a seed, run under any setting, compared bit for bit, and made smaller.

A program is a list of steps over numbered values. Running it gives a record of all that a user could see: the bytes
that were looked at, and the type and message of every error. A step whose value is missing, since an earlier one
failed, is passed over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dtypes
import rgrad

ROWS, COLUMNS = 257, 265  # together above the size from which results stay pending
INNER = (ROWS, 5, 53)  # the same elements with a dimension in the middle
SHAPES: dict[str, tuple[int, ...]] = {
    "whole": (ROWS, COLUMNS),
    "turned": (COLUMNS, ROWS),
    "row": (COLUMNS,),
    "short": (ROWS,),
    "column": (ROWS, 1),
    "number": (),
    "outer": (ROWS, 53),
}
FLOATS = ("float32", "float64")
DTYPES = dtypes.ALL
NUMBERS = (0.5, -1.25, 2, 3, -1, 0.0, 1e-3, True)
SLICES = (
    (slice(None), slice(None, None, 2)),
    (slice(1, None, 3),),
    (slice(5, 200), slice(3, 250)),
    (slice(None), 7),
    (11,),
    (slice(None),),
)


@dataclass(frozen=True)
class V:
    """The number of a value."""

    n: int

    def __repr__(self) -> str:
        return f"v{self.n}"


@dataclass(frozen=True)
class Step:
    """What to do: a verb, its operands, the number of the value that it makes, and whether history is off."""

    verb: str
    args: tuple[Any, ...]
    out: int = -1
    no_grad: bool = False
    kw: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        made = f"v{self.out} = " if self.out >= 0 else ""
        told = ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kw)])
        return f"{made}{self.verb}({told}){'  # no_grad' if self.no_grad else ''}"


@dataclass
class Info:
    """What the generator knows about a value."""

    shape: str
    dtype: str


# Numbers that a row takes behind its tensors and has no defaults for.
NUMBERS_OF = {"threshold": (0.1, 0.5)}


@functools.cache
def rows() -> dict[int, tuple[str, ...]]:
    """The names of all pointwise functions by the number of tensors that they take."""
    found: dict[int, list[str]] = {1: [], 2: [], 3: []}
    for name in rgrad._core.pointwise_names:
        for n, names in found.items():
            if any(accepts(name, n, dtype) for dtype in ("float32", "int64", "bool")):
                names.append(name)
                break
        else:
            raise AssertionError(f"{name} takes neither one, two nor three tensors")
    found[1] += ["round", "gelu"]
    found[2] += ["add", "sub", "div", "pow", "rsub"]
    return {n: tuple(names) for n, names in found.items()}


def accepts(name: str, n: int, dtype: str) -> bool:
    try:
        getattr(rgrad._core, name)(
            *(rgrad.ones(2, dtype=getattr(rgrad, dtype)) for _ in range(n)), *NUMBERS_OF.get(name, ())
        )
    except (TypeError, RuntimeError):
        return False
    return True


# Rows that keep values in [-1, 1] there, and are smooth: a program of them can be compared with float64.
SMOOTH = ("tanh", "sin", "cos", "sigmoid", "neg", "square", "erf", "atan")
CHAINED = (*SMOOTH, "exp", "abs", "sqrt", "relu", "gelu", "log1p", "floor", "sign", "reciprocal", "softplus")
REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "std", "norm", "logsumexp", "prod", "max", "argmax", "any", "all")
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "nll_loss", "cross_entropy")
VIEWS = ("t", "expand", "there_and_back", "item", "detach", "clone", "contiguous")
IN_PLACE_1 = ("exp_", "tanh_", "neg_", "abs_", "sigmoid_", "sqrt_", "floor_", "relu_", "sin_", "reciprocal_", "zero_")
IN_PLACE_2 = ("add_", "sub_", "mul_", "div_", "copy_", "pow_", "fmod_", "atan2_", "clamp_min_", "eq_", "logical_and_")


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


@dataclass
class Run:
    """One run of a program: its values, the arrays that it shares with NumPy, and the record.

    Elsewhere than on the CPU nothing is shared with NumPy, and float32 stands for float64, which most devices have not.
    """

    wide: bool = False  # float64 in place of float32
    device: str = "cpu"
    nudge: float = 0.0  # by which share every float of a step's result may be off; for programs without writes
    values: dict[int, Any] = field(default_factory=dict)
    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    record: list[Any] = field(default_factory=list)

    def dtype(self, name: str) -> str:
        if name not in FLOATS:
            return name
        return "float64" if self.wide else name if self.device == "cpu" else "float32"

    def see(self, t: Any) -> None:
        """Puts all that can be seen of a tensor into the record."""
        a = t.detach().clone().cpu().numpy()  # a copy: memory that is shared with NumPy is not read late any more
        seen = a.astype("float64") if self.wide or t.dtype == rgrad.float64 else a
        self.record.append((str(t.dtype), tuple(t.shape), t.stride(), t.requires_grad, np.array(seen)))

    def all(self, steps: list[Step]) -> list[Any]:
        for step in steps:
            self.one(step)
        for n in sorted(self.values):
            if self.values[n] is not None:
                self.one(Step("last", (V(n),)))
        return self.record

    def one(self, step: Step) -> None:
        args = [self.values.get(a.n) if isinstance(a, V) else a for a in step.args]
        if any(a is None for a in args):
            return
        try:
            with rgrad.set_grad_enabled(not step.no_grad):
                made = getattr(self, f"do_{step.verb}", functools.partial(self.row, step.verb))(step, *args)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            self.record.append((repr(step), type(error).__name__, str(error).splitlines()[0]))
            return
        if step.out >= 0:
            self.values[step.out] = self.nudged(made, step) if self.nudge else made

    def nudged(self, made: Any, step: Step) -> Any:
        """Off by random shares of what is there; leaves and views stay what they are."""
        if not made.is_floating_point() or (made.is_leaf and made.requires_grad) or step.verb in VIEWS:
            return made
        noise = np.random.default_rng(step.out).uniform(-self.nudge, self.nudge, tuple(made.shape))
        with rgrad.set_grad_enabled(not step.no_grad):
            return made * rgrad.tensor(1 + noise)

    def row(self, verb: str, step: Step, *args: Any) -> Any:
        if verb.endswith("_") or not hasattr(rgrad._core, verb):
            return getattr(args[0], verb)(*args[1:], **dict(step.kw))
        return getattr(rgrad._core, verb)(*args, **dict(step.kw))

    def data(self, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if dtype in FLOATS:
            return rng.uniform(-1.0, 1.0, shape).astype(dtype).astype(self.dtype(dtype))
        return rng.integers(0, 2 if dtype == "bool" else 5, shape).astype(dtype)

    def do_leaf(self, step: Step, shape: tuple[int, ...], dtype: str, seed: int, grad: bool) -> Any:
        t = rgrad.tensor(self.data(shape, dtype, seed), device=self.device)
        return t.requires_grad_() if grad else t

    def do_from_numpy(self, step: Step, shape: tuple[int, ...], dtype: str, seed: int, grad: bool) -> Any:
        array = np.array(self.data(shape, dtype, seed))
        if self.device != "cpu":
            return rgrad.from_numpy(array).to(self.device)
        self.arrays[step.out] = array
        return rgrad.from_numpy(array)

    def do_host_write(self, step: Step, t: Any, factor: float) -> None:
        source = step.args[0].n
        array = self.arrays[source] if source in self.arrays else t.detach().cpu().numpy()
        with np.errstate(all="ignore"):
            array *= factor
        array += array.dtype.type(0.25)
        if self.device != "cpu":
            t.detach().copy_(rgrad.from_numpy(array))

    def do_copysign(self, step: Step, a: Any, b: Any) -> Any:
        # The sign of a nan may differ between a program and its steps one by one.
        return rgrad.copysign(a, b.where(b == b, 1) if isinstance(b, rgrad.Tensor) and b.is_floating_point() else b)

    def do_mean_of_two(self, step: Step, a: Any, b: Any) -> Any:
        return (a + b) * 0.5

    def do_chain(self, step: Step, x: Any, y: Any, names: tuple[str, ...]) -> Any:
        for name in names:
            x = (
                getattr(rgrad._core, name)(x)
                if name in rows()[1]
                else getattr(rgrad._core, name)(x, rgrad.as_tensor(y, device=x.device))
            )
        return x

    def do_consumed(self, step: Step, x: Any, y: Any, names: tuple[str, ...], how: str, dim: int) -> Any:
        if how in LOSSES:
            picks = how in ("nll_loss", "cross_entropy")
            target = rgrad.arange(ROWS, device=x.device) % COLUMNS if picks else self.target(x)
            return getattr(rgrad.nn.functional, how)(self.do_chain(step, x, y, names), target)
        if dim == 1:
            out = getattr(self.do_chain(step, x, y, names).reshape(INNER), how)(dim=1)
            out = out if isinstance(out, rgrad.Tensor) else out[0]
            return out.reshape(SHAPES["whole"]) if how.endswith("softmax") else out
        if how.endswith("softmax"):
            return getattr(self.do_chain(step, x, y, names), how)(dim // 2)
        return self.do_first_of(step, how, self.do_chain(step, x, y, names), dim // 2, dim == 2)

    def do_both_of_max(self, step: Step, x: Any, y: Any, names: tuple[str, ...], first: int, written: bool) -> Any:
        """Values and positions, the ones or the others read first, perhaps after a write to the values."""
        made = list(self.do_chain(step, x, y, names).max(0))
        if written and not made[0].requires_grad:
            made[0].mul_(0.5)
        made[first].sum().item()
        return made[0] + made[1].to(made[0].dtype) * 0.125

    def target(self, x: Any) -> Any:
        return (x.detach() * 0.25 + 0.5).clamp(0, 1)

    def do_softmax_gradient(
        self, step: Step, x: Any, g: Any, y: Any, names: tuple[str, ...], name: str, dim: int
    ) -> Any:
        with rgrad.enable_grad():
            leaf = x.detach().reshape(INNER).requires_grad_()
            out = getattr(leaf, name)(dim)
            chain = self.do_chain(step, g.detach(), y, names).detach().to(out.dtype).reshape(INNER)
            return rgrad.autograd.grad(out, leaf, chain)[0].reshape(SHAPES["whole"])

    def do_to(self, step: Step, t: Any, dtype: str) -> Any:
        return t.to(getattr(rgrad, self.dtype(dtype)))

    def do_there_and_back(self, step: Step, t: Any) -> Any:
        return t.reshape(-1).reshape(t.shape)

    def do_item(self, step: Step, t: Any, index: Any) -> Any:
        return t[index]

    def do_first_of(self, step: Step, name: str, t: Any, dim: int, keepdim: bool) -> Any:
        out = getattr(rgrad, name)(t, dim=dim, keepdim=keepdim)
        return out[0] if isinstance(out, tuple) else out

    def do_look(self, step: Step, t: Any) -> None:
        self.see(t)

    def do_last(self, step: Step, t: Any) -> None:
        """Values and gradient, at the end."""
        self.record.append(repr(step.args[0]))
        self.see(t)
        if t.is_leaf and t.grad is not None:
            self.see(t.grad)

    def do_item_of_sum(self, step: Step, t: Any) -> None:
        self.record.append(repr(t.detach().sum().item()))

    def do_forget(self, step: Step, t: Any) -> None:
        self.values[step.args[0].n] = None

    def do_write_part(self, step: Step, t: Any, index: Any, verb: str, number: float) -> None:
        part = t[index]
        getattr(part, verb)(*(() if verb == "exp_" else (number,)))

    def do_write_turned(self, step: Step, t: Any, other: Any, verb: str) -> None:
        getattr(t.t(), verb)(other)

    def do_sgd_step(self, step: Step, p: Any, g: Any, m: Any, v: Any) -> None:
        with rgrad.no_grad():
            m.mul_(0.9).add_(g)
            p.add_(m, alpha=-0.05)

    def do_adam_step(self, step: Step, p: Any, g: Any, m: Any, v: Any) -> None:
        with rgrad.no_grad():
            m.lerp_(g, 0.1)
            v.mul_(0.99).addcmul_(g, g, value=0.01)
            p.addcdiv_(m, v.abs().sqrt().add_(1e-3), value=-0.01)

    def do_backward(self, step: Step, t: Any) -> None:
        with rgrad.enable_grad():
            (t * 0.5).mean().backward(retain_graph=True)

    def do_gradient_of(self, step: Step, y: Any, x: Any, create_graph: bool) -> Any:
        with rgrad.enable_grad():
            (g,) = rgrad.autograd.grad(y.mean(), x, retain_graph=True, create_graph=create_graph)
        return g


def run(steps: list[Step], fused: bool, wide: bool = False, device: str = "cpu", nudge: float = 0.0) -> list[Any]:
    with rgrad.fusion(fused):
        return Run(wide, device, nudge).all(steps)


def one_nan(values: np.ndarray) -> np.ndarray:
    """With one nan for all: a processor keeps the sign of the first of two, and compilers choose which is first."""
    return np.where(np.isnan(values), values.dtype.type(np.nan), values) if values.dtype.kind == "f" else values


def entries(record: list[Any]) -> Iterator[Any]:
    """Entries that can be compared: arrays as their bytes, so that nan is nan and -0 is not 0."""
    for e in record:
        yield (*e[:-1], one_nan(e[-1]).tobytes()) if isinstance(e, tuple) and isinstance(e[-1], np.ndarray) else e


def difference(a: list[Any], b: list[Any]) -> str:
    """What differs first, or '' where nothing does."""
    for n, (x, y) in enumerate(zip(entries(a), entries(b), strict=False)):
        if x != y:
            shown = [e[:-1] if isinstance(e, tuple) and isinstance(e[-1], np.ndarray) else e for e in (a[n], b[n])]
            if shown[0] == shown[1] and isinstance(a[n][-1], np.ndarray):
                u, v = one_nan(a[n][-1].reshape(-1)), one_nan(b[n][-1].reshape(-1))
                at = int(np.flatnonzero([p.tobytes() != q.tobytes() for p, q in zip(u, v, strict=True)])[0])
                return f"entry {n} {shown[0]}: {u[at]!r} and {v[at]!r} at {at}"
            return f"entry {n}: {shown[0]} and {shown[1]}"
    return "" if len(a) == len(b) else f"{len(a)} and {len(b)} entries"


def smaller(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """The program without the steps that the failure does not need."""
    size = max(1, len(steps) // 2)
    while size:
        n = 0
        while n < len(steps):
            fewer = steps[:n] + steps[n + size :]
            if fails(fewer):
                steps = fewer
            else:
                n += size
        size //= 2
    return steps


def told(steps: list[Step]) -> str:
    return "\n".join(map(repr, steps))
