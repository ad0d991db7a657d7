"""Keys that may occur once."""

from typing import Any


class EnforceUnique:
    """Refuses a key that it has seen before.

    Example:
        >>> keys = rgrad.autograd.profiler.EnforceUnique()
        >>> keys.see("a", 1)
        >>> keys.see("a", 1)
        Traceback (most recent call last):
        RuntimeError: duplicate key: ('a', 1)
    """

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Notes a key.

        Args:
            *key: Its parts.

        Raises:
            RuntimeError: It was noted before.
            TypeError: A part cannot be hashed.
        """
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
