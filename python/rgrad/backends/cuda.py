"""The switches of CUDA, which is not used here."""


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
