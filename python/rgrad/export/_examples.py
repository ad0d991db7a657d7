"""Inputs of a program: their names, which of their sizes may differ, and a second example of other sizes and values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..utils._pytree import tree_flatten, tree_unflatten
from ._dims import Dim


def parameters_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arguments of a call with the names of their parameters.

    Raises:
        TypeError: They do not fit the function.
    """
    function: Callable[..., Any] = getattr(model, "forward", model)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [(f"arg_{k}", x) for k, x in enumerate(args)] + list(kwargs.items())
    bound = signature.bind(*args, **kwargs)
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(f"{name}_{k}", x) for k, x in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += list(value.items())
        else:
            found.append((name, value))
    return found


def tensors_of(tree: Any) -> list[Tensor]:
    """The tensors in a tree, in its order."""
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


def input_names(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """A name for each tensor of the arguments, after the parameters of the function."""
    by_tensor: dict[int, str] = {}
    taken: set[str] = set()
    for name, value in parameters_of(model, args, kwargs):
        inside = tensors_of(value)
        for k, tensor in enumerate(inside):
            own = name if len(inside) == 1 else f"{name}_{k}"
            by_tensor.setdefault(id(tensor), own)
    names = []
    for tensor in tensors_of((args, dict(kwargs))):
        base = name = by_tensor.get(id(tensor), "input")
        k = 0
        while name in taken:
            k += 1
            name = f"{base}_{k}"
        taken.add(name)
        names.append(name)
    return names


def _one(spec: Any, tensor: Tensor, name: str) -> dict[int, Any]:
    """The dimensions of a tensor that may differ, each with its name or :class:`Dim`."""
    if spec is None:
        return {}
    pairs: Any = (
        spec.items() if isinstance(spec, Mapping) else enumerate(spec) if isinstance(spec, (tuple, list)) else None
    )
    if pairs is None:
        raise ValueError(
            f"dynamic_shapes: for the tensor {name!r} expected a dict or a list, but got {type(spec).__name__}"
        )
    found = {}
    for axis, dim in pairs:
        if not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
            raise ValueError(f"dynamic_shapes: the tensor {name!r} has no dimension {axis!r}; it has {tensor.dim()}")
        axis %= tensor.dim()
        if dim is None or dim is Dim.STATIC:
            continue
        if isinstance(dim, int):
            if dim != tensor.shape[axis]:
                raise ValueError(
                    f"dynamic_shapes: dimension {axis} of {name!r} is said to be {dim}, but the example has "
                    f"{tensor.shape[axis]}"
                )
            continue
        if dim in (Dim.AUTO, Dim.DYNAMIC):
            dim = f"{name}_dim_{axis}"
        if not isinstance(dim, (str, Dim)):
            raise ValueError(
                f"dynamic_shapes: expected a name or a Dim for dimension {axis} of {name!r}, but got {dim!r}"
            )
        found[axis] = dim
    return found


def _nested(spec: Any, value: Any, names: Iterator[str]) -> list[dict[int, Any]]:
    if isinstance(value, Tensor):
        return [_one(spec, value, next(names))]
    if isinstance(value, (tuple, list)):
        parts = [None] * len(value) if spec is None else list(spec)
        if len(parts) != len(value):
            raise ValueError(
                f"dynamic_shapes: expected {len(value)} entries for a {type(value).__name__}, got {len(parts)}"
            )
        return [one for part, x in zip(parts, value, strict=True) for one in _nested(part, x, names)]
    if isinstance(value, Mapping):
        return [one for key, x in value.items() for one in _nested((spec or {}).get(key), x, names)]
    return []


def dynamic_of(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Sequence[str], dynamic_shapes: Any
) -> list[dict[int, Any]]:
    """For each tensor of the arguments, its dimensions that may differ.

    Raises:
        ValueError: ``dynamic_shapes`` does not fit the arguments.
    """
    given = parameters_of(model, args, kwargs)
    left = iter(names)
    if dynamic_shapes is None:
        return [{} for _ in names]
    if isinstance(dynamic_shapes, Mapping):
        unknown = set(dynamic_shapes) - {name for name, _ in given}
        if unknown:
            raise ValueError(
                f"dynamic_shapes: there are no arguments {sorted(unknown)}; they are {[name for name, _ in given]}"
            )
        specs = [dynamic_shapes.get(name) for name, _ in given]
    else:
        specs = list(dynamic_shapes)
        if len(specs) != len(given):
            raise ValueError(
                f"dynamic_shapes: expected {len(given)} entries, one for each argument, but got {len(specs)}"
            )
    return [one for spec, (_, value) in zip(specs, given, strict=True) for one in _nested(spec, value, left)]


def name_of_dim(dim: Any) -> str:
    """The name of a dimension that may differ."""
    return dim if isinstance(dim, str) else str(dim.__name__)


_WAYS = 6


def _grown(sizes: dict[str, tuple[int, Any]], way: int) -> dict[str, int] | None:
    """Another size for each name, each larger by another number.

    More than twice as large first: what is divided by strides on the way must differ, too.
    """
    made = {}
    for k, (name, (size, dim)) in enumerate(sizes.items()):
        most = dim.max if isinstance(dim, Dim) else None
        step = dim.factor if isinstance(dim, Dim) else 1
        # A size of 1 fits more than others do.
        least = max(dim.min, 2) if isinstance(dim, Dim) else 2
        more = (k + 1) * step
        tried = (size * 2 + more, size * (2 + k), size * 2, size + more, size // 2, size - more)
        new = tried[way] - (tried[way] - size) % step
        if new < least or (most is not None and new > most) or new == size:
            return None
        made[name] = new
    return made


def _other_tensor(x: Tensor, sizes: Mapping[int, int]) -> Tensor:
    own = x.detach()
    for axis, size in sizes.items():
        if size != own.shape[axis]:
            index = _core.arange(size, device=own.device) % max(own.shape[axis], 1)
            own = own.index_select(axis, index)
    if own.numel() > 1:
        own = own.reshape(-1).roll(1).reshape(own.shape)
    # Inside of the range of the elements, or nearer to 0.
    return own * 0.9375 if own.is_floating_point() else own.clone()


def other_examples(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic: Sequence[Mapping[int, Any]]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Examples with other values, and with other sizes where these may differ, to be tried one after the other."""
    leaves, spec = tree_flatten((args, dict(kwargs)))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    sizes: dict[str, tuple[int, Any]] = {}
    for x, axes in zip(tensors, dynamic, strict=True):
        for axis, dim in axes.items():
            sizes.setdefault(name_of_dim(dim), (int(x.shape[axis]), dim))
    for way in range(_WAYS if sizes else 1):
        grown = _grown(sizes, way)
        if grown is None:
            continue
        made, left = [], iter(dynamic)
        with no_grad():
            for leaf in leaves:
                if isinstance(leaf, Tensor):
                    axes = next(left)
                    leaf = _other_tensor(leaf, {a: grown[name_of_dim(d)] for a, d in axes.items()})
                made.append(leaf)
        found: tuple[Any, ...] = tree_unflatten(made, spec)
        yield found[0], found[1]
