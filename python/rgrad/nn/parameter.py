"""Parameters: tensors that a module registers as its own when they are assigned to it."""

from typing import Any, Self

from .. import _core
from .._core import Tensor


class Parameter(Tensor):
    """A leaf tensor that :class:`rgrad.nn.Module` registers as a parameter on assignment.

    It shares memory with ``data`` and requires grad by default, also when made under ``no_grad``. The result of an
    operation on a parameter is a plain tensor.

    Args:
        data: initial value; an empty tensor if left out.
        requires_grad: whether backward accumulates into ``.grad``.

    Raises:
        RuntimeError: ``requires_grad=True`` for a dtype that is not floating point.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = _core.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: got {type(data).__name__} as data, expected a Tensor; rgrad.tensor(...) makes one"
            )
        made = super().__new__(cls, data)
        made.requires_grad_(requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            known: Self = memo[id(self)]
            return known
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (type(self), (self.data, self.requires_grad))

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False) is True
        return bool(super().__instancecheck__(instance))


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that :class:`rgrad.nn.Module` registers as a buffer on assignment: state, but no parameter.

    The result is a plain tensor that shares memory with ``data`` and is marked as a buffer.

    Args:
        data: initial value; an empty tensor if left out.
        persistent: whether it is part of the module's ``state_dict``.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:  # type: ignore[misc]
        if data is None:
            data = _core.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(
                f"Buffer: got {type(data).__name__} as data, expected a Tensor; rgrad.tensor(...) makes one"
            )
        made: Any = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        buffer: Tensor = made
        return buffer
