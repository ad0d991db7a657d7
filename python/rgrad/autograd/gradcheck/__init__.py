"""Gradient checks: derivatives by the engine and by forward mode beside derivatives by finite differences."""

from collections.abc import Callable
from typing import Any

from ... import _core
from ..._core import Tensor
from ..backward import grad
from ._error import BadGradient, GradcheckError
from ._jacobian import as_tuple

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


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

    Entries may differ by ``atol + rtol * |numerical|``; the defaults let an error of 0.1 % pass, and smaller tolerances
    (``rtol=1e-5``) work for most float64 functions.

    Of complex numbers both parts are checked, by the convention of PyTorch: the gradient of a real number s by
    z = x + iy is ds/dx + i ds/dy, the conjugate Wirtinger derivative. Of complex outputs first the imaginary parts are
    taken as the outputs, then the real ones; of forward mode likewise the parts of the inputs.

    The function is differentiated as given. Differences are taken in float64 or complex128 on the CPU: if an input has
    less precision or lies on another device, the function is run again on such copies of all its floating point inputs
    there, and rounding of the low precision gradients is allowed for. Where the function does not take these or does
    not answer in double precision, differences are taken in its own precision on its own device, with a warning.

    Args:
        func: A function that takes tensors and gives a tensor or a tuple of tensors.
        inputs: A tensor or a tuple; those that require grad are checked.
        eps: The step of the differences.
        atol: The absolute tolerance.
        rtol: The relative tolerance.
        raise_exception: Raise GradcheckError; else give False.
        nondet_tol: How much backward passes over the same values may differ.
        check_undefined_grad: Check that outputs whose gradient is undefined count as zero.
        check_grad_dtypes: Check that gradients have the dtype of their inputs.
        check_batched_grad: Compare a backward pass over a batch of cotangents with passes one by one.
        check_batched_forward_grad: Likewise for forward mode and a batch of tangents.
        check_forward_ad: Compare derivatives by forward mode with differences, too.
        check_backward_ad: Compare derivatives by backward passes.
        fast_mode: Check one random direction for each input and output in place of all entries.
        masked: Accepted for PyTorch's sake; there are no sparse tensors.

    Returns:
        True if all is well.

    Raises:
        GradcheckError: It is not. The message has both Jacobians, the worst entry with its index and values, and a
            verdict: wrong formula, too coarse a precision, kink or not differentiable there, or not deterministic.
        ValueError: No input requires grad, or an output is no tensor.
        RuntimeError: An input overlaps itself in memory.
        AssertionError: Neither forward mode nor backward is to be checked, or a check is asked for whose mode is not.

    Example:
        >>> x = rgrad.rand(3, dtype=rgrad.float64, requires_grad=True)
        >>> rgrad.autograd.gradcheck(lambda x: x.sin() * x, x)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    from ._checks import check

    tupled = as_tuple(inputs)
    tolerances = (eps, atol, rtol, nondet_tol)
    modes = (check_forward_ad, check_backward_ad)
    # Differences drop most of what the function returns.
    _core._expect_unused_totals(True)
    try:
        check(func, tupled, tolerances, modes, check_undefined_grad, check_grad_dtypes, fast_mode)
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
    finally:
        _core._expect_unused_totals(False)
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
    """Check the gradients of ``func``, as a function of its inputs and of the cotangents, by :func:`gradcheck`.

    Args:
        func: A function that takes tensors and gives a tensor or a tuple of tensors.
        inputs: A tensor or a tuple; those that require grad are checked.
        grad_outputs: The cotangents, a tensor or a tuple; by default they are uniform in [-1, 1), by a fixed seed.
        eps: The step of the differences.
        atol: The absolute tolerance.
        rtol: The relative tolerance.
        gen_non_contig_grad_outputs: Make the default cotangents not contiguous.
        raise_exception: Raise GradcheckError; else give False.
        nondet_tol: How much backward passes over the same values may differ.
        check_undefined_grad: Check that outputs whose gradient is undefined count as zero.
        check_grad_dtypes: Check that gradients have the dtype of their inputs.
        check_batched_grad: Compare a backward pass over a batch of cotangents with passes one by one.
        check_fwd_over_rev: Check second derivatives by forward mode over a backward pass.
        check_rev_over_rev: Check those by a backward pass over a backward pass.
        fast_mode: Check one random direction for each input and output in place of all entries.
        masked: Accepted for PyTorch's sake; there are no sparse tensors.

    Returns:
        True if all is well.

    Raises:
        GradcheckError: It is not; see :func:`gradcheck`.
        ValueError: No input requires grad.
        RuntimeError: An input overlaps itself in memory.
        AssertionError: No check is asked for, or one whose mode is not.

    Example:
        >>> x = rgrad.rand(3, dtype=rgrad.float64, requires_grad=True)
        >>> rgrad.autograd.gradgradcheck(lambda x: x.exp() * x, x)
        True
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
    values: Any = np.random.default_rng(seed).uniform(-1, 1, (*shape, 2) if spread else shape)
    if out.dtype.is_complex:
        values = values + 1j * np.random.default_rng([seed, 1]).uniform(-1, 1, values.shape)
    made = _core.from_numpy(np.asarray(values)).to(out.dtype).to(out.device)
    return _core._require_grad((made[..., 0] if spread else made).detach())
