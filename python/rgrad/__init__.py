"""rgrad: an autograd engine that speaks PyTorch.

Tensors, their operations and the engine live in the native module ``rgrad._core``; its public names are names of this
package, but for those that PyTorch has elsewhere, as in ``nn.functional``. The Python layer adds grad modes,
``autograd``, ``nn``, ``optim``, ``utils``, ``testing`` and storage on disk. Names, signatures, defaults and the key
words of error messages are PyTorch's wherever PyTorch has them.
"""

from . import _core
from ._functions.late_methods import functions as _late_functions
from ._runtime.names import ELSEWHERE as _ELSEWHERE
from ._runtime.names import IN_PLACE as _IN_PLACE

# The native module keeps the only list of operations: pointwise ones are registered from its table.
# What is written in Python takes the place of a native function of that name.
_LATE = _late_functions()
_core_names = [name for name in dir(_core) if not name.startswith("_") and name not in _ELSEWHERE and name not in _LATE]
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
from ._functions.late_methods import install as _install_methods
from ._runtime.fusion import fusion as fusion
from ._runtime.info import finfo as finfo
from ._runtime.info import iinfo as iinfo
from ._runtime.info import is_tensor as is_tensor
from ._runtime.info import typename as typename
from ._runtime.lazy import lazily as _lazily
from ._tensor.printing import set_printoptions as set_printoptions
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled

# What comes when it is first used. scripts/make_package_stub.py tells type checkers.
_MODULES = (
    "__future__",
    "_tensor_str",
    "accelerator",
    "amp",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "func",
    "hub",
    "jit",
    "linalg",
    "memory",
    "mps",
    "multiprocessing",
    "nn",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "random",
    "return_types",
    "serialization",
    "special",
    "testing",
    "utils",
    "version",
    "vision",
    "wgpu",
    "xpu",
)
_NAMES = {
    "_tensor.legacy_types": (
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
    ),
    "_functions.numeric": (
        "bucketize",
        "cartesian_prod",
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
    ),
    "_runtime.settings": (
        "are_deterministic_algorithms_enabled",
        "compile",
        "get_deterministic_debug_mode",
        "get_float32_matmul_precision",
        "get_num_interop_threads",
        "is_deterministic_algorithms_warn_only_enabled",
        "set_deterministic_debug_mode",
        "set_float32_matmul_precision",
        "set_flush_denormal",
        "set_num_interop_threads",
        "use_deterministic_algorithms",
    ),
    "_functions.windows": (
        "bartlett_window",
        "blackman_window",
        "hamming_window",
        "hann_window",
        "kaiser_window",
    ),
    "amp.autocast_mode": ("autocast",),
    "func": ("vmap",),
    "linalg._products": ("chain_matmul",),
    "nn._summary": ("summary",),
    # Functions that PyTorch has at its top level, too, with these parameters.
    "nn.functional": (
        "bilinear",
        "channel_shuffle",
        "cosine_similarity",
        "pairwise_distance",
        "pdist",
        "pixel_shuffle",
        "pixel_unshuffle",
        "selu",
        "selu_",
    ),
    "nn.functional._distance": ("cdist",),
    "serialization": (
        "load",
        "save",
    ),
}

_install_methods()
_FROM = {name: module for module, names in _NAMES.items() for name in names} | _LATE
__getattr__, __dir__ = _lazily(__name__, _MODULES, _FROM)

__version__ = "0.1.0"

__all__ = sorted(  # noqa: PLE0605
    name for name in {*globals(), *_MODULES, *_FROM} if not name.startswith("_")
)
