"""The library oneDNN, which is not used here."""

from contextlib import AbstractContextManager

from ._flags import values_of

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True


def is_available() -> bool:
    """Always False."""
    return False


def flags(
    enabled: bool | None = False, deterministic: bool | None = False, allow_tf32: bool | None = True
) -> AbstractContextManager[None]:
    """Set the switches for a block; None leaves one as it is."""
    return values_of(globals(), enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)
