"""What portable code asks of ``mps``: Apple's GPUs are reached through the device "wgpu" here."""


def is_available() -> bool:
    """Always False; see :mod:`rgrad.wgpu`."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""
