"""The checks of one function, one after the other; the first that fails raises GradcheckError or BadGradient."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ..function import Function
from ._compare import check_direction, check_entries
from ._error import GradcheckError
from ._jacobian import (
    FiniteDifferences,
    analytical,
    array_of,
    as_tuple,
    check_gradient,
    cotangent_of,
    is_differentiable,
    nondeterminism,
    parts_of,
    vjp,
)

if TYPE_CHECKING:
    from ._jacobian import Matrix


def check(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    tolerances: tuple[float, float, float, float],
    modes: tuple[bool, bool],
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    fast_mode: bool,
) -> None:
    eps, atol, rtol, nondet_tol = tolerances
    forward, backward = modes
    wanted = _differentiable_inputs(inputs)
    diff_inputs = [inputs[i] for i in wanted]
    func_out = as_tuple(func(*inputs))
    for i, out in enumerate(func_out):
        if not isinstance(out, Tensor):
            raise ValueError(f"gradcheck: output {i} of the function is {type(out).__name__}, expected a Tensor")
    chosen = [i for i, out in enumerate(func_out) if out.requires_grad]
    outputs = [func_out[i] for i in chosen]
    # Without differentiable outputs all floating point ones must be constant.
    watched = chosen or [i for i, out in enumerate(func_out) if is_differentiable(out)]
    numeric = FiniteDifferences(func, inputs, wanted, watched, [func_out[i] for i in watched], eps)
    if numeric.low_precision and not numeric.promoted:
        low = next(i for i in wanted if inputs[i].dtype not in (_core.float64, _core.complex128))
        warnings.warn(
            f"Input #{low} requires gradient and is not a double precision floating point or complex. This check will "
            f"likely fail: differences cannot be taken in double precision for this function ({numeric.obstacle}).",
            stacklevel=4,
        )
    if not outputs:
        _check_constant(numeric)
        return
    check = check_direction if fast_mode else check_entries
    limits = (atol, rtol, nondet_tol)
    if backward:
        for output in outputs:
            _check_reentrant(output, diff_inputs, nondet_tol, fast_mode)
        check(numeric, BackwardDerivatives(outputs, diff_inputs, check_grad_dtypes), limits)
    if forward:
        from ._forward import ForwardDerivatives, check_undefined_tangents

        check(numeric, ForwardDerivatives(func, inputs, wanted, chosen, outputs), limits)
        if check_undefined_grad:
            check_undefined_tangents(func, inputs)
    if not backward:
        return
    _check_zero_cotangent(outputs, diff_inputs)
    if check_undefined_grad:
        _check_undefined(func, inputs, diff_inputs)


class BackwardDerivatives:
    """The derivatives of some outputs by some inputs, by backward passes."""

    name = ""
    # Of complex outputs each part is one real function.
    split_by_output = True

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], check_dtypes: bool) -> None:
        self.outputs, self.inputs, self.check_dtypes = outputs, inputs, check_dtypes

    def jacobians(self) -> list[list["Matrix"]]:
        """For each output a matrix for each input."""
        return [analytical(output, self.inputs, self.check_dtypes) for output in self.outputs]

    def along(self, us: Sequence[Any], vs: Sequence[Any]) -> list[list["Matrix"]]:
        """``U J V`` for each output with its columns V and each input with its rows U."""
        import numpy as np

        found = []
        for output, v in zip(self.outputs, vs, strict=True):
            row = [np.zeros((u.shape[0], v.shape[1])) for u in us]
            for k in range(v.shape[1]):
                cotangent = cotangent_of(np.ascontiguousarray(v[:, k]), output)
                for a, u, x, g in zip(row, us, self.inputs, vjp(output, self.inputs, cotangent), strict=True):
                    if g is not None:
                        check_gradient(g, x, self.check_dtypes)
                        a[:, k] = u @ parts_of(g, x.dtype.is_complex)
            found.append(row)
        return found


def _differentiable_inputs(inputs: tuple[Any, ...]) -> list[int]:
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in wanted:
        x = inputs[i]
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    return wanted


def _check_constant(numeric: FiniteDifferences) -> None:
    import numpy as np

    for i, per_output in enumerate(numeric.jacobians()):
        for j, matrix in enumerate(per_output):
            if np.any(matrix != 0):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {numeric.outputs[i]} does not "
                    f"require grad but depends on input {j}. Is its history cut by detach, no_grad or data?"
                )


def _check_reentrant(output: Tensor, inputs: Sequence[Tensor], nondet_tol: float, fast_mode: bool) -> None:
    difference = nondeterminism(output, inputs, dense_only=fast_mode)
    if difference > nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            f"different values: they differ by {difference:g}. The tolerance for nondeterminism was {nondet_tol}."
        )


def _check_zero_cotangent(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    zeros = tuple(_core.zeros_like(out) for out in outputs)
    found = _core._run_backward(tuple(outputs), zeros, True, False, tuple(inputs), True, False)
    for i, (g, x) in enumerate(zip(found, inputs, strict=True)):
        if g is None:
            continue
        if array_of(g).any():
            raise GradcheckError(
                f"backward not multiplied by grad_output: input {i} gets a gradient that is not zero from grad_outputs "
                "that are zero"
            )
        if g.dtype != x.dtype:
            raise GradcheckError(f"grad is incorrect type: got {g.dtype} for input {i} of {x.dtype}")
        if g.device != x.device:
            raise GradcheckError(f"grad is incorrect device: got {g.device} for input {i} on {x.device}")
        if g.shape != x.shape:
            raise GradcheckError(f"grad is incorrect size: got {tuple(g.shape)} for input {i} of {tuple(x.shape)}")


class _UndefinedGradient(Function):
    """Identity that gives no gradient back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> None:
        return None


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=5,
    )


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], diff_inputs: Sequence[Tensor]) -> None:
    """All gradients of outputs undefined, then each one alone while the others are zero."""
    count = sum(out.requires_grad for out in as_tuple(func(*inputs)))
    for cut in [None, *range(count)] if count > 1 else [None]:
        outs = [out for out in as_tuple(func(*inputs)) if out.requires_grad]
        outs = [_UndefinedGradient.apply(out) if cut is None or i == cut else out for i, out in enumerate(outs)]
        zeros = tuple(_core.zeros_like(out) for out in outs)
        try:
            found = _core._run_backward(tuple(outs), zeros, False, False, tuple(diff_inputs), True, False)
        except RuntimeError as error:
            _warn_of_undefined()
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: a gradient that is None counts as zero, "
                "but backward raised an error. check_undefined_grad=False leaves this check out."
            ) from error
        for g in found:
            if g is not None and array_of(g).any():
                _warn_of_undefined()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                    "check_undefined_grad=False leaves this check out."
                )
