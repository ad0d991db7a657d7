"""Names of quantisation that libraries import.

rgrad has no quantised tensors: models stay in floats, and what would change them refuses.
"""

from ._refused import (
    convert,
    default_qconfig,
    fuse_modules,
    fuse_modules_qat,
    get_default_qat_qconfig,
    get_default_qconfig,
    prepare,
    prepare_qat,
    quantize,
    quantize_dynamic,
)
from ._stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "DeQuantStub",
    "QuantStub",
    "QuantWrapper",
    "convert",
    "default_qconfig",
    "fuse_modules",
    "fuse_modules_qat",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "prepare",
    "prepare_qat",
    "quantize",
    "quantize_dynamic",
]
