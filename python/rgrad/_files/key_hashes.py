"""Keys whose hashes are chosen: those of numbers are no secret, so a file may have many keys with one and the same.

A dict looks at all of them for each new one, so that a file of some megabytes would take hours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

# Nobody has so many by chance: hashes have 61 bits or more.
_MOST_ALIKE = 100


def alike(keys: Iterable[Any], before: Counter[int] | None = None) -> bool:
    """Whether too many keys of one dict or set have the same hash.

    Args:
        keys: The keys.
        before: The hashes of earlier keys of the same dict, to which those of these are added.

    Raises:
        TypeError: One of them has no hash.
    """
    counts: Counter[int] = Counter() if before is None else before
    for key in keys:
        kind = type(key)
        # Strings and bytes have hashes that differ from process to process, small integers are their own.
        if kind in (float, complex, tuple, frozenset) or (kind is int and key.bit_length() > 60):
            found = hash(key)
            counts[found] += 1
            if counts[found] > _MOST_ALIKE:
                return True
    return False
