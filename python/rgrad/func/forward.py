"""Transforms by forward mode: ``jvp`` and ``linearize``."""

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.forward_ad import _set_fwd_grad_enabled, check_dual
from ..utils._pytree import tree_flatten, tree_unflatten
from ._argnums import chosen, replaced
from ._levels import tracking, unwrap_tree, wrap_tree
from .reverse import check_outputs, gradients_of, vjp, with_aux

__all__ = ["jvp", "linearize"]

_API = "jvp(f, primals, tangents)"


def _check_tensors(flat: list[Any], what: str) -> None:
    if not flat:
        raise RuntimeError(f"{_API}: Expected {what} to contain at least one Tensor.")
    for value in flat:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{_API}: Expected {what} to only contain Tensors, got {type(value)}")


def _tangent_of(out: Tensor, level: int, strict: bool) -> Tensor:
    # To this derivative an outer one's tangents are none.
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
) -> Any:
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
    _check_tensors(flat_primals, "primals")
    _check_tensors(flat_tangents, "tangents")
    for x, t in zip(flat_primals, flat_tangents, strict=True):
        check_dual(x, t)
    with tracking() as level, _set_fwd_grad_enabled(True):
        inner = wrap_tree(primals, level)
        wrapped, _ = tree_flatten(inner if argnums is None else chosen(inner, argnums))
        duals = tree_unflatten(
            [_core._make_dual(x, _core._wrap(t, level)) for x, t in zip(wrapped, flat_tangents, strict=True)],
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


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output of ``func(*primals)`` and the product of its Jacobian with ``tangents``, in one forward pass.

    Args:
        func: takes trees of tensors and gives a tree of tensors; with ``has_aux`` ``(output, aux)``.
        primals: a tuple, the point.
        tangents: a tuple of the same structure, the direction; shapes of the primals.
        strict: raise if an output does not depend on the primals, in place of zeros.
        has_aux: the result is ``(output, product, aux)``.

    Returns:
        ``(output, product)``, two trees of one structure.

    Raises:
        RuntimeError: the structures or shapes differ, a leaf is no tensor, or ``strict`` is violated.
    """
    return jvp_with_argnums(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of ``func(*primals)``, and a function for products with its Jacobian there.

    ``func`` is called once; the function multiplies by what that call left, which it keeps alive: the derivative of the
    backward pass by its cotangents, which is linear in them. With a custom Function that has ``jvp`` but no backward
    each product calls ``func`` again, in forward mode.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` takes tangents like the primals and gives a tree like the output.

    Raises:
        RuntimeError: tangents that differ from the primals in structure, shape, dtype or device. ValueError: a primal
            is not floating point.
    """
    flat_primals, spec = tree_flatten(primals)
    _check_tensors(flat_primals, "primals")
    for x in flat_primals:
        if not x.is_floating_point():
            raise ValueError(f"linearize: Expected primal to be floating point or complex, but got: {x.dtype}")
    shape: list[Any] = []

    def parts(*args: Any) -> tuple[list[Tensor], list[Tensor]]:
        flat, out_spec = tree_flatten(func(*args))
        check_outputs(flat, "linearize(f, *primals)")
        shape[:] = [out_spec, [out.is_floating_point() for out in flat]]
        moving = [out for out in flat if out.is_floating_point()]
        # One that depends on nothing stands for outputs that are all integers.
        return moving or [_core.zeros(())], [out for out in flat if not out.is_floating_point()]

    moving, vjp_fn, fixed = vjp(parts, *primals, has_aux=True)
    out_spec, floats = shape
    pulled: list[Tensor] | None = None
    with tracking() as level:
        zeros = [_core._require_grad(_core._wrap(_core.zeros_like(out), level)) for out in moving]
        try:
            pulled, _ = tree_flatten(vjp_fn(zeros, create_graph=True))
        except NotImplementedError:
            del vjp_fn

    def joined(moved: list[Tensor], others: list[Tensor]) -> Any:
        one, other = iter(moved), iter(others)
        return tree_unflatten([next(one) if is_float else next(other) for is_float in floats], out_spec)

    no_change = [_core.zeros_like(out) for out in fixed]

    def jvp_fn(*tangents: Any) -> Any:
        flat, given = tree_flatten(tangents)
        if given != spec:
            raise RuntimeError(f"Expected the tangents {given} to have the same argspec as the primals {spec}")
        for i, (t, x) in enumerate(zip(flat, flat_primals, strict=True)):
            for what in ("shape", "device", "dtype"):
                got, want = getattr(t, what, type(t)), getattr(x, what)
                if got != want:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {got} in flattened pytree doesn't match the {what} {want} of the "
                        "corresponding primal."
                    )
        if pulled is None:
            return jvp(func, primals, tangents)[1]
        found = gradients_of(pulled, zeros, flat, retain_graph=True, create_graph=_core.is_grad_enabled())
        return joined(found, no_change)

    return joined(moving, fixed), jvp_fn
