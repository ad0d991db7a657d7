"""Masked reductions and normalisations, beside NumPy's masked arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import masked

VALUES = np.random.default_rng(0).standard_normal((3, 4, 5))
MASK = np.random.default_rng(1).random((3, 4, 5)) < 0.6
MASK[0, 0, :] = False
HIDDEN = np.ma.masked_array(VALUES, ~MASK)

REDUCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    # The function of a masked array along the last dimension, and what is there without elements.
    "sum": (lambda a: a.sum(-1), 0.0),
    "prod": (lambda a: a.prod(-1), 1.0),
    "mean": (lambda a: a.mean(-1), np.nan),
    "amax": (lambda a: a.max(-1), -np.inf),
    "amin": (lambda a: a.min(-1), np.inf),
    "logsumexp": (lambda a: np.ma.log(np.ma.exp(a).sum(-1)), -np.inf),
    "norm": (lambda a: np.ma.sqrt((a * a).sum(-1)), 0.0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    function, empty = REDUCTIONS[name]
    x, mask = rgrad.tensor(VALUES), rgrad.tensor(MASK)
    made = getattr(masked, name)(x, dim=-1, mask=mask)
    want = np.ma.filled(function(HIDDEN), empty)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-12)
    kept = getattr(masked, name)(x, dim=-1, keepdim=True, mask=mask)
    assert tuple(kept.shape) == (3, 4, 1)
    whole = getattr(masked, name)(x, dim=(0, 1, 2), mask=mask)
    assert whole.tolist() == getattr(masked, name)(x, mask=mask).tolist()


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variances(correction: int) -> None:
    x, mask = rgrad.tensor(VALUES), rgrad.tensor(MASK)
    want = np.ma.filled(HIDDEN.var(0, ddof=correction), np.nan)
    with np.errstate(all="ignore"):
        for made, power in (
            (masked.var(x, 0, correction=correction, mask=mask), 1),
            (masked.std(x, 0, correction=correction, mask=mask), 2),
        ):
            counted = np.isfinite(want) & (MASK.sum(0) > correction)
            np.testing.assert_allclose(made.numpy()[counted] ** power, want[counted], rtol=1e-12)
    unbiased = masked.var(x, 0, False, mask=mask)
    np.testing.assert_array_equal(unbiased.numpy(), masked.var(x, 0, correction=0, mask=mask).numpy())
    with pytest.raises(AssertionError, match="Only one of unbiased and correction"):
        masked.var(x, 0, True, correction=1)


def test_positions_and_medians() -> None:
    x, mask = rgrad.tensor(VALUES), rgrad.tensor(MASK)
    counted = MASK.any(-1)
    for name in ("argmax", "argmin"):
        made = getattr(masked, name)(x, dim=-1, mask=mask)
        assert made.dtype == rgrad.float64
        np.testing.assert_array_equal(made.numpy()[counted], getattr(HIDDEN, name)(-1)[counted])
    lower = np.array(
        [
            sorted(row[m])[(m.sum() - 1) // 2] if m.any() else np.nan
            for row, m in zip(VALUES.reshape(-1, 5), MASK.reshape(-1, 5), strict=True)
        ]
    ).reshape(3, 4)
    np.testing.assert_array_equal(masked.median(x, mask=mask).numpy(), lower)
    integers = rgrad.tensor([[5, 1, 9], [4, 2, 8]])
    assert masked.median(integers, mask=rgrad.tensor([True, False, True])).tolist() == [5, 4]
    with pytest.raises(ValueError, match="fully masked out rows"):
        masked.median(integers, mask=rgrad.tensor([False, False, False]))


def test_normalisations() -> None:
    x, mask = rgrad.tensor(VALUES), rgrad.tensor(MASK)
    counted = MASK.any(-1)
    sizes = np.where(MASK, np.exp(VALUES), 0)
    with np.errstate(all="ignore"):
        soft = sizes / sizes.sum(-1, keepdims=True)
    np.testing.assert_allclose(masked.softmax(x, -1, mask=mask).numpy()[counted], soft[counted], rtol=1e-12)
    assert masked.softmax(x, -1, mask=mask)[0, 0].isnan().all()
    np.testing.assert_allclose(masked.softmin(-x, -1, mask=mask).numpy()[counted], soft[counted], rtol=1e-12)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(masked.log_softmax(x, -1, mask=mask).numpy()[counted], np.log(soft[counted]))
    plain = np.where(MASK, VALUES, 0)
    sizes = np.maximum(np.sqrt((plain**2).sum(-1, keepdims=True)), 1e-12)
    np.testing.assert_allclose(masked.normalize(x, 2.0, -1, mask=mask).numpy(), plain / sizes)
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask).numpy(), plain.cumsum(1))
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=mask).numpy(), np.where(MASK, VALUES, 1).cumprod(1))


def test_logaddexp_leaves_out_what_is_masked() -> None:
    a, b = rgrad.tensor([1.0, 2.0, 3.0]), rgrad.tensor([4.0, 5.0, 6.0])
    made = masked.logaddexp(
        a, b, input_mask=rgrad.tensor([True, False, False]), other_mask=rgrad.tensor([True, True, False])
    )
    assert made.tolist() == [rgrad.logaddexp(a, b)[0].item(), 5.0, -float("inf")]


def test_without_a_mask_all_elements_count() -> None:
    x = rgrad.tensor(VALUES)
    assert masked.mean(x).item() == pytest.approx(VALUES.mean())
    assert masked.sum(rgrad.tensor([True, True])).dtype == rgrad.int64
    np.testing.assert_allclose(masked.std(x, 1).numpy(), VALUES.std(1, ddof=1))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "logsumexp", "norm", "var", "std", "amax"])
def test_masked_elements_have_no_gradient(name: str) -> None:
    """The gradient is that of the reduction of the elements that count."""
    x = rgrad.tensor(VALUES[1], requires_grad=True)
    mask = MASK[1].copy()
    mask[:, :3] = True
    getattr(masked, name)(x, dim=1, mask=rgrad.tensor(mask)).sum().backward()
    assert x.grad is not None
    assert not x.grad.numpy()[~mask].any()
    assert x.grad.numpy()[mask].any()
    assert rgrad.autograd.gradcheck(
        lambda t: getattr(masked, name)(t, dim=1, mask=rgrad.tensor(mask)), (x.detach().requires_grad_(),)
    )


def test_bad_arguments() -> None:
    x = rgrad.tensor(VALUES)
    with pytest.raises(IndexError, match="broadcastable mask"):
        masked.sum(x, mask=rgrad.ones(1, 3, 4, 5, dtype=rgrad.bool))
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 3"):
        masked.sum(x, 3)
    with pytest.raises(RuntimeError, match="dim=1 appears multiple times"):
        masked.sum(x, (1, 1))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(rgrad.tensor([1, 2]))
    with pytest.raises(NotImplementedError, match="identity of amax"):
        masked.amax(x.to(rgrad.complex128), mask=rgrad.tensor(MASK))
    with pytest.raises(TypeError, match="argument 'input'"):
        masked.sum([1.0])
