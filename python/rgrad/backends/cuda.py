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
