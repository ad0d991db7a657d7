"""Writes at positions, out of place and in place, and views as copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, _ask_torch_function, _has_torch_function_variadic
from .._operation.checked import operation, write_results
from .._operation.composed import batched_first, type_name
from ..autograd.function import Function

# ------------------------------------------------------------------------------------------- reductions at positions


def _reduce_at(ufunc: Any, start: Any, input: Tensor, dim: int, index: Tensor, src: Tensor, include: bool) -> Tensor:
    made = np.array(input.numpy(force=True))
    at = index.numpy(force=True)
    values = src.numpy(force=True)[tuple(slice(n) for n in at.shape)]
    places = list(np.indices(at.shape, sparse=True))
    places[dim] = at
    if not include:
        made[tuple(places)] = start(made.dtype)
    with np.errstate(all="ignore"):
        ufunc.at(made, tuple(places), values)
    return _core.from_numpy(made).to(input.device)


def _at_positions(
    name: str,
    ufunc: Any,
    start: Callable[[Any], Any],
    slopes: Callable[[Any, int, bool], tuple[Tensor, Tensor]],
    keeps_output: bool = False,
) -> Any:
    """A differentiable function that combines elements of ``src`` at positions.

    Args:
        name: The name of its node, without the suffix.
        ufunc: NumPy's function of two elements.
        start: Gives, of a dtype, what a combination of nothing is.
        slopes: Of what is saved (input, src, index, output), ``dim`` and ``include``: the derivatives of the results by
            the elements of ``input``, and by those elements of ``src`` that have a position.
        keeps_output: Whether the output is saved, too.

    Returns:
        A function of ``(input, src, index, dim, include)``.
    """

    def forward(input: Tensor, src: Tensor, index: Tensor, dim: int, include: bool) -> Tensor:
        return _reduce_at(ufunc, start, input, dim, index, src, include)

    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        input, src, index, ctx.dim, ctx.include = inputs
        saved = (input, src, index, output) if keeps_output else (input, src, index)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    def backward(ctx: Any, grad: Tensor) -> Any:
        saved = ctx.saved_tensors
        mine, theirs = slopes(saved, ctx.dim, ctx.include)
        mine, theirs = mine.conj(), theirs.conj()
        part = grad.gather(ctx.dim, saved[2]) * theirs
        if part.shape != saved[1].shape:
            whole = _core.zeros_like(saved[1])
            whole[tuple(slice(n) for n in part.shape)] = part
            part = whole
        return grad * mine, part, None, None, None

    def jvp(ctx: Any, moved: Tensor | None, source: Tensor | None, *rest: Any) -> Tensor:
        # Inside a transform saved tensors have their own tangents, which would be taken a second time.
        saved = tuple(_core._primal(x) for x in ctx.saved_tensors)
        index = saved[2]
        mine, theirs = slopes(saved, ctx.dim, ctx.include)
        made = _core.zeros_like(saved[0]) if moved is None else moved * mine
        if source is not None:
            made = made.scatter_add(ctx.dim, index, source[tuple(slice(n) for n in index.shape)] * theirs)
        return made

    def vmap(info: Any, in_dims: Any, input: Tensor, src: Tensor, index: Tensor, dim: int, include: bool) -> Any:
        tensors = batched_first(info, in_dims[:3], (input, src, index))
        return made.apply(*tensors, dim + 1, include), 0

    rules = (forward, setup_context, backward, jvp, vmap)
    made: Any = type(name, (Function,), {"__module__": __name__, **{f.__name__: staticmethod(f) for f in rules}})
    return made.apply


def _extreme(name: str, ufunc: Any, start: Callable[[Any], Any]) -> Any:
    """The largest or smallest at positions; equal ones share the gradient."""

    def shares(saved: Any, dim: int, include: bool) -> tuple[Tensor, Tensor]:
        input, src, index, output = saved
        part = src[tuple(slice(n) for n in index.shape)]
        mine = (input == output).to(input.dtype)
        if not include:
            mine = mine.scatter(dim, index, value=0.0)
        theirs = (part == output.gather(dim, index)).to(input.dtype)
        # No element equals a result that is nan: its gradients are 0 / 0, as those of `amax`.
        count = mine.scatter_add(dim, index, theirs)
        return mine / count, theirs / count.gather(dim, index)

    return _at_positions(name, ufunc, start, shares, keeps_output=True)


def _with_zeros(nonzero: Tensor, is_zero: Tensor, count: Tensor, zero: Tensor, factor: Tensor) -> Tensor:
    """The product of the other factors, from that of the nonzero ones; right up to the second derivative."""
    count = count - is_zero.to(count.dtype)
    others = _core.where(is_zero, zero - factor, zero)
    nothing = _core.zeros_like(nonzero)
    return _core.where(count == 0, nonzero, _core.where(count == 1, nonzero * others, nothing))


def _product(name: str) -> Any:
    """The product at positions; its derivative is made of products without one factor."""

    def others(saved: Any, dim: int, include: bool) -> tuple[Tensor, Tensor]:
        """For each factor the product of the others at its place."""
        input, src, index = saved
        part = src[tuple(slice(n) for n in index.shape)]
        mine, theirs = input == 0, part == 0
        if not include:
            mine = mine.scatter(dim, index, value=False)
        filled = _core.where(mine, _core.ones_like(input), input)
        full = apply(filled, _core.where(theirs, _core.ones_like(part), part), index, dim, include)
        zeros = mine.to(_core.int64).scatter_add(dim, index, theirs.to(_core.int64))
        touched = _core.ones_like(input) if include else _core.ones_like(input).scatter(dim, index, value=0.0)
        own = full / filled * touched if include else touched
        # A zero is a factor that has a derivative: with one zero at a place it is the sum of the zeros there.
        nothing = _core.zeros_like(part)
        start = _core.where(mine, input, _core.zeros_like(input))
        zero = start.scatter_add(dim, index, _core.where(theirs, part, nothing))
        at, count, zero_at = (x.gather(dim, index) for x in (full, zeros, zero))
        rest = at / _core.where(theirs, _core.ones_like(part), part)
        rest = _with_zeros(rest, theirs, count, zero_at, part)
        return (_with_zeros(own, mine, zeros, zero, input) if include else own), rest

    apply = _at_positions(name, np.multiply, lambda kind: np.ones((), kind), others)
    return apply


def _lowest(kind: Any) -> Any:
    return -np.inf if kind.kind == "f" else False if kind.kind == "b" else np.iinfo(kind).min


def _highest(kind: Any) -> Any:
    return np.inf if kind.kind == "f" else True if kind.kind == "b" else np.iinfo(kind).max


_amax = _extreme("ScatterAmax", np.maximum, _lowest)
_amin = _extreme("ScatterAmin", np.minimum, _highest)
_prod = _product("ScatterProd")


def _reduced(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include: bool) -> Tensor:
    half = input.dtype in (_core.float16, _core.bfloat16)
    if half:
        made = _reduced(name, input.float(), dim, index, src.float(), reduce, include)
        return made.to(input.dtype)
    if reduce in ("sum", "mean"):
        start = input if include else input.scatter(dim, index, value=0)
        made = start.scatter_add(dim, index, src)
        if reduce == "sum":
            return made
        # Counts are real.
        kind = _core.float64 if input.dtype.is_complex else input.dtype
        ones = _core.ones_like(input.detach(), dtype=kind)
        start = ones if include else ones.scatter(dim, index, value=0)
        count = start.scatter_add(dim, index, _core.ones_like(src.detach(), dtype=kind)).clamp(min=1)
        if input.dtype.is_complex:
            return made / count.to(input.dtype)
        return made / count if input.dtype.is_floating_point else _core.div(made, count, rounding_mode="floor")
    if input.dtype.is_complex and reduce != "prod":
        kernel = (
            f"{name}_gather_tensor_cpu_reduce_{reduce}"
            if name == "scatter"
            else reduce.replace("a", "", 1) + "imum_cpu"
        )
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")
    chosen = {"prod": _prod, "amax": _amax, "amin": _amin}[reduce]
    result: Tensor = chosen(input, src, index, dim, include)
    return result


def _check_reduce(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor) -> int:
    if not -max(input.dim(), 1) <= dim < max(input.dim(), 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.dim(), 1)}, {max(input.dim(), 1) - 1}], "
            f"but got {dim})"
        )
    if index.numel() and index.dtype not in (_core.int32, _core.int64):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {index.dtype}")
    if src.dtype != input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    return dim % max(input.dim(), 1)


@operation("scatter_reduce")
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Combine elements of ``src`` at positions along a dimension.

    Args:
        input: A tensor.
        dim: The dimension of the positions.
        index: Positions, int32 or int64; its sizes are at most those of ``src``, and, but for ``dim``, those of
            ``input``.
        src: A tensor of the same dtype.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: Whether the elements of ``input`` belong to what is combined.
        out: Where the result is written.

    Returns:
        A tensor of the shape of ``input``; where nothing is written it has its elements.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, a position is out of range, or there is no such reduction.

    Example:
        >>> index = rgrad.tensor([0, 0, 1])
        >>> rgrad.scatter_reduce(rgrad.ones(2), 0, index, rgrad.tensor([2.0, 3.0, 4.0]), "sum")
        tensor([6., 5.])
    """
    dim = _check_reduce("scatter", input, dim, index, src)
    index = index.to(_core.int64)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    # It checks shapes and positions.
    if reduce not in ("sum", "mean"):
        input.detach().scatter(dim, index, src.detach())
    if index.numel() == 0:
        return input.clone()
    if not input.dim():
        made = _reduced(
            "scatter", input.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self
        ).reshape(())
    else:
        made = _reduced("scatter", input, dim, index, src, reduce, include_self)
    return made


@operation("index_reduce")
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Combine slices of ``source`` at positions along a dimension.

    Args:
        input: A tensor.
        dim: The dimension of the positions.
        index: A vector of positions, int32 or int64.
        source: A tensor of the same dtype, with as many slices as there are positions.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: Whether the elements of ``input`` belong to what is combined.
        out: Where the result is written.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: There is no such dimension, or a position is out of range.
        RuntimeError: Shapes or dtypes do not fit, or there is no such reduction.

    Example:
        >>> rgrad.index_reduce(rgrad.ones(2), 0, rgrad.tensor([0, 0]), rgrad.tensor([2.0, 3.0]), "prod")
        tensor([6., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}")
    if index.dtype not in (_core.int32, _core.int64):
        raise RuntimeError("index_reduce(): Expected dtype int32/int64 for index")
    dim = _check_reduce("index_reduce", input, dim, index, source)
    index = index.to(_core.int64)
    if input.dtype == _core.bool and (reduce == "mean" or not include_self):
        raise NotImplementedError(
            f"\"index_reduce\" not implemented for 'Bool' with reduce={reduce!r}: convert to uint8"
        )
    # They check positions and shapes.
    input.detach().index_select(dim, index)
    input.detach().index_add(dim, index, source.detach())
    if not input.dim():
        rows = _reduced("index_reduce", input.reshape(1), 0, index.reshape(1), source.reshape(1), reduce, include_self)
        return rows.reshape(())
    shape = [-1 if d == dim else 1 for d in range(source.dim())]
    places = index.reshape(shape).expand(source.shape)
    return _reduced("index_reduce", input, dim, places, source, reduce, include_self)


# ---------------------------------------------------------------------------------------------------- other positions


@operation("put")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Give a copy with elements replaced at positions in the flattened tensor.

    Args:
        input: A tensor.
        index: Positions, int64.
        source: As many elements as there are positions, of the same dtype.
        accumulate: Add them to the elements instead.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: A position is out of range, or the numbers of elements differ.
        RuntimeError: The dtypes differ.

    Example:
        >>> rgrad.put(rgrad.zeros(2, 2), rgrad.tensor([1, -1]), rgrad.tensor([5.0, 6.0]))
        tensor([[0., 5.],
                [0., 6.]])
    """
    if index.dtype != _core.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype}")
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {source.dtype}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    made = input.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return _core._unrelated(made.reshape(input.shape))


@operation("as_strided_scatter")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Give a copy with the elements of a strided view replaced.

    Args:
        input: A tensor.
        src: A tensor of the shape ``size``.
        size: The shape of the view.
        stride: Its strides, in elements.
        storage_offset: Its first element, by default that of ``input``.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: The shapes differ, or the view reaches beyond the memory.

    Example:
        >>> rgrad.as_strided_scatter(rgrad.zeros(4), rgrad.ones(2), (2,), (3,))
        tensor([1., 0., 0., 1.])
    """
    if tuple(src.shape) != tuple(size):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(size)}"
        )
    if not input.is_contiguous():
        made = input.clone()
        made.as_strided(size, stride, storage_offset).copy_(src)
        return made
    places = _core.arange(input.numel(), device=input.device).as_strided(size, stride, storage_offset or 0)
    made = input.reshape(-1).index_put((places.reshape(-1),), src.reshape(-1))
    return _core._unrelated(made.reshape(input.shape))


@operation("fill_diagonal_")
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal.

    Args:
        input: A tensor of two dimensions, or of more that have one size.
        fill_value: The number.
        wrap: Begin again below the last row of a tall matrix.

    Returns:
        The tensor.

    Raises:
        RuntimeError: There are fewer dimensions, or their sizes differ.

    Example:
        >>> rgrad.zeros(2, 2).fill_diagonal_(3)
        tensor([[3., 0.],
                [0., 3.]])
    """
    if input.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if input.dim() > 2 and len(set(input.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    rows, columns = input.shape[0], input.shape[1]
    step = sum(input.stride())
    start = input.storage_offset()
    if min(input.shape):
        input.as_strided((min(input.shape),), (step,), start).fill_(fill_value)
    if wrap and input.dim() == 2 and rows > columns + 1:
        start += input.stride(0) * (columns + 1)
        for first in range(columns + 1, rows, columns + 1):
            count = min(columns, rows - first)
            input.as_strided((count,), (step,), start).fill_(fill_value)
            start += input.stride(0) * (columns + 1)
    return input


@operation("nonzero_static")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Give the positions of what is not 0 in a tensor of a known number of rows.

    Args:
        input: A tensor.
        size: The number of rows; further positions are left out.
        fill_value: Stands in rows that are left over.
        out: Where the result is written.

    Returns:
        Shape ``(size, dimensions)``, int64.

    Raises:
        RuntimeError: ``size`` is negative.

    Example:
        >>> rgrad.nonzero_static(rgrad.tensor([0, 3, 4]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = input.nonzero()[:size]
    rest = _core.full((size - found.shape[0], input.dim()), fill_value, dtype=_core.int64, device=input.device)
    return _core.cat([found, rest], 0)


# ------------------------------------------------------------------------------------------------------ views as copies


@operation("narrow_copy")
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None) -> Tensor:
    """Give a copy of what :func:`narrow` views.

    Args:
        input: A tensor.
        dim: The dimension that becomes smaller.
        start: Its first position.
        length: How many positions there are.
        out: Where the result is written.

    Returns:
        A contiguous tensor.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The part reaches beyond it.

    Example:
        >>> rgrad.narrow_copy(rgrad.tensor([1, 2, 3]), 0, 1, 2)
        tensor([2, 3])
    """
    made = input.narrow(dim, start, length)
    return made.clone(memory_format=_core.contiguous_format)


def _itself(input: Tensor) -> Tensor:
    return input


def _copied(view: str, parameters: str, result: Any = Tensor) -> Callable[..., Any]:
    """The form of a view that gives a copy of type ``result``. ``parameters`` are those behind the tensor."""
    # An alias is the tensor itself, which has no method for that.
    method: Callable[..., Any] = _itself if view == "alias" else getattr(Tensor, view)

    def form(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if type(input) is not Tensor and _has_torch_function_variadic(input):
            return _ask_torch_function(form, (input,), (input, *args), kwargs)
        if not isinstance(input, Tensor):
            raise TypeError(f"{view}_copy(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        out = kwargs.pop("out", None)
        views = method(input, *args, **kwargs)
        made: Any
        if isinstance(views, (tuple, list)):
            made = tuple(part.clone() for part in views)
        else:
            made = views.clone(memory_format=_core.contiguous_format)
        return made if out is None else write_results(f"{view}_copy", out, made, False)

    form.__name__ = form.__qualname__ = f"{view}_copy"
    form.__module__ = __name__
    form.__annotations__["return"] = result
    form.__doc__ = f"""Give a copy of what :func:`{view}` views.

    Args:
        input: A tensor.
        args: As for the view{f": {parameters}" if parameters else ""}.
        kwargs: As for the view, and ``out``.
    """
    return form


alias_copy: Callable[..., Tensor] = _copied("alias", "")
as_strided_copy: Callable[..., Tensor] = _copied("as_strided", "size, stride, storage_offset")
detach_copy: Callable[..., Tensor] = _copied("detach", "")
diagonal_copy: Callable[..., Tensor] = _copied("diagonal", "offset, dim1, dim2")
expand_copy: Callable[..., Tensor] = _copied("expand", "size")
permute_copy: Callable[..., Tensor] = _copied("permute", "dims")
select_copy: Callable[..., Tensor] = _copied("select", "dim, index")
split_copy: Callable[..., tuple[Tensor, ...]] = _copied("split", "split_size, dim", tuple[Tensor, ...])
split_with_sizes_copy: Callable[..., tuple[Tensor, ...]] = _copied(
    "split_with_sizes", "split_sizes, dim", tuple[Tensor, ...]
)
squeeze_copy: Callable[..., Tensor] = _copied("squeeze", "dim")
t_copy: Callable[..., Tensor] = _copied("t", "")
transpose_copy: Callable[..., Tensor] = _copied("transpose", "dim0, dim1")
unbind_copy: Callable[..., tuple[Tensor, ...]] = _copied("unbind", "dim", tuple[Tensor, ...])
unfold_copy: Callable[..., Tensor] = _copied("unfold", "dimension, size, step")
unsqueeze_copy: Callable[..., Tensor] = _copied("unsqueeze", "dim")
view_copy: Callable[..., Tensor] = _copied("view", "size")
