"""What functions made of others share: their results, their forms in place, and Functions of elements."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from ..autograd.function import Function

_Value = Callable[..., Tensor]
Apply = Callable[..., Tensor]


def check_out(out: Tensor, made: Tensor, name: str, same_dtype: bool = True) -> None:
    """Refuse a target that a result cannot be written to.

    Args:
        out: The target.
        made: The result.
        name: The function's name, for errors.
        same_dtype: Refuse another dtype, instead of any that the result may not be cast to.

    Raises:
        RuntimeError: The dtype does not fit, or a gradient would be lost.
    """
    if same_dtype and out.dtype != made.dtype:
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {made.dtype}, but got {out.dtype} instead")
    check_cast(made, out)
    if out.requires_grad or (made.requires_grad and _core.is_grad_enabled()):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def into(out: Tensor | None, made: Tensor, name: str, same_dtype: bool = True) -> Tensor:
    """The result, or ``out``, resized if needed, with its elements; see :func:`check_out`."""
    if out is None:
        return made
    check_out(out, made, name, same_dtype)
    if out.shape == made.shape:
        return out.copy_(made)
    # The write is counted once.
    out.resize_(made.shape).data.copy_(made)
    return out


def check_cast(made: Tensor, target: Tensor) -> None:
    """Refuse a result that the target's dtype cannot hold.

    Raises:
        RuntimeError: It is of a higher category.
    """
    if not _core.can_cast(made.dtype, target.dtype):
        raise RuntimeError(
            f"result type {type_name(made.dtype)} can't be cast to the desired output type {type_name(target.dtype)}"
        )


def type_name(dtype: Any) -> str:
    """PyTorch's name of a dtype in errors: ``Half``, ``Long``."""
    names = {"float16": "Half", "float32": "Float", "float64": "Double", "int16": "Short", "int32": "Int"}
    names |= {"complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}
    names |= {"int64": "Long", "int8": "Char", "uint8": "Byte", "bool": "Bool", "bfloat16": "BFloat16"}
    short = str(dtype).rpartition(".")[2]
    return names.get(short, short)


def _refuse_complex(dtype: Any, kernel: str) -> None:
    if dtype.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(dtype)}'")


def floating(input: Tensor, kernel: str) -> Tensor:
    """The tensor, in the default dtype if its elements are integers or truth values.

    Raises:
        NotImplementedError: It is complex; says that PyTorch's ``kernel`` has no such numbers.
    """
    _refuse_complex(input.dtype, kernel)
    return input if input.dtype.is_floating_point else input.to(_core.get_default_dtype())


def refuse_complex(name: str, *inputs: Any) -> None:
    """Raise NotImplementedError, in PyTorch's words, if one of the inputs is complex."""
    for x in inputs:
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(x.dtype)}'")


def pair(input: Any, other: Any) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of one dtype and shape. A number has less weight in promotion than a tensor.

    Raises:
        TypeError: Neither is a tensor.
    """
    kind = _core.result_type(input, other)
    like = input if isinstance(input, Tensor) else other
    first, second = (
        x.to(kind) if isinstance(x, Tensor) else _core.full((), x, dtype=kind, device=like.device)
        for x in (input, other)
    )
    if first.device != second.device:
        if not first.dim():
            first = first.to(second.device)
        elif not second.dim():
            second = second.to(first.device)
        else:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {first.device} and "
                f"{second.device}!"
            )
    first, second = _core.broadcast_tensors(first, second)
    return first, second


def floating_pair(input: Any, other: Any, kernel: str) -> tuple[Tensor, Tensor]:
    """As :func:`pair`, with integers as floats. A number is not cut to the integers of a tensor before.

    Raises:
        NotImplementedError: One is complex; says that PyTorch's ``kernel`` has no such numbers.
    """
    kind = _core.result_type(input, other)
    _refuse_complex(kind, kernel)
    if not kind.is_floating_point:
        kind = _core.get_default_dtype()
    return pair(*(x.to(kind) if isinstance(x, Tensor) else x for x in (input, other)))


def batched_first(info: Any, in_dims: Sequence[int | None], tensors: Sequence[Any]) -> list[Any]:
    """The arguments of a batched call with the batch in front; those without one are repeated."""
    made = []
    for dim, x in zip(in_dims, tensors, strict=True):
        if not isinstance(x, Tensor):
            made.append(x)
        elif dim is None:
            made.append(x.unsqueeze(0).expand(info.batch_size, *x.shape))
        else:
            made.append(x.movedim(dim, 0))
    return made


def in_doubles(value: _Value, *inputs: Tensor) -> Tensor:
    """Compute in float64 or complex128, on the CPU for devices that may lack it, and round once."""
    like = inputs[0]
    on_host = like.device.type not in ("cpu", "meta")
    wide = [(x.cpu() if on_host else x).to(_core.complex128 if x.dtype.is_complex else _core.float64) for x in inputs]
    made = value(*wide).to(like.dtype)
    return made.to(like.device) if on_host else made


def of_elements(
    name: str, value: _Value, *slopes: _Value | str | None, holomorphic: bool = False
) -> Callable[..., Tensor]:
    """A differentiable function of elements.

    Args:
        name: The name of its node, without the suffix.
        value: Gives the values of float64 tensors.
        slopes: For each input what gives the derivative from all inputs, made of differentiable functions. Where there
            is none: what an error calls it, or None if no gradient goes there.
        holomorphic: The function takes complex numbers, and has complex derivatives.

    Returns:
        A function of tensors of one shape and dtype. It raises NotImplementedError for complex ones unless
        ``holomorphic``.
    """

    def forward(*inputs: Tensor) -> Tensor:
        if not holomorphic:
            refuse_complex(name.lower().removeprefix("special"), *inputs)
        return in_doubles(value, *inputs)

    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def product(part: Tensor, i: int, inputs: tuple[Tensor, ...], conjugate: bool = False) -> Tensor | None:
        of = slopes[i]
        if isinstance(of, str):
            raise NotImplementedError(f"the derivative for '{of}' is not implemented.")
        if of is None:
            return None
        slope = of(*inputs)
        return part * (slope.conj() if conjugate and slope.dtype.is_complex else slope)

    def backward(ctx: Any, grad: Tensor) -> Any:
        inputs = ctx.saved_tensors
        found = tuple(product(grad, i, inputs, True) if ctx.needs_input_grad[i] else None for i in range(len(slopes)))
        return found if len(found) > 1 else found[0]

    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        # Inside a transform saved tensors have their own tangents, which would be taken a second time.
        inputs = tuple(_core._primal(x) for x in ctx.saved_tensors)
        parts = [product(t, i, inputs) for i, t in enumerate(tangents) if t is not None]
        known = [part for part in parts if part is not None]
        return sum(known[1:], known[0]) if known else None

    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return made.apply(*batched_first(info, in_dims, inputs)), 0

    made: Any = type(
        name,
        (Function,),
        {
            "__module__": __name__,
            "_node_name": f"{name}Backward0",
            **{f.__name__: staticmethod(f) for f in (forward, setup_context, backward, jvp, vmap)},
        },
    )
    apply: Callable[..., Tensor] = made.apply
    return apply


def elements_on_host(
    name: str, function: Callable[..., Any], slope: Callable[..., Tensor] | None = None
) -> Callable[..., Tensor]:
    """A function of elements that NumPy computes on the host.

    Args:
        name: The name of its node, without the suffix.
        function: Gives an array from arrays of one shape and dtype.
        slope: Gives the derivative by the first input, a constant, from all inputs; None where there is no derivative.

    Returns:
        A function of tensors of one shape and dtype.
    """

    def forward(*inputs: Tensor) -> Tensor:
        refuse_complex(name.lower(), *inputs)
        if inputs[0].device.type == "meta":
            return _core.empty_like(inputs[0])
        with np.errstate(all="ignore"):
            made = np.asarray(function(*(x.numpy(force=True) for x in inputs)), order="C")
        return _core.from_numpy(made).to(inputs[0].device)

    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if slope is not None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

    def backward(ctx: Any, grad: Tensor) -> Any:
        if slope is None:
            raise RuntimeError(f"derivative for aten::{name.lower()} is not implemented")
        others = [_core.zeros_like(grad) if needed else None for needed in ctx.needs_input_grad[1:]]
        return grad * slope(*ctx.saved_tensors) if ctx.needs_input_grad[0] else None, *others

    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        if slope is None:
            raise NotImplementedError(f"Trying to use forward AD with aten::{name.lower()} that does not support it.")
        inputs = tuple(_core._primal(x) for x in ctx.saved_tensors)
        return _core.zeros_like(inputs[0]) if tangents[0] is None else tangents[0] * slope(*inputs)

    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return made.apply(*batched_first(info, in_dims, inputs)), 0

    rules = (forward, setup_context, backward, jvp, vmap)
    node = "NotImplemented" if slope is None else f"{name}Backward0"
    attributes = {"__module__": __name__, "_node_name": node, **{f.__name__: staticmethod(f) for f in rules}}
    made: Any = type(name, (Function,), attributes)
    apply: Callable[..., Tensor] = made.apply
    return apply


@functools.cache
def refused_write(name: str) -> Any:
    """A Function ``(target, values)`` that writes what has no derivative.

    Args:
        name: The name of the operation in place.

    Returns:
        A subclass of Function whose backward raises.
    """

    def forward(ctx: Any, target: Tensor, values: Tensor) -> Tensor:
        # `mark_dirty` counts the write.
        target.data.copy_(values)
        ctx.mark_dirty(target)
        return target

    def backward(ctx: Any, grad: Tensor) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    rules = {f.__name__: staticmethod(f) for f in (forward, backward)}
    return type(name, (Function,), {"__module__": __name__, "_node_name": "NotImplemented", **rules})
