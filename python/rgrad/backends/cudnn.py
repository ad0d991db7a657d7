"""The switches of cuDNN, which is not used here."""

from contextlib import AbstractContextManager

from ._flags import values_of

enabled: bool = True
benchmark: bool = False
benchmark_limit: int = 10
deterministic: bool = False
allow_tf32: bool = True


def is_available() -> bool:
    """Always False."""
    return False


def version() -> int | None:
    """Always None: there is no cuDNN."""
    return None


def flags(
    enabled: bool | None = False,
    benchmark: bool | None = False,
    benchmark_limit: int | None = 10,
    deterministic: bool | None = False,
    allow_tf32: bool | None = True,
) -> AbstractContextManager[None]:
    """Set the switches for a block; None leaves one as it is."""
    return values_of(
        globals(),
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )
