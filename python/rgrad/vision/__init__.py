"""What the tutorials take from torchvision: residual networks, images of digits, and what turns images into tensors.

With ``import rgrad.vision as torchvision`` code runs that needs no more than this: residual networks without trained
weights, MNIST, FashionMNIST and KMNIST from files that are there, and transforms of single images. Nothing is
downloaded: ``MNIST(root, download=True)`` gives the small digits that scikit-learn ships, enlarged, with a warning, and
the others raise.
"""

from typing import TYPE_CHECKING

from .._runtime.lazy import lazily as _lazily

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import models as models
    from . import transforms as transforms

__all__ = ["datasets", "models", "transforms"]

__getattr__, __dir__ = _lazily(__name__, ("datasets", "models", "transforms"))
