"""PyTorch's keys of dispatch, as libraries name them: those of autocast can be switched off, others are names."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from types import TracebackType

from .. import _core

_AUTOCASTS = {"AutocastCPU": "cpu", "AutocastPrivateUse1": "wgpu"}


class DispatchKey(enum.Enum):
    """What chooses the code of an operation in PyTorch."""

    Undefined = 0
    CPU = 1
    CUDA = 2
    Meta = 3
    PrivateUse1 = 4
    Autograd = 5
    AutogradCPU = 6
    AutogradCUDA = 7
    CompositeImplicitAutograd = 8
    CompositeExplicitAutograd = 9
    AutocastCPU = 10
    AutocastCUDA = 11
    AutocastXPU = 12
    AutocastPrivateUse1 = 13
    Python = 14
    ADInplaceOrView = 15


class DispatchKeySet:
    """A set of keys.

    Args:
        key: A key, or several.
    """

    def __init__(self, *key: DispatchKey) -> None:
        self._keys = frozenset(key)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in it."""
        return key in self._keys

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(self._keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)


class _ExcludeDispatchKeyGuard:
    """A context in which autocast is off on the devices of which a set has the key. Other keys have no effect.

    Args:
        keys: The set.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        self._devices = [_AUTOCASTS[key.name] for key in keys if key.name in _AUTOCASTS]
        self._before: list[tuple[str, bool]] = []

    def __enter__(self) -> None:
        self._before = [(device, _core.is_autocast_enabled(device)) for device in self._devices]
        for device in self._devices:
            _core.set_autocast_enabled(device, False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for device, enabled in self._before:
            _core.set_autocast_enabled(device, enabled)
