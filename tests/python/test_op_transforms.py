"""Every operation of the table in forward mode, over batches, and forward over backward."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
from op_kit import Op, Sample, as_tuple, leaves, to_numpy, views
from op_table import OPS, cases
from rgrad.autograd import gradcheck
from rgrad.func import jvp, vmap


def floating(outs: Any) -> tuple[Any, ...]:
    return tuple(o for o in as_tuple(outs) if o.dtype.is_floating_point)


def function_of(op: Op, sample: Sample, leaf: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The operation as a function of its differentiable arguments alone, and these."""
    which = [k for k, a in enumerate(sample.args) if a.differentiable]

    def call(*args: Any) -> Any:
        given = list(leaf)
        for k, x in zip(which, args, strict=True):
            given[k] = x
        return floating(op.call(rgrad, *views(sample, given), **sample.params))

    return call, [leaf[k] for k in which]


@pytest.mark.parametrize(("op", "sample"), cases("smooth", "zero"))
def test_forward_mode_and_batches(op: Op, sample: Sample) -> None:
    call, xs = function_of(op, sample, leaves(rgrad, sample))
    xs = [x.detach().requires_grad_() for x in xs]
    assert gradcheck(
        call,
        tuple(xs),
        rtol=1e-5,
        atol=1e-5,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
        check_undefined_grad=False,
    )


@pytest.mark.parametrize(("op", "sample"), cases("smooth"))
def test_forward_over_backward(op: Op, sample: Sample) -> None:
    """Tangents of gradients are the products of second derivatives that a second backward pass gives."""
    call, xs = function_of(op, sample, leaves(rgrad, sample))
    rng = np.random.default_rng(5)
    directions = tuple(rgrad.tensor(rng.uniform(0.5, 1.5, tuple(x.shape))) for x in xs)
    weights = [rgrad.tensor(rng.uniform(0.5, 1.5, tuple(o.shape))) for o in call(*xs)]

    def gradients(*args: Any) -> tuple[Any, ...]:
        own = list(args)
        for x in own:
            if not x.requires_grad:
                x.requires_grad = True  # requires_grad_() is refused inside transforms
        terms = [(o * w).sum() for o, w in zip(call(*own), weights, strict=True)]
        return rgrad.autograd.grad(sum(terms[1:], terms[0]), own, create_graph=True, materialize_grads=True)

    _, got = jvp(gradients, tuple(x.detach() for x in xs), directions)
    leaf = [x.detach().requires_grad_() for x in xs]
    # The Hessian is symmetric: its product with the direction is the gradient of the directional derivative.
    along = sum(
        ((g * d).sum() for g, d in zip(gradients(*leaf), directions, strict=True)), rgrad.zeros((), dtype=rgrad.float64)
    )
    if along.requires_grad:
        want = rgrad.autograd.grad(along, leaf, materialize_grads=True)
    else:
        want = [rgrad.zeros_like(x) for x in leaf]
    for g, w in zip(got, want, strict=True):
        scale = max(1.0, float(np.abs(to_numpy(w)).max(initial=0.0)))
        np.testing.assert_allclose(to_numpy(g), to_numpy(w), rtol=1e-8, atol=1e-9 * scale)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_batch_is_what_a_loop_gives(op: Op) -> None:
    """All arguments batched, and each floating one alone while the others are the same for all."""
    for sample in op.all_samples():
        leaf = leaves(rgrad, sample)
        if not any(a.floating for a in sample.args):
            continue
        floats = [k for k, a in enumerate(sample.args) if a.floating]
        for chosen in [floats, *([k] for k in floats if len(floats) > 1)]:
            other = {k: leaf[k] + 0.03125 for k in chosen}

            def call(*args: Any, sample: Sample = sample) -> tuple[Any, ...]:
                return as_tuple(op.call(rgrad, *views(sample, args), **sample.params))

            singles = [call(*leaf), call(*[other.get(k, x) for k, x in enumerate(leaf)])]
            if any(a.shape != b.shape for a, b in zip(*singles, strict=True)):
                continue  # the shape of the result depends on values
            batched = [rgrad.stack([x, other[k]]) if k in chosen else x for k, x in enumerate(leaf)]
            dims = tuple(0 if k in chosen else None for k in range(len(leaf)))
            # What is the same for all has no room for a batch, and its masks no values of their own.
            no_room = op.name.startswith("setitem") and 0 not in chosen
            if op.name in REFUSED or no_room or (op.name == "masked_select" and 1 in chosen):
                with pytest.raises(RuntimeError, match="vmap"):
                    vmap(call, in_dims=dims)(*batched)
                continue
            got = vmap(call, in_dims=dims)(*batched)
            for one, a, b in zip(got, *singles, strict=True):
                want = np.stack([to_numpy(a), to_numpy(b)])
                assert one.dtype == a.dtype
                np.testing.assert_allclose(to_numpy(one), want, rtol=1e-12, atol=1e-14)


# What depends on values in a way that a batch cannot follow; PyTorch refuses it, too.
REFUSED = frozenset({"unique", "unique_consecutive"})


WGPU = (
    "exp",
    "mul",
    "div",
    "pow",
    "tanh",
    "sum",
    "mean",
    "amax",
    "matmul",
    "softmax",
    "log_softmax",
    "cat",
    "index_select",
    "transpose",
    "where",
    "cumsum",
)


@pytest.mark.wgpu
@pytest.mark.parametrize("op", [op for op in OPS if op.name in WGPU], ids=lambda op: op.name)
def test_on_wgpu(op: Op) -> None:
    """Forward mode over a batch of tangents in float32 on wgpu beside float64 on the CPU."""
    sample = next(s for s in op.all_samples() if all(a.base.size for a in s.args))

    def run(dtype: str) -> list[np.ndarray]:
        call, xs = function_of(op, sample, leaves(rgrad, sample, dtype))
        rng = np.random.default_rng(3)
        tangents = tuple(rgrad.tensor(rng.uniform(0.5, 1.5, (2, *x.shape)).astype(dtype)) for x in xs)
        found = vmap(lambda *ts: jvp(call, tuple(xs), ts)[1])(*tangents)
        return [to_numpy(t) for t in found]

    want = run("float64")
    with rgrad.device("wgpu"):
        got = run("float32")
    for g, w in zip(got, want, strict=True):
        scale = max(1.0, float(np.abs(w).max(initial=0.0)))
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * scale)


def test_the_page_of_rules_is_up_to_date() -> None:
    """docs/transform-rules.md says which operations go a slow way."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "transform_rules.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
