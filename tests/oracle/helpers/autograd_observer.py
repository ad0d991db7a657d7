"""Runs a program with rgrad and with PyTorch and finds the first statement after which a user sees a difference.

After each statement that is the error, if one was raised, what hooks have logged, and of every tensor its values,
flags, version, base and gradient.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import math
import re
import warnings
from typing import Any

import numpy as np

from autograd_functions import functions
from autograd_programs import NAMES, VIEWS


class Observer:
    """Runs statements with one library, and says what can be seen after each."""

    def __init__(self, T: Any, decides: bool = False) -> None:
        self.T = T
        self.seen: list[Any] = []
        self.counts = True
        start = np.linspace(-1.0, 1.5, 9).reshape(3, 3)
        tools = importlib.import_module(T.__name__ + ".utils.checkpoint")
        self.names: dict[str, Any] = {
            "T": T,
            "copy": copy,
            "fw": T.autograd.forward_ad,
            "checkpoint": tools.checkpoint,
            "selective": lambda f, x, y: selective(T, tools, f, x, y),
            "net": T.nn.Linear(3, 3, bias=False, dtype=T.float64),
            "log": self.log,
            "fail": self.fail,
            "normal": normal,
            "finite": finite,
            "written": lambda x, write: (write(x), x)[1],
            "no_grad": lambda f: T.no_grad()(f)(),
            "dense": lambda x: None if x is None else x.clone(),
            # Masks and positions have places of their own among a node's inputs (docs/differences.md).
            "first": lambda grads: (
                next((g for g in grads if g is not None), None) if isinstance(grads, tuple) else grads
            ),
            "given": lambda grads: [g for g in grads if g is not None],
            "leaves": lambda *xs: [x for x in xs if x.is_leaf and x.requires_grad] or fail_input(),
            "ahead": self.ahead if decides else lambda line: None,
            **functions(T),
        }
        for i, name in enumerate(NAMES):
            # Of a list: PyTorch does not resize memory that came from NumPy.
            data = (start * (1 + 0.25 * i) + 0.1 * i).tolist()
            self.names[name] = T.tensor(data, dtype=T.float64, requires_grad=i < 2)
        for name in VIEWS:
            self.names[name] = T.tensor(start[0].tolist(), dtype=T.float64)
        self.names["net"].weight.data.copy_(T.tensor(start.T * 0.5))

    def log(self, *values: Any) -> None:
        self.seen.append([self.describe(v, deep=False) for v in values])

    def fail(self) -> None:
        raise ValueError("raised by a hook")

    def ahead(self, line: str) -> None:
        """Ends the program before a line that does what the libraries do differently (docs/differences.md)."""
        targets = [self.names.get(x) for x in DATA.findall(line)]
        inference = any(is_tensor(self.T, x) and x.is_inference() for x in targets)
        outputs = [self.names.get(x) for x in OUT.findall(line)]
        inputs = [self.names.get(x) for x in INPUTS.findall(line)] if outputs else []
        shared = any(overlap(a, b) for a in outputs for b in inputs if is_tensor(self.T, a) and is_tensor(self.T, b))
        if inference or shared or self.writes_overlap(line) or any(map(self.has_views, targets + outputs)):
            raise Ended

    def run(self, statement: str) -> list[Any]:
        """Executes it; says what was logged, and which error was raised."""
        statement = AHEAD.sub(lambda m: f"{m[1]}ahead({m[2]!r})\n{m[1]}{m[2]}", statement)
        self.seen = []
        # The counters of what comes from inference tensors begin at different numbers.
        # So do those of gradients (docs/differences.md).
        self.counts &= "inference_mode()" not in statement and not re.search(r"= \w\.grad$|deepcopy", statement)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(statement, "<program>", "exec"), self.names)
            except Exception as error:
                self.seen.append(["error", type(error), str(error)])
        return self.seen

    def state(self) -> dict[str, Any]:
        return {name: self.describe(self.names.get(name)) for name in NAMES + VIEWS}

    def describe(self, x: Any, deep: bool = True) -> Any:
        if isinstance(x, (tuple, list)):
            return [self.describe(v, deep) for v in x]
        if not isinstance(x, self.T.Tensor):
            return x if isinstance(x, (int, float, str, type(None))) else type(x).__name__
        facts: dict[str, Any] = {
            "type": type(x).__name__,
            "dtype": str(x.dtype).rsplit(".", 1)[-1],
            "shape": tuple(x.shape),
        }
        with self.quiet():
            # A copy: PyTorch does not resize memory that NumPy has seen.
            facts["values"] = np.array(x.detach().resolve_conj().resolve_neg().cpu().clone().numpy())
        if deep:
            facts |= self.history(x)
        return facts

    def history(self, x: Any) -> dict[str, Any]:
        facts: dict[str, Any] = {"inference": x.is_inference()}
        for name in ("requires_grad", "is_leaf"):
            try:
                facts[name] = getattr(x, name)
            except Exception as error:
                facts[name] = ["error", type(error), str(error)]
        if self.counts:
            with contextlib.suppress(RuntimeError):
                facts["version"] = x._version
        facts["view"] = x._is_view()
        try:
            facts["node"] = x.grad_fn is not None
        except Exception as error:
            facts["node"] = ["error", type(error), str(error)]
        facts["retains"] = x.retains_grad
        if x._is_view():
            facts["base"] = [name for name in NAMES + VIEWS if self.names.get(name) is x._base]
        if facts["is_leaf"] is True or x.retains_grad:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                g = x.grad
            facts["grad"] = None if g is None else self.describe(g, deep=False) | {"has": g.requires_grad}
        return facts

    def has_views(self, x: Any) -> bool:
        """Whether another tensor has the memory of this one."""
        tensors = [t for t in map(self.names.get, NAMES + VIEWS) if isinstance(t, self.T.Tensor)]
        return isinstance(x, self.T.Tensor) and any(t is not x and overlap(t, x) for t in tensors)

    def gradients_in_names(self) -> list[tuple[str, str]]:
        """The gradients that have the memory of another tensor."""
        tensors = {name: self.names.get(name) for name in NAMES + VIEWS}
        tensors = {name: t for name, t in tensors.items() if isinstance(t, self.T.Tensor)}
        found = []
        for name, t in tensors.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                g = t.grad
            if g is not None:
                found += [(name, other) for other, u in tensors.items() if u is not g and overlap(g, u)]
        return found

    def begins_at_leaf(self, statement: str) -> bool:
        """Whether a backward pass begins at a leaf, whose multi-grad hooks PyTorch then does not call."""
        roots = [self.names.get(a or b) for a, b in re.findall(r"backward\(\[?(\w)[,)]|\b(\w)\.backward\(", statement)]
        with contextlib.suppress(RuntimeError):
            return any(is_tensor(self.T, x) and x.is_leaf for x in roots)
        return False

    def writes_overlap(self, statement: str) -> bool:
        """Whether a statement writes one tensor in place by another that shares some of its memory."""
        pairs = [(self.names.get(a), self.names.get(b)) for a, b in re.findall(r"\b(\w)\.\w+_\(.*?\b(\w)\b", statement)]
        return any(
            isinstance(a, self.T.Tensor) and isinstance(b, self.T.Tensor) and a is not b and overlap(a, b)
            for a, b in pairs
        )

    def has_leaf_view(self) -> bool:
        """Whether there is a view without a node whose base requires grad: no gradient arrives at it."""
        tensors = [t for t in map(self.names.get, NAMES + VIEWS) if isinstance(t, self.T.Tensor)]
        with contextlib.suppress(RuntimeError):
            return any(t._is_view() and t.requires_grad and t.grad_fn is None for t in tensors)
        return False

    def has_two_floats(self) -> bool:
        """Whether there are floats of two dtypes: rgrad saves operands as its derivatives read them, converted."""
        tensors = [self.names.get(name) for name in NAMES + VIEWS]
        return len({t.dtype for t in tensors if isinstance(t, self.T.Tensor) and t.is_floating_point()}) > 1

    def has_old_view(self) -> bool:
        """Whether there is a view of a tensor with a node: a leaf, until it is asked, if it is older than the node."""
        tensors = [self.names.get(name) for name in NAMES + VIEWS]
        views = [t for t in tensors if isinstance(t, self.T.Tensor) and t._is_view()]
        with contextlib.suppress(RuntimeError):
            return any(v._base.grad_fn is not None for v in views)
        return False

    def quiet(self) -> Any:
        return self.T.no_grad()


class Ended(BaseException):
    """The libraries differ on purpose in what comes next."""


def overlap(a: Any, b: Any) -> bool:
    """Whether the addresses of two tensors' elements overlap."""

    def ends(t: Any) -> tuple[int, int]:
        last = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
        return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()

    (a0, a1), (b0, b1) = ends(a), ends(b)
    return a0 < b1 and b0 < a1


def normal(a: Any, b: Any) -> None:
    """Refuses what is no dual tensor in torch (inference tensors), and a tangent of another dtype."""
    if a.is_inference() or b.is_inference() or a.dtype != b.dtype:
        raise ValueError("not for a dual tensor")


def selective(T: Any, tools: Any, function: Any, x: Any, y: Any) -> Any:
    """A checkpoint that keeps what products have computed."""
    if x.dim() != 2 or y.dim() != 2:
        raise ValueError("PyTorch writes to what products with vectors give")
    kept = (T.ops.aten.mul.Tensor, T.ops.aten.mm.default)
    policy = tools.CheckpointPolicy

    def chosen(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        return policy.MUST_SAVE if op in kept else policy.PREFER_RECOMPUTE

    contexts = functools.partial(tools.create_selective_checkpoint_contexts, chosen)
    return tools.checkpoint(function, x, y, use_reentrant=False, context_fn=contexts)


def is_tensor(T: Any, x: Any) -> bool:
    return isinstance(x, T.Tensor)


def finite(x: Any) -> None:
    """Refuses nan and infinities, times which the zeros of PyTorch's tangents are nan (docs/differences.md)."""
    if not np.isfinite(x.detach().numpy()).all():
        raise ValueError("not finite")


def fail_input() -> None:
    raise ValueError("no leaf")


# ------------------------------------------------------------------------------------------------------ comparing

FLOATS = {"float64": 2e-6, "float32": 1e-5}  # some of what is float64 was float32


def unequal(mine: Any, theirs: Any, at: str = "") -> str | None:
    """Where rgrad's facts differ from torch's; None if they do not."""
    if isinstance(theirs, dict):
        if not isinstance(mine, dict):
            return f"{at}: {mine} instead of {theirs}"
        tolerance = FLOATS.get(theirs.get("dtype", ""), 0.0)
        for key, want in theirs.items():
            if key not in mine:
                return f"{at}.{key}: missing instead of {want}"
            got = mine[key]
            if key == "values" and isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
                if got.shape != want.shape or not np.allclose(
                    got, want, rtol=tolerance, atol=tolerance, equal_nan=True
                ):
                    return f"{at}.{key}: {got.tolist()} instead of {want.tolist()}"
                continue
            found = unequal(got, want, f"{at}.{key}")
            if found:
                return found
        return None
    if isinstance(theirs, list):
        if not isinstance(mine, list) or len(mine) != len(theirs):
            return f"{at}: {mine} instead of {theirs}"
        if theirs and theirs[0] == "error":
            return unequal_errors(mine, theirs, at)
        for i, (got, want) in enumerate(zip(mine, theirs, strict=True)):
            found = unequal(got, want, f"{at}[{i}]")
            if found:
                return found
        return None
    if isinstance(mine, float) and isinstance(theirs, float) and math.isclose(mine, theirs, rel_tol=2e-6, abs_tol=2e-6):
        return None
    return None if mine == theirs or (mine != mine and theirs != theirs) else f"{at}: {mine!r} instead of {theirs!r}"


def unequal_errors(mine: list[Any], theirs: list[Any], at: str) -> str | None:
    if mine[0] != "error":
        return f"{at}: no error instead of {theirs}"
    got, want = plain(mine[2]), plain(theirs[2])
    if any(re.search(a, got) and re.search(b, want) for a, b in SAME_MEANING):
        return None
    if not re.search(AUTOGRAD, want) or not re.search(AUTOGRAD, got):
        return None  # a call that is wrong in two ways: which is told is no one's concern
    if not issubclass(mine[1], theirs[1]) and mine[1].__name__ != theirs[1].__name__:
        return f"{at}: {mine[1].__name__}({mine[2]!r}) instead of {theirs[1].__name__}({theirs[2]!r})"
    if want in got or want.startswith(got):
        return None
    return f"{at}: message {got!r} instead of {want!r}"


# What a message is about whose words programs look at.
AUTOGRAD = r"grad|leaf|backward|in-?place|saved|hook|inference|Function|is a view|view was|vmap|tangent|dual"

# Messages with other words, or of two errors in a call the other one: rgrad's, then torch's. The reasons
# stand in docs/differences.md, under these titles.
OTHER_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "Advice": (
        (r"saved tensor hooks\. Enter saved_tensors_hooks outside", r"saved tensor hooks\. Please open an issue"),
        (
            r"over calling \.item\(\) on a Tensor, please try to rewrite",
            r"over calling \.item\(\) on a Tensor, please try",
        ),
    ),
    "Names of what PyTorch runs inside": (
        (r"that does(n't| not) require gradient", r"^Expected gradient function to be set"),
        (r"must be Tensor, not NoneType", "Expected gradient function to be set"),
        ("", r"^'NoneType' object has no attribute"),
        (r"base or another view of its base has been modified inplace", r"Mismatch in shape"),
        (r"base or another view of its base has been modified inplace", r"don't support automatic differentiation"),
    ),
    "Names of functions": (
        (r"hook has (changed|returned)", r"hook '<lambda>' has (changed|returned)"),
        (r"vmap\(_function_apply", r"vmap\(apply"),
        (r"^vmap: \w+_\(self", r"^vmap: inplace arithmetic\(self"),
    ),
    "Details": (
        (r"attempting to assign a gradient", r"attempting to assign a gradient"),
        (r"a mismatch was detected", r"a mismatch was detected"),
    ),
    "The other error first": (
        (r"a leaf Variable that requires grad is being used", "Inplace update to inference tensor"),
        (r"different size than that of the original", r"has been modified inplace"),
        (r"^expected Variable, but hook returned", r"can't replace a None gradient"),
        (r"^a leaf Variable that requires grad", r"^vmap: inplace arithmetic\(self"),
        (r"is a view and is being modified inplace", r"^vmap: inplace arithmetic\(self"),
        (r"^Inference tensors cannot be saved", r"^raised by a hook"),
    ),
}
SAME_MEANING = tuple(pair for pairs in OTHER_WORDS.values() for pair in pairs)

# When torch says this a program ends (docs/differences.md). Either torch has changed something although it failed (the
# first two), or it refuses what rgrad can do: a source that shares memory with the target, a second pass where nothing
# was saved, hooks of views without a node, hooks of several leaves, derivatives at expanded tensors. Or it asserts.
ENDS = (
    r"Inplace update to inference tensor outside InferenceMode|is out of bounds|^out of range: tried to access|"
    r"Expected gradient function to be set|"
    r"some elements of the input tensor and the written-to tensor|Trying to backward through the graph a second time|"
    r"'NoneType' object has no attribute 'next_functions'|Output of saved tensor unpack_hook expected to be a Tensor|"
    r"A leaf node was passed to _will_engine_execute_node|"
    r"more than one element of the written-to tensor|INTERNAL ASSERT FAILED|"
    r"Expected out tensor to have dtype|Cannot access data pointer of Tensor that doesn't have storage|"
    r"has been modified by an inplace operation: .*, which is output 0 of ScatterReduce"
)


LAYOUT = "view size is not compatible"
# New memory for a tensor that has views or is one: these belong to the old memory (docs/differences.md).
DATA = re.compile(r"\b(\w)\.data = ")
# A target that shares memory with an input: PyTorch reads what it has written already.
OUT = re.compile(r"\bout=(\w)")
INPUTS = re.compile(r"(?<!out=)\b([a-duvw])\b")
# A line of a program that is no head of a block.
AHEAD = re.compile(r"^( *)(?!with )(.+)$", re.MULTILINE)


def plain(text: str) -> str:
    """A message without what only names the library, a place of the source or a hint behind it."""
    text = text.split("\n", maxsplit=1)[0]
    text = re.sub(r"torch::autograd::|torch\.|rgrad\.", "", text)
    text = re.sub(r"\.? (Saved for|Hint:).*", "", text).replace("contextin", "context in")
    text = re.sub(r", which is output \d+ of \w+,", "", re.sub(r"\[(\w+Tensor) \[[^\]]*\]\]", r"\1", text))
    return re.sub(r"\s+", " ", text).strip().rstrip(".")


def said(seen: list[Any], pattern: str) -> bool:
    """Whether an error with such a message was raised."""
    return any(isinstance(e, list) and e[:1] == ["error"] and re.search(pattern, e[2]) for e in seen)


def difference(program: list[str], mine: Any, theirs: Any, watch: bool) -> tuple[int, str] | None:
    """The first statement after which the libraries differ, and how.

    With `watch` everything is looked at after each statement, otherwise at the end.
    """
    a, b = Observer(mine), Observer(theirs, decides=True)
    for i, statement in enumerate(program):
        if any("multi_grad_hook" in s for s in program[:i]) and b.begins_at_leaf(statement):
            return None
        try:
            theirs_seen = b.run(statement)
            mine_seen = a.run(statement)
        except Ended:
            return None
        if said(theirs_seen, ENDS) or said(mine_seen, "more than one element of the written-to tensor"):
            return None
        if said(theirs_seen, "a leaf Variable that requires grad") and not said(mine_seen, "") and b.has_old_view():
            return None
        if said(mine_seen, "BackwardHookFunction has a forward that takes ctx"):
            return None
        if said(mine_seen, "Inplace update to inference tensor"):
            return None
        # Tangents of another dtype, and results that are contiguous in one library only.
        if said(mine_seen, "same dtype as the primal") or any(said(x, LAYOUT) for x in (mine_seen, theirs_seen)):
            return None
        if re.search(r"inference_mode\(\):(\n    .*)*\.data = ", statement):
            return None
        if "linearize" in statement and re.search("saved_tensors|save_on_cpu", statement):
            return None
        # A tensor of another dtype was read anew by a recomputation, and what was saved is its conversion.
        if said(theirs_seen, "recomputed metadata") and b.has_two_floats():
            return None
        if b.gradients_in_names() != a.gradients_in_names():
            return None
        if "saved_tensors_hooks" in statement and (b.has_leaf_view() or b.has_two_floats()):
            return None
        found = unequal(mine_seen, theirs_seen, "seen")
        if found:
            return i, found
        # PyTorch has made a dirty input an output although it refused the other one.
        if "Pair.apply" in statement and said(theirs_seen, ""):
            return None
        # PyTorch has resized a target although it failed.
        if OUT.search(statement) and said(theirs_seen, ""):
            return None
        if watch or i == len(program) - 1:
            found = unequal(a.state(), b.state(), "")
            if found:
                return i, found
    return None
