"""Joining samples into batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples of equal structure to one batch of that structure.

    Tensors are stacked along a new dimension 0; NumPy arrays and numbers become tensors (Python floats float64);
    strings and bytes become lists; mappings, named tuples and sequences are joined entry by entry (tuples to lists).

    Raises:
        RuntimeError: Tensors or sequences have different sizes.
        TypeError: A sample has another type.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _core.stack(list(batch), 0)
    kind = type(first)
    if kind.__module__ == "numpy":
        import numpy as np

        if isinstance(first, np.ndarray):
            if first.dtype.kind in "SUOV":
                raise TypeError(
                    f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                    f"found {first.dtype}"
                )
            return _core.stack([_core.as_tensor(sample) for sample in batch], 0)
        if isinstance(first, np.generic):
            return _core.as_tensor(np.asarray(batch))
    if isinstance(first, float):
        return _core.tensor(list(batch), dtype=_core.float64)
    if isinstance(first, int):
        return _core.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        joined = {key: default_collate([sample[key] for sample in batch]) for key in first}
        try:
            return kind(joined)
        except TypeError:
            return joined
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(entries) for entries in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(entries) for entries in zip(*batch, strict=True)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{kind.__module__}.{kind.__qualname__}"
    )


def default_convert(data: Any) -> Any:
    """NumPy arrays inside ``data`` to tensors, everything else as it is: what a loader without batches does."""
    kind = type(data)
    if kind.__module__ == "numpy":
        import numpy as np

        if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SUOV":
            return _core.as_tensor(data)
        return data
    if isinstance(data, (str, bytes, Tensor)):
        return data
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple):
        if hasattr(data, "_fields"):
            return kind(*map(default_convert, data))
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence):
        return [default_convert(value) for value in data]
    return data
