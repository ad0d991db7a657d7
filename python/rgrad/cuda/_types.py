"""`cuda.FloatTensor` and its sisters: no tensor is an instance, and none can be made."""

from typing import Any, Never

from .._runtime.no_device import refuse


class _CudaType(type):
    is_cuda = True
    is_sparse = False

    def __call__(cls, *args: Any, **kwargs: Any) -> Never:
        refuse(cls.__name__)

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


def _made(name: str) -> Any:
    doc = """Tensors of one dtype on CUDA devices, of which there are none.

    Raises:
        RuntimeError: It is called.
    """
    return _CudaType(name, (), {"__doc__": doc, "__module__": "rgrad.cuda"})


FloatTensor = _made("FloatTensor")
DoubleTensor = _made("DoubleTensor")
HalfTensor = _made("HalfTensor")
BFloat16Tensor = _made("BFloat16Tensor")
ByteTensor = _made("ByteTensor")
CharTensor = _made("CharTensor")
ShortTensor = _made("ShortTensor")
IntTensor = _made("IntTensor")
LongTensor = _made("LongTensor")
BoolTensor = _made("BoolTensor")
