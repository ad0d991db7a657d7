"""Jacobians by backward passes and Hessians: ``jacrev``, ``hessian``."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, overload

from .. import _core
from .._core import Tensor
from .._transforms.argnums import Argnums, chosen
from .._transforms.forward import jacfwd
from .._transforms.levels import basis
from .._transforms.tangents import check_real
from .._transforms.vmap import vmap
from ..utils._pytree import tree_flatten, tree_unflatten
from .reverse import vjp_with_argnums

__all__ = ["hessian", "jacrev"]

P = ParamSpec("P")
Aux = TypeVar("Aux")


def _rows(
    vjp_fn: Callable[[Any], Any], flat_out: list[Tensor], spec: Any, chunk_size: int | None, preallocate: bool
) -> list[Tensor]:
    """For each input, the gradients of all elements of all outputs, stacked."""
    total = sum(out.numel() for out in flat_out)
    step = max(total, 1) if chunk_size is None else chunk_size
    parts: list[list[Tensor]] = []
    whole: list[Tensor] = []
    for start in range(0, max(total, 1), step):
        cotangents = basis(flat_out, start, start + step)
        if chunk_size == 1:
            # One row at a time needs no batching rules.
            found = vjp_fn(tree_unflatten([row.squeeze(0) for row in cotangents], spec))
            parts.append([g.unsqueeze(0) for g in tree_flatten(found)[0]])
        else:
            parts.append(tree_flatten(vmap(vjp_fn)(tree_unflatten(cotangents, spec)))[0])
        if preallocate and step < total:
            rows = parts.pop()
            if not whole:
                whole = [g.new_empty((total, *g.shape[1:])) for g in rows]
            for to, g in zip(whole, rows, strict=True):
                to[start : start + step].copy_(g)
    if whole:
        return whole
    if len(parts) == 1:
        return parts[0]
    return [_core.cat(column, 0) for column in zip(*parts, strict=True)]


@overload
def jacrev(
    func: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    func: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``func`` by backward passes, all rows at once.

    It suits functions with fewer outputs than inputs; :func:`jacfwd` suits the others.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors; with ``has_aux``, ``(output, aux)``.
        argnums: The positions of the arguments to differentiate by.
        has_aux: The result is ``(jacobian, aux)``.
        chunk_size: Compute so many rows at a time, to save memory; 1 is a loop, which needs no rules for batches.
        _preallocate_and_copy: Write the rows of each part to their place at once, so that they are not held twice.

    Returns:
        A function of the same arguments. Its result is a tree like the output, at each leaf a tree like the argument
        (or a tuple of such if ``argnums`` is one) of tensors of shape ``output.shape + input.shape``.

    Raises:
        ValueError: ``chunk_size`` is not positive.
        RuntimeError: When called: as :func:`vjp` and :func:`vmap`, and for complex arguments or outputs.

    Example:
        >>> rgrad.func.jacrev(lambda x: x.flip(0) * 2)(rgrad.tensor([1.0, 2.0]))
        tensor([[0., 2.],
                [2., 0.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def wrapper(*args: Any) -> Any:
        check_real("jacrev", tree_flatten(args)[0], "inputs")
        found = vjp_with_argnums(func, args, argnums, has_aux)
        output, vjp_fn = found[:2]
        flat_out, out_spec = tree_flatten(output)
        check_real("jacrev", flat_out, "outputs")
        primals = chosen(args, argnums)
        flat_in, in_spec = tree_flatten(primals)
        sizes = [out.numel() for out in flat_out]
        per_input = [
            rows.split(sizes, 0) for rows in _rows(vjp_fn, flat_out, out_spec, chunk_size, _preallocate_and_copy)
        ]
        blocks = []
        for o, out in enumerate(flat_out):
            of_inputs = tree_unflatten(
                [
                    rows[o].reshape(tuple(out.shape) + tuple(x.shape))
                    for rows, x in zip(per_input, flat_in, strict=True)
                ],
                in_spec,
            )
            blocks.append(of_inputs[0] if isinstance(argnums, int) else of_inputs)
        result = tree_unflatten(blocks, out_spec)
        return (result, found[2]) if has_aux else result

    return wrapper


def hessian(func: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """A function that computes the second derivatives of ``func``: forward mode over backward passes.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors.
        argnums: The positions of the arguments to differentiate by.

    Returns:
        A function of the same arguments. For one number as output and one tensor as argument its result has the shape
        ``input.shape + input.shape``.

    Raises:
        RuntimeError: When called: as :func:`jacfwd` and :func:`jacrev`.

    Example:
        >>> rgrad.func.hessian(lambda x: x[0] ** 2 * x[1])(rgrad.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
