"""What ends a ``__getattr__``."""

from typing import Any


def missing(owner: Any, name: str) -> Any:
    """Raise the error of an attribute that is not there.

    Python calls ``__getattr__`` where a property raises AttributeError, too, and drops that error. So an attribute that
    the class has is read once more: what is missing is what the property looked for.

    Args:
        owner: The object whose ``__getattr__`` has not found the attribute.
        name: The attribute's name.

    Returns:
        What a property gives that fails only once.

    Raises:
        AttributeError: Always otherwise.

    Example:
        >>> rgrad._runtime.missing.missing(rgrad.nn.ReLU(), "weight")
        Traceback (most recent call last):
        AttributeError: 'ReLU' object has no attribute 'weight'
    """
    if any(name in vars(cls) for cls in type(owner).__mro__):
        return object.__getattribute__(owner, name)
    raise AttributeError(f"'{type(owner).__name__}' object has no attribute '{name}'")
