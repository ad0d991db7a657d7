"""Where ``load`` puts memory: on the device that a file names, or as ``map_location`` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage

Restore = Callable[[UntypedStorage, str], UntypedStorage]


def is_meta(map_location: Any) -> bool:
    """Whether no elements are to be read at all."""
    return isinstance(map_location, (str, _core.device)) and str(map_location).partition(":")[0] == "meta"


def to_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """A storage on the CPU on the device of a name.

    Raises:
        RuntimeError: The device is not here.
    """
    if location == "cpu":
        return storage
    try:
        return storage.to(location)
    except RuntimeError as error:
        kind = location.partition(":")[0]
        if kind in ("cuda", "mps", "xpu"):
            raise RuntimeError(
                f"Attempting to deserialize object on a {kind.upper()} device but there is none: the file has a tensor "
                f"saved on {location}, which is not available here. Use load with map_location=rgrad.device('cpu') to "
                "map storages to the CPU"
            ) from error
        raise RuntimeError(
            f"load: the file has a tensor saved on {location}, which is not available here. Use "
            f"map_location='cpu' to load it to the CPU ({error})"
        ) from error


def restorer(map_location: Any) -> Restore:
    """What puts a storage where it belongs, given the storage on the CPU and the name of its saved device.

    Raises:
        TypeError: ``map_location`` is none of what `load` takes.
    """
    if map_location is None:
        return to_location
    if isinstance(map_location, bytes):
        map_location = map_location.decode("ascii")
    if isinstance(map_location, (str, _core.device)):
        fixed = str(map_location)
        return lambda storage, location: to_location(storage, fixed)
    if isinstance(map_location, int) and not isinstance(map_location, bool):
        number = str(_core.device(map_location))
        return lambda storage, location: to_location(storage, number)
    if isinstance(map_location, dict):
        table = map_location

        def by_name(storage: UntypedStorage, location: str) -> UntypedStorage:
            by_kind = table.get(location.partition(":")[0], location)
            return to_location(storage, str(table.get(location, by_kind)))

        return by_name
    if callable(map_location):
        function = map_location

        def by_function(storage: UntypedStorage, location: str) -> UntypedStorage:
            found = function(storage, location)
            if found is None:
                return to_location(storage, location)
            if isinstance(found, TypedStorage):
                return found.untyped()
            if isinstance(found, Tensor):
                return UntypedStorage._of(found)
            if not isinstance(found, UntypedStorage):
                raise TypeError(
                    f"load: map_location returned {type(found).__name__}, expected the storage that it was given, on "
                    "the device where it is to be, or None"
                )
            return found

        return by_function
    raise TypeError(
        f"load: got {type(map_location).__name__} as map_location, expected a device, a dict of devices or a function"
    )
