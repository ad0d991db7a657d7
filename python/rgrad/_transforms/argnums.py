"""Which arguments are differentiated: ``argnums``, a position or a tuple of positions."""

from typing import Any

Argnums = int | tuple[int, ...]


def _position(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def positions(argnums: Any, count: int) -> Any:
    """``argnums`` with negative positions resolved.

    Raises:
        RuntimeError: They are not positions of ``count`` inputs.
    """
    if isinstance(argnums, int):
        return _position(argnums, count)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    found = tuple(_position(argnum, count) for argnum in argnums)
    if not found:
        raise RuntimeError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def chosen(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that ``argnums`` names; one argument alone if it is a number and ``as_tuple`` is False."""
    found = positions(argnums, len(args))
    if isinstance(found, int):
        return (args[found],) if as_tuple else args[found]
    return tuple(args[i] for i in found)


def replaced(args: tuple[Any, ...], new: tuple[Any, ...], argnums: Any) -> tuple[Any, ...]:
    """The arguments with others at the places that ``argnums`` names."""
    found = positions(argnums, len(args))
    places = (found,) if isinstance(found, int) else found
    result = list(args)
    for place, value in zip(places, new, strict=True):
        result[place] = value
    return tuple(result)
