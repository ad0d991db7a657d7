"""Joining samples into batches."""

import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor

#: How samples of a type (or of one of several types) are joined: ``function(samples, collate_fn_map=...)``.
CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _same_kind(sample: Any, entries: Sequence[tuple[Any, Any]]) -> Any:
    """A mapping or a sequence like ``sample`` with other values; a dict or a list where its class refuses them."""
    kind = type(sample)
    is_mapping = isinstance(sample, Mapping)
    values: Any = dict(entries) if is_mapping else [value for _, value in entries]
    try:
        if not isinstance(sample, MutableMapping if is_mapping else MutableSequence):
            return kind(values)
        # Not the class with the values: it may have other arguments, and attributes of its own.
        made: Any = copy.copy(sample)
        if is_mapping:
            made.update(values)
        else:
            for place, value in entries:
                made[place] = value
        return made
    except TypeError:
        return values


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Samples of equal structure to one batch of that structure.

    Mappings, named tuples and sequences are joined entry by entry (tuples to lists), other samples by the function that
    the map has for their type.

    Args:
        batch: The samples.
        collate_fn_map: Functions by type: of a sample's own type, or else of the first one that it is an instance of.

    Raises:
        RuntimeError: Sequences have different lengths.
        TypeError: There is no function for a sample.
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((f for known, f in collate_fn_map.items() if isinstance(first, known)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = ((key, [sample[key] for sample in batch]) for key in first)
        return _same_kind(first, [(key, collate(column, collate_fn_map=collate_fn_map)) for key, column in columns])
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if len(set(map(len, batch))) != 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        joined = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)]
        return joined if isinstance(first, tuple) else _same_kind(first, list(enumerate(joined)))
    raise TypeError(_WRONG.format(kind))


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Tensors of one shape, stacked along a new dimension 0."""
    return _core.stack(batch, 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Arrays as tensors, joined as these are.

    Raises:
        TypeError: The arrays have strings or objects.
    """
    if batch[0].dtype.kind in "SUOaV":
        raise TypeError(_WRONG.format(batch[0].dtype))
    return collate([_core.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """NumPy's numbers as a tensor of their type."""
    import numpy as np

    return _core.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Floats as a tensor of float64."""
    return _core.tensor(list(batch), dtype=_core.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Integers as a tensor of int64, truth values as one of bool."""
    return _core.tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Sequence[Any]:
    """Strings or bytes as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _with_numpy(table: CollateMap) -> CollateMap:
    import numpy as np

    if np.ndarray not in table:
        own = dict(table)
        table.clear()
        # Before float: NumPy's float64 is one.
        table.update({Tensor: own.pop(Tensor), np.ndarray: collate_numpy_array_fn})
        table[np.bool_, np.number, np.object_] = collate_numpy_scalar_fn
        table.update(own)
    return table


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples of equal structure to one batch of that structure.

    Tensors are stacked along a new dimension 0; NumPy arrays and numbers become tensors (Python floats float64);
    strings and bytes become lists; mappings, named tuples and sequences are joined entry by entry (tuples to lists).
    ``default_collate_fn_map`` has the functions for each type; more may be added.

    Raises:
        RuntimeError: Tensors or sequences have different sizes.
        TypeError: A sample has another type.
    """
    if "numpy" in sys.modules:
        _with_numpy(default_collate_fn_map)
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers inside ``data`` to tensors, the rest as it is: what a loader without batches does."""
    kind = type(data)
    if isinstance(data, (str, bytes, Tensor)):
        return data
    if kind.__module__ == "numpy":
        if kind.__name__ == "ndarray" and data.dtype.kind in "SUOaV":
            return data
        return _core.as_tensor(data)
    if isinstance(data, Mapping):
        return _same_kind(data, [(key, default_convert(data[key])) for key in data])
    if isinstance(data, tuple):
        values = [default_convert(value) for value in data]
        return kind(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence):
        return _same_kind(data, [(place, default_convert(value)) for place, value in enumerate(data)])
    return data
