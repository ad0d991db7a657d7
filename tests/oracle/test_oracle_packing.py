"""Names of what nodes keep, and the order in which hooks see saved values, for every operation, beside torch."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rotation  # noqa: E402
from node_forms import FORMS, SETUP  # noqa: E402
from op_kit import Op, Sample, as_tuple, leaves, views  # noqa: E402
from op_table import OPS as ALL  # noqa: E402

pytestmark = pytest.mark.oracle

# Functions that are several nodes here keep what those read.
OPS = [op for op in ALL if not op.composed]

POSITIONS = "positions are kept, not the mask or the values that they came from"
SHAPE = "the input's shape is kept where torch keeps all of it"
LAST = "the node is the last step of several here, and keeps what that reads; torch keeps operands of the whole"
SIZES = "the saved operands have their sizes"
NEITHER = "the gradient is zero or the incoming one, so nothing is kept"

LOSS = "_saved_reduction _saved_self _saved_target _saved_self_sym_sizes _saved_self_sym_numel "
# By node: why names differ, and which.
DIFFERENT: dict[str, tuple[str, str]] = {
    "AddmmBackward0": (
        SIZES,
        "_saved_mat1_sym_sizes _saved_mat1_sym_strides _saved_mat2_sym_sizes _saved_mat2_sym_strides",
    ),
    "MmBackward0": (
        SIZES,
        "_saved_self_sym_sizes _saved_self_sym_strides _saved_mat2_sym_sizes _saved_mat2_sym_strides",
    ),
    "BinaryCrossEntropyBackward0": (LAST, LOSS + "_saved_weight"),
    "BinaryCrossEntropyWithLogitsBackward0": (LAST, LOSS + "_saved_weight _saved_pos_weight"),
    "HuberLossBackward0": (LAST, LOSS + "_saved_delta"),
    "MseLossBackward0": (LAST, LOSS),
    "SmoothL1LossBackward0": (LAST, LOSS + "_saved_beta"),
    "DiagonalBackward0_copy": (LAST, "_saved_dim1 _saved_dim2 _saved_offset _saved_self_sym_sizes"),
    "DivBackward1": (LAST, "_saved_other"),
    "RsubBackward0": (LAST, "_saved_alpha"),
    "RoundBackward1": ("the power of ten and its inverse are kept", "_saved_down _saved_up"),
    "DivBackward2": (NEITHER, "_saved_self _saved_other _saved_rounding_mode"),
    "CummaxBackward0": (SHAPE, "_saved_self _saved_self_sym_sizes"),
    "CumminBackward0": (SHAPE, "_saved_self _saved_self_sym_sizes"),
    "GatherBackward0": (SHAPE, "_saved_self"),
    "NansumBackward0": (SHAPE, "_saved_self _saved_self_sym_sizes _saved_dim _saved_keepdim"),
    "NllLossBackward0": ("the shape is kept, and weights are summed again", "_saved_self _saved_total_weight"),
    "NllLoss2DBackward0": ("the shape is kept, and weights are summed again", "_saved_self _saved_total_weight"),
    "TakeBackward0": (SHAPE, "_saved_self _saved_self_sym_sizes _saved_dim"),
    "IndexAddBackward0": (
        "the source is read by nobody, alpha by the step before",
        "_saved_alpha _saved_source _saved_source_dim",
    ),
    "IndexCopyBackward0": ("the source is read by nobody", "_saved_source _saved_source_dim"),
    "LogSigmoidBackward0": ("a scratch value of torch's kernel", "_saved_buffer"),
    "MaskedScatterBackward0": (POSITIONS, "_saved_indices _saved_mask _saved_source_sym_sizes"),
    "MaskedSelectBackward0": (
        POSITIONS,
        "_saved_indices _saved_index _saved_dim _saved_mask _saved_self _saved_self_sym_sizes",
    ),
    "ScatterBackward1": ("an empty index makes a copy", "_saved_dim _saved_index"),
}


def form(code: str) -> Callable[[Any], Any]:
    def run(T: Any) -> Any:
        scope: dict[str, Any] = {"T": T}
        exec(SETUP, scope)
        return eval(code, scope)

    return run


def sample(op: Op, s: Sample) -> Callable[[Any], Any]:
    return lambda T: op.call(T, *views(s, leaves(T, s, "float64", True)), **s.params)


INPLACE = """
x = T.tensor([[0.5, 1.5, 2.5], [1.0, 2.0, 0.25], [3.0, 0.75, 1.25]], dtype=T.float64)
y, z = (x.flip(0) / 4).requires_grad_(), (x.flip(1) / 3).requires_grad_()
k, i, j = x > 1, T.tensor([0, 2, 1]), T.tensor([[0, 2, 1], [1, 1, 0], [2, 0, 2]])
s = T.tensor(2.0, dtype=T.float64, requires_grad=True)
x = x.requires_grad_() * 1
"""
INPLACE_CALLS = (
    *(
        f"x.{f}_(y)"
        for f in ("mul", "div", "add", "sub", "pow", "atan2", "fmod", "remainder", "hypot", "xlogy", "copy")
    ),
    *(
        f"x.{f}_()"
        for f in (
            "exp",
            "sigmoid",
            "tanh",
            "sqrt",
            "log",
            "sin",
            "cos",
            "relu",
            "neg",
            "abs",
            "reciprocal",
            "square",
            "erf",
            "logit",
            "zero",
        )
    ),
    *("x.pow_(2)", "x.clamp_(0, 1)", "x.addcmul_(y, z)", "x.addcdiv_(y, z)", "x.lerp_(y, z)", "x.fill_(s)"),
    *("x.masked_fill_(k, 1.0)", "x.masked_fill_(k, s)", "x.index_add_(0, i, z)", "x.index_copy_(0, i, z)"),
    *("x.index_fill_(0, i, s)", "x.scatter_(0, j, z)", "x.scatter_add_(0, j, z)", "x.index_put_((i,), z)"),
    *("x.cumsum_(0)", "x.cumprod_(0)", "x.t_().mul_(y)", "x[0].mul_(z[0])", "x[:, 1].exp_()", "x[i]", "x.gather(0, j)"),
)


def inplace(code: str) -> Callable[[Any], Any]:
    def run(T: Any) -> Any:
        scope: dict[str, Any] = {"T": T}
        exec(INPLACE, scope)
        return eval(code, scope)

    return run


# By name: an operation with its samples, or one expression.
CALLS: dict[str, list[Callable[[Any], Any]]] = {
    **{op.name: [sample(op, s) for s in op.all_samples()] for op in OPS if op.grad != "none"},
    **{code: [form(code)] for code in FORMS},
    **{code: [inplace(code)] for code in INPLACE_CALLS},
}
# One node here, whose name is that of the last of torch's steps.
COMPOSED = ("scaled_dot_product_attention", "lstm", "gru", "rnn_")
EVERY = pytest.mark.parametrize("name", CALLS)


def some_of(name: str, which: str) -> list[Callable[[Any], Any]]:
    """Half of the samples of an operation, or the expression."""
    return rotation.some(CALLS[name], -(-len(CALLS[name]) // 2), f"{which} {name}")


def results(T: Any, run: Callable[[Any], Any]) -> list[Any] | None:
    """What an operation gives that has a history; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = run(T)
        except (RuntimeError, NotImplementedError):
            return None
    return [t for t in as_tuple(out) if getattr(t, "grad_fn", None) is not None]


def names(node: Any) -> set[str]:
    return {name for name in dir(node) if name.startswith("_saved_")}


def differences(run: Callable[[Any], Any]) -> dict[str, set[str]]:
    """By the names of the nodes of a call's results: the names that only one of the two has."""
    mine, theirs = results(rgrad, run), results(torch, run)
    if mine is None or theirs is None:
        return {}  # refusals are compared elsewhere
    found = {}
    for a, b in zip(mine, theirs, strict=True):
        node = a.grad_fn.name()
        if node == b.grad_fn.name():  # names of nodes have a test of their own
            found[node] = names(a.grad_fn) ^ names(b.grad_fn)
    return found


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith(COMPOSED)])
def test_names_of_what_nodes_keep(name: str) -> None:
    for run in some_of(name, "names"):
        for node, different in differences(run).items():
            assert different <= set(DIFFERENT.get(node, ("", ""))[1].split()), node


def test_every_difference_is_there() -> None:
    left = set(DIFFERENT)
    for runs in CALLS.values():
        for run in runs:
            left -= {node for node, different in differences(run).items() if different}
        if not left:
            break
    assert not left


# What comes from other steps in torch, so that values come in another order.
OTHER_STEPS = ("entropy", "nll_loss", "kl_div", "lstm", "rnn_")


def log(T: Any, run: Callable[[Any], Any]) -> list[tuple[str, Any, str]] | None:
    """What hooks see, in order."""
    found: list[tuple[str, Any, str]] = []

    def note(what: str, t: Any) -> None:
        found.append((what, tuple(t.shape), str((t.detach().double() * 1e6).round().tolist())))

    def pack(t: Any) -> Any:
        note("packed", t)
        return t.detach()

    def unpack(t: Any) -> Any:
        note("unpacked", t)
        return t

    with T.autograd.graph.saved_tensors_hooks(pack, unpack):
        outs = results(T, run)
    if outs is None:
        return None
    if outs and outs[0].numel() > 0:
        try:
            outs[0].sum().backward()
        except RuntimeError:  # torch's own: an index of another shape
            return None
    return found


@pytest.mark.parametrize("name", [name for name in CALLS if not any(word in name for word in OTHER_STEPS)])
def test_hooks_see_saved_values_in_the_same_order(name: str) -> None:
    """Of the values that both keep; which ones are kept differs as DIFFERENT tells."""
    for run in some_of(name, "hooks"):
        assert in_order(run)


def in_order(run: Callable[[Any], Any]) -> bool:
    mine, theirs = log(rgrad, run), log(torch, run)
    if mine is None or theirs is None:
        return True
    both = Counter(mine) & Counter(theirs)
    return shared(mine, both) == shared(theirs, both)


@pytest.mark.parametrize("word", COMPOSED)
def test_composed_functions_keep_other_names(word: str) -> None:
    runs = [run for name in CALLS if name.startswith(word) for run in CALLS[name]]
    assert any(
        different - set(DIFFERENT.get(node, ("", ""))[1].split())
        for run in runs
        for node, different in differences(run).items()
    )


@pytest.mark.parametrize("word", OTHER_STEPS)
def test_other_steps_have_another_order(word: str) -> None:
    assert not all(in_order(run) for name in CALLS if word in name for run in CALLS[name])


def shared(entries: list[tuple[str, Any, str]], both: Counter[tuple[str, Any, str]]) -> list[tuple[str, Any, str]]:
    """The entries that both have, in order."""
    left = both.copy()
    kept = []
    for e in entries:
        if left[e] > 0:
            left[e] -= 1
            kept.append(e)
    return kept
