"""``custom_op``: an operator from a function with annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from .._core import dtype
from ..amp import is_autocast_available
from ..ops import OpOverload, _define
from ._operator import Operator
from ._schema import infer_schema, parse

F = TypeVar("F", bound=Callable[..., Any])

# The operators of `custom_op` by their names.
OPDEFS: dict[str, CustomOpDef] = {}


def split_name(qualname: str, what: str) -> tuple[str, str]:
    """Namespace and name of ``"namespace::name"``.

    Raises:
        ValueError: It has no namespace, or two.
    """
    parts = qualname.split("::") if isinstance(qualname, str) else []
    if len(parts) != 2 or not all(part.replace(".", "_").isidentifier() for part in parts):
        raise ValueError(f"{what}: expected a name of the form 'namespace::name', but got {qualname!r}")
    return parts[0], parts[1]


class CustomOpDef:
    """An operator that :func:`custom_op` made. It is called as its function is.

    Args:
        namespace: Its namespace.
        name: Its name in it.
        schema: Arguments and results: ``"(Tensor x) -> Tensor"``.
        fn: The function.
        tags: Has no effect.
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        whole = parse(f"{namespace}::{name}{schema}")
        if any(a.kwarg_only and a.base == "Tensor" for a in whole.arguments):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {name}{schema}"
            )
        made = _define(namespace, name.partition(".")[0], lambda packet: Operator(packet, whole, recorded=True))
        assert isinstance(made, Operator)
        self._operator = made
        made.tags = list(tags) if isinstance(tags, (tuple, list)) else [tags] if tags is not None else []
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> OpOverload:
        return self._operator

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    @overload
    def register_kernel(self, device_types: str | Sequence[str] | None, fn: F, /) -> F: ...
    @overload
    def register_kernel(self, device_types: str | Sequence[str] | None, fn: None = None, /) -> Callable[[F], F]: ...
    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Say what runs for tensors of some devices.

        Args:
            device_types: ``"cpu"``, ``"wgpu"`` or another one, several of them, or None for all.
            fn: The function; without it the call is a decorator.
        """

        def register(function: F) -> F:
            kinds = (
                ("default",)
                if device_types is None
                else (device_types,)
                if isinstance(device_types, str)
                else device_types
            )
            for kind in kinds:
                self._operator._kernels[kind] = function
            return function

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Generator[None]:
        """A context in which the kernel of a device is not used, or used again; the first function takes its place.

        Args:
            device_type: The kind of device.
            enabled: Whether it is used.
        """
        operator, before = self._operator, device_type in self._operator._disabled
        first = operator._kernels.get("default")
        (operator._disabled.discard if enabled else operator._disabled.add)(device_type)
        operator._kernels.setdefault("default", self._init_fn)
        try:
            yield
        finally:
            (operator._disabled.add if before else operator._disabled.discard)(device_type)
            if first is None:
                del operator._kernels["default"]

    def register_fake(self, fn: F, /) -> F:
        """Say what tensors of the meta device give: the shapes and dtypes of results.

        Args:
            fn: Takes what the operator takes.
        """
        self._operator._fake = fn
        return fn

    register_abstract = register_fake

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a derivative.

        Args:
            backward: ``backward(ctx, *grads)`` gives a gradient or None for each argument that is given by position; a
                list for a list of tensors. For second derivatives it consists of differentiable operations.
            setup_context: ``setup_context(ctx, inputs, output)`` saves what ``backward`` needs. If the operator has
                arguments that are given by name alone, they come as ``keyword_only_inputs``.

        Raises:
            RuntimeError: The operator writes to its arguments.
        """
        operator = self._operator
        if operator._schema.is_mutable or any(r.alias for r in operator._schema.returns):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {operator._schema}. "
                "Please create a functional operator and register an autograd formula for that."
            )
        operator._backward, operator._setup_context = backward, setup_context
        operator.changed()

    @overload
    def register_vmap(self, func: F) -> F: ...
    @overload
    def register_vmap(self, func: None = None) -> Callable[[F], F]: ...
    def register_vmap(self, func: Any = None) -> Any:
        """Give the operator a batching rule. Without one it runs on each element of a batch.

        Args:
            func: ``func(info, in_dims, *args, **kwargs)`` gives ``(output, out_dims)``, as ``vmap`` of a Function does;
                without it the call is a decorator.
        """

        def register(function: F) -> F:
            self._operator._vmap = function
            self._operator.changed()
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """Convert float inputs while autocast is on; it is off then inside of the operator.

        Args:
            device_type: The kind of device.
            cast_inputs: What they are converted to.

        Raises:
            ValueError: ``device_type`` is no string, or has no autocast.
        """
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type != "cuda" and not is_autocast_available(device_type):
            raise ValueError(f"Device type '{device_type}' does not support autocast.")
        self._operator._autocast_dtypes[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Refused: classes have ``__torch_function__`` here, which is asked about the operator.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "library.register_torch_dispatch: rgrad has no __torch_dispatch__; give the class a __torch_function__"
        )


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function: one operation for autograd, transforms, autocast, profiler and exporters.

    What the function computes is not looked into; derivatives, batching rule and shapes are registered with the
    methods of the result. The operator is ``rgrad.ops.namespace.name``.

    Args:
        name: ``"namespace::name"``.
        fn: The function, with annotations of its parameters and its result. It may not return an argument, or a view of
            one. Without it the call is a decorator.
        mutates_args: The names of the parameters that it writes to; ``"unknown"`` for all tensors.
        device_types: The devices for which the function is the kernel; None for all.
        schema: Arguments and results, if the annotations shall not say them.
        tags: Has no effect.

    Returns:
        A :class:`CustomOpDef`.

    Raises:
        ValueError: The name has no namespace, an annotation is missing or none that schemas have, or ``schema`` and
            ``mutates_args`` differ.

    Example:
        >>> import numpy
        >>> @rgrad.library.custom_op("docs::sine", mutates_args=())
        ... def sine(x: rgrad.Tensor) -> rgrad.Tensor:
        ...     return rgrad.from_numpy(numpy.sin(x.numpy()))
        >>> sine.register_autograd(
        ...     lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        ... )
        >>> x = rgrad.zeros(2, requires_grad=True)
        >>> rgrad.ops.docs.sine(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    namespace, own = split_name(name, "custom_op")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        if schema is not None:
            written = {a.name for a in parse(f"{name}{schema}").arguments if a.is_write}
            if written != set(mutates_args):
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The "
                    f"schema suggests that the op mutates {written}which is different from what was provided to us in "
                    "`mutates_args`. Please make these consistent."
                )
        made = CustomOpDef(namespace, own, text, function, tags)
        made.register_kernel(device_types)(function)
        made.__doc__ = inspect.getdoc(function)
        return made

    return make if fn is None else make(fn)
