"""The library oneDNN, which is not used here."""

from contextlib import AbstractContextManager
from typing import Literal

from ._flags import values_of

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2


def is_available() -> bool:
    """Always False."""
    return False


def flags(
    enabled: bool | None = False, deterministic: bool | None = False, allow_tf32: bool | None = True
) -> AbstractContextManager[None]:
    """Set the switches for a block; None leaves one as it is."""
    return values_of(globals(), enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)


class verbose:
    """A block in which oneDNN was to print its calls. It is not used here, so nothing is printed.

    Args:
        level: What was to be printed.
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        return False
