"""Random index expressions, read and written, on rgrad and on torch: values, strides, gradients, error types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import rgrad  # noqa: E402
from compare import attempt, both  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

INT_ARRAYS = st.sampled_from([[0], [1, 0], [-1, 0, 1], [[0], [1]], [[1, 1]], []])


@st.composite
def cases(draw: st.DrawFn, errors: bool) -> tuple[tuple[int, ...], list[Any]]:
    """A shape and a list of index items; with `errors` also items that may be refused."""
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=0, max_size=4)))
    items: list[Any] = []
    used = 0
    while used < len(shape) + (1 if errors else 0) and draw(st.integers(0, 5)):
        n = shape[used] if used < len(shape) else 2
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "none", "mask", "bool", "list", "0-d"]))
        if kind == "int":
            low = n + 1 if errors else n
            items.append(draw(st.integers(-low, low - 1)))
        elif kind == "slice":
            b = st.none() | st.integers(-5, 5)
            step = st.none() | st.integers(1, 3)
            items.append(slice(draw(b), draw(b), draw(step)))
        elif kind == "array":
            items.append(("tensor", draw(INT_ARRAYS), draw(st.sampled_from(["int64", "int32"])) if errors else "int64"))
        elif kind == "0-d":
            items.append(("tensor", draw(st.integers(-n, n - 1)), "int64"))
        elif kind == "mask":
            size = draw(st.integers(1, 4)) if errors else n
            items.append(("tensor", draw(st.lists(st.booleans(), min_size=size, max_size=size)), "bool"))
        elif kind == "bool":
            items.append(draw(st.booleans()))
            continue
        elif kind == "list":
            items.append(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3)))
        else:
            items.append(None)
            continue
        used += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return shape, items


def build(T: Any, item: Any) -> Any:
    if isinstance(item, tuple):
        return T.tensor(item[1], dtype=T.int64).to(getattr(T, item[2]))
    return item


def index(T: Any, items: list[Any]) -> Any:
    built = tuple(build(T, i) for i in items)
    return built[0] if len(built) == 1 else built


def source(T: Any, shape: tuple[int, ...], layout: str) -> Any:
    x = T.arange(int(np.prod(shape)), dtype=T.float64).reshape(shape)
    return x.permute(*reversed(range(len(shape)))) if layout == "transposed" and shape else x


@given(cases(errors=False), st.sampled_from(["dense", "transposed"]))
def test_reads(case: Any, layout: str) -> None:
    shape, items = case
    both(lambda T: source(T, shape, layout)[index(T, items)], strides=False)


def reads_nothing(shape: tuple[int, ...], items: list[Any]) -> bool:
    """Whether PyTorch's result has no elements: it does not look at positions then, as listed."""
    try:
        return source(torch, shape, "dense")[index(torch, items)].numel() == 0
    except (IndexError, RuntimeError, TypeError, ValueError):
        return False


@given(cases(errors=True))
def test_reads_that_may_fail(case: Any) -> None:
    shape, items = case
    if reads_nothing(shape, items):
        mine = attempt(lambda: source(rgrad, shape, "dense")[index(rgrad, items)])
        if mine.error is not None:
            assert issubclass(mine.error, IndexError)
            assert "out of bounds" in mine.message
            return
    both(lambda T: source(T, shape, "dense")[index(T, items)], strides=False)


SETS = [
    ("[[0, 1]]", (5, 4), "float64"),
    ("[[0, 1]]", (1, 5, 4), "float64"),
    ("[[0, 9]]", (5, 4), "float32"),
    ("[[0, 1]]", (2, 4), "float64"),
    ("[[0, 1], [0, 1, 2]]", (5, 4), "float64"),
    ("[T.ones(3, dtype=T.bool)]", (5, 4), "float64"),
    ("[T.ones(2, dtype=T.bool)]", (5, 4), "float64"),
    ("[T.ones(3, dtype=T.bool)]", (), "float64"),
    ("[T.ones(3, dtype=T.bool)]", (1,), "float64"),
    ("[T.ones(3, dtype=T.bool)]", (1, 1), "int64"),
    ("[:, T.ones(4, dtype=T.bool)]", (1,), "float64"),
    ("[T.ones(3, dtype=T.bool), 0]", (1,), "float64"),
    ("[None, T.ones(3, dtype=T.bool)]", (1,), "float64"),
    ("[..., T.ones(4, dtype=T.bool)]", (1,), "float64"),
    ("[T.ones(3, dtype=T.bool), [0]]", (1,), "float64"),
    ("[T.ones(3, dtype=T.bool), True]", (1,), "float64"),
    ("[T.ones(3, dtype=T.bool)]", (2,), "float64"),
    ("[:0, [0, 1]]", (5, 4), "float64"),
]


@pytest.mark.parametrize(("at", "shape", "dtype"), SETS)
def test_writes_are_refused_in_torchs_order(at: str, shape: tuple[int, ...], dtype: str) -> None:
    """Shapes before dtypes before positions; one value where a mask says may have another dtype."""

    def write(T: Any) -> Any:
        x, values = T.zeros(3, 4), T.ones(shape, dtype=getattr(T, dtype))
        exec(f"x{at} = values", {"T": T, "x": x, "values": values})
        return x

    mine, theirs = both(write)
    if theirs.error is not None:
        assert mine.message.startswith(theirs.message.split(". Please")[0])


@given(cases(errors=False))
def test_basic_reads_have_torchs_strides(case: Any) -> None:
    shape, items = case
    basic = [i for i in items if not isinstance(i, (tuple, list, bool))]

    def read(T: Any) -> Any:
        v = source(T, shape, "transposed")[index(T, basic)]
        return v, v.storage_offset() if v.numel() else None, v._is_view()

    both(read)


@given(cases(errors=True), st.sampled_from(["number", "0-d", "full", "wrong"]))
def test_writes(case: Any, kind: str) -> None:
    shape, items = case
    assume(not reads_nothing(shape, items))

    def write(T: Any) -> Any:
        x = source(T, shape, "dense")
        at = index(T, items)
        if kind == "number":
            x[at] = -1
        elif kind == "0-d":
            x[at] = T.tensor(-2.0, dtype=T.float64)
        elif kind == "full":
            x[at] = -x[at].flip(()) * 0 - 3.0
        else:
            x[at] = T.zeros(7, 5)
        return x

    both(write)


@given(cases(errors=False))
def test_gradients_of_reads(case: Any) -> None:
    shape, items = case

    def run(T: Any) -> Any:
        x = source(T, shape, "dense").requires_grad_()
        y = x[index(T, items)]
        (y * y).sum().backward()
        return x.grad

    both(run)


@given(cases(errors=False))
def test_gradients_of_writes(case: Any) -> None:
    shape, items = case

    def run(T: Any) -> Any:
        x = source(T, shape, "dense").requires_grad_()
        v = T.tensor(2.0, dtype=T.float64, requires_grad=True)
        y = x * 1
        y[index(T, items)] = v * v
        (y * y).sum().backward()
        return x.grad, v.grad

    both(run)


@given(cases(errors=False), st.booleans())
def test_index_put_accumulates(case: Any, accumulate: bool) -> None:
    shape, items = case
    tensors = [i for i in items if isinstance(i, tuple) and i[2] == "int64"]
    if not tensors or len(tensors) > len(shape):
        return

    def run(T: Any) -> Any:
        x = source(T, shape, "dense")
        return x.index_put(tuple(build(T, i) for i in tensors), T.tensor(1.0, dtype=T.float64), accumulate=accumulate)

    both(run)
