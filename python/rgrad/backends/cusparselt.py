"""The library cuSPARSELt, which needs a CUDA device."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def version() -> int | None:
    """Always None: there is no cuSPARSELt."""
    return None


def is_available() -> bool:
    """Always False."""
    return False


def get_max_alg_id() -> int | None:
    """Always None."""
    return None
