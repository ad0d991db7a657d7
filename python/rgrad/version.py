"""The version of rgrad, and what PyTorch may be built with and rgrad is not."""

from ._core import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
rocm: str | None = None
debug: bool = False
#: PyTorch's commit; that of rgrad is its release.
git_version: str = f"v{__version__}"
