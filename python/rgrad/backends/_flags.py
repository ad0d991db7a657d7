"""A block in which attributes of a module have other values."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def values_of(names: dict[str, Any], **values: Any) -> Iterator[None]:
    """Set entries of a module's names for a block; None leaves one as it is.

    Args:
        names: The names of the module: its ``globals()``.
        values: What they are in the block.
    """
    before = {name: names[name] for name in values}
    names.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        names.update(before)
