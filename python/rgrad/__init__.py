"""rgrad: an autograd engine that speaks PyTorch.

Tensors, their operations and the engine live in the native module ``rgrad._core``; its public names are names of this
package, but for those that PyTorch has elsewhere, as in ``nn.functional``. The Python layer adds grad modes,
``autograd``, ``nn``, ``optim``, ``utils``, ``testing`` and storage on disk. Names, signatures, defaults and the key
words of error messages are PyTorch's wherever PyTorch has them.
"""

from typing import TYPE_CHECKING

from . import _core
from ._names import ELSEWHERE as _ELSEWHERE

if TYPE_CHECKING:
    from ._core import *

# The native module keeps the only list of operations: pointwise ones are registered from its table.
_core_names = [name for name in dir(_core) if not name.startswith("_") and name not in _ELSEWHERE]
globals().update({name: getattr(_core, name) for name in _core_names})

# PyTorch's name of the native module, for code that reaches into it.
_C = _core

# From here on `bool`, `int`, `float`, `sum`, `any` ... in this file are rgrad's, not Python's.
from . import autograd as autograd
from ._fusion import fusion as fusion
from ._info import finfo as finfo
from ._info import iinfo as iinfo
from ._info import is_tensor as is_tensor
from ._info import typename as typename
from ._lazy import lazily as _lazily
from ._printing import set_printoptions as set_printoptions
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled

if TYPE_CHECKING:
    from . import __future__ as __future__
    from . import cuda as cuda
    from . import func as func
    from . import nn as nn
    from . import optim as optim
    from . import overrides as overrides
    from . import return_types as return_types
    from . import serialization as serialization
    from . import testing as testing
    from . import utils as utils
    from . import wgpu as wgpu
    from .func import vmap as vmap
    from .nn.functional import bilinear as bilinear
    from .nn.functional import channel_shuffle as channel_shuffle
    from .nn.functional import cosine_similarity as cosine_similarity
    from .nn.functional import pairwise_distance as pairwise_distance
    from .nn.functional import pdist as pdist
    from .nn.functional import pixel_shuffle as pixel_shuffle
    from .nn.functional import pixel_unshuffle as pixel_unshuffle
    from .nn.functional import selu as selu
    from .nn.functional import selu_ as selu_
    from .nn.functional._distance import cdist as cdist
    from .serialization import load as load
    from .serialization import save as save

_FUNCTIONS = (
    "bilinear",
    "channel_shuffle",
    "cosine_similarity",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "selu",
    "selu_",
)

__getattr__, __dir__ = _lazily(
    __name__,
    (
        "__future__",
        "cuda",
        "func",
        "nn",
        "optim",
        "overrides",
        "return_types",
        "serialization",
        "testing",
        "utils",
        "wgpu",
    ),
    {
        "load": "serialization",
        "save": "serialization",
        "vmap": "func",
        # Functions that PyTorch has at its top level, too, with these parameters.
        **dict.fromkeys(_FUNCTIONS, "nn.functional"),
        "cdist": "nn.functional._distance",
    },
)

__version__ = "0.1.0"

__all__ = sorted(  # noqa: PLE0605
    {
        *_core_names,
        *_FUNCTIONS,
        "autograd",
        "cdist",
        "cuda",
        "enable_grad",
        "finfo",
        "func",
        "fusion",
        "iinfo",
        "inference_mode",
        "is_tensor",
        "load",
        "nn",
        "no_grad",
        "optim",
        "overrides",
        "return_types",
        "save",
        "serialization",
        "set_grad_enabled",
        "set_printoptions",
        "testing",
        "typename",
        "utils",
        "vmap",
        "wgpu",
    }
)
