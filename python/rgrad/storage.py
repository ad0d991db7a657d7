"""Storages: the memory of tensors, for programs that look at it. `Tensor.untyped_storage` gives that of a tensor."""

from typing import Any

from ._tensor import typed_storage as _typed
from ._tensor import untyped_storage as _untyped
from ._tensor.typed_storage import TypedStorage
from ._tensor.untyped_storage import UntypedStorage, by_name

__all__ = ["TypedStorage", "UntypedStorage"]

# Pickles of storages name two of these.
_LegacyStorage, _rebuilt, _deserialized = _typed._LegacyStorage, _typed._rebuilt, _untyped._deserialized


def _load_from_bytes(data: bytes) -> Any:
    """What PyTorch's own pickles of storages name: a file of `save` in bytes."""
    import io

    from .serialization import load

    return load(io.BytesIO(data), weights_only=False)


def __getattr__(name: str) -> Any:
    if name in _typed.DTYPES:
        return by_name(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
