"""PyTorch's name of the options of printing: ``torch._tensor_str.printoptions``, ``PRINT_OPTS``."""

from ._tensor.printing import set_printoptions
from ._tensor.text import PRINT_OPTS, get_printoptions, printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
