"""Functions of complex tensors, checked as functions of pairs of real numbers, whose derivatives are numeric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rgrad


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Complex numbers that are neither small nor large."""
    rng = np.random.default_rng([seed, *shape])
    size, angle = rng.uniform(0.5, 1.5, shape), rng.uniform(-np.pi, np.pi, shape)
    return np.asarray(size * np.exp(1j * angle))


def derivatives_hold(function: Callable[..., Any], given: Sequence[np.ndarray], second: bool = True) -> None:
    """The gradients, the tangents and, with ``second``, the second derivatives agree with numeric ones."""
    leaves = tuple(rgrad.view_as_real(rgrad.tensor(a)).clone().requires_grad_() for a in given)

    def of_pairs(*pairs: Any) -> Any:
        made = function(*map(rgrad.view_as_complex, pairs))
        return rgrad.view_as_real(made) if made.dtype.is_complex else made

    assert rgrad.autograd.gradcheck(of_pairs, leaves, check_forward_ad=True)
    if second:
        assert rgrad.autograd.gradgradcheck(of_pairs, leaves)


def conjugate_gradient(function: Callable[..., Any], given: Sequence[np.ndarray]) -> None:
    """PyTorch's convention: a step against the gradient of a real result makes it smaller, and so do the parts' own."""
    leaves = [rgrad.tensor(a, requires_grad=True) for a in given]
    pairs = [rgrad.view_as_real(x.detach()).clone().requires_grad_() for x in leaves]
    size = function(*leaves).abs().sum()
    of_pairs = function(*map(rgrad.view_as_complex, pairs)).abs().sum()
    for x, p in zip(rgrad.autograd.grad(size, leaves), rgrad.autograd.grad(of_pairs, pairs), strict=True):
        np.testing.assert_allclose(rgrad.view_as_real(x.resolve_conj()).numpy(), p.numpy(), rtol=1e-10, atol=1e-12)
