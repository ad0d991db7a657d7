"""The older names of :mod:`rgrad.library`, which libraries import for operators of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._core import Tensor
from .library import get_ctx, infer_schema, register_fake
from .library._custom_op import OPDEFS, CustomOpDef, split_name
from .library._library import operator_of, set_kernel

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

# For each operator: what saves, and what computes gradients.
_formulas: dict[str, dict[str, Callable[..., Any]]] = {}


def custom_op(qualname: str, func_or_schema: Callable[..., Any] | str | None = None) -> Any:
    """Define an operator, from a function with annotations (which is not called) or a schema.

    Args:
        qualname: ``"namespace::name"``.
        func_or_schema: The function, or ``"(Tensor x) -> Tensor"``; without it the call is a decorator.

    Raises:
        ValueError: The name has no namespace, or an annotation is missing.
    """

    def make(function: Callable[..., Any] | str) -> Any:
        namespace, name = split_name(qualname, "custom_op")
        text = function if isinstance(function, str) else infer_schema(function, mutates_args=())

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"{qualname} has no kernel; register one with rgrad._custom_ops.impl")

        made = CustomOpDef(namespace, name, text, missing)
        return function if callable(function) else made

    return make if func_or_schema is None else make(func_or_schema)


def _decorated(func: Callable[..., Any] | None, register: Callable[[Any], Any]) -> Any:
    return register if func is None else register(func)


def impl(
    qualname: str, *, device_types: str | Sequence[str] = ("cpu", "cuda"), func: Callable[..., Any] | None = None
) -> Any:
    """Give an operator a kernel for some devices.

    Args:
        qualname: Its name.
        device_types: The devices.
        func: The function; without it the call is a decorator.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator = operator_of(qualname, "impl")

    def register(function: Any) -> Any:
        for kind in (device_types,) if isinstance(device_types, str) else device_types:
            set_kernel(operator, kind, function)
        return function

    return _decorated(func, register)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """The older name of :func:`rgrad.library.register_fake`."""
    return register_fake(qualname, func)


def _completed(qualname: str) -> None:
    """Register the derivative when both of its parts are there."""
    parts = _formulas[qualname]
    if len(parts) < 2:
        return
    operator = operator_of(qualname, "impl_backward")
    names = [a.name for a in operator._schema.arguments if not a.kwarg_only]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        from collections import namedtuple

        saved = parts["save"](namedtuple("Inputs", names)(*inputs), output)
        many = isinstance(saved, (tuple, list))
        values = list(saved) if many else [saved]
        ctx._custom_op_places = [isinstance(v, Tensor) for v in values], many
        ctx._custom_op_others = [None if isinstance(v, Tensor) else v for v in values]
        ctx.save_for_backward(*(v for v in values if isinstance(v, Tensor)))

    def backward(ctx: Any, *grads: Any) -> Any:
        places, many = ctx._custom_op_places
        tensors = iter(ctx.saved_tensors)
        values = [next(tensors) if is_tensor else v for is_tensor, v in zip(places, ctx._custom_op_others, strict=True)]
        found = parts["backward"](ctx, tuple(values) if many else values[0], *grads)
        if not isinstance(found, dict):
            raise RuntimeError(f"{qualname}: expected its backward to return a dict of gradients by arguments")
        return tuple(found.get(name) for name in names)

    operator._setup_context, operator._backward = setup_context, backward
    operator.changed()


def impl_save_for_backward(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Say what an operator saves: ``func(inputs, output)`` gives it.

    Args:
        qualname: The operator's name.
        func: The function; without it the call is a decorator.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator_of(qualname, "impl_save_for_backward")

    def register(function: Any) -> Any:
        _formulas.setdefault(qualname, {})["save"] = function
        _completed(qualname)
        return function

    return _decorated(func, register)


def impl_backward(
    qualname: str, output_differentiability: Any = None, *, func: Callable[..., Any] | None = None
) -> Any:
    """Give an operator a derivative: ``func(ctx, saved, *grads)`` gives a dict of gradients by arguments.

    Args:
        qualname: The operator's name.
        output_differentiability: Has no effect.
        func: The function; without it the call is a decorator.

    Raises:
        RuntimeError: There is no such operator.
    """
    operator_of(qualname, "impl_backward")

    def register(function: Any) -> Any:
        _formulas.setdefault(qualname, {})["backward"] = function
        _completed(qualname)
        return function

    return _decorated(func, register)


def _destroy(qualname: str) -> None:
    from .ops import _undefine

    _formulas.pop(qualname, None)
    _undefine(OPDEFS.pop(qualname)._opoverload)
