"""The switches of CUDA, which is not used here."""

import enum
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Never

from .._runtime.no_device import NO_CUDA, answering, refuse
from .._runtime.warned import warn_user

_ANSWERS: dict[str, Any] = {
    "class SDPAParams": None,
    "blas_workspace_size(size=None, backend=None)": NO_CUDA,
    "can_use_cudnn_attention(params, debug=False)": False,
    "can_use_efficient_attention(params, debug=False)": False,
    "can_use_flash_attention(params, debug=False)": False,
    "cublas_workspace_size(size=None)": NO_CUDA,
    "cublaslt_workspace_size(size=None)": NO_CUDA,
    "is_ck_sdpa_available()": False,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)


class _MatmulSwitches:
    """How CUDA computes products of matrices."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.fp32_precision = "none"


matmul = _MatmulSwitches()


def is_built() -> bool:
    """Always False."""
    return False


# Which kernels attention may take. There is one on each device, so the switches have no effect.
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """What :func:`enable_flash_sdp` was given."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Accept whether attention may take a fused kernel. It has no effect."""
    _attention["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What :func:`enable_mem_efficient_sdp` was given."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Accept whether attention may take a kernel that saves memory. It has no effect."""
    _attention["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """What :func:`enable_math_sdp` was given."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Accept whether attention may be composed of other operations. It has no effect."""
    _attention["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """What :func:`enable_cudnn_sdp` was given."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Accept whether attention may take the kernel of cuDNN. It has no effect."""
    _attention["cudnn"] = bool(enabled)


def is_flash_attention_available() -> bool:
    """Always False: that kernel needs CUDA."""
    return False


_reductions = {"math": False}


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What :func:`allow_fp16_bf16_reduction_math_sdp` was given."""
    return _reductions["math"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Accept whether sums of attention may be in 16 bits. It has no effect: they are not."""
    _reductions["math"] = bool(enabled)


@contextmanager
def _attention_of(switches: dict[str, bool]) -> Iterator[None]:
    before = dict(_attention)
    _attention.update(switches)
    try:
        yield
    finally:
        _attention.update(before)


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> AbstractContextManager[None]:
    """Set the switches of attention for a block, with a warning; use :func:`rgrad.nn.attention.sdpa_kernel`.

    Args:
        enable_flash: As for :func:`enable_flash_sdp`.
        enable_math: As for :func:`enable_math_sdp`.
        enable_mem_efficient: As for :func:`enable_mem_efficient_sdp`.
        enable_cudnn: As for :func:`enable_cudnn_sdp`.
    """
    warn_user(
        "`rgrad.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
        "Please see `rgrad.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
    )
    return _attention_of(
        {"flash": enable_flash, "mem_efficient": enable_mem_efficient, "math": enable_math, "cudnn": enable_cudnn}
    )


class _Choice(enum.Enum):
    """A library that could be preferred."""

    Default = "default"
    Cublas = "cublas"
    Cublaslt = "cublaslt"
    Ck = "ck"
    Cusolver = "cusolver"
    Magma = "magma"
    AOTriton = "aotriton"


_preferred = {"linalg": _Choice.Default, "blas": _Choice.Cublas, "rocm_fa": _Choice.Default}


def _prefer(what: str, backend: Any, choices: tuple[str, ...]) -> _Choice:
    if backend is not None:
        name = backend.value if isinstance(backend, _Choice) else backend
        if name not in choices:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(choices)}.")
        _preferred[what] = _Choice(name)
    return _preferred[what]


def preferred_linalg_library(backend: Any = None) -> Any:
    """Keep and give the library that was to factorise matrices on CUDA devices. It has no effect.

    Raises:
        RuntimeError: There is no such library.
    """
    return _prefer("linalg", backend, ("default", "cusolver", "magma"))


def preferred_blas_library(backend: Any = None) -> Any:
    """Keep and give the library that was to multiply matrices on CUDA devices. It has no effect.

    Raises:
        RuntimeError: There is no such library.
    """
    return _prefer("blas", backend, ("default", "cublas", "cublaslt", "ck"))


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """Keep and give the library that was to compute attention with ROCm. It has no effect.

    Raises:
        RuntimeError: There is no such library.
    """
    return _prefer("rocm_fa", backend, ("default", "aotriton", "ck"))


class cuFFTPlanCache:
    """The plans that cuFFT has kept for one device: there are none.

    Args:
        device_index: The device.
    """

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    @property
    def size(self) -> Never:
        """Refuse: there is no device."""
        refuse("cufft_plan_cache.size")

    @property
    def max_size(self) -> Never:
        """Refuse: there is no device."""
        refuse("cufft_plan_cache.max_size")

    def clear(self) -> None:
        """Refuse: there is no device.

        Raises:
            RuntimeError: Always.
        """
        refuse("cufft_plan_cache.clear")


class cuFFTPlanCacheManager(cuFFTPlanCache):
    """The plans of the current device, and by index those of others: there are none."""

    def __init__(self) -> None:
        super().__init__(-1)

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        raise RuntimeError(
            f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {device}: there is none"
        )


cufft_plan_cache = cuFFTPlanCacheManager()
cuBLASModule = _MatmulSwitches
