"""Forward mode of every operation of the table beside torch: tangents, tangents of tangents, and which share memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from op_kit import Op, Sample, as_tuple  # noqa: E402
from op_table import OPS  # noqa: E402

pytestmark = pytest.mark.oracle

DIFFERENTIABLE = [op for op in OPS if op.grad != "none"]
# Tangents of tangents that are wrong in torch: those of rgrad are compared with differences of first ones.
WRONG_IN_TORCH = {"layer_norm", "batch_norm", "instance_norm", "cumprod_with_zeros"}


# The tangent of `as_strided` is laid out anew, because the tangent of its input may have other strides.
VIEWS = [op for op in DIFFERENTIABLE if op.family == "view" and not op.name.startswith("as_strided")]


def inputs(T: Any, sample: Sample) -> tuple[list[Any], list[int]]:
    """The leaves, and which of them have tangents."""
    leaves = [T.tensor(a.base.astype("float64") if a.floating else a.base) for a in sample.args]
    return leaves, [i for i, a in enumerate(sample.args) if a.floating and a.differentiable]


def tangents_of(T: Any, leaves: list[Any], wanted: list[int], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [T.tensor(rng.uniform(-1, 1, tuple(leaves[i].shape))) for i in wanted]


def function(T: Any, op: Op, sample: Sample, leaves: list[Any], wanted: list[int]) -> Any:
    def call(*given: Any) -> Any:
        T.manual_seed(3)
        full = list(leaves)
        for i, x in zip(wanted, given, strict=True):
            full[i] = x
        out = op.call(T, *(a.view(x) for a, x in zip(sample.args, full, strict=True)), **sample.params)
        return tuple(o for o in as_tuple(out) if isinstance(o, T.Tensor) and o.is_floating_point())

    return call


def made(T: Any, op: Op, sample: Sample, order: int) -> Any:
    leaves, wanted = inputs(T, sample)
    call = function(T, op, sample, leaves, wanted)
    primals = tuple(leaves[i].clone() for i in wanted)
    first, second = (tuple(tangents_of(T, leaves, wanted, seed)) for seed in (1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if order == 1:
            return T.func.jvp(call, primals, first)[1]
        return T.func.jvp(lambda *x: T.func.jvp(call, x, first)[1], primals, second)[1]


def differences(op: Op, sample: Sample) -> list[Any]:
    """Tangents of tangents by differences of tangents, in torch's tensors."""
    leaves, wanted = inputs(rgrad, sample)
    call = function(rgrad, op, sample, leaves, wanted)
    first, second = (tangents_of(rgrad, leaves, wanted, seed) for seed in (1, 2))
    step = 1e-4

    def tangents(by: float) -> Any:
        moved = tuple(leaves[i] + by * t for i, t in zip(wanted, second, strict=True))
        return rgrad.func.jvp(call, moved, tuple(first))[1]

    # Of the fourth order.
    points = [tangents(k * step) for k in (-2, -1, 1, 2)]
    return [
        torch.from_numpy(((a - d) + 8 * (c - b)).div(12 * step).numpy()) for a, b, c, d in zip(*points, strict=True)
    ]


def compared(op: Op, order: int, count: int, wrong: bool = False) -> int:
    """How many tangents agree with PyTorch's, or, where those are ``wrong``, with differences."""
    seen = 0
    for sample in op.all_samples()[:count]:
        if not inputs(rgrad, sample)[1]:
            continue
        try:
            theirs = differences(op, sample) if wrong else made(torch, op, sample, order)
        except (RuntimeError, NotImplementedError, ValueError, IndexError):
            continue
        mine = made(rgrad, op, sample, order)
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert tuple(a.shape) == tuple(b.shape)
            want = b.detach().resolve_conj().numpy(force=True)
            if np.isnan(want).any():
                continue
            got = a.detach().numpy()
            assert np.allclose(got, want, rtol=1e-6, atol=2e-8), (sample.id, got, want)
            seen += 1
    return seen


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_tangents(op: Op) -> None:
    compared(op, 1, 4)


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.grad == "smooth"], ids=lambda op: op.name)
def test_tangents_of_tangents(op: Op) -> None:
    compared(op, 2, 2, op.name in WRONG_IN_TORCH)


@pytest.mark.parametrize("name", sorted(WRONG_IN_TORCH))
def test_what_is_wrong_in_torch_still_is(name: str) -> None:
    (op,) = (op for op in DIFFERENTIABLE if op.name == name)
    with pytest.raises(AssertionError):
        compared(op, 2, 2)


def test_most_operations_are_compared() -> None:
    """What torch refuses is left out above; here it is counted."""
    assert sum(compared(op, 1, 1) > 0 for op in DIFFERENTIABLE) > 0.8 * len(DIFFERENTIABLE)


@pytest.mark.parametrize("op", VIEWS, ids=lambda op: op.name)
def test_tangents_of_views_are_views(op: Op) -> None:
    """A write to the tangent of a view shows in the tangent of its base where it does in torch."""

    def shares(T: Any, sample: Sample) -> list[Any]:
        leaves, wanted = inputs(T, sample)
        forward = T.autograd.forward_ad
        with forward.dual_level(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tangents = tangents_of(T, leaves, wanted, 1)
            duals = [forward.make_dual(leaves[i], t) for i, t in zip(wanted, tangents, strict=True)]
            outs = function(T, op, sample, leaves, wanted)(*duals)
            seen = []
            for out in outs:
                got = forward.unpack_dual(out).tangent
                seen.append(out._is_view() and out._base is not None)
                if got is not None and got.numel():
                    got.zero_()
                seen.append([t.tolist() for t in tangents])
            return seen

    for sample in op.all_samples()[:3]:
        if inputs(rgrad, sample)[1]:
            try:
                theirs = shares(torch, sample)
            except (RuntimeError, NotImplementedError):
                continue
            assert shares(rgrad, sample) == theirs, sample.id
