"""rgrad: an autograd engine that speaks PyTorch.

Tensors, their operations and the engine live in the native module ``rgrad._core``; its public names are names of this
package, but for those that PyTorch has elsewhere, as in ``nn.functional``. The Python layer adds grad modes,
``autograd``, ``nn``, ``optim``, ``utils``, ``testing`` and storage on disk. Names, signatures, defaults and the key
words of error messages are PyTorch's wherever PyTorch has them.
"""

from . import _core
from ._functions.foreach_names import NAMES as _FOREACH
from ._functions.late_methods import functions as _late_functions
from ._runtime.absent_kinds import install as _install_absent_kinds
from ._runtime.layouts import layout_of as _layout_of
from ._runtime.names import ELSEWHERE as _ELSEWHERE
from ._runtime.names import IN_PLACE as _IN_PLACE
from ._runtime.names import REPLACED as _REPLACED
from ._runtime.native_names import native_name as _native_name

# The native module keeps the only list of operations: pointwise ones are registered from its table.
# What is written in Python takes the place of a native function of that name.
_LATE = _late_functions()
_HIDDEN = {*_ELSEWHERE, *_REPLACED, *_LATE}
_core_names = [name for name in dir(_core) if not name.startswith("_") and name not in _HIDDEN]
globals().update({name: getattr(_core, name) for name in _core_names})
globals().update({name: getattr(_core.Tensor, name) for name in _IN_PLACE})

# PyTorch has these at its top level.
_fft_c2c, _fft_c2r, _fft_r2c = _core._fft_c2c, _core._fft_c2r, _core._fft_r2c
_standard_gamma, _standard_gamma_grad = _core._standard_gamma, _core._standard_gamma_grad
_sample_dirichlet, _dirichlet_grad = _core._sample_dirichlet, _core._dirichlet_grad

# PyTorch's name of the native module, for code that reaches into it.
_C = _core

_core.__getattr__ = _native_name  # type: ignore[attr-defined]
_core.Tensor.layout = property(_layout_of)  # type: ignore[attr-defined]
_install_absent_kinds()

import sys as _sys
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
    "_custom_ops",
    "_dynamo",
    "__config__",
    "_jit_internal",
    "_subclasses",
    "_tensor_str",
    "_utils",
    "_vmap_internals",
    "accelerator",
    "amp",
    "ao",
    "backends",
    "compat",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "memory",
    "mps",
    "mtia",
    "multiprocessing",
    "nn",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "package",
    "profiler",
    "random",
    "return_types",
    "serialization",
    "signal",
    "special",
    "storage",
    "testing",
    "torch_version",
    "types",
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
    "_runtime.checks": (
        "_assert",
        "_assert_async",
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_type",
        "_check_value",
        "_check_with",
    ),
    "_runtime.native_names": ("PyTorchFileReader",),
    "_runtime.named_dtypes": (
        "bits16",
        "bits1x8",
        "bits2x4",
        "bits4x2",
        "bits8",
        "float4_e2m1fn_x2",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int1",
        "int2",
        "int3",
        "int4",
        "int5",
        "int6",
        "int7",
        "qint32",
        "qint8",
        "quint2x4",
        "quint4x2",
        "quint8",
        "uint1",
        "uint2",
        "uint3",
        "uint4",
        "uint5",
        "uint6",
        "uint7",
    ),
    "_runtime.layouts": (
        "_mkldnn",
        "jagged",
        "layout",
        "sparse_bsc",
        "sparse_bsr",
        "sparse_coo",
        "sparse_csc",
        "sparse_csr",
        "strided",
    ),
    "_runtime.streams": ("Event", "Stream"),
    "_functions.windows": (
        "bartlett_window",
        "blackman_window",
        "hamming_window",
        "hann_window",
        "kaiser_window",
    ),
    "accelerator": ("get_device_module",),
    "amp.autocast_mode": ("autocast",),
    "amp.grad_scaler": ("GradScaler",),
    "_runtime.symbolic": (
        "SymBool",
        "SymFloat",
        "SymInt",
        "sym_float",
        "sym_int",
        "sym_ite",
        "sym_max",
        "sym_min",
        "sym_not",
        "sym_sqrt",
        "sym_sum",
    ),
    "jit": ("ScriptModule",),
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
    "storage": (
        "BFloat16Storage",
        "BoolStorage",
        "ByteStorage",
        "CharStorage",
        "ComplexDoubleStorage",
        "ComplexFloatStorage",
        "DoubleStorage",
        "FloatStorage",
        "HalfStorage",
        "IntStorage",
        "LongStorage",
        "ShortStorage",
        "TypedStorage",
        "UntypedStorage",
    ),
    "utils.dlpack": ("from_dlpack",),
}

_install_methods()
_FROM = {name: module for module, names in _NAMES.items() for name in names} | _LATE
_FROM |= dict.fromkeys(_FOREACH, "_functions.foreach")
__getattr__, __dir__ = _lazily(__name__, _MODULES, _FROM)

__version__ = "0.1.0"

__all__ = sorted(  # noqa: PLE0605
    name for name in {*globals(), *_MODULES, *_FROM} if not name.startswith("_")
)

# As in PyTorch, whose package is a name in itself: programs write `torch.torch`.
torch = _sys.modules[__name__]
