"""What portable code asks of ``xpu``: Intel's GPUs are reached through the device "wgpu" here."""


def is_available() -> bool:
    """Always False; see :mod:`rgrad.wgpu`."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def is_initialized() -> bool:
    """Always False."""
    return False


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def manual_seed_all(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def empty_cache() -> None:
    """Do nothing; see :func:`rgrad.wgpu.empty_cache`."""
