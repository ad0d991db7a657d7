"""Helpers that layers of one's own share with PyTorch's: a number for each dimension, prefixes of state dicts."""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives a tuple: of what is iterable, or n times what is not."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _each(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each dimension: those of a sequence, or one number for all.

    Unlike PyTorch's ``_ntuple`` it takes a tensor of one number for a number.
    """
    return tuple(value) if isinstance(value, Sequence) else (value,) * count


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The elements in reverse order, each n times: the padding of dimensions as ``F.pad`` takes it."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix such as ``module.`` off the names in a state dict and its metadata, in place.

    Args:
        state_dict: The state dict.
        prefix: The prefix, with the dot at its end.

    Example:
        >>> from rgrad.nn.modules.utils import consume_prefix_in_state_dict_if_present
        >>> state = nn.DataParallel(nn.Linear(2, 1)).state_dict()
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> list(state)
        ['weight', 'bias']
    """
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [k for k in metadata if k and (k.startswith(prefix) or k == prefix.replace(".", ""))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
