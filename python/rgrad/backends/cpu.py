"""Kernels on the CPU."""

from .. import _core


def get_cpu_capability() -> str:
    """The instruction set that kernels use: the machine's best one, or what ``RGRAD_ISA`` asked for.

    Returns:
        ``"AVX512"``, ``"AVX2"`` (with FMA), or ``"NO AVX"`` for x86-64 without them; ``"DEFAULT"`` on other processors.
    """
    return _core._get_cpu_capability()
