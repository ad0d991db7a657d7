"""Which kernel attention may take. There is one on each device, so the choice is accepted and has no effect."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from enum import IntEnum

# An enumeration takes no arguments of its own, so it is not listed among what has documented ones.
__all__ = ["sdpa_kernel"]


class SDPBackend(IntEnum):
    """The kernels that PyTorch has for :func:`~rgrad.nn.functional.scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_chosen: list[list[SDPBackend]] = [[b for b in SDPBackend if b is not SDPBackend.ERROR]]


@contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Generator[None]:
    """Accept a choice of kernels, inside of the context.

    Args:
        backends: The kernels that may be taken.
        set_priority: Whether their order counts.

    Raises:
        AssertionError: ``backends`` is something else.

    Example:
        >>> from rgrad.nn.attention import SDPBackend, sdpa_kernel
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     F.scaled_dot_product_attention(*[rgrad.ones(1, 1, 2, 2)] * 3).shape
        rgrad.Size([1, 1, 2, 2])
    """
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, Iterable):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    wanted = list(backends)
    if not wanted or not all(isinstance(b, SDPBackend) for b in wanted):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    _chosen.append(wanted)
    try:
        yield
    finally:
        _chosen.pop()


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that may be taken now."""
    return list(_chosen[-1])
