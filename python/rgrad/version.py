"""The version of rgrad, and what PyTorch may be built with and rgrad is not."""

from ._core import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug: bool = False
