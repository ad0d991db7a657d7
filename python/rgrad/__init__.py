"""rgrad: an autograd engine that speaks PyTorch.

Tensors, their operations and the engine live in the native module ``rgrad._core``; its public names are names of this
package, but for those that PyTorch has elsewhere, as in ``nn.functional``. The Python layer adds grad modes,
``autograd``, ``nn``, ``optim``, ``utils``, ``testing`` and storage on disk. Names, signatures, defaults and the key
words of error messages are PyTorch's wherever PyTorch has them.
"""

from typing import TYPE_CHECKING

from . import _core
from ._names import ELSEWHERE as _ELSEWHERE
from ._names import IN_PLACE as _IN_PLACE

if TYPE_CHECKING:
    from ._core import *

# The native module keeps the only list of operations: pointwise ones are registered from its table.
_core_names = [name for name in dir(_core) if not name.startswith("_") and name not in _ELSEWHERE]
globals().update({name: getattr(_core, name) for name in _core_names})
globals().update({name: getattr(_core.Tensor, name) for name in _IN_PLACE})

# PyTorch's name of the native module, for code that reaches into it.
_C = _core

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

newaxis: None = None

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
    from . import amp as amp
    from . import backends as backends
    from . import compiler as compiler
    from . import cpu as cpu
    from . import cuda as cuda
    from . import func as func
    from . import jit as jit
    from . import mps as mps
    from . import multiprocessing as multiprocessing
    from . import nn as nn
    from . import optim as optim
    from . import overrides as overrides
    from . import return_types as return_types
    from . import serialization as serialization
    from . import testing as testing
    from . import utils as utils
    from . import version as version
    from . import vision as vision
    from . import wgpu as wgpu
    from ._legacy_types import BFloat16Tensor as BFloat16Tensor
    from ._legacy_types import BoolTensor as BoolTensor
    from ._legacy_types import ByteTensor as ByteTensor
    from ._legacy_types import CharTensor as CharTensor
    from ._legacy_types import DoubleTensor as DoubleTensor
    from ._legacy_types import FloatTensor as FloatTensor
    from ._legacy_types import HalfTensor as HalfTensor
    from ._legacy_types import IntTensor as IntTensor
    from ._legacy_types import LongTensor as LongTensor
    from ._legacy_types import ShortTensor as ShortTensor
    from ._legacy_types import set_default_tensor_type as set_default_tensor_type
    from ._numeric import bucketize as bucketize
    from ._numeric import cartesian_prod as cartesian_prod
    from ._numeric import chain_matmul as chain_matmul
    from ._numeric import combinations as combinations
    from ._numeric import cumulative_trapezoid as cumulative_trapezoid
    from ._numeric import gradient as gradient
    from ._numeric import is_nonzero as is_nonzero
    from ._numeric import is_same_size as is_same_size
    from ._numeric import isin as isin
    from ._numeric import searchsorted as searchsorted
    from ._numeric import trapezoid as trapezoid
    from ._numeric import trapz as trapz
    from ._numeric import unravel_index as unravel_index
    from ._numeric import vander as vander
    from ._settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
    from ._settings import compile as compile
    from ._settings import get_deterministic_debug_mode as get_deterministic_debug_mode
    from ._settings import get_float32_matmul_precision as get_float32_matmul_precision
    from ._settings import (
        is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    )
    from ._settings import set_deterministic_debug_mode as set_deterministic_debug_mode
    from ._settings import set_float32_matmul_precision as set_float32_matmul_precision
    from ._settings import set_flush_denormal as set_flush_denormal
    from ._settings import use_deterministic_algorithms as use_deterministic_algorithms
    from ._windows import blackman_window as blackman_window
    from ._windows import hamming_window as hamming_window
    from ._windows import hann_window as hann_window
    from .amp.autocast_mode import autocast as autocast
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

_LEGACY_TYPES = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "set_default_tensor_type",
)
_NUMERIC = (
    "bucketize",
    "cartesian_prod",
    "chain_matmul",
    "combinations",
    "cumulative_trapezoid",
    "gradient",
    "is_nonzero",
    "is_same_size",
    "isin",
    "searchsorted",
    "trapezoid",
    "trapz",
    "unravel_index",
    "vander",
)
_WINDOWS = ("blackman_window", "hamming_window", "hann_window")
_SETTINGS = (
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "use_deterministic_algorithms",
)

__getattr__, __dir__ = _lazily(
    __name__,
    (
        "__future__",
        "backends",
        "compiler",
        "amp",
        "cpu",
        "cuda",
        "func",
        "jit",
        "mps",
        "multiprocessing",
        "nn",
        "optim",
        "overrides",
        "return_types",
        "serialization",
        "testing",
        "utils",
        "version",
        "vision",
        "wgpu",
    ),
    {
        "autocast": "amp.autocast_mode",
        "load": "serialization",
        "save": "serialization",
        "vmap": "func",
        # Functions that PyTorch has at its top level, too, with these parameters.
        **dict.fromkeys(_FUNCTIONS, "nn.functional"),
        "cdist": "nn.functional._distance",
        **dict.fromkeys(_LEGACY_TYPES, "_legacy_types"),
        **dict.fromkeys(_NUMERIC, "_numeric"),
        **dict.fromkeys(_SETTINGS, "_settings"),
        **dict.fromkeys(_WINDOWS, "_windows"),
    },
)

__version__ = "0.1.0"

__all__ = sorted(  # noqa: PLE0605
    {
        *_core_names,
        *_FUNCTIONS,
        *_IN_PLACE,
        *_LEGACY_TYPES,
        *_NUMERIC,
        *_SETTINGS,
        *_WINDOWS,
        "amp",
        "autocast",
        "autograd",
        "backends",
        "cdist",
        "compiler",
        "cpu",
        "cuda",
        "e",
        "enable_grad",
        "finfo",
        "func",
        "fusion",
        "iinfo",
        "inference_mode",
        "inf",
        "is_tensor",
        "jit",
        "load",
        "mps",
        "nan",
        "newaxis",
        "multiprocessing",
        "nn",
        "no_grad",
        "optim",
        "overrides",
        "pi",
        "return_types",
        "save",
        "serialization",
        "set_grad_enabled",
        "set_printoptions",
        "testing",
        "typename",
        "utils",
        "version",
        "vision",
        "vmap",
        "wgpu",
    }
)
