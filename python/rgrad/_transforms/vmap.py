"""``vmap``: a function of single examples becomes a function of batches."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NoReturn, TypeVar

from .. import _core
from .._core import Tensor
from ..utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_leaves,
    tree_map_,
    tree_structure,
    tree_unflatten,
)
from .levels import batching

__all__ = ["vmap"]

Output = TypeVar("Output")


def _name(func: Any) -> str:
    name: str | None = getattr(func, "__name__", None)
    if name is not None:
        return name
    return f"functools.partial({_name(func.func)}, ...)" if isinstance(func, partial) else repr(func)


def _check_out_dims(out_dims: Any, func: Any) -> None:
    def one(dim: Any) -> None:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )

    tree_map_(one, out_dims)


class _Inputs:
    """The arguments as a flat list, each with the dimension to map over (not negative) or None, and the batch size."""

    def __init__(self, func: Any, in_dims: Any, args: tuple[Any, ...]) -> None:
        where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
                f"inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                "vmap over a function with no inputs. The latter is unsupported."
            )
        self.flat, self.spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, self.spec)
        if dims is None:
            raise ValueError(
                f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{tree_structure(in_dims)} but inputs has structure {self.spec}."
            )
        self.dims: list[int | None] = [self._dim(where, arg, dim) for arg, dim in zip(self.flat, dims, strict=True)]
        sizes = [arg.shape[dim] for arg, dim in zip(self.flat, self.dims, strict=True) if dim is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{sizes} for the mapped dimension"
            )
        self.size: int = sizes[0]

    @staticmethod
    def _dim(where: str, arg: Any, dim: Any) -> int | None:
        if dim is None:
            return None
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(arg, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = arg.dim()
        if not -rank <= dim < rank:
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so "
                f"expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        return dim % rank

    def chunks(self, chunk_size: int) -> list[tuple[int, list[Any]]]:
        """The arguments of consecutive parts of the batch, each with its size."""
        starts = range(0, self.size, chunk_size)
        return [
            (
                min(chunk_size, self.size - start),
                [
                    arg if dim is None else arg.narrow(dim, start, min(chunk_size, self.size - start))
                    for arg, dim in zip(self.flat, self.dims, strict=True)
                ],
            )
            for start in starts
        ]


def _out_dims_for(outputs: Any, spec: TreeSpec, out_dims: Any, func: Any) -> list[int | None]:
    def refuse() -> NoReturn:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {tree_structure(out_dims)} but outputs has structure {spec}."
        )

    if isinstance(outputs, Tensor):
        if out_dims is None or isinstance(out_dims, int):
            return [out_dims]
        # PyTorch takes a tuple of one dimension for a single output, too.
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            return list(out_dims)
        refuse()
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        refuse()
    return dims


def _unbatched(out: Any, level: int, size: int, dim: int | None, func: Any) -> Any:
    name = _name(func)
    if dim is None:
        if isinstance(out, Tensor) and _core._unwrap(out, level)[1]:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return out
    if not isinstance(out, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(out)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    inner, batched = _core._unwrap(out, level)
    rank = out.dim() + 1
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    if not batched:
        inner = inner.unsqueeze(0).expand(size, *inner.shape)
    return inner.movedim(0, dim) if dim not in (0, -rank) else inner


def _run(
    func: Callable[..., Output],
    size: int,
    flat: list[Any],
    inputs: _Inputs,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Output:
    with batching(size, randomness) as level:
        wrapped = [
            arg if dim is None else _core._wrap(arg, level, dim) for arg, dim in zip(flat, inputs.dims, strict=True)
        ]
        outputs = func(*tree_unflatten(wrapped, inputs.spec), **kwargs)
        flat_out, spec = tree_flatten(outputs)
        dims = _out_dims_for(outputs, spec, out_dims, func)
        made: Output = tree_unflatten(
            [_unbatched(out, level, size, dim, func) for out, dim in zip(flat_out, dims, strict=True)], spec
        )
        return made


def _joined(parts: list[Output], out_dims: Any) -> Output:
    spec = tree_structure(parts[0])
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    columns = zip(*(tree_leaves(part) for part in parts), strict=True)
    whole = [
        column[0] if dim is None else _core.cat(column, dim) for column, dim in zip(columns, dims or [], strict=True)
    ]
    made: Output = tree_unflatten(whole, spec)
    return made


def vmap(
    func: Callable[..., Output],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Output]:
    """A function that applies ``func`` to every slice of its arguments at once.

    Inside ``func`` the mapped dimension cannot be seen: operations treat all slices in one go.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors. What it does may not depend on values
            of tensors (``if x > 0``, ``x.item()``), nor may it write what depends on a mapped dimension to a tensor
            without one.
        in_dims: The dimension to map over, a number or a tree of numbers and None that ends where the arguments do or
            earlier; None for what is the same for every slice, as keyword arguments always are.
        out_dims: Where the mapped dimension goes in the results, likewise; None for a result without it.
        randomness: What random operations do: ``"error"`` refuse, ``"different"`` draw for each slice, ``"same"`` draw
            once.
        chunk_size: Map over so many slices at a time, to save memory; None for all.

    Returns:
        A function of batches.

    Raises:
        RuntimeError: ``randomness`` is unknown; when called: ``func`` does what cannot be batched.
        ValueError: ``chunk_size`` is not positive; when called: ``in_dims`` or ``out_dims`` do not fit, or mapped
            dimensions differ in size.
        IndexError: When called: one of ``out_dims`` is out of range.

    Example:
        >>> weights, examples = rgrad.ones(3), rgrad.eye(3)[:2]
        >>> rgrad.func.vmap(rgrad.dot, in_dims=(None, 0))(weights, examples)
        tensor([1., 1.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Output:
        _check_out_dims(out_dims, func)
        inputs = _Inputs(func, in_dims, args)
        if chunk_size is None or chunk_size >= inputs.size:
            return _run(func, inputs.size, inputs.flat, inputs, out_dims, randomness, kwargs)
        parts = []
        state = _core.get_rng_state() if randomness == "same" else None
        for size, flat in inputs.chunks(chunk_size):
            if state is not None:
                _core.set_rng_state(state)
            parts.append(_run(func, size, flat, inputs, out_dims, randomness, kwargs))
        return _joined(parts, out_dims)

    return wrapped


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, size: int, randomness: str, of_gradients: bool = False
) -> Callable[..., Any]:
    """:func:`vmap` for what was unwrapped inside a batch.

    Any argument may be without a mapped dimension. Results may be anything. They come as ``(results, out_dims)``, with
    0 for what has a mapped dimension and None for what has none.
    """

    def inner(*args: Any) -> tuple[Any, Any]:
        with batching(size, randomness, of_gradients) as level:
            outputs = func(*wrap_batched(args, in_dims, level))
            return unwrap_batched(outputs, level)

    return inner


def wrap_batched(args: Any, dims: Any, level: int) -> Any:
    """A tree with its tensors batched at dimensions that a prefix of the tree gives."""
    flat, spec = tree_flatten(args)
    flat_dims = _broadcast_to_and_flatten(dims, spec)
    assert flat_dims is not None
    return tree_unflatten(
        [
            _core._wrap(x, level, dim) if dim is not None and isinstance(x, Tensor) else x
            for x, dim in zip(flat, flat_dims, strict=True)
        ],
        spec,
    )


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """A tree without the batching of a level, and the tree of dimensions (0 or None)."""
    flat, spec = tree_flatten(args)
    pairs = [_core._unwrap(x, level) if isinstance(x, Tensor) else (x, False) for x in flat]
    values = tree_unflatten([value for value, _ in pairs], spec)
    return values, tree_unflatten([0 if batched else None for _, batched in pairs], spec)
