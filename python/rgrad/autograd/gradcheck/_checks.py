"""The checks of one function, one after the other; the first that fails raises GradcheckError or BadGradient."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ..function import Function
from ._error import GradcheckError
from ._jacobian import (
    FiniteDifferences,
    analytical,
    array_of,
    as_tuple,
    check_gradient,
    cotangent_of,
    nondeterminism,
    quasi_random,
    vjp,
)

if TYPE_CHECKING:
    from ._jacobian import Matrix

# Analytical gradients of float32 functions carry rounding errors of this many units of the largest entry.
_ROUNDING_UNITS = 64
_MAX_PROBED = 64


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
    watched = chosen or [i for i, out in enumerate(func_out) if out.is_floating_point()]
    numeric = FiniteDifferences(func, inputs, wanted, watched, [func_out[i].numel() for i in watched], eps)
    if numeric.low_precision and not numeric.promoted:
        low = next(i for i in wanted if inputs[i].dtype != _core.float64)
        warnings.warn(
            f"Input #{low} requires gradient and is not a double precision floating point or complex. This check will "
            f"likely fail: differences cannot be taken in float64 for this function ({numeric.obstacle}).",
            stacklevel=4,
        )
    if not outputs:
        _check_constant(numeric)
        return
    check = _check_direction if fast_mode else _check_entries
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

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], check_dtypes: bool) -> None:
        self.outputs, self.inputs, self.check_dtypes = outputs, inputs, check_dtypes

    def jacobians(self) -> list[list["Matrix"]]:
        """For each output a matrix for each input."""
        return [analytical(output, self.inputs, self.check_dtypes) for output in self.outputs]

    def along(self, us: Sequence[Any], vs: Sequence[Any]) -> list[list[float]]:
        """``vᵀ J u`` for each output with its v and each input with its u."""
        import numpy as np

        found = []
        for output, v in zip(self.outputs, vs, strict=True):
            row = []
            cotangent = cotangent_of(v, output)
            for u, x, g in zip(us, self.inputs, vjp(output, self.inputs, cotangent), strict=True):
                a = 0.0
                if g is not None:
                    check_gradient(g, x, self.check_dtypes)
                    a = float(np.vdot(array_of(g).astype(np.float64, copy=False), u))
                row.append(a)
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


def _slack(numeric: FiniteDifferences, numerical: "Matrix") -> float:
    """How much rounding of low precision gradients may add to an error."""
    import numpy as np

    if not numeric.low_roundoff or not numerical.size:
        return 0.0
    largest = float(np.abs(numerical).max())
    return _ROUNDING_UNITS * numeric.low_roundoff * largest if np.isfinite(largest) else 0.0


def _check_entries(numeric: FiniteDifferences, found: Any, limits: tuple[float, float, float]) -> None:
    import numpy as np

    atol, rtol, nondet_tol = limits
    per_output = numeric.jacobians()
    for o, row in enumerate(found.jacobians()):
        for i, a in enumerate(row):
            n = per_output[o][i]
            with np.errstate(all="ignore"):
                allowed = atol + rtol * np.abs(n) + _slack(numeric, n)
                fine = (a == n) | (np.abs(a - n) <= allowed)
            if not fine.all():
                raise _mismatch(numeric, found, o, i, a, n, allowed, nondet_tol)


def _mismatch(
    numeric: FiniteDifferences,
    found: Any,
    o: int,
    i: int,
    a: "Matrix",
    n: "Matrix",
    allowed: "Matrix",
    nondet_tol: float,
) -> GradcheckError:
    import numpy as np

    from ._diagnosis import FORMULA, diagnose, worst_entry

    row, column = worst_entry(a, n, allowed)
    limit = float(allowed[row, column])
    verdict, evidence = diagnose(numeric, i, o, row, column, a, n, limit, nondet_tol)
    if verdict == FORMULA and np.isnan(a[row, column]):
        # nan spreads along a row: look for the entry where the function itself is at fault.
        for other in np.flatnonzero(np.isnan(a[row]))[:_MAX_PROBED]:
            other_verdict, other_evidence = diagnose(numeric, i, o, row, int(other), a, n, limit, nondet_tol)
            if other_verdict != FORMULA:
                column, verdict, evidence = int(other), other_verdict, other_evidence
                break
    input_index = tuple(int(k) for k in np.unravel_index(row, numeric.arrays[i].shape))
    output_index = tuple(int(k) for k in np.unravel_index(column, tuple(found.outputs[o].shape)))
    got, want = float(a[row, column]), float(n[row, column])
    error = GradcheckError(
        f"Jacobian {found.name}mismatch for output {o} with respect to input {i},\n"
        f"numerical:{_shown(n)}\nanalytical:{_shown(a)}\n"
        f"worst entry: output{list(output_index)} with respect to input{list(input_index)}: "
        f"analytical {got:.10g}, numerical {want:.10g}, difference {abs(got - want):.3g}, allowed {limit:.3g}\n"
        f"verdict: {verdict} ({evidence})"
    )
    error.output_idx, error.input_idx = o, i
    error.output_index, error.input_index = output_index, input_index
    error.analytical, error.numerical, error.verdict = got, want, verdict
    return error


def _shown(matrix: "Matrix") -> Tensor:
    import numpy as np

    return _core.from_numpy(np.ascontiguousarray(matrix))


def _check_direction(numeric: FiniteDifferences, found: Any, limits: tuple[float, float, float]) -> None:
    """Compare ``vᵀ J u`` for one irregular u per input and v per output (both positive, of length 1)."""

    def unit(seed: int, shape: tuple[int, ...]) -> Any:
        drawn = quasi_random(seed, math.prod(shape))
        return (drawn / max(math.sqrt(float(drawn @ drawn)), 1e-300)).reshape(shape)

    atol, rtol, _ = limits
    us = [unit(i, array.shape) for i, array in enumerate(numeric.arrays)]
    vs = [unit(len(us) + o, (size,)) for o, size in enumerate(numeric.sizes)]
    moved = [numeric.directional(i, u) for i, u in enumerate(us)]
    for o, (v, row) in enumerate(zip(vs, found.along(us, vs), strict=True)):
        for i, (u, a) in enumerate(zip(us, row, strict=True)):
            n = float(moved[i][o] @ v)
            rounding = _ROUNDING_UNITS * numeric.low_roundoff * abs(n)
            # Errors of atol in every entry add up to this.
            limit = atol * float(u.sum()) * float(v.sum()) + rtol * abs(n) + rounding
            if not abs(a - n) <= limit:
                _check_entries(numeric, found, limits)
                raise GradcheckError(
                    f"Jacobian {found.name}mismatch for output {o} with respect to input {i},\n"
                    f"numerical:{n:.10g}\nanalytical:{a:.10g}\n"
                    "along a random direction. Fast gradcheck failed but element-wise differences are small. "
                    "This means that the test might've passed in slow_mode!"
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
