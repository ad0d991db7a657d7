"""``linearize``: a function for products with the Jacobian at one point."""

from collections.abc import Callable
from typing import Any, TypeVar

from .. import _core
from .._core import Tensor
from .._transforms.forward import check_outputs, check_tensors, jvp
from .._transforms.levels import tracking
from .._transforms.tangents import is_differentiable
from ..utils._pytree import tree_flatten, tree_unflatten
from .reverse import gradients_of, vjp

__all__ = ["linearize"]

Output = TypeVar("Output")


def linearize(func: Callable[..., Output], *primals: Any) -> tuple[Output, Callable[..., Output]]:
    """The output of ``func(*primals)``, and a function for products with its Jacobian there.

    ``func`` is called once; the function multiplies by what that call left, which it keeps alive: the derivative of the
    backward pass by its cotangents, which is linear in them. With a custom Function that has ``jvp`` but no backward,
    each product calls ``func`` again, in forward mode.

    Args:
        func: A function that takes trees of tensors and gives a tree of tensors.
        primals: The point.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` takes tangents like the primals and gives a tree like the output.

    Raises:
        RuntimeError: Tangents differ from the primals in structure, shape, dtype or device.
        ValueError: A primal is not floating point.

    Example:
        >>> output, jvp_fn = rgrad.func.linearize(lambda x: x**2, rgrad.tensor([1.0, 2.0]))
        >>> jvp_fn(rgrad.tensor([1.0, 0.0])), jvp_fn(rgrad.tensor([0.0, 1.0]))
        (tensor([2., 0.]), tensor([0., 4.]))
    """
    flat_primals, spec = tree_flatten(primals)
    check_tensors(flat_primals, "primals")
    for x in flat_primals:
        if not is_differentiable(x):
            raise ValueError(f"linearize: Expected primal to be floating point or complex, but got: {x.dtype}")
    shape: list[Any] = []

    def parts(*args: Any) -> tuple[list[Tensor], list[Tensor]]:
        flat, out_spec = tree_flatten(func(*args))
        check_outputs(flat, "linearize(f, *primals)")
        shape[:] = [out_spec, [is_differentiable(out) for out in flat]]
        moving = [out for out in flat if is_differentiable(out)]
        # If all outputs are integers, a constant takes the place of the differentiable ones.
        return moving or [_core.zeros(())], [out for out in flat if not is_differentiable(out)]

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
