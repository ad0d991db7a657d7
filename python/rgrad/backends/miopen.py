"""The switches of MIOpen, which needs AMD's driver."""

from contextlib import AbstractContextManager

from ._flags import values_of

immediate: bool = False


def flags(immediate: bool | None = False) -> AbstractContextManager[None]:
    """Set the switch for a block; None leaves it as it is."""
    return values_of(globals(), immediate=immediate)
