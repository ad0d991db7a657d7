"""Transforms by backward passes: ``grad``, ``grad_and_value``, ``vjp``."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, overload

from .. import _core
from .._core import Tensor
from .._transforms.argnums import Argnums, chosen
from .._transforms.forward import check_outputs, with_aux
from .._transforms.levels import tracking, unwrap_tree, wrap_tree
from .._transforms.tangents import is_differentiable
from ..autograd.backward import grad as grad_of
from ..autograd.graph import disable_saved_tensors_hooks
from ..utils._pytree import tree_flatten, tree_map_, tree_unflatten

__all__ = ["grad", "grad_and_value", "vjp"]

P = ParamSpec("P")
Output = TypeVar("Output")
Aux = TypeVar("Aux")


def _no_saved_tensors_hooks(func: Callable[P, Output]) -> Callable[P, Output]:
    """Refuse hooks on saved tensors during a transform: they would see tensors of its level."""
    message = (
        "func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Enter saved_tensors_hooks outside of "
        "the transformed function only around what is not transformed."
    )

    @wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Output:
        with disable_saved_tensors_hooks(message):
            return func(*args, **kwargs)

    return wrapped


def _require(tree: Any) -> None:
    """Begin history at every tensor of a tree."""

    def one(value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        _core._require_grad(value)

    tree_map_(one, tree)


def gradients_of(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> list[Tensor]:
    """Vector-Jacobian products; zeros for inputs that the outputs do not depend on."""
    given = [None] * len(outputs) if cotangents is None else list(cotangents)
    pairs = [(out, v) for out, v in zip(outputs, given, strict=True) if out.requires_grad]
    if not pairs or not inputs:
        return [_core.zeros_like(x) for x in inputs]
    outs, vectors = zip(*pairs, strict=True)
    found = grad_of(outs, tuple(inputs), vectors, retain_graph, create_graph, allow_unused=True)
    return [_core.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


@_no_saved_tensors_hooks
def _grad_and_value(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    api = "grad_and_value(f)(*args)"
    with tracking() as level:
        args = wrap_tree(args, level)
        kwargs = wrap_tree(kwargs, level)
        wanted = chosen(args, argnums, as_tuple=False)
        _require(wanted)
        output, aux = with_aux(func(*args, **kwargs), has_aux, api)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim() != 0:
            raise RuntimeError(
                f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you "
                "wanted to use the vjp or jacrev APIs instead?"
            )
        flat, spec = tree_flatten(wanted)
        # Lower levels record this backward pass. This level ends here, so it needs no graph of the pass.
        grads = tree_unflatten(gradients_of([output], flat), spec)
        return (
            unwrap_tree(grads, level),
            unwrap_tree(output, level),
            unwrap_tree(aux, level) if has_aux else None,
        )


@overload
def grad(func: Callable[P, Tensor], argnums: Argnums = 0, has_aux: Literal[False] = False) -> Callable[P, Any]: ...
@overload
def grad(
    func: Callable[P, tuple[Tensor, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    func: Callable[P, tuple[Tensor, Aux]], argnums: Argnums, has_aux: Literal[True]
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]: ...
def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of ``func``.

    Args:
        func: A function that gives a tensor without dimensions; with ``has_aux`` a tuple ``(output, aux)``, where
            ``aux`` is a tree of tensors.
        argnums: The positions of the arguments to differentiate by, each a tensor or a tree of tensors.
        has_aux: The result is ``(gradient, aux)``.

    Returns:
        A function of the same arguments. Its result has the structure of the argument, or is a tuple of such if
        ``argnums`` is one; an argument without influence has zeros.

    Raises:
        RuntimeError: When called: the output is no scalar tensor, ``argnums`` does not fit, or an argument is not
            floating point.
        ValueError: When called: an argument to differentiate by is no tensor.

    Example:
        >>> def cube(x):
        ...     return x**3
        >>> rgrad.func.grad(cube)(rgrad.tensor(3.0))
        tensor(27.)
        >>> rgrad.func.grad(rgrad.func.grad(cube))(rgrad.tensor(3.0))
        tensor(18.)
    """

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return wrapper


@overload
def grad_and_value(
    func: Callable[P, Tensor], argnums: Argnums = 0, has_aux: Literal[False] = False
) -> Callable[P, tuple[Any, Tensor]]: ...
@overload
def grad_and_value(
    func: Callable[P, tuple[Tensor, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[Any, tuple[Tensor, Aux]]]: ...
@overload
def grad_and_value(
    func: Callable[P, tuple[Tensor, Aux]], argnums: Argnums, has_aux: Literal[True]
) -> Callable[P, tuple[Any, tuple[Tensor, Aux]]]: ...
@overload
def grad_and_value(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of ``func`` and its output.

    Args:
        func: As for :func:`grad`.
        argnums: As for :func:`grad`.
        has_aux: The result is ``(gradient, (output, aux))``.

    Returns:
        A function of the same arguments. Its result is ``(gradient, output)``.

    Raises:
        RuntimeError: When called: as :func:`grad`.
        ValueError: When called: as :func:`grad`.

    Example:
        >>> rgrad.func.grad_and_value(lambda x: x**3)(rgrad.tensor(2.0))
        (tensor(12.), tensor(8.))
    """

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, output, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, (output, aux)) if has_aux else (found, output)

    return wrapper


def _pretty(spec: Any) -> str:
    return "*" if spec.is_leaf() else repr(spec)


@_no_saved_tensors_hooks
def vjp_with_argnums(
    func: Callable[..., Any], primals: tuple[Any, ...], argnums: Any, has_aux: bool
) -> tuple[Any, ...]:
    """:func:`vjp` by some of the arguments; ``argnums`` None means all."""
    api = "vjp(f, *primals)"
    with tracking() as level:
        inner = wrap_tree(primals, level)
        wanted = inner if argnums is None else chosen(inner, argnums, as_tuple=False)
        _require(wanted)
        output, aux = with_aux(func(*inner), has_aux, api)
        aux = unwrap_tree(aux, level) if has_aux else None
        flat_out, out_spec = tree_flatten(output)
        check_outputs(flat_out, api)
        flat_in, in_spec = tree_flatten(wanted)
        for out in flat_out:
            if not is_differentiable(out):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{out.dtype}"
                )
        result = unwrap_tree(output, level)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        flat, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {_pretty(spec)}, primal output: {_pretty(out_spec)}"
            )
        create = _core.is_grad_enabled() if create_graph is None else create_graph
        # The level has ended: its tensors now stand for those below, and results belong to the caller's levels.
        return tree_unflatten(gradients_of(flat_out, flat_in, flat, retain_graph, create), in_spec)

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


@overload
def vjp(
    func: Callable[..., Output], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Output, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[Output, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[Output, Callable[..., tuple[Any, ...]], Aux]: ...
@overload
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of ``func(*primals)``, and a function for products with its Jacobian from the left.

    Args:
        func: A function that takes trees of tensors and gives a tree of floating point tensors; with ``has_aux``,
            ``(output, aux)``.
        primals: The point; every tensor of it is differentiated by.
        has_aux: The result is ``(output, vjp_fn, aux)``.

    Returns:
        ``(output, vjp_fn)``. ``vjp_fn(cotangents)`` takes a tree like the output and gives a tuple with the structure
        of ``primals``; it can be called any number of times.

    Raises:
        RuntimeError: A leaf of the output is no floating point tensor, or cotangents have another structure.
        ValueError: A primal is no tensor.

    Example:
        >>> output, vjp_fn = rgrad.func.vjp(lambda x: x**2, rgrad.tensor([1.0, 2.0]))
        >>> vjp_fn(rgrad.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    return vjp_with_argnums(func, primals, None, has_aux)
