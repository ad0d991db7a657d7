"""Parameters: tensors that a module registers as its own when they are assigned to it."""

from typing import Any, Self, cast

from .. import _core
from .._construct import copied_data
from .._core import Tensor


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Tensors of other classes that were made parameters count as parameters."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False) is True


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that :class:`rgrad.nn.Module` registers as a parameter when it is assigned to an attribute.

    It shares memory with ``data`` and requires grad by default, also when it is made under ``no_grad``. The result of
    an operation on a parameter is a plain tensor. A tensor of a class of its own keeps that class, and counts as a
    parameter.

    Args:
        data: The initial value; an empty tensor if left out.
        requires_grad: Whether backward accumulates into ``.grad``.

    Raises:
        TypeError: ``data`` is no tensor.
        RuntimeError: ``requires_grad=True`` for a dtype that is not floating point.

    Example:
        >>> module = nn.Module()
        >>> module.scale = nn.Parameter(rgrad.ones(2))
        >>> dict(module.named_parameters())
        {'scale': Parameter containing:
        tensor([1., 1.], requires_grad=True)}
    """

    __torch_function__: Any = _core._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = _core.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: got {type(data).__name__} as data, expected a Tensor; rgrad.tensor(...) makes one"
            )
        if type(data) is Tensor or issubclass(type(data), Parameter) or cls is not Parameter:
            return cast("Self", Tensor._make_subclass(cls, data, requires_grad))
        made = data.detach().requires_grad_(requires_grad)
        if type(made) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(made).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_function__()."
            )
        vars(made)["_is_param"] = True
        return cast("Self", made)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            known: Self = memo[id(self)]
            return known
        copy = type(self)(copied_data(self, memo), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False) is True
        return bool(super().__instancecheck__(instance))


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that :class:`rgrad.nn.Module` registers as a buffer when it is assigned: state, but no parameter.

    The result is a plain tensor that shares memory with ``data`` and is marked as a buffer.

    Args:
        data: The initial value; an empty tensor if left out.
        persistent: Whether ``state_dict`` has it.

    Raises:
        TypeError: ``data`` is no tensor.

    Example:
        >>> module = nn.Module()
        >>> module.mean = nn.Buffer(rgrad.zeros(2))
        >>> list(module.state_dict())
        ['mean']
    """

    __torch_function__: Any = _core._disabled_torch_function_impl

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
