"""Handles that remove hooks."""

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self, TypeVar

from .. import _core
from .._core import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def unserializable_hook(f: F) -> F:
    """A decorator for hooks on tensors: pickling a tensor that has it does not warn that the hook stays behind."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of each hook on a leaf's gradient that pickling the leaf would leave behind."""
    for hook in _core._leaf_hooks(tensor):
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @rgrad.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class RemovableHandle:
    """Removes one hook from a table of hooks; also a context manager that removes it at the end of the block.

    Args:
        hooks_dict: The table, keyed by :attr:`id`. Held weakly, so a handle keeps neither module nor hook alive.
        extra_dict: Further tables (or a list of them) from which the same key goes.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id: int = next(RemovableHandle._ids)
        tables = () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(table) for table in tables)

    def remove(self) -> None:
        """Remove the hook; once is enough, more does no harm."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # A table that is gone is replaced by an empty one, so that remove() stays harmless.
        table, self.id, extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if table is None else table)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if t is None else t) for t in extra)
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.remove()
