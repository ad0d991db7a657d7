"""A call of every function of `nn.functional` beside PyTorch: values, strides, gradients of two orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import rgrad
from nn_functional_calls import CALLS, Maker
from rgrad.nn import functional

# The numbers that they draw are others.
DRAWS = {"gumbel_softmax"}
# PyTorch has no second derivative.
ONCE = {
    "ctc_loss",
    "hardsigmoid",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "pdist",
    "scaled_dot_product_attention",
}


def told(library: Any, functions: Any, name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Shape, strides, dtype, elements; the first gradients; the gradients of their squares' sum."""
    maker = Maker(library, library.float64, "cpu")
    CALLS[name](functions, maker)
    inputs = [x.detach().clone().requires_grad_() for x in maker.made]
    made = CALLS[name](functions, Maker(library, library.float64, "cpu", inputs))
    made = made[0] if isinstance(made, tuple) else made
    values = [tuple(made.shape), made.stride(), str(made.dtype).rpartition(".")[2], made.detach().numpy()]
    if not made.requires_grad:
        return values, [], []
    weights = library.cos(library.arange(made.numel(), dtype=library.float64)).reshape(made.shape)
    grads = library.autograd.grad((made * weights).sum(), inputs, create_graph=True, allow_unused=True)
    first = [None if g is None else g.detach().numpy() for g in grads]
    if name in ONCE:
        if library is rgrad:
            return values, first, []
        with pytest.raises((RuntimeError, NotImplementedError)):
            sum((g * g).sum() for g in grads).backward()
        return values, first, []
    energy = sum((g * g).sum() for g in grads if g is not None and g.requires_grad)
    if not isinstance(energy, library.Tensor):
        return values, first, []
    seconds = library.autograd.grad(energy, inputs, allow_unused=True)
    return values, first, [None if g is None else (g + 0).numpy() for g in seconds]


def same(a: Any, b: Any) -> None:
    if isinstance(a, np.ndarray):
        # PyTorch computes with a sixth in single precision.
        np.testing.assert_allclose(b, a, rtol=1e-7, atol=1e-12)
    else:
        assert a == b


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(functional.__all__) - DRAWS))
def test_a_call_gives_what_pytorch_gives(name: str) -> None:
    wanted, got = told(torch, torch.nn.functional, name), told(rgrad, functional, name)
    for theirs, ours in zip(wanted[:2], got[:2], strict=True):
        for a, b in zip(theirs, ours, strict=True):
            same(a, b)
    # A gradient that does not depend on an input is None in one library and zeros in the other.
    for a, b in zip(wanted[2], got[2], strict=False):
        zeros = np.zeros_like(a if b is None else b) if a is not None or b is not None else None
        same(zeros if a is None else a, zeros if b is None else b)
