"""PyTorch's name of the options of printing: ``torch._tensor_str.printoptions``, ``PRINT_OPTS``."""

from ._tensor.printing import set_printoptions
from ._tensor.text import PRINT_OPTS, get_printoptions, printoptions
from ._tensor.text import contents as _tensor_str  # noqa: F401
from ._tensor.text import to_string as _str_intern  # noqa: F401
from ._tensor.text import with_suffixes as _add_suffixes  # noqa: F401

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
