"""Which module operations belong to where nobody has watched the calls: a guess from those that take parameters."""

from __future__ import annotations

from collections.abc import Sequence

Path = tuple[str, ...]


def common(paths: Sequence[Path]) -> Path:
    """The innermost module around all of these."""
    first = min(paths)
    last = max(paths)
    for i, (a, b) in enumerate(zip(first, last, strict=False)):
        if a != b:
            return first[:i]
    return first[: len(last)]


def guessed(known: Sequence[Path | None]) -> list[Path]:
    """A path for each operation, in the order of recording, of which some are known.

    The others belong to what the known ones before and after them have in common.
    """
    after: list[Path] = [()] * len(known)
    next_known: Path = ()
    for i in range(len(known) - 1, -1, -1):
        own = known[i]
        if own is not None:
            next_known = own
        after[i] = next_known
    before: Path = ()
    result = []
    for i, own in enumerate(known):
        if own is None:
            own = common([before, after[i]])
        else:
            before = own
        result.append(own)
    return result
