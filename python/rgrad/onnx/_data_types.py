"""Numbers of dtypes in ONNX."""

import enum


class TensorProtoDataType(enum.IntEnum):
    """The number of each dtype in files of ONNX."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


TensorProtoDataType.__module__ = "rgrad.onnx"
