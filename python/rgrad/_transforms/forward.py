"""Transforms by forward mode: ``jvp`` and ``jacfwd``."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, overload

from .. import _core
from .._core import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .argnums import Argnums, chosen, replaced
from .levels import basis, tracking, unwrap_tree, wrap_tree
from .tangents import check_dual, check_real, fitting, tangents_of
from .vmap import vmap

__all__ = ["jacfwd", "jvp"]

P = ParamSpec("P")
Output = TypeVar("Output")
Aux = TypeVar("Aux")
_API = "jvp(f, primals, tangents)"


def check_outputs(flat: list[Any], api: str) -> None:
    """Raise RuntimeError unless a function gave tensors, at least one."""
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {flat})")
    for out in flat:
        if not isinstance(out, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")


def with_aux(output: Any, has_aux: bool, api: str) -> tuple[Any, Any]:
    """The output of a function and its auxiliary output, None unless ``has_aux``."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def check_tensors(flat: list[Any], what: str) -> None:
    """Raise RuntimeError unless there are leaves and all are tensors."""
    if not flat:
        raise RuntimeError(f"{_API}: Expected {what} to contain at least one Tensor.")
    for value in flat:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{_API}: Expected {what} to only contain Tensors, got {type(value)}")


def _tangent_of(out: Tensor, level: int, strict: bool) -> Tensor:
    # Tangents that belong to outer levels are ignored.
    tangent = _core._tangent(out, level)
    if tangent is not None:
        return tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return _core.zeros_like(_core._primal(out, level))


def jvp_with_argnums(
    func: Callable[..., Any], primals: Any, tangents: Any, argnums: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """:func:`jvp` by some of the arguments; ``argnums`` None means all."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    wanted = primals if argnums is None else chosen(primals, argnums)
    flat_primals, primals_spec = tree_flatten(wanted)
    flat_tangents, tangents_spec = tree_flatten(tangents)
    if primals_spec != tangents_spec:
        raise RuntimeError(
            f"{_API}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {primals_spec} and tangents with "
            f"structure {tangents_spec}"
        )
    check_tensors(flat_primals, "primals")
    check_tensors(flat_tangents, "tangents")
    for x, t in zip(flat_primals, flat_tangents, strict=True):
        check_dual(x, t)
    with tracking() as level, tangents_of(level):
        inner = wrap_tree(primals, level)
        wrapped, _ = tree_flatten(inner if argnums is None else chosen(inner, argnums))
        duals = tree_unflatten(
            [
                _core._make_dual(x, _core._wrap(fitting(x, t), level))
                for x, t in zip(wrapped, flat_tangents, strict=True)
            ],
            primals_spec,
        )
        args = duals if argnums is None else replaced(inner, duals, argnums)
        output, aux = with_aux(func(*args), has_aux, _API)
        flat_out, out_spec = tree_flatten(output)
        check_outputs(flat_out, _API)
        moved = [_tangent_of(out, level, strict) for out in flat_out]
        result = (
            unwrap_tree(tree_unflatten([_core._primal(out, level) for out in flat_out], out_spec), level),
            unwrap_tree(tree_unflatten(moved, out_spec), level),
        )
        return (*result, unwrap_tree(aux, level)) if has_aux else result


@overload
def jvp(
    func: Callable[..., Output],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: Literal[False] = False,
) -> tuple[Output, Output]: ...
@overload
def jvp(
    func: Callable[..., tuple[Output, Aux]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: Literal[True],
) -> tuple[Output, Output, Aux]: ...
@overload
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool,
) -> tuple[Any, ...]: ...
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The output of ``func(*primals)`` and the product of its Jacobian with ``tangents``, in one forward pass.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors; with ``has_aux``, ``(output, aux)``.
        primals: The point, a tuple.
        tangents: The direction, a tuple of the same structure and shapes.
        strict: Raise if an output does not depend on the primals, in place of zeros.
        has_aux: The result is ``(output, product, aux)``.

    Returns:
        ``(output, product)``, two trees of one structure.

    Raises:
        RuntimeError: The structures or shapes differ, a leaf is no tensor, or ``strict`` is violated.

    Example:
        >>> rgrad.func.jvp(lambda x: x**2, (rgrad.tensor([1.0, 2.0]),), (rgrad.tensor([1.0, 0.0]),))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    return jvp_with_argnums(func, primals, tangents, None, strict=strict, has_aux=has_aux)


@overload
def jacfwd(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: Literal[False] = False, *, randomness: str = "error"
) -> Callable[P, Any]: ...
@overload
def jacfwd(
    func: Callable[P, tuple[Any, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True], randomness: str = "error"
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    func: Callable[P, tuple[Any, Aux]], argnums: Argnums, has_aux: Literal[True], *, randomness: str = "error"
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[P, Any]: ...
def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``func`` by forward mode, all columns at once.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors; with ``has_aux``, ``(output, aux)``.
        argnums: The positions of the arguments to differentiate by.
        has_aux: The result is ``(jacobian, aux)``.
        randomness: What random operations do, as for :func:`vmap`.

    Returns:
        A function of the same arguments; its result is that of :func:`rgrad.func.jacrev`.

    Raises:
        RuntimeError: When called: as :func:`jvp` and :func:`vmap`, and for complex arguments or outputs.

    Example:
        >>> rgrad.func.jacfwd(lambda x: x.flip(0) * 2)(rgrad.tensor([1.0, 2.0]))
        tensor([[0., 2.],
                [2., 0.]])
    """

    @wraps(func)
    def wrapper(*args: Any) -> Any:
        check_real("jacfwd", tree_flatten(args)[0], "inputs")
        primals = chosen(args, argnums)
        flat_in, in_spec = tree_flatten(primals)
        for x in flat_in:
            if not isinstance(x, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected primals to only contain Tensors, got {type(x)}"
                )

        def push(tangents: Any) -> Any:
            found = jvp_with_argnums(func, args, tangents, argnums, has_aux=has_aux)
            check_real("jacfwd", tree_flatten(found[0])[0], "outputs")
            return found[1:] if has_aux else found[1]

        columns = vmap(push, randomness=randomness)(tree_unflatten(basis(flat_in), in_spec))
        aux = None
        if has_aux:
            columns, aux = columns
            # It is the same in every column.
            aux = tree_map(lambda x: x[0], aux)
        flat_out, out_spec = tree_flatten(columns)
        sizes = [x.numel() for x in flat_in]
        blocks = []
        for out in flat_out:
            shape = tuple(out.shape[1:])
            parts = out.movedim(0, -1).split(sizes, -1)
            of_inputs = tree_unflatten(
                [part.reshape(shape + tuple(x.shape)) for part, x in zip(parts, flat_in, strict=True)], in_spec
            )
            blocks.append(of_inputs[0] if isinstance(argnums, int) else of_inputs)
        result = tree_unflatten(blocks, out_spec)
        return (result, aux) if has_aux else result

    return wrapper
