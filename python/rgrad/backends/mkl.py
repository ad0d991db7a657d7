"""Intel's library of kernels, which is not used here."""

from typing import Literal

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Always False."""
    return False


class verbose:
    """A block in which MKL was to print its calls. It is not used here, so nothing is printed.

    Args:
        enable: What was to be printed.
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        return False
