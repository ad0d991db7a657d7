"""Derivatives of every operation: one result by differences in float64, and every mode beside it, on each device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
import rotation
from derivative_modes import FIRST, SECOND, Modes, Numbers, assert_modes, function_of, numbers
from op_kit import Op, Sample, leaves, told
from op_table import OPS
from rgrad.autograd import Function

DIFFERENTIABLE = [op for op in OPS if op.grad in ("smooth", "zero")]


def truth_of(op: Op, sample: Sample) -> Numbers:
    with rgrad.device("cpu"):
        return numbers(*function_of(op, sample, leaves(rgrad, sample, "float64")), second=op.grad == "smooth")


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_every_mode_gives_what_differences_give(op: Op) -> None:
    """In float64, of a third of the samples, the first and second order."""
    samples = op.all_samples()
    for sample in rotation.some(samples, -(-len(samples) // 3), f"modes {op.name}"):
        with told(op, sample, "float64"):
            assert_modes(*function_of(op, sample, leaves(rgrad, sample, "float64")), truth_of(op, sample))


@pytest.mark.wgpu
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_every_mode_on_wgpu(op: Op) -> None:
    """In float32 there, beside the differences in float64 on the CPU."""
    for sample in rotation.some(op.all_samples(), 1, f"modes {op.name} on wgpu"):
        truth = truth_of(op, sample)
        with told(op, sample, "float32"), rgrad.device("wgpu"):
            assert_modes(*function_of(op, sample, leaves(rgrad, sample, "float32")), truth, tol=2e-5)


# ---- the comparison itself -------------------------------------------------------------------------------------------


def sine(backward: float = 1.0, second: float = 1.0, tangent: float = 1.0) -> Any:
    """sin, with its gradient, the derivatives of its derivative, and its tangent each off by a factor."""

    class Cosine(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.cos()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g * ctx.saved_tensors[0].sin() * second

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return -t * ctx.saved_tensors[0].sin() * second

    class Sine(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * Cosine.apply(ctx.saved_tensors[0]) * backward

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * Cosine.apply(ctx.saved_tensors[0]) * tangent

    return lambda x: (Sine.apply(x),)


def failing(f: Any) -> set[str]:
    """The modes that a function fails in."""
    x = rgrad.tensor([[0.3, -0.7], [1.1, 0.4]], dtype=rgrad.float64)
    truth = numbers(f, [x], second=True)
    found = set()
    for mode in FIRST + SECOND:
        try:
            assert_modes(f, [x], truth, [mode])
        except AssertionError:
            found.add(mode)
    return found


BACKWARD = {mode for mode in FIRST if mode.startswith("backward")}
FORWARD = {mode for mode in FIRST if mode.startswith("forward")}


def test_a_right_function_passes_in_every_mode() -> None:
    assert failing(sine()) == set()


def test_an_error_of_a_thousandth_fails_at_first_order() -> None:
    # The differences of second order are of the wrong gradient; what goes through the gradient agrees with them.
    beside_it = {"backward_over_backward", "backward_over_forward", "forward_over_forward"}
    assert failing(sine(backward=1.001)) == BACKWARD | beside_it
    assert failing(sine(tangent=1.001)) >= FORWARD


def test_an_error_of_a_thousandth_fails_at_second_order() -> None:
    assert failing(sine(second=1.001)) == set(SECOND)


@pytest.mark.parametrize("mode", FIRST + SECOND)
def test_every_mode_is_compared(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is off by a thousandth fails, and the message names it."""
    right = getattr(Modes, mode)

    def off(self: Modes) -> tuple[Any, Any]:
        got, want = right(self)
        return np.asarray(got) * 1.001, want

    f, x = sine(), rgrad.tensor([0.3, -0.7], dtype=rgrad.float64)
    truth = numbers(f, [x], second=True)
    assert_modes(f, [x], truth)
    monkeypatch.setattr(Modes, mode, off)
    with pytest.raises(AssertionError, match=mode.replace("_", " ")):
        assert_modes(f, [x], truth)


def test_every_mode_is_one_of_the_list() -> None:
    written = {name for name in vars(Modes) if not name.startswith("_")}
    assert written == {*FIRST, *SECOND}
