"""Checks of an operator: what it says of itself against what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import enable_grad, no_grad
from ..func import vjp
from ..testing import assert_close
from ..utils._pytree import tree_flatten, tree_map
from ._library import operator_of
from ._operator import Operator, _memory, _tensors
from ._schema import bind

TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A check that an operator has failed."""


def _copies(tree: Any, grads: bool) -> Any:
    """Tensors with their own memory, which require a gradient where the given ones do."""

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        made = x.detach().clone()
        return made.requires_grad_(x.requires_grad) if grads else made

    return tree_map(one, tree)


def _results(result: Any) -> list[Any]:
    return [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, Tensor)]


def _check_schema(op: Operator, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    own, named = bind(op.qualname, op._schema, *_copies((args, kwargs), grads=False))
    before = _copies([*own, *named.values()], grads=False)
    with no_grad():
        result = op(*own, **named)
    for argument, now, was in zip(op._schema.arguments, [*own, *named.values()], before, strict=True):
        changed = any(not _same(a, b) for a, b in zip(_tensors([now], {}), _tensors([was], {}), strict=True))
        if changed and not argument.is_write:
            raise OpCheckError(f"Argument {argument.name} is not defined as mutable but was mutated")
    memory = {_memory(t) for t in _tensors(own, named)} - {None}
    for k, out in enumerate(_results(result)):
        if _memory(out) in memory and not any(r.alias for r in op._schema.returns):
            raise OpCheckError(f"Output {k} is not defined to alias an input but was aliasing one")


def _same(a: Tensor, b: Tensor) -> bool:
    try:
        assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def _check_autograd(op: Operator, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    own, named = _copies((args, kwargs), grads=True)
    if not any(t.requires_grad for t in _tensors([*own], named)):
        return
    if op._backward is not None or op._autograd is not None or "composite" in op._kernels or op._recorded:
        return
    with enable_grad():
        result = op(*own, **named)
    if any(out.requires_grad for out in _results(result)):
        return
    raise OpCheckError(
        f"operator {op.qualname} has no autograd formula, and the gradients of its inputs are lost: its results "
        "require none. Register one with register_autograd, or an Autograd kernel"
    )


def _check_fake(op: Operator, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    own, named = _copies((args, kwargs), grads=False)
    with no_grad():
        real = _results(op(*own, **named))
        own, named = tree_map(lambda x: x.to("meta") if isinstance(x, Tensor) else x, _copies((args, kwargs), False))
        fake = _results(op(*own, **named))
    if len(real) != len(fake):
        raise OpCheckError(f"the fake implementation gives {len(fake)} tensors, the kernel {len(real)}")
    for k, (a, b) in enumerate(zip(real, fake, strict=True)):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise OpCheckError(
                    f"output {k} of the fake implementation has the {what} {getattr(b, what)}, that of the kernel "
                    f"{getattr(a, what)}"
                )
        if a.stride() != b.stride() and a.numel() > 1:
            raise OpCheckError(
                f"output {k} of the fake implementation has the strides {b.stride()}, that of the kernel {a.stride()}"
            )


def _gradients(results: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor | None]:
    from ..autograd import grad

    used = [out for out in results if out.requires_grad]
    if not used:
        return [None] * len(inputs)
    return list(grad(used, inputs, [_core.ones_like(out) for out in used], allow_unused=True))


def _check_transforms(op: Operator, args: Any, kwargs: Any, tolerance: dict[str, Any]) -> None:
    """Values and gradients as they are without transforms, and inside of one."""
    if op._schema.is_mutable:
        return
    own, named = _copies((args, kwargs), grads=True)
    leaves, _ = tree_flatten((own, named))
    inputs = [x for x in leaves if isinstance(x, Tensor) and x.requires_grad]
    with enable_grad():
        plain = _results(op(*own, **named))
        grads = _gradients(plain, inputs) if inputs else []
    if not inputs:
        return
    at = [k for k, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad]

    def of_inputs(*given: Tensor) -> tuple[Tensor, ...]:
        from ..utils._pytree import tree_unflatten

        replaced = list(leaves)
        for k, x in zip(at, given, strict=True):
            replaced[k] = x
        one, two = tree_unflatten(replaced, tree_flatten((own, named))[1])
        return tuple(out for out in _results(op(*one, **two)) if out.is_floating_point() or out.is_complex())

    values, pull = vjp(of_inputs, *(x.detach() for x in inputs))
    inside = pull(tuple(_core.ones_like(v) for v in values))
    wanted = [out.detach() for out in plain if out.is_floating_point() or out.is_complex()]
    for found, expected in zip(values, wanted, strict=True):
        assert_close(found, expected, equal_nan=True, **tolerance)
    for k, (found, expected) in enumerate(zip(inside, grads, strict=True)):
        if expected is not None and expected.shape != inputs[k].shape:
            raise OpCheckError(f"the gradient of tensor {k} has the shape {tuple(expected.shape)}")
        assert_close(found, _core.zeros_like(found) if expected is None else expected, equal_nan=True, **tolerance)


_CHECKS: dict[str, Callable[..., None]] = dict(
    zip(TESTS, (_check_schema, _check_autograd, _check_fake, _check_transforms), strict=True)
)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Try an operator on an example, and compare what it does with what is registered.

    ``test_schema``: it writes to no other arguments than its schema says, and returns none of them.
    ``test_autograd_registration``: gradients of its inputs are not lost. ``test_faketensor``: its fake implementation
    gives the shapes, dtypes and strides that its kernel gives. ``test_aot_dispatch_dynamic``: values and gradients are
    the same without transforms and inside of one. Whether a formula is right, :func:`rgrad.autograd.gradcheck` says.

    Args:
        op: A :class:`CustomOpDef`, an operator of :mod:`rgrad.ops`, or a name.
        args: The arguments of an example.
        kwargs: Its keyword arguments.
        test_utils: The names of the checks.
        raise_exception: Raise what a check finds; else it is in the result.
        atol: How far values and gradients may differ; with ``rtol``.
        rtol: Likewise, relative.

    Returns:
        For each check ``"SUCCESS"``, or the exception.

    Raises:
        OpCheckError: A check fails.
        ValueError: There is no such check.

    Example:
        >>> @rgrad.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: rgrad.Tensor) -> rgrad.Tensor:
        ...     return 2 * x
        >>> rgrad.library.opcheck(twice, (rgrad.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    operator = operator_of(op, "opcheck")
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = [name for name in names if name not in _CHECKS]
    if unknown or not names:
        raise ValueError(f"opcheck(op, ..., test_utils={names}), expected a subset of {TESTS}")
    if (atol is None) != (rtol is None):
        raise ValueError("opcheck: give atol and rtol together, or none of them")
    tolerance = {} if atol is None or rtol is None else {"atol": atol, "rtol": rtol}
    found: dict[str, Any] = {}
    for name in names:
        try:
            _CHECKS[name](operator, args, kwargs or {}, tolerance)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            found[name] = error
    return found
