"""Operators of one's own, with derivatives, batching rules and shapes: :func:`custom_op` and :class:`Library`.

Such an operator is one operation for autograd, transforms, autocast, the profiler and exporters. It is
``rgrad.ops.namespace.name``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._custom_op import CustomOpDef, custom_op
from ._library import Library, define, fallthrough_kernel, get_ctx, impl, operator_of, set_kernel
from ._library import _scoped_library as _scoped_library
from ._opcheck import OpCheckError, opcheck
from ._schema import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def _decorator(register: Callable[[Any], Any], func: Any) -> Any:
    if func is None:
        return register
    register(func)
    return func


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Say what an operator runs for tensors of some devices.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        device_types: ``"cpu"``, ``"wgpu"`` or another one, several of them, or None for all.
        func: The function; without it the call is a decorator.
        lib: Has no effect.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator = operator_of(op, "register_kernel")

    def register(function: Any) -> Any:
        kinds = (
            ("default",) if device_types is None else (device_types,) if isinstance(device_types, str) else device_types
        )
        for kind in kinds:
            set_kernel(operator, kind, function)
        return function

    return _decorator(register, func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Say what an operator gives for tensors of the meta device: the shapes and dtypes of results.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        func: Takes what the operator takes; without it the call is a decorator.
        lib: Has no effect.
        allow_override: Has no effect: a later one takes the place of an earlier one.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator = operator_of(op, "register_fake")

    def register(function: Any) -> Any:
        set_kernel(operator, "fake", function)
        return function

    return _decorator(register, func)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The older name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Give an operator a derivative, as :meth:`CustomOpDef.register_autograd` does.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        backward: ``backward(ctx, *grads)`` gives a gradient or None for each argument that is given by position.
        setup_context: ``setup_context(ctx, inputs, output)`` saves what ``backward`` needs.
        lib: Has no effect.

    Raises:
        RuntimeError: There is no such operator, or it writes to its arguments.
    """
    operator = operator_of(op, "register_autograd")
    if operator._schema.is_mutable or any(r.alias for r in operator._schema.returns):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {operator._schema}. Please "
            "create a functional operator and register an autograd formula for that."
        )
    if any(a.kwarg_only and a.base == "Tensor" for a in operator._schema.arguments):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args. In the original definition of the op, please make your "
            f"tensors not kwarg-only. Got: {operator._schema}"
        )
    operator._backward, operator._setup_context = backward, setup_context
    operator.changed()


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator a batching rule, as :meth:`CustomOpDef.register_vmap` does.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        func: ``func(info, in_dims, *args, **kwargs)`` gives ``(output, out_dims)``; without it the call is a decorator.
        lib: Has no effect.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator = operator_of(op, "register_vmap")

    def register(function: Any) -> Any:
        operator._vmap = function
        operator.changed()
        return function

    return _decorator(register, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Convert float inputs of an operator while autocast is on; it is off then inside of it.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        device_type: The kind of device.
        cast_inputs: The dtype.
        lib: Has no effect.

    Raises:
        RuntimeError: There is no such operator.
        ValueError: ``device_type`` is no string, or has no autocast.
    """
    from ..amp import is_autocast_available

    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type != "cuda" and not is_autocast_available(device_type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    operator_of(op, "register_autocast")._autocast_dtypes[device_type] = cast_inputs


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Refused: classes have ``__torch_function__`` here, which is asked about operators, too.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "library.register_torch_dispatch: rgrad has no __torch_dispatch__; give the class a __torch_function__"
    )


def get_kernel(op: Any, dispatch_key: Any) -> Callable[..., Any]:
    """What an operator runs for a device.

    Args:
        op: Its name, itself, or a :class:`CustomOpDef`.
        dispatch_key: ``"CPU"``, ``"Meta"`` or another one.

    Returns:
        The function.

    Raises:
        RuntimeError: There is no such operator.
        NotImplementedError: It has no such kernel.
        ValueError: There is no such key.
    """
    from ._operator import KEYS

    if dispatch_key not in KEYS:
        raise ValueError(f"get_kernel: there is no dispatch key {dispatch_key!r} here")
    return operator_of(op, "get_kernel")._kernel(KEYS[dispatch_key])


def triton_op(
    name: str, fn: Any = None, /, *, mutates_args: str | Iterable[str] = (), schema: str | None = None
) -> Any:
    """Refused: there are no kernels of Triton.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "library.triton_op: rgrad runs no kernels of Triton; write the operator with rgrad.library.custom_op"
    )


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Refused: there are no kernels of Triton.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "library.wrap_triton: rgrad runs no kernels of Triton; write the operator with rgrad.library.custom_op"
    )
