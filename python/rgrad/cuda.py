"""What portable code asks of ``cuda``: there are no CUDA devices here."""


def is_available() -> bool:
    """Always False."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0
