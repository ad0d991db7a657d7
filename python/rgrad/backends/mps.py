"""Metal, which is reached through the device "wgpu" here."""


def is_available() -> bool:
    """Always False: there is no device "mps"; see :mod:`rgrad.wgpu`."""
    return False


def is_built() -> bool:
    """Always False."""
    return False
