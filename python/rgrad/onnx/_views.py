"""Shapes, parts of tensors, and what puts parts together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..fx._record import Value, leaves_of
from ..fx._sizes import SymbolicInt
from ._graph import Graph, converts

_END = 2**63 - 1


def axis_of(x: Value, dim: int, more: int = 0) -> int:
    """A dimension without a negative number."""
    count = max(len(x.shape) + more, 1)
    return dim % count


def listed(sizes: tuple[Any, ...]) -> list[Any]:
    """Numbers that are given one by one, or as one list."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return list(sizes[0])
    return list(sizes)


def all_sizes(g: Graph, x: Value) -> list[Any]:
    """The sizes of a value: numbers, and those that the inputs decide."""
    return [g.size_of(x, a) for a in range(len(x.shape))]


def transposed(g: Graph, x: Any, order: Sequence[int]) -> str:
    return g.op("Transpose", x, perm=list(order))


def sliced(g: Graph, x: Any, axis: int, start: Any, end: Any, step: int = 1) -> str:
    return g.op("Slice", x, g.size(start), g.size(end), g.ints([axis]), g.ints([step]))


# ------------------------------------------------------------------------------------------------------- shapes


@converts("view", "reshape", "_unsafe_view")
def reshape(g: Graph, input: Any, *shape: Any, size: Any = None) -> str:
    target = listed(shape) if shape else list(size)
    if target and isinstance(target[0], _core.dtype):
        g.refuse("another dtype for the same bytes")
    return g.reshape(input, target)


@converts("view_as", "reshape_as")
def reshape_as(g: Graph, input: Any, other: Any) -> str:
    return g.op("Reshape", input, g.op("Shape", other))


@converts("flatten", "ravel")
def flatten(g: Graph, input: Any, start_dim: int = 0, end_dim: int = -1) -> str:
    if not input.shape:
        return g.reshape(input, [1])
    first, last = axis_of(input, start_dim), axis_of(input, end_dim)
    sizes = all_sizes(g, input)
    return g.reshape(input, [*sizes[:first], -1, *sizes[last + 1 :]] if first != last else sizes)


@converts("unflatten")
def unflatten(g: Graph, input: Any, dim: int, sizes: Any) -> str:
    own, axis = all_sizes(g, input), axis_of(input, dim)
    return g.reshape(input, [*own[:axis], *sizes, *own[axis + 1 :]])


@converts("squeeze")
def squeeze(g: Graph, input: Any, dim: Any = None) -> str:
    dims = g.dims(input)
    given = range(len(dims)) if dim is None else [axis_of(input, d) for d in ([dim] if isinstance(dim, int) else dim)]
    axes = [a for a in given if dims and dims[a] == 1]
    if any(dims and dims[a] is None for a in given) and dim is not None:
        return g.name(input)  # in both runs it was another size than 1, or the dimensions would differ
    return g.op("Squeeze", input, g.ints(axes)) if axes else g.name(input)


@converts("unsqueeze")
def unsqueeze(g: Graph, input: Any, dim: int) -> str:
    return g.op("Unsqueeze", input, g.ints([dim % (len(input.shape) + 1)]))


@converts("permute")
def permute(g: Graph, input: Any, *dims: Any) -> str:
    return transposed(g, input, [axis_of(input, d) for d in listed(dims)])


@converts("transpose", "swapaxes", "swapdims")
def transpose(g: Graph, input: Any, dim0: int, dim1: int) -> str:
    order = list(range(len(input.shape)))
    a, b = axis_of(input, dim0), axis_of(input, dim1)
    if order:
        order[a], order[b] = order[b], order[a]
    return transposed(g, input, order)


@converts("t", "T", "H")
def turned(g: Graph, input: Any) -> str:
    return transposed(g, input, list(range(len(input.shape)))[::-1])


@converts("mT", "mH", "adjoint")
def matrices_turned(g: Graph, input: Any) -> str:
    return transpose(g, input, -2, -1)


@converts("movedim", "moveaxis")
def movedim(g: Graph, input: Any, source: Any, destination: Any) -> str:
    froms = [axis_of(input, d) for d in ([source] if isinstance(source, int) else source)]
    tos = [axis_of(input, d) for d in ([destination] if isinstance(destination, int) else destination)]
    order = [-1] * len(input.shape)
    for a, b in zip(froms, tos, strict=True):
        order[b] = a
    rest = iter(a for a in range(len(input.shape)) if a not in froms)
    return transposed(g, input, [next(rest) if a < 0 else a for a in order])


@converts("expand", "broadcast_to")
def expand(g: Graph, input: Any, *sizes: Any, size: Any = None, implicit: bool = False) -> str:
    given = listed(sizes) if sizes else list(size)
    # 1 keeps a size there, as -1 does here.
    return g.op("Expand", input, g.sizes([1 if type(s) is int and s == -1 else s for s in given]))


@converts("expand_as")
def expand_as(g: Graph, input: Any, other: Any) -> str:
    return g.op("Expand", input, g.op("Shape", other))


@converts("broadcast_tensors")
def broadcast_tensors(g: Graph, *tensors: Any) -> list[str]:
    own = listed(tensors)
    shape = g.op("Shape", own[0])
    if len(own) > 1:
        total = g.cast(own[0], _core.float32)
        for x in own[1:]:
            total = g.op("Add", total, g.cast(x, _core.float32))
        shape = g.op("Shape", total)
    return [g.op("Expand", x, shape) for x in own]


@converts("repeat", "tile")
def repeat(g: Graph, input: Any, *repeats: Any, dims: Any = None) -> str:
    given = listed(repeats) if repeats else list(dims)
    more = len(given) - len(input.shape)
    own = g.op("Unsqueeze", input, g.ints(range(more))) if more > 0 else g.name(input)
    return g.op("Tile", own, g.sizes([1] * max(-more, 0) + given))


@converts("repeat_interleave")
def repeat_interleave(g: Graph, input: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> str:
    if isinstance(repeats, Value):
        g.refuse("repeats that are a tensor")
    own, sizes = g.name(input), all_sizes(g, input)
    if dim is None:
        own, sizes, axis = g.reshape(input, [-1]), [-1], 0
    else:
        axis = axis_of(input, dim)
    spread = g.op(
        "Expand",
        g.op("Unsqueeze", own, g.ints([axis + 1])),
        g.sizes([1] * (axis + 1) + [repeats] + [1] * (len(sizes) - axis - 1)),
    )
    times = sizes[axis] if sizes[axis] == -1 and dim is None else sizes[axis] * repeats
    return g.reshape(spread, [*sizes[:axis], times, *sizes[axis + 1 :]])


# -------------------------------------------------------------------------------------------------------- parts


@converts("narrow")
def narrow(g: Graph, input: Any, dim: int, start: Any, length: Any) -> str:
    return sliced(g, input, axis_of(input, dim), start, start + length)


@converts("select")
def select(g: Graph, input: Any, dim: int, index: Any) -> str:
    return g.op("Gather", input, g.name(index, _core.int64), axis=axis_of(input, dim))


def _results(g: Graph) -> list[Value]:
    assert g.call is not None
    return [leaf for leaf in leaves_of(g.call.result) if isinstance(leaf, Value)]


@converts("split", "chunk", "tensor_split", "split_with_sizes")
def split(g: Graph, input: Any, given: Any = None, dim: int = 0, **kwargs: Any) -> Any:
    axis = axis_of(input, dim)
    parts = _results(g)
    if len(parts) == 1:
        return [g.name(input)]
    sizes = [g.dims(part)[axis] for part in parts]
    if None in sizes:
        g.refuse(f"parts of dimension {axis}, whose size the inputs decide")
    return g.several(len(parts), "Split", input, g.ints([s for s in sizes if s is not None]), axis=axis)


@converts("unbind")
def unbind(g: Graph, input: Any, dim: int = 0) -> list[str]:
    axis = axis_of(input, dim)
    g.static(input, axis, "each of its elements becomes a tensor")
    return [select(g, input, axis, k) for k in range(len(_results(g)))]


def _whole(index: Any) -> bool:
    return isinstance(index, slice) and index.start is None and index.stop is None and index.step in (None, 1)


def _full_index(g: Graph, x: Value, index: Any) -> list[Any]:
    """An index with an entry for each dimension, and None for new ones."""
    given = list(index) if isinstance(index, tuple) else [index]
    for k, one in enumerate(given):
        if isinstance(one, list):
            g.refuse("a list as an index; make it a tensor")
        if isinstance(one, bool) or (isinstance(one, Value) and one.dtype in (_core.bool, _core.uint8)):
            g.refuse("a mask as an index; use where or masked_fill")
        given[k] = one
    used = sum(one is not None and one is not Ellipsis for one in given)
    missing = [slice(None)] * (len(x.shape) - used)
    for k, one in enumerate(given):
        if one is Ellipsis:
            return given[:k] + missing + given[k + 1 :]
    return given + missing


@converts("__getitem__")
def getitem(g: Graph, input: Any, index: Any) -> str:
    full = _full_index(g, input, index)
    own: Any = g.name(input)
    # Slices first: they leave every dimension in its place.
    starts, ends, axes, steps = [], [], [], []
    axis = 0
    for one in full:
        if one is None:
            continue
        if isinstance(one, slice) and not _whole(one):
            if isinstance(one.step, int) and one.step < 1:
                g.refuse("a step below 1")
            starts.append(0 if one.start is None else one.start)
            ends.append(_END if one.stop is None else one.stop)
            axes.append(axis)
            steps.append(1 if one.step is None else one.step)
        axis += 1
    if axes:
        own = g.op("Slice", own, g.sizes(starts), g.sizes(ends), g.ints(axes), g.ints(steps))
    tensors = [one for one in full if isinstance(one, Value)]
    if len(tensors) > 1:
        if any(isinstance(one, int) for one in full) or None in full:
            g.refuse("several tensors beside numbers or new dimensions")
        return _gathered(g, own, full)
    # From the last dimension on, so that those before keep their places.
    axis = len([one for one in full if one is not None])
    dropped = []
    for one in reversed(full):
        if one is None:
            continue
        axis -= 1
        if isinstance(one, int):
            own = g.op("Gather", own, g.name(one, _core.int64), axis=axis)
            dropped.append(axis)
        elif isinstance(one, Value):
            own = g.op("Gather", own, g.cast(one, _core.int64), axis=axis)
    if None not in full:
        return str(own)
    new, place = [], 0
    for one in full:
        if one is None:
            new.append(place)
        if isinstance(one, Value):
            place += len(one.shape)
        elif not isinstance(one, int):
            place += 1
    return g.op("Unsqueeze", own, g.ints(new))


def _gathered(g: Graph, own: str, full: list[Any]) -> str:
    """Elements at positions that several tensors give together."""
    at = [k for k, one in enumerate(full) if isinstance(one, Value)]
    if at != list(range(at[0], at[0] + len(at))):
        g.refuse("tensors as indices of dimensions that are not neighbours")
    rest = [k for k in range(len(full)) if k not in at]
    if at[0]:
        own = transposed(g, own, at + rest)
    indices = [full[k] for k in at]
    dims = max(len(x.shape) for x in indices)
    shape = g.op("Shape", indices[0])
    total = g.cast(indices[0], _core.int64)
    for x in indices[1:]:
        total = g.op("Add", total, g.cast(x, _core.int64))
    shape = g.op("Shape", total)
    columns = [g.op("Unsqueeze", g.op("Expand", g.cast(x, _core.int64), shape), g.ints([-1])) for x in indices]
    found = g.op("GatherND", own, g.op("Concat", *columns, axis=-1))
    if at[0]:
        # The result has the positions' dimensions first, and then those of `rest`.
        before = at[0]
        order = [dims + k for k in range(before)] + list(range(dims)) + [dims + k for k in range(before, len(rest))]
        found = transposed(g, found, order)
    return str(found)


@converts("__setitem__")
def setitem(g: Graph, input: Any, index: Any, value: Any) -> str:
    full = [one for one in _full_index(g, input, index) if one is not None]
    if isinstance(index, tuple) and any(one is None for one in index):
        g.refuse("a write to new dimensions")
    if any(isinstance(one, Value) for one in full):
        g.refuse("a write to positions that a tensor gives; use scatter or where")
    shape = [g.dims(input)[k] for k in range(len(full))]
    chosen = [k for k, one in enumerate(full) if not _whole(one)]
    # A mask for each dimension: which of its positions are written.
    mask: Any = None
    for k in chosen:
        size = shape[k]
        if size is None:
            g.refuse(f"a write to parts of dimension {k}, whose size the inputs decide")
        one = full[k]
        where = _core.zeros(size, dtype=_core.bool, device="cpu")
        if isinstance(one, SymbolicInt) or (
            isinstance(one, slice) and any(isinstance(p, SymbolicInt) for p in (one.start, one.stop))
        ):
            g.refuse("a write to positions that the inputs decide")
        where[one] = True
        where = where.reshape([size] + [1] * (len(full) - k - 1))
        name = g.tensor(where)
        mask = name if mask is None else g.op("And", mask, name)
    written = g.cast(value, input.dtype)
    if isinstance(value, Value) and value.shape:
        written = _spread(g, input, full, value, written)
    if mask is None:
        return g.op("Expand", written, g.op("Shape", input))
    return g.op("Where", mask, written, input)


def _spread(g: Graph, x: Value, full: list[Any], value: Value, name: str) -> str:
    """What is written to parts of a tensor, as large as the tensor along these parts."""
    kept = [k for k, one in enumerate(full) if not isinstance(one, int)]
    dims = len(value.shape)
    if dims > len(kept):
        g.refuse("a value with more dimensions than the part that is written")
    inserted = [k for k, one in enumerate(full) if isinstance(one, int) and k > kept[len(kept) - dims]]
    first = kept[len(kept) - dims]
    if inserted:
        name = g.op("Unsqueeze", name, g.ints([k - first for k in inserted]))
    for k in kept[len(kept) - dims :]:
        one = full[k]
        if _whole(one):
            continue
        size = g.static(x, k, "a part of it is written")
        begin, end, step = one.indices(size)
        if step != 1:
            g.refuse("a write with steps")
        place = kept.index(k) - (len(kept) - dims)
        if g.dims(value)[place] == 1:
            continue
        pads = [0] * (2 * (len(full) - first))
        pads[k - first], pads[len(full) - first + k - first] = begin, size - end
        name = g.op("Pad", name, g.ints(pads), g.number(0, x.dtype))
    return name


@converts("index_select")
def index_select(g: Graph, input: Any, dim: int, index: Any) -> str:
    return g.op("Gather", input, index, axis=axis_of(input, dim))


@converts("embedding")
def embedding(
    g: Graph, input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> str:  # fmt: skip
    if max_norm is not None:
        g.refuse("max_norm, which writes to the table")
    return g.op("Gather", weight, input, axis=0)


@converts("gather", "take_along_dim")
def gather(g: Graph, input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> str:
    if isinstance(dim, Value):
        dim, index = index, dim
    return g.op("GatherElements", input, g.cast(index, _core.int64), axis=axis_of(input, dim))


def _scattered(g: Graph, input: Any, dim: int, index: Any, src: Any, reduction: str) -> str:
    if not isinstance(src, Value):
        src = g.op("Expand", g.cast(src, input.dtype), g.op("Shape", index))
    elif g.dims(src) != g.dims(index):
        g.refuse("a src of another shape than the index")
    return g.op(
        "ScatterElements", input, g.cast(index, _core.int64), src, axis=axis_of(input, dim), reduction=reduction
    )


@converts("scatter")
def scatter(g: Graph, input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> str:
    return _scattered(g, input, dim, index, value if src is None else src, "none")


@converts("scatter_add")
def scatter_add(g: Graph, input: Any, dim: int, index: Any, src: Any) -> str:
    return _scattered(g, input, dim, index, src, "add")


@converts("flip")
def flip(g: Graph, input: Any, *dims: Any) -> str:
    axes = [axis_of(input, d) for d in listed(dims)]
    if not axes:
        return g.name(input)
    many = len(axes)
    return g.op("Slice", input, g.ints([-1] * many), g.ints([-_END] * many), g.ints(axes), g.ints([-1] * many))


@converts("roll")
def roll(g: Graph, input: Any, shifts: Any, dims: Any = None) -> str:
    own: Any = g.name(input)
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        g.refuse("no dims")
    all_shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    for shift, dim in zip(all_shifts, [dims] if isinstance(dims, int) else dims, strict=True):
        if type(shift) is int and shift == 0:
            continue
        axis = axis_of(input, dim)
        own = g.op("Concat", sliced(g, own, axis, -shift, _END), sliced(g, own, axis, 0, -shift), axis=axis)
    return str(own)


def _triangle(upper: int) -> Any:
    def converter(g: Graph, input: Any, diagonal: int = 0) -> str:
        number = g.number(diagonal, _core.int64)
        if input.dtype == _core.bool:
            return g.cast(g.op("Trilu", g.cast(input, _core.int64), number, upper=upper), _core.bool)
        return g.op("Trilu", input, number, upper=upper)

    return converter


converts("triu")(_triangle(1))
converts("tril")(_triangle(0))


@converts("cat", "concat", "concatenate")
def cat(g: Graph, tensors: Any, dim: int = 0, *, axis: int | None = None) -> str:
    dtype = g.result.dtype
    own = [x for x in tensors if x.shape != (0,)]
    at = (dim if axis is None else axis) % len(g.result.shape)
    return g.op("Concat", *(g.cast(x, dtype) for x in own), axis=at)


@converts("stack")
def stack(g: Graph, tensors: Any, dim: int = 0) -> str:
    dtype, at = g.result.dtype, dim % len(g.result.shape)
    return g.op("Concat", *(g.op("Unsqueeze", g.cast(x, dtype), g.ints([at])) for x in tensors), axis=at)


@converts("meshgrid")
def meshgrid(g: Graph, *tensors: Any, indexing: str = "ij") -> list[str]:
    own = listed(tensors)
    order = list(range(len(own)))
    if indexing == "xy" and len(own) > 1:
        order[0], order[1] = 1, 0
    sizes = [g.size_of(own[k], 0) for k in order]
    shape = g.sizes(sizes)
    made = []
    for k, x in enumerate(own):
        at = order.index(k)
        column = g.reshape(x, [-1 if a == at else 1 for a in range(len(own))])
        made.append(g.op("Expand", column, shape))
    return made


# ------------------------------------------------------------------------------------------------- new tensors


@converts("arange")
def arange(g: Graph, *bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, **kwargs: Any) -> str:
    given = list(bounds)
    if len(given) == 1:
        end = given[0]
    elif given:
        start, end, *more = given
        step = more[0] if more else step
    dtype = g.result.dtype
    work = dtype if dtype in (_core.int64, _core.int32, _core.float32, _core.float64) else _core.float32
    return g.cast_from(g.op("Range", *(g.cast(x, work) for x in (start, end, step))), work, dtype)


def _filled(g: Graph, sizes: list[Any], number: Any) -> str:
    return g.op("Expand", g.cast(number, g.result.dtype), g.sizes(sizes))


@converts("zeros", "empty")
def zeros(g: Graph, *size: Any, **kwargs: Any) -> str:
    return _filled(g, listed(size) if size else list(kwargs["size"]), 0)


@converts("ones")
def ones(g: Graph, *size: Any, **kwargs: Any) -> str:
    return _filled(g, listed(size) if size else list(kwargs["size"]), 1)


@converts("full")
def full(g: Graph, size: Any, fill_value: Any, **kwargs: Any) -> str:
    return _filled(g, listed((size,)), fill_value)


@converts("new_zeros", "new_empty")
def new_zeros(g: Graph, input: Any, *size: Any, **kwargs: Any) -> str:
    return _filled(g, listed(size) if size else list(kwargs["size"]), 0)


@converts("new_ones")
def new_ones(g: Graph, input: Any, *size: Any, **kwargs: Any) -> str:
    return _filled(g, listed(size) if size else list(kwargs["size"]), 1)


@converts("new_full")
def new_full(g: Graph, input: Any, size: Any, fill_value: Any, **kwargs: Any) -> str:
    return _filled(g, listed((size,)), fill_value)


def _like(number: Any) -> Any:
    def converter(g: Graph, input: Any, **kwargs: Any) -> str:
        return g.op("Expand", g.cast(number, g.result.dtype), g.op("Shape", input))

    return converter


converts("zeros_like", "empty_like")(_like(0))
converts("ones_like")(_like(1))


@converts("full_like")
def full_like(g: Graph, input: Any, fill_value: Any, **kwargs: Any) -> str:
    return g.op("Expand", g.cast(fill_value, g.result.dtype), g.op("Shape", input))


@converts("one_hot")
def one_hot(g: Graph, tensor: Any, num_classes: int = -1) -> str:
    if num_classes < 0:
        g.refuse("num_classes that the elements decide; give it")
    values = g.tensor(_core.tensor([0, 1], dtype=_core.int64, device="cpu"))
    return g.op("OneHot", tensor, g.number(num_classes, _core.int64), values, axis=-1)


@converts("nonzero", "argwhere")
def nonzero(g: Graph, input: Any, *, as_tuple: bool = False) -> Any:
    found = g.op("NonZero", input)
    if as_tuple:
        return [g.op("Gather", found, g.number(k, _core.int64), axis=0) for k in range(len(input.shape))]
    return transposed(g, found, [1, 0])
