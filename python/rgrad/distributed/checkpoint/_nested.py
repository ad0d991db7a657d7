"""Nested dicts and lists as one dict, whose keys are paths with dots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core import Tensor

#: The keys on the way to a value; those of dicts as strings.
Path = tuple[str | int, ...]


class Leaf:
    """A value, and where it stands.

    Args:
        container: The dict or list.
        key: Its key there.
        path: The keys on the way.
    """

    __slots__ = ("container", "key", "path")

    def __init__(self, container: Any, key: Any, path: Path) -> None:
        self.container, self.key, self.path = container, key, path

    @property
    def value(self) -> Any:
        """The value."""
        return self.container[self.key]

    @value.setter
    def value(self, value: Any) -> None:
        self.container[self.key] = value


def _is_whole(value: Any) -> bool:
    """Whether a list is one value: it has neither tensors nor dicts."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(isinstance(one, Tensor) or not _is_whole(one) for one in value)


def flattened(state: Mapping[str, Any]) -> dict[str, Leaf]:
    """All values, by their path.

    Raises:
        ValueError: Two values have one path.
        RecursionError: A dict or list contains itself.
    """
    found: dict[str, Leaf] = {}
    # Entries that are to be looked at, the next one last.
    waiting: list[tuple[Any, Any, Path, int]] = [(state, key, (str(key),), 0) for key in reversed(list(state))]
    while waiting:
        container, key, path, depth = waiting.pop()
        value = container[key]
        if depth > 500:
            raise RecursionError("save, load: dicts and lists are nested more than 500 deep")
        if isinstance(value, Mapping):
            waiting += [(value, inner, (*path, str(inner)), depth + 1) for inner in reversed(list(value))]
        elif not _is_whole(value):
            waiting += [(value, place, (*path, place), depth + 1) for place in reversed(range(len(value)))]
        else:
            name = ".".join(map(str, path))
            if name in found:
                raise ValueError(f"duplicated flatten key {name}: two entries have this path; rename one")
            found[name] = Leaf(container, key, path)
    return found
