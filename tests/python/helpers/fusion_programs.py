"""Programs as data: drawn once (`fusion_draw`), run under any setting, compared bit for bit, and made smaller.

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


LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "nll_loss", "cross_entropy")
VIEWS = ("t", "expand", "there_and_back", "item", "detach", "clone", "contiguous")


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

    def do_product(self, step: Step, a: Any, b: Any, row: Any, how: str, small: bool) -> Any:
        left = a[:, :ROWS]
        match how:
            case "matmul":
                made = left @ b
            case "turned":
                made = (b.t() @ left.t()).t()
            case "linear":
                made = rgrad.nn.functional.linear(left, b.t(), row)
            case "conv1" | "conv3":
                # Five images of 53 channels of 257 elements.
                taps = int(how[-1])
                weight = b.flatten()[: 53 * 53 * taps].reshape(53, 53, taps)
                made = rgrad.conv1d(a.reshape(5, 53, ROWS), weight, row[:53], padding=taps // 2).reshape(
                    SHAPES["whole"]
                )
            case "conv2d":
                images, weight = a.reshape(5, 1, ROWS, 53), b[:3, :3].reshape(1, 1, 3, 3)
                made = rgrad.conv2d(images, weight, row[:1], padding=1).reshape(SHAPES["whole"])
            case _:
                made = rgrad.addmm(a, left, b, beta=0.5, alpha=1 if small else -2)
        return made * (0.5 / ROWS) if small else made

    def do_add_product(self, step: Step, x: Any, a: Any, b: Any, how: str) -> None:
        left = a[:, :ROWS]
        match how:
            case "add_":
                x.add_(left @ b)
            case "addmm_":
                x.addmm_(left, b, beta=0.5)
            case _:
                rgrad.mul(left @ b, 2, out=x)

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
