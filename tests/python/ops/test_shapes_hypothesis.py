"""Shapes, strides, broadcasting and index expressions, drawn by Hypothesis and compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dtypes
import rgrad

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
# Those that every NumPy has.
DTYPES = st.sampled_from([n for n in (*dtypes.FLOATS, *dtypes.INTEGERS, "bool") if n != "bfloat16"])


def filled(shape: tuple[int, ...], dtype: str = "int64") -> np.ndarray:
    """Each element its own number, as far as the dtype holds them."""
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(dtype)


def same(t: Any, a: Any) -> None:
    a = np.asarray(a)
    assert tuple(t.shape) == a.shape
    got = t.cpu().numpy()
    assert got.dtype == a.dtype
    np.testing.assert_array_equal(got, a)


@st.composite
def layouts(draw: st.DrawFn, dtype: str | None = None) -> tuple[np.ndarray, Any]:
    """An array and an equal tensor, both the result of the same random chain of views."""
    a = filled(draw(shapes), dtype or draw(DTYPES))
    t = rgrad.tensor(a)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["permute", "slice", "unsqueeze", "expand", "select"]))
        if kind == "permute":
            order = draw(st.permutations(range(a.ndim)))
            a, t = a.transpose(order), t.permute(*order) if order else t.permute(())
        elif kind == "slice" and a.ndim:
            d = draw(st.integers(0, a.ndim - 1))
            start, step = draw(st.integers(0, 2)), draw(st.integers(1, 3))
            item = tuple(slice(start, None, step) if k == d else slice(None) for k in range(a.ndim))
            a, t = a[item], t[item]
        elif kind == "unsqueeze" and a.ndim < 5:
            d = draw(st.integers(0, a.ndim))
            a, t = np.expand_dims(a, d), t.unsqueeze(d)
        elif kind == "expand":
            size = draw(st.integers(0, 3))
            if a.ndim < 5:
                a, t = np.broadcast_to(a, (size, *a.shape)), t.expand(size, *t.shape)
        elif kind == "select" and a.ndim and 0 not in a.shape:
            d = draw(st.integers(0, a.ndim - 1))
            i = draw(st.integers(-a.shape[d], a.shape[d] - 1))
            a, t = np.take(a, i, axis=d), t.select(d, i)
    return a, t


@given(layouts())
def test_views_agree_with_numpy(pair: tuple[np.ndarray, Any]) -> None:
    a, t = pair
    same(t, a)
    assert t.tolist() == a.tolist()
    assert t.numel() == a.size
    assert t.dim() == t.ndim == a.ndim
    same(t.contiguous(), a)
    assert t.contiguous().is_contiguous()
    same(t.clone(), a)


@given(layouts())
def test_contiguity_is_defined_by_the_strides(pair: tuple[np.ndarray, Any]) -> None:
    _, t = pair
    expected, want = 1, True
    for n, s in zip(reversed(t.shape), reversed(t.stride()), strict=True):
        if n != 1:
            want = want and s == expected
            expected *= n
    assert t.is_contiguous() == (want or t.numel() == 0)
    assert (t.contiguous().data_ptr() == t.data_ptr()) == (t.is_contiguous() or t.numel() == 0)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0), st.data())
def test_broadcasting(drawn: Any, data: st.DataObject) -> None:
    x, y = (filled(s, "float64") for s in drawn.input_shapes)
    a, b = rgrad.tensor(x), rgrad.tensor(y)
    f = data.draw(st.sampled_from(["add", "mul", "maximum", "sub"]))
    numpy_name = {"mul": "multiply", "sub": "subtract"}.get(f, f)
    same(getattr(rgrad, f)(a, b), getattr(np, numpy_name)(x, y))
    assert rgrad.broadcast_shapes(x.shape, y.shape) == drawn.result_shape
    for one, other in zip(rgrad.broadcast_tensors(a, b), np.broadcast_arrays(x, y), strict=True):
        same(one, other)


@given(shapes, shapes)
def test_shapes_that_do_not_broadcast_are_refused(s: tuple[int, ...], r: tuple[int, ...]) -> None:
    try:
        np.broadcast_shapes(s, r)
    except ValueError:
        with pytest.raises(RuntimeError, match=r"size|shape"):
            rgrad.ones(s) + rgrad.ones(r)
    else:
        rgrad.ones(s) + rgrad.ones(r)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_gradients_have_the_shapes_of_the_inputs(drawn: Any) -> None:
    xs = [filled(s, "float64") for s in drawn.input_shapes]
    a, b = (rgrad.tensor(x, requires_grad=True) for x in xs)
    (a * b).sum().backward()
    for t, own, other in ((a, xs[0], xs[1]), (b, xs[1], xs[0])):
        full = np.broadcast_to(other, drawn.result_shape)
        lead = full.ndim - own.ndim
        axes = tuple(k for k in range(full.ndim) if k < lead or (own.shape[k - lead] == 1 and full.shape[k] != 1))
        same(t.grad, full.sum(axis=axes).reshape(own.shape) if axes else full)


@given(layouts(), layouts(), st.sampled_from([rgrad.add, rgrad.mul, rgrad.maximum]))
def test_pointwise_on_any_layout(p: tuple[np.ndarray, Any], q: tuple[np.ndarray, Any], f: Any) -> None:
    (a, t), (b, u) = p, q
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        assume(False)
    result = f(t, u)
    dense = f(t.contiguous(), u.contiguous())
    assert rgrad.equal(result, dense)
    assert result.dtype == rgrad.promote_types(t.dtype, u.dtype) or 0 in (t.dim(), u.dim())


@given(layouts(), st.data())
def test_reductions_on_any_layout(pair: tuple[np.ndarray, Any], data: st.DataObject) -> None:
    a, t = pair
    dims = data.draw(st.lists(st.integers(0, max(a.ndim - 1, 0)), unique=True, max_size=a.ndim)) if a.ndim else []
    keep = data.draw(st.booleans())
    axis = tuple(dims) or tuple(range(a.ndim))  # an empty list of dims means all of them
    got = t.sum(dims, keepdim=keep)
    want = a.sum(axis=axis, keepdims=keep, dtype="int64" if a.dtype.kind in "biu" else a.dtype)
    same(got, np.asarray(want))
    assert bool(t.any()) == a.any()


@given(shapes, st.data())
def test_reshape_moves_no_element(shape: tuple[int, ...], data: st.DataObject) -> None:
    a = filled(shape)
    t = rgrad.tensor(a)
    size = a.size
    if size:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        d = data.draw(st.sampled_from(divisors))
        target: tuple[int, ...] = data.draw(st.sampled_from([(d, size // d), (d, -1), (-1, d), (1, d, size // d)]))
    else:
        target = data.draw(st.sampled_from([(0,), (0, 3), (2, 0), (-1,)]))
    same(t.reshape(target), a.reshape(target))
    same(t.view(target), a.reshape(target))
    assert t.view(target).data_ptr() == t.data_ptr()


@given(layouts("int64"), st.data())
def test_view_never_copies_and_reshape_copies_only_when_it_must(
    pair: tuple[np.ndarray, Any], data: st.DataObject
) -> None:
    a, t = pair
    assume(a.size)
    divisors = [d for d in range(1, a.size + 1) if a.size % d == 0]
    d = data.draw(st.sampled_from(divisors))
    target = (d, a.size // d)
    reshaped = t.reshape(target)
    same(reshaped, a.reshape(target))
    if reshaped.data_ptr() == t.data_ptr():
        viewed = t.view(target)
        same(viewed, a.reshape(target))
        assert viewed.data_ptr() == t.data_ptr()
    else:
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            t.view(target)


# --- indexing -----------------------------------------------------------------------------------------


@st.composite
def basic_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices with positive steps, None, one Ellipsis."""
    items: list[Any] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        if n and draw(st.booleans()):
            items.append(draw(st.integers(-n, n - 1)))
        else:
            bound = st.none() | st.integers(-n - 2, n + 2)
            items.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
        # what follows an Ellipsis counts from the end: keep only what fits there
        at = items.index(Ellipsis)
        items = items[: at + 1]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@st.composite
def advanced_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integer arrays that broadcast, boolean masks, mixed with basic items."""
    rank = draw(st.integers(0, 2))
    common = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    items: list[Any] = []
    masks = 0
    d = 0
    while d < len(shape) and draw(st.integers(0, 5)):
        n = shape[d]
        kind = draw(st.sampled_from(["array", "array", "mask", "slice", "int", "none"]))
        if kind == "array" and n and not masks:
            own = tuple(draw(st.sampled_from([c, 1])) for c in common)
            items.append(draw(hnp.arrays(np.int64, own, elements=st.integers(-n, n - 1))))
        elif kind == "mask" and not masks and not any(isinstance(i, np.ndarray) for i in items):
            span = draw(st.integers(1, min(2, len(shape) - d)))
            items.append(draw(hnp.arrays(np.bool_, shape[d : d + span])))
            masks += 1
            d += span - 1
        elif kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "none":
            items.append(None)
            continue
        else:
            items.append(slice(draw(st.none() | st.integers(0, 2)), None, draw(st.none() | st.integers(1, 2))))
        d += 1
    return tuple(items)


def translated(item: Any) -> Any:
    return tuple(rgrad.tensor(i) if isinstance(i, np.ndarray) else i for i in item)


@st.composite
def reads(draw: st.DrawFn, make: Any) -> tuple[np.ndarray, Any, tuple[Any, ...]]:
    a, t = draw(layouts("int64"))
    assume(a.ndim)
    return a, t, draw(make(a.shape))


@given(reads(basic_indices))
def test_basic_reads_are_views(case: Any) -> None:
    a, t, item = case
    got = t[item]
    same(got, a[item])
    if got.numel() and item:
        offset = got.storage_offset() - t.storage_offset()
        assert got.data_ptr() == t.data_ptr() + offset * t.element_size()


def takes(a: np.ndarray, item: tuple[Any, ...]) -> bool:
    """Integers beside arrays are placed differently by NumPy and PyTorch: only cases that agree are drawn."""
    has_array = any(isinstance(i, np.ndarray) for i in item)
    return not (has_array and any(isinstance(i, int) for i in item))


@given(reads(advanced_indices))
def test_advanced_reads(case: Any) -> None:
    a, t, item = case
    assume(takes(a, item))
    same(t[translated(item)], a[item])


@pytest.mark.parametrize(
    ("item", "shape"),
    [
        ((0, slice(None), [1, 2]), (3, 2)),
        (([1, 0], slice(None), 3), (2, 3)),
        ((slice(None), 1, [0, 3, 3]), (2, 3)),
        ((0, [1, 2], None), (2, 1, 4)),
        ((..., 0, [1]), (2, 1)),
        ((1, None, [[0], [1]], slice(2)), (1, 2, 1, 2)),
    ],
)
def test_integers_beside_index_tensors_select_first(item: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """NumPy counts such an integer as one of the index arrays, PyTorch selects it before it looks at them."""
    x = rgrad.arange(24).reshape(2, 3, 4)
    got = x[tuple(rgrad.tensor(i) if isinstance(i, list) else i for i in item)]
    assert tuple(got.shape) == shape
    selected = x[tuple(i if isinstance(i, int) or i is Ellipsis else slice(None) for i in item if i is not None)]
    rest = tuple(rgrad.tensor(i) if isinstance(i, list) else i for i in item if not isinstance(i, int))
    same(got, selected[rest].cpu().numpy())


@given(st.data())
def test_basic_writes(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    item = data.draw(basic_indices(shape))
    a = filled(shape)
    t = rgrad.tensor(a)
    value: Any = -7
    if data.draw(st.booleans()):
        value = -filled(a[item].shape)
    a[item] = value
    t[item] = value if isinstance(value, int) else rgrad.tensor(value)
    same(t, a)
    assert t._version == 1


@given(st.data())
def test_advanced_writes(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    item = data.draw(advanced_indices(shape))
    a = filled(shape)
    assume(takes(a, item))
    t = rgrad.tensor(a)
    value: Any = -7
    hits = np.zeros(shape, np.int64)
    np.add.at(hits, item, 1)
    if hits.max(initial=0) <= 1 and data.draw(st.booleans()):
        value = -filled(a[item].shape)
    a[item] = value
    t[translated(item)] = value if isinstance(value, int) else rgrad.tensor(value)
    same(t, a)


@given(reads(basic_indices))
def test_views_share_memory(case: Any) -> None:
    """A write through a view is seen in the base, and the other way round."""
    a, _, item = case
    base = rgrad.tensor(np.ascontiguousarray(a).reshape(a.shape))
    part = base[item]
    want = np.array(a)
    want[item] = -1
    part.fill_(-1)
    same(base, want)
    base.fill_(5)
    assert (part == 5).all()


@given(reads(advanced_indices))
def test_gradient_of_a_read_counts_how_often_each_element_is_read(case: Any) -> None:
    a, _, item = case
    assume(takes(a, item))
    x = rgrad.tensor(np.zeros(a.shape), requires_grad=True)
    x[translated(item)].sum().backward()
    want = np.zeros(a.shape)
    np.add.at(want, item, 1.0)
    same(x.grad, want)


@given(shapes, DTYPES)
def test_numpy_round_trip_shares_memory(shape: tuple[int, ...], dtype: str) -> None:
    a = filled(shape, dtype)
    t = rgrad.from_numpy(a)
    same(t, a)
    assert t.cpu().numpy().__array_interface__["data"][0] == a.__array_interface__["data"][0] or a.size == 0
    a[...] = 0
    assert not t.any()
    t.fill_(1)
    assert (a == 1).all()


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), st.data())
def test_from_numpy_keeps_positive_strides(shape: tuple[int, ...], data: st.DataObject) -> None:
    a = filled(shape, "float32").transpose(data.draw(st.permutations(range(len(shape)))))[..., ::2]
    t = rgrad.from_numpy(a)
    same(t, a)
    assert t.stride() == tuple(s // a.itemsize for s in a.strides)


nested = st.recursive(st.integers(-9, 9), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=12)


@given(nested)
def test_nested_lists_are_tensors_or_errors(data: Any) -> None:
    try:
        want = np.array(data)
    except ValueError:
        with pytest.raises((ValueError, TypeError)):
            rgrad.tensor(data)
        return
    got = rgrad.tensor(data)
    assert tuple(got.shape) == want.shape
    assert got.tolist() == want.tolist()


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4), st.data())
def test_cat_split_chunk_invert_each_other(shape: tuple[int, ...], data: st.DataObject) -> None:
    t = rgrad.tensor(filled(shape))
    d = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = data.draw(st.integers(1, 4))
    for parts in (t.split(n, d), t.chunk(n, d)):
        same(rgrad.cat(parts, d), t.cpu().numpy())
    if t.shape[d]:
        same(rgrad.stack(t.unbind(d), d), t.cpu().numpy())


@given(layouts("float64"), st.data())
def test_permutations_compose(pair: tuple[np.ndarray, Any], data: st.DataObject) -> None:
    a, t = pair
    assume(a.ndim)
    order = data.draw(st.permutations(range(a.ndim)))
    inverse = list(np.argsort(order))
    same(t.permute(*order).permute(*map(int, inverse)), a)
    assert t.permute(*order).stride() == tuple(t.stride()[d] for d in order)
    same(t.movedim(0, -1), np.moveaxis(a, 0, -1))
    same(t.flatten(), a.reshape(-1))
    same(t.squeeze(), a.squeeze())
