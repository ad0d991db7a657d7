"""Parameters: tensors that a module registers as its own when they are assigned to it.

Files and memory that is shared need them without layers, so they are not in ``nn``; their public names are those of
``nn.parameter``.
"""

from typing import Any, Self, cast

from .. import _core
from .._core import Tensor
from .construct import copied_data


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

    __module__ = "rgrad.nn.parameter"
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

    __module__ = "rgrad.nn.parameter"
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


class UninitializedTensorMixin:
    """Base of tensors without a shape yet: they can be moved and converted; :meth:`materialize` gives one.

    Example:
        >>> isinstance(nn.LazyLinear(2).weight, nn.parameter.UninitializedTensorMixin)
        True
    """

    __module__ = "rgrad.nn.parameter"
    cls_to_become: type[Any]
    _allowed = frozenset({"size", "copy_", "is_complex", "is_floating_point", "cpu", "cuda", "to", "get_device"})
    _converting = frozenset({"half", "float", "double", "char", "short", "int", "long"})

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary tensor of a shape, with memory as it was found.

        Args:
            shape: The shape.
            device: The device; None for where it is.
            dtype: The dtype; None for what it has.
        """
        this: Any = self
        data = this.data
        device, dtype = device or data.device, dtype or data.dtype
        this.data = _core.empty(tuple(shape), device=device, dtype=dtype)
        this.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """There is none.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """There is no memory.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        this: Any = self
        return type(self), (this.requires_grad,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        this: Any = self
        if id(self) not in memo:
            made: Any = type(self)
            memo[id(self)] = made(this.requires_grad, this.data.device, this.data.dtype)
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in cls._allowed or name in cls._converting or type(func).__name__ == "method-wrapper":
            result = _core._disabled_torch_function_impl(func, types, args, kwargs or {})
            if type(result) is Tensor and issubclass(cls, UninitializedBuffer):
                # Converted, it has no shape still. A parameter takes the data, and stays what it is.
                return cls(result.requires_grad, result.device, result.dtype)
            return result
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Tell whether a parameter or buffer has no shape yet.

    Args:
        param: The parameter or buffer.

    Returns:
        True for an uninitialized one.

    Example:
        >>> nn.parameter.is_lazy(nn.LazyLinear(2).weight), nn.parameter.is_lazy(nn.Linear(1, 2).weight)
        (True, False)
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape yet.

    Args:
        requires_grad: Whether backward accumulates into ``.grad``.
        device: The device that it will be on.
        dtype: The dtype that it will have.

    Example:
        >>> p = nn.parameter.UninitializedParameter()
        >>> p
        <UninitializedParameter>
        >>> p.materialize((2,))
        >>> type(p).__name__, tuple(p.shape)
        ('Parameter', (2,))
    """

    __module__ = "rgrad.nn.parameter"
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        return cast("Self", Tensor._make_subclass(cls, _core.empty(0, device=device, dtype=dtype), requires_grad))


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape yet.

    Args:
        requires_grad: Whether backward accumulates into ``.grad``.
        device: The device that it will be on.
        dtype: The dtype that it will have.
        persistent: Whether ``state_dict`` has it.

    Example:
        >>> nn.parameter.UninitializedBuffer()
        <UninitializedBuffer>
    """

    __module__ = "rgrad.nn.parameter"
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Self:
        made = Tensor._make_subclass(cls, _core.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return cast("Self", made)
