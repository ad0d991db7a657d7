"""Custom Functions: operations whose forward and backward are written in Python."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .. import _core
from .._runtime.guards import NoGradGuard

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

FunctionCtx = _core._FunctionCtx
BackwardCFunction = _core._FunctionCtx

T = TypeVar("T")


def _any_arguments(method: Callable[..., T]) -> Callable[..., T]:
    """Subclasses override the method with parameters of their own, which type checkers shall let them."""
    return method


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Fill ``ctx`` from the ``inputs`` and the ``output`` of ``forward``, which takes no ``ctx`` then."""
    raise NotImplementedError("setup_context is not implemented.")


class FunctionMeta(type):
    """Gives each Function the class of its contexts, which are also its nodes: ``MyFunc`` has ``MyFuncBackward``.

    Args:
        name: The name of the class.
        bases: Its bases.
        attrs: Its attributes.

    Example:
        >>> class Double(rgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> type(Double.apply(rgrad.ones(1, requires_grad=True)).grad_fn).__name__
        'DoubleBackward'
    """

    _backward_cls: type
    _has_setup_context: bool
    _function_class: Any

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        node = attrs.get("_node_name", f"{name}Backward")
        cls._backward_cls = type(node, (_core._FunctionCtx,), {"_forward_cls": cls})
        cls._has_setup_context = getattr(cls, "setup_context", _setup_context) is not _setup_context
        cls._function_class = _core._FunctionClass(cls)


class Function(metaclass=FunctionMeta):
    """Base class of custom operations.

    A subclass has the static methods ``forward(ctx, *args)`` and ``backward(ctx, *grad_outputs)`` and is called by
    ``apply(*args)``. ``jvp`` gives tangents in forward mode, ``vmap`` computes batches. ``backward`` gets one gradient
    for each output of ``forward``, of the output's shape and dtype, and returns one for each argument: a tensor of the
    argument's shape, or None. With ``setup_context(ctx, inputs, output)``, ``forward`` takes no ``ctx``. What
    ``backward`` needs is saved by ``ctx.save_for_backward``; for second derivatives ``backward`` must itself consist of
    differentiable operations.

    Args:
        args: A Function is not instantiated; this warns.
        kwargs: Likewise.

    Example:
        >>> class Square(rgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad_output
        >>> x = rgrad.tensor(3.0, requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor(6.)
    """

    setup_context = staticmethod(_setup_context)

    #: ``ctx.saved_tensors`` can be read once; the graph then drops the saved tensors.
    clear_saved_tensors_on_access = False

    #: ``backward(ctx, grads)`` gets the gradients as one list, from which it may remove entries to free memory.
    boxed_grads_call = False

    #: The batching rule is generated from the other methods, which must then work under ``vmap``.
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        warnings.warn(
            f"{name} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            f"them on the class itself: {name}.apply(...). Instances have no use.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"Legacy autograd function with non-static forward method is deprecated ({type(self).__name__}). Please "
            "use new-style autograd function with static forward method, and call it by "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the operation from ``args`` and ``kwargs``; nothing in it is recorded.

        Raises:
            NotImplementedError: It is not overridden.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    @_any_arguments
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient of each argument of ``forward``, given those of its outputs.

        Args:
            ctx: The context that ``forward`` or ``setup_context`` filled.
            grad_outputs: A tensor, or None, for each output.

        Returns:
            A tensor or None for each argument.

        Raises:
            NotImplementedError: It is not overridden.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward
    _inherited_backward = backward

    @staticmethod
    @_any_arguments
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each output of ``forward``, given those of its arguments.

        Args:
            ctx: The context; its ``saved_tensors`` has what ``ctx.save_for_forward`` was given.
            grad_inputs: The tangents. What is no floating point tensor has None; a tensor without tangent has zeros, or
                None after ``ctx.set_materialize_grads(False)``.

        Returns:
            A tensor or None for each output.

        Raises:
            NotImplementedError: It is not overridden.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    @_any_arguments
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Compute the operation for a batch.

        Args:
            info: Has ``batch_size`` and ``randomness``.
            in_dims: For each argument, the dimension that is the batch, or None.
            args: The arguments of ``apply``.

        Returns:
            ``(outputs, out_dims)``, where ``out_dims`` says for each output what ``in_dims`` says for arguments. The
            outputs should be made by ``apply``, so that they are differentiable.

        Raises:
            NotImplementedError: It is not overridden.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    apply = classmethod(_core._function_apply)


class InplaceFunction(Function):
    """An old base class of Functions that write to their input; new ones derive from :class:`Function`.

    Args:
        inplace: Kept as an attribute.

    Example:
        >>> class AddOne(rgrad.autograd.function.InplaceFunction):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.add_(1)
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> x = rgrad.zeros(2)
        >>> AddOne.apply(x) is x, x
        (True, tensor([1., 1.]))
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _warn_of_kept_output(cls: type[Function], name: str) -> None:
    """Warn, with the line where it happens, that a context has an output of its Function in attribute ``name``."""
    from dis import get_instructions

    method = cls.setup_context if cls._has_setup_context else cls.forward
    code = getattr(method, "__code__", None)
    where = "an unknown line"
    if code is not None:
        stores = (i.positions for i in get_instructions(code) if i.opname == "STORE_ATTR" and i.argval == name)
        line = next((at.lineno for at in stores if at is not None and at.lineno), code.co_firstlineno)
        where = f"{code.co_filename}:{line}"
    warnings.warn(
        f"{cls.__name__} keeps an output of its own in ctx.{name} ({where}). The output holds the graph, the graph "
        "holds ctx, and ctx the output: their memory is freed late, when the garbage collector finds the cycle, and "
        "nobody checks it for in-place changes. Use ctx.save_for_backward(...).",
        UserWarning,
        stacklevel=3,
    )


def _bind_kwargs(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Give keyword arguments and defaults their places among ``forward``'s parameters, and so among the gradients."""
    from inspect import Parameter, signature

    parameters = list(signature(cls.forward).parameters.values())
    if not cls._has_setup_context:
        parameters = parameters[1:]
    bound = signature(cls.forward).replace(parameters=parameters).bind(*args, **kwargs)
    ordinary = {p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)}
    for name in kwargs:
        if name not in ordinary:
            raise TypeError(
                f"forward() got an unexpected keyword argument '{name}': a keyword-only argument has no place among "
                f"the gradients; make it an ordinary parameter of {cls.__name__}.forward"
            )
    bound.apply_defaults()
    return bound.args


def once_differentiable(fn: Callable[..., T]) -> Callable[..., T]:
    """Mark a ``backward`` that is not made of differentiable operations.

    Args:
        fn: The static method ``backward``.

    Returns:
        A function for its place. Differentiating through its result is a RuntimeError.

    Example:
        >>> import numpy as np
        >>> class Exp(rgrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.result = np.exp(x.numpy())
        ...         return rgrad.from_numpy(ctx.result)
        ...     @staticmethod
        ...     @rgrad.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return rgrad.from_numpy(ctx.result * grad.numpy())
        >>> x = rgrad.zeros(2, requires_grad=True)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    @wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with NoGradGuard():
            outputs: Any = fn(ctx, *args)
        # Inside a transform a lower level may record although this one does not. Then the error is recorded, too.
        if _core._top_level() == 0 and (
            not _core.is_grad_enabled() or not any(isinstance(a, _core.Tensor) and a.requires_grad for a in args)
        ):
            return outputs
        several = isinstance(outputs, tuple)
        tied = [
            _DelayedError.apply(
                o if _core._level_of(o) else o.detach(), *(a for a in args if isinstance(a, _core.Tensor))
            )
            if isinstance(o, _core.Tensor) and (o.dtype.is_floating_point or o.dtype.is_complex)
            else o
            for o in (outputs if several else (outputs,))
        ]
        return tuple(tied) if several else tied[0]

    return wrapper


class _DelayedError(Function):
    """The identity on a value, recorded as if it depended on the other inputs; its derivative is an error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Any, *depends: Any) -> Any:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
