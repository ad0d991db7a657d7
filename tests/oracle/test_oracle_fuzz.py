"""Random chains of views, random programs with in-place writes and backward, random reprs: rgrad beside torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import rgrad  # noqa: E402
from compare import both, same  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

# --- chains of views: each step names a method and its arguments; some are refused --------------------------
SMALL = st.integers(-3, 4)
STEPS = st.one_of(
    st.tuples(st.just("transpose"), st.tuples(SMALL, SMALL)),
    st.tuples(st.just("unsqueeze"), st.tuples(SMALL)),
    st.tuples(st.just("squeeze"), st.tuples(SMALL) | st.just(())),
    st.tuples(st.just("select"), st.tuples(SMALL, SMALL)),
    st.tuples(st.just("narrow"), st.tuples(SMALL, SMALL, st.integers(-1, 3))),
    st.tuples(st.just("expand"), st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)),
    st.tuples(st.just("view"), st.lists(st.sampled_from([-1, 1, 2, 3, 4, 6, 12]), min_size=1, max_size=3).map(tuple)),
    st.tuples(
        st.just("reshape"), st.lists(st.sampled_from([-1, 1, 2, 3, 4, 6, 12]), min_size=1, max_size=3).map(tuple)
    ),
    st.tuples(st.just("flatten"), st.tuples(SMALL, SMALL) | st.just(())),
    st.tuples(st.just("unflatten"), st.tuples(SMALL, st.sampled_from([(2, -1), (1, 2), (3,), (-1,)]))),
    st.tuples(st.just("diagonal"), st.tuples(st.integers(-2, 2), SMALL, SMALL)),
    st.tuples(st.just("unfold"), st.tuples(SMALL, st.integers(0, 3), st.integers(0, 2))),
    st.tuples(st.just("movedim"), st.tuples(SMALL, SMALL)),
    st.tuples(st.just("permute"), st.permutations(range(3)).map(tuple)),
    st.tuples(st.just("t"), st.just(())),
    st.tuples(st.just("contiguous"), st.just(())),
    st.tuples(st.just("chunk"), st.tuples(st.integers(1, 3), SMALL)),
    st.tuples(st.just("split"), st.tuples(st.integers(1, 3), SMALL)),
    st.tuples(st.just("unbind"), st.tuples(SMALL)),
    st.tuples(st.just("flip"), st.tuples(SMALL)),
)


@settings(max_examples=600)
@given(st.sampled_from([(), (6,), (2, 3), (2, 3, 4), (0, 3), (1, 4, 1)]), st.lists(STEPS, max_size=6))
def test_chains_of_views(shape: tuple[int, ...], steps: list[Any]) -> None:
    """Shapes, strides, offsets, contiguity, being a view: after every step, up to the first refusal."""

    def run(T: Any) -> Any:
        x = T.arange(int(np.prod(shape)), dtype=T.float32).reshape(shape).clone()
        seen: list[Any] = []
        for name, args in steps:
            try:
                x = getattr(x, name)(*args)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                kinds = (IndexError, ValueError, TypeError, RuntimeError)
                seen.append(next(k.__name__ for k in kinds if isinstance(error, k)))
                break
            if isinstance(x, (tuple, list)):
                seen.append(len(x))
                if not x:
                    break
                x = x[-1]
            full = 0 not in tuple(x.shape)
            seen.append((x, x.storage_offset() if full else 0, x._is_view(), x.is_contiguous()))
        return seen

    both(run)


@settings(max_examples=300)
@given(st.lists(STEPS, min_size=1, max_size=4))
def test_gradients_through_chains(steps: list[Any]) -> None:
    def run(T: Any) -> Any:
        leaf = T.arange(24.0, dtype=T.float64).reshape(2, 3, 4).requires_grad_()
        x = leaf * 1
        for name, args in steps:
            try:
                y = getattr(x, name)(*args)
            except (RuntimeError, IndexError, ValueError, TypeError):
                break
            x = y[0] if isinstance(y, (tuple, list)) else y
        (x * x).sum().backward()
        return leaf.grad

    both(run, strides=False)


# --- random programs over three tensors ---------------------------------------------------------------------
LINES = (
    "{a} = {a} * {b}",
    "{a} = {a} + {b}",
    "{a} = {a}.sin()",
    "{a} = {a}.exp() * 0.1",
    "{a} = {a}.sigmoid()",
    "{a} = {a}.pow(2)",
    "{a} = {a}.clone()",
    "{a} = {a}.detach()",
    "{a} = {a} @ {b}",
    "{a} = T.maximum({a}, {b})",
    "{a} = {a}.t()",
    "{a} = {a}.view(3, 3)",
    "{a} = {a}.softmax(0)",
    "{a} = {a}.cumsum(1)",
    "{a}.mul_({b})",
    "{a}.add_(1)",
    "{a}.sin_()",
    "{a}.relu_()",
    "{a}.zero_()",
    "{a}.copy_({b})",
    "{a}[0] = {b}[1]",
    "{a}[0] = 2.0",
    "{a}[:, 1].mul_(2)",
    "{a}[1:].add_({b}[:2])",
    "{a}.t()[0].mul_({b}[0])",
    "{a}.diagonal().add_(1)",
    "{a}.unbind(0)[0].add_(1)",
    "{a} += {b}",
    "{a} *= 0.5",
    "{a}.masked_fill_({b} > 0, 0.5)",
    "v = {a}[1]; {a}.mul_(2); v.add_(1)",
    "v = {a}.view(9); v[::2] = {b}.reshape(9)[::2]",
    "with T.no_grad(): {a}.mul_(1.5)",
    "with T.no_grad(): {a} = {a} * 2",
    "{a} = {a}.detach().requires_grad_()",
    "{a}.detach_()",
    "{a}.data.mul_(2)",
    "{a}.retain_grad()",
    "{a}.requires_grad_(False)",
    "{a}.register_hook(lambda g: g * 2)",
    "{a}.scatter_(0, T.tensor([[0, 1, 2]]), {b}[:1])",
    "{a}.scatter_add_(0, T.tensor([[0, 0, 2]]), {b}[:1])",
    "{a}.index_add_(0, T.tensor([1, 1]), {b}[:2])",
    "{a}[{b} > 0] = 0.25",
    "{a}[T.tensor([2, 0])] = {b}[:2]",
    "{a}.clamp_(-0.5, 0.5)",
    "{a}.lerp_({b}, 0.3)",
    "{a}.addcmul_({b}, {b})",
    "{a}.tril_()",
    "{a}.div_(2).sub_({b})",
    "{a} = T.where({a} > {b}, {a}, {b})",
    "{a} = {a}.gather(1, T.tensor([[0, 0, 2]] * 3))",
    "{a} = T.cat([{a}[:1], {b}[1:]])",
    "{a} = T.stack({a}.unbind(1))",
    "{a} = {a}.sort(0).values",
    "{a} = {a}.norm(dim=1, keepdim=True) * {b}",
    "{a} = {a} / {a}.sum(1, keepdim=True)",
    "{a} = {a}.expand(3, 3).contiguous()",
)
# A tensor is not written from itself: there torch refuses, or saves what it overwrites, where rgrad need not.
line = st.tuples(st.sampled_from(LINES), st.sampled_from("xyz"), st.sampled_from("xyz")).filter(
    lambda t: t[1] != t[2] or "{b}" not in t[0] or t[0].startswith("{a} = ")
)
program = st.lists(line, min_size=1, max_size=8)


def alike(run: Callable[[Any], tuple[list[Any], Any]]) -> None:
    """What was seen on the way, then the gradients; None where they are refused.

    torch saves more than its derivatives read, so it may refuse where rgrad need not; never the other way.
    """
    seen, grads = run(rgrad)
    want_seen, want = run(torch)
    same(seen, want_seen, strides=False)
    if want is not None:
        assert grads is not None, "only rgrad refuses"
        same(grads, want, strides=False, factor=100)


@settings(max_examples=1500)
@given(program)
def test_random_programs(lines: list[tuple[str, str, str]]) -> None:
    """Every line may be refused, alike; then backward from all three, alike."""
    text = [line.format(a=a, b=b) for line, a, b in lines]

    def run(T: Any) -> Any:
        base = np.linspace(-1.0, 1.3, 9).reshape(3, 3)
        leaves = [
            T.tensor(base, requires_grad=True),
            T.tensor(np.ascontiguousarray(base.T) + 0.1, requires_grad=True),
            T.tensor(base * 2),
        ]
        space = {"T": T, "x": leaves[0] * 1, "y": leaves[1], "z": leaves[2]}
        seen: list[Any] = []
        for one in text:
            try:
                exec(one, space)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                kinds = (IndexError, ValueError, TypeError, RuntimeError)
                seen.append(next(k.__name__ for k in kinds if isinstance(error, k)))
                break  # torch may have changed its inputs before it refused
            seen.append(
                [
                    (space[n].detach().clone(), space[n].requires_grad, space[n].is_leaf, space[n]._version)
                    for n in "xyz"
                ]
            )
            try:  # a view that is made anew has another name in torch
                names = [None if space[n]._is_view() else type(space[n].grad_fn).__name__ for n in "xyz"]
                seen.append(["FillBackward0" if name == "ZeroBackward0" else name for name in names])
            except RuntimeError:
                seen.append("no grad_fn")
        total = sum((space[n] * k).sum() for k, n in enumerate("xyz", 1))
        try:
            total.backward()
            return seen, [t.grad if t.is_leaf else None for t in leaves]
        except RuntimeError:
            return seen, None

    alike(run)


@settings(max_examples=400)
@given(program)
def test_second_order_of_random_programs(lines: list[tuple[str, str, str]]) -> None:
    text = [line.format(a=a, b=b) for line, a, b in lines if "hook" not in line and "detach" not in line]

    def run(T: Any) -> Any:
        base = np.linspace(-1.0, 1.3, 9).reshape(3, 3)
        x = T.tensor(base, requires_grad=True)
        space = {"T": T, "x": x * 1, "y": x.sin(), "z": T.tensor(base * 2)}
        try:
            for one in text:
                exec(one, space)
            (g,) = T.autograd.grad((space["x"] * space["y"]).sum(), x, create_graph=True)
            (h,) = T.autograd.grad((g * g).sum(), x, allow_unused=True)
        except (RuntimeError, IndexError):
            return [], None
        return [], [g.detach(), None if h is None else h.detach()]

    alike(run)


# --- repr ---------------------------------------------------------------------------------------------------
FLOATS = st.one_of(
    st.floats(width=32),
    st.integers(-1000, 1000).map(float),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e-5, 1e5, 1e8, float("nan"), float("inf"), -float("inf"), 1e-40, 3e38]),
)


@settings(max_examples=600)
@given(
    st.lists(FLOATS, min_size=0, max_size=12),
    st.sampled_from(["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]),
    st.booleans(),
    st.sampled_from(["flat", "column", "pairs"]),
)
def test_repr(values: list[float], dtype: str, requires_grad: bool, form: str) -> None:
    array = np.array(values)
    if not dtype.startswith("float"):
        array = np.nan_to_num(np.clip(array, 0, 255))
        requires_grad = False
    with np.errstate(over="ignore"):
        array = array.astype(dtype)
    if form == "column":
        array = array.reshape(-1, 1)
    elif form == "pairs" and array.size % 2 == 0:
        array = array.reshape(2, -1)
    text = []
    for T in (rgrad, torch):
        t = T.tensor(array, requires_grad=requires_grad)
        text.append(
            repr(t).replace("rgrad.", "torch.") + str(t * 1 if requires_grad else t).replace("rgrad.", "torch.")
        )
    assert text[0] == text[1]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.sampled_from([1.0, 0.37, 1e6, 1e-7]))
def test_repr_of_large_tensors(shape: list[int], scale: float) -> None:
    shape = shape[:3] if np.prod(shape) > 200_000 else shape
    array = np.arange(np.prod(shape)).reshape(shape) * scale
    assert repr(rgrad.tensor(array)).replace("rgrad.", "torch.") == repr(torch.tensor(array))
