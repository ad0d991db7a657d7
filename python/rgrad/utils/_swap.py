"""``swap_tensors``: two tensor objects exchange everything but their identity."""

import copyreg
import weakref
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.graph import get_gradient_edge

_MISSING = object()


def _poisoned(grad_outputs: Any) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the leaf was swapped between forward "
        "and backward, so it is not clear which tensor the gradient belongs to. Call backward before "
        "rgrad.utils.swap_tensors, and before converting a module while "
        "rgrad.__future__.set_swap_module_params_on_conversion(True) is in force."
    )


def _check(t: Tensor, name: str) -> Any:
    """Raises if something besides the object holds the tensor. Gives the node that a graph holds it by, if any."""
    if weakref.getweakrefs(t):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    count = t._use_count()
    if count == 1:
        return None
    node = None
    if count == 2 and t.is_leaf and t.requires_grad:
        node = get_gradient_edge(t).node
        # Unless that has just made the node, the graph's node is the second holder.
        if t._use_count() == 2:
            return node
    raise RuntimeError(
        f"Expected use_count of {name} to be 1 or 2 with an associated AccumulateGrad node but got {count}: a graph, a "
        "view or a container of the core holds the tensor, too"
    )


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: values, histories, gradients, hooks, classes, attributes and slots.

    Whoever holds the object ``t1`` then holds what was ``t2``, and the other way round.

    Raises:
        RuntimeError: A tensor has weak references, or a graph or a view holds it; the classes have different slots; or
            other threads compute for more than 10 seconds, which is waited for.

    Example:
        >>> a, b = rgrad.ones(2), rgrad.zeros(3)
        >>> rgrad.utils.swap_tensors(a, b)
        >>> a
        tensor([0., 0., 0.])
    """
    # One after the other: a message names the first that cannot be swapped.
    names: list[set[str]] = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]  # type: ignore[attr-defined]
    nodes = [_check(t, name) for t, name in ((t1, "t1"), (t2, "t2"))]
    if names[0] != names[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for node in nodes:
        if node is not None:
            node.register_prehook(_poisoned)
    _core._swap_tensor_impl(t1, t2)
    one, other = type(t1), type(t2)
    if one is not other:
        t1.__class__, t2.__class__ = other, one
    attributes = dict(vars(t1)), dict(vars(t2))
    for t, new in ((t1, attributes[1]), (t2, attributes[0])):
        vars(t).clear()
        vars(t).update(new)
    for name in names[0]:
        values = getattr(t1, name, _MISSING), getattr(t2, name, _MISSING)
        for t, value in ((t1, values[1]), (t2, values[0])):
            if value is not _MISSING:
                setattr(t, name, value)
            elif getattr(t, name, _MISSING) is not _MISSING:
                delattr(t, name)
