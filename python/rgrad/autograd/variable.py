"""``Variable``, the name that tensors with history had before PyTorch 0.4; old tutorials still use it."""

from typing import Any

from .._core import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """``Variable(tensor, requires_grad=False)`` gives a leaf tensor that shares memory with ``tensor``.

    Every tensor is an instance of it.
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and volatile:
            raise RuntimeError("Variable: got requires_grad=True and volatile=True, which contradict each other")
        return data.detach().requires_grad_(requires_grad)
