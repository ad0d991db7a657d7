"""Names of PyTorch's compiler that libraries import from here."""

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """False: nothing is compiled, so libraries take their other way.

    Args:
        device_type: Has no effect.
    """
    return False
