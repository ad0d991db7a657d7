"""Gradient checks: derivatives by the engine and by forward mode beside derivatives by finite differences."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from ._jacobian import (
    BadGradient,
    Numeric,
    analytical,
    array_of,
    as_tuple,
    check_gradient,
    cotangent_of,
    irreproducible,
    spread,
    vjp,
)
from .backward import grad
from .function import Function

if TYPE_CHECKING:
    from ._jacobian import Matrix

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

# Analytical gradients of float32 functions carry rounding errors of this many units of the largest entry.
_ROUNDING_UNITS = 64
_MAX_PROBED = 64


class GradcheckError(RuntimeError):
    """A gradient check failed.

    For a mismatch the attributes say where and how: ``output_idx`` and ``input_idx`` (positions among the outputs and
    inputs that are differentiable), ``output_index`` and ``input_index`` (of the worst entry), ``analytical`` and
    ``numerical`` (its values) and ``verdict``. They are None for other failures.
    """

    output_idx: int | None = None
    input_idx: int | None = None
    output_index: tuple[int, ...] | None = None
    input_index: tuple[int, ...] | None = None
    analytical: float | None = None
    numerical: float | None = None
    verdict: str | None = None


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare gradients of ``func`` at ``inputs`` with central differences, entry by entry.

    Entries may differ by ``atol + rtol * |numerical|``; the defaults let an error of 0.1 % pass, and smaller
    tolerances (``rtol=1e-5``) work for most float64 functions.

    The function is differentiated as given. Differences are taken in float64 on the CPU: if an input has less precision
    or lies on another device, the function is run again on float64 copies of all its floating point inputs there, and
    rounding of the low precision gradients is allowed for. Where the function does not take these or does not answer
    in float64, differences are taken in its own precision on its own device, with a warning.

    Args:
        func: takes tensors and gives a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked.
        eps: step of the differences.
        atol, rtol: tolerances.
        raise_exception: raise GradcheckError; else give False.
        nondet_tol: how much backward passes over the same values may differ.
        check_undefined_grad: check that outputs whose gradient is undefined count as zero.
        check_grad_dtypes: check that gradients have the dtype of their inputs.
        check_batched_grad: compare a backward pass over a batch of cotangents with passes one by one.
        check_batched_forward_grad: likewise for forward mode and a batch of tangents.
        check_forward_ad: compare derivatives by forward mode with differences, too.
        check_backward_ad: compare derivatives by backward passes.
        fast_mode: check one random direction for each input and output in place of all entries.
        masked: accepted for PyTorch's sake; there are no sparse tensors.

    Returns:
        True if all is well.

    Raises:
        GradcheckError: it is not. The message has both Jacobians, the worst entry with its index and values, and a
            verdict: wrong formula, too coarse a precision, kink or not differentiable there, or not deterministic.
        ValueError: no input requires grad. RuntimeError: an input overlaps itself in memory.
        AssertionError: neither forward mode nor backward is to be checked, or a check is asked for whose mode is not.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    tupled = as_tuple(inputs)
    tolerances = (eps, atol, rtol, nondet_tol)
    modes = (check_forward_ad, check_backward_ad)
    try:
        _check(func, tupled, tolerances, modes, check_undefined_grad, check_grad_dtypes, fast_mode)
        if check_batched_forward_grad:
            from ._forward import check_batched_tangents

            check_batched_tangents(func, tupled)
        if check_batched_grad:
            from ._forward import check_batched_cotangents

            check_batched_cotangents(func, tupled)
    except BadGradient as bad:
        if raise_exception:
            raise GradcheckError(str(bad)) from bad.__cause__
        return False
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """:func:`gradcheck` of the gradients of ``func``, as a function of its inputs and of the cotangents.

    Args:
        grad_outputs: the cotangents, a tensor or a tuple; default is uniform in [-1, 1), by a fixed seed.
        gen_non_contig_grad_outputs: make those not contiguous.
        check_fwd_over_rev: check second derivatives by forward mode over a backward pass.
        check_rev_over_rev: check those by a backward pass over a backward pass.

    The others, the result and the errors are those of :func:`gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, asked in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    tupled = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [out for out in as_tuple(func(*tupled)) if out.requires_grad]
        cotangents = tuple(_random_cotangent(out, i, gen_non_contig_grad_outputs) for i, out in enumerate(outputs))
    else:
        cotangents = as_tuple(grad_outputs)
    count = len(cotangents)
    differentiable = {i for i, x in enumerate(tupled) if isinstance(x, Tensor) and x.requires_grad}

    wanted = {len(tupled) + i for i, v in enumerate(cotangents) if v.requires_grad} | differentiable

    def gradients(*given: Any) -> tuple[Tensor, ...]:
        # Forward mode gives inputs without history.
        args = [_core._require_grad(x) if i in wanted and not x.requires_grad else x for i, x in enumerate(given)]
        own, vectors = args[: len(args) - count], args[len(args) - count :]
        outs = [out for out in as_tuple(func(*own)) if out.requires_grad]
        found = grad(
            outs, [x for i, x in enumerate(own) if i in differentiable], vectors, create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        tupled + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _random_cotangent(out: Tensor, seed: int, spread: bool) -> Tensor:
    import numpy as np

    shape = tuple(out.shape)
    values = np.random.default_rng(seed).uniform(-1, 1, (*shape, 2) if spread else shape)
    made = _core.from_numpy(np.asarray(values)).to(out.dtype).to(out.device)
    return _core._require_grad((made[..., 0] if spread else made).detach())


def _check(
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
    numeric = Numeric(func, inputs, wanted, watched, [func_out[i].numel() for i in watched], eps)
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
        check(numeric, _Backward(outputs, diff_inputs, check_grad_dtypes), limits)
    if forward:
        from ._forward import Forward, check_undefined_tangents

        check(numeric, Forward(func, inputs, wanted, chosen, outputs), limits)
        if check_undefined_grad:
            check_undefined_tangents(func, inputs)
    if not backward:
        return
    _check_zero_cotangent(outputs, diff_inputs)
    if check_undefined_grad:
        _check_undefined(func, inputs, diff_inputs)


class _Backward:
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


def _check_constant(numeric: Numeric) -> None:
    import numpy as np

    for i, per_output in enumerate(numeric.jacobians()):
        for j, matrix in enumerate(per_output):
            if np.any(matrix != 0):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {numeric.outputs[i]} does not "
                    f"require grad but depends on input {j}. Is its history cut by detach, no_grad or data?"
                )


def _check_reentrant(output: Tensor, inputs: Sequence[Tensor], nondet_tol: float, fast_mode: bool) -> None:
    difference = irreproducible(output, inputs, dense_only=fast_mode)
    if difference > nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            f"different values: they differ by {difference:g}. The tolerance for nondeterminism was {nondet_tol}."
        )


def _slack(numeric: Numeric, numerical: "Matrix") -> float:
    """What rounding of gradients computed in low precision may add to an error."""
    import numpy as np

    if not numeric.low_roundoff or not numerical.size:
        return 0.0
    largest = float(np.abs(numerical).max())
    return _ROUNDING_UNITS * numeric.low_roundoff * largest if np.isfinite(largest) else 0.0


def _check_entries(numeric: Numeric, found: Any, limits: tuple[float, float, float]) -> None:
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
    numeric: Numeric,
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
        # nan spreads along a row: the entry where the function itself is at fault says more.
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


def _check_direction(numeric: Numeric, found: Any, limits: tuple[float, float, float]) -> None:
    """Compare ``vᵀ J u`` for one irregular u per input and v per output (both positive, of length 1)."""

    def unit(seed: int, shape: tuple[int, ...]) -> Any:
        drawn = spread(seed, math.prod(shape))
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


class _Undefined(Function):
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


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], diff_inputs: Sequence[Tensor]) -> None:
    """All gradients of outputs undefined, then each one alone while the others are zero."""
    count = sum(out.requires_grad for out in as_tuple(func(*inputs)))
    for cut in [None, *range(count)] if count > 1 else [None]:
        outs = [out for out in as_tuple(func(*inputs)) if out.requires_grad]
        outs = [_Undefined.apply(out) if cut is None or i == cut else out for i, out in enumerate(outs)]
        zeros = tuple(_core.zeros_like(out) for out in outs)
        try:
            found = _core._run_backward(tuple(outs), zeros, False, False, tuple(diff_inputs), True, False)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: a gradient that is None counts as zero, "
                "but backward raised an error. check_undefined_grad=False leaves this check out."
            ) from error
        for g in found:
            if g is not None and array_of(g).any():
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                    "check_undefined_grad=False leaves this check out."
                )
