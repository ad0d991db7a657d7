"""TensorBoard: :class:`SummaryWriter`, with PyTorch's interface.

Event files are written with the package ``tensorboard`` or ``tensorboardX``, whichever is installed. Neither is a
requirement of rgrad; a writer that finds none says so.
"""

from typing import TYPE_CHECKING

from ..._runtime.lazy import lazily

if TYPE_CHECKING:
    from .writer import FileWriter as FileWriter
    from .writer import SummaryWriter as SummaryWriter

__getattr__, __dir__ = lazily(__name__, ("writer",), {"FileWriter": "writer", "SummaryWriter": "writer"})

__all__ = ["FileWriter", "SummaryWriter"]
