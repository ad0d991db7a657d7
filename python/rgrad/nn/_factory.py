"""The keyword arguments of a layer that are for the tensors it makes."""

from typing import Any

_NAMES = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Give the arguments for functions that make tensors, out of those that a layer got by name.

    Args:
        kwargs: ``device``, ``dtype`` and ``memory_format``, or a dict of these under ``factory_kwargs``.

    Returns:
        A new dict.

    Raises:
        TypeError: Another name is there, or one is given twice.

    Example:
        >>> nn.factory_kwargs({"dtype": rgrad.float64})
        {'dtype': rgrad.float64}
    """
    if kwargs is None:
        return {}
    if unknown := kwargs.keys() - {*_NAMES, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for name in _NAMES:
        if name in kwargs:
            if name in made:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            made[name] = kwargs[name]
    return made
