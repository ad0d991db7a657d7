"""Search, integrals, differences, combinations and windows beside PyTorch: values, dtypes, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rgrad
from rgrad._runtime.names import IN_PLACE

NAN, INF = float("nan"), float("inf")

VALUES: dict[str, Callable[[Any], Any]] = {
    "searchsorted": lambda T: T.searchsorted(T.tensor([1.0, 3, 3, 5]), T.tensor([[0.0, 1, 3], [4, 5, 6]])),
    "searchsorted right": lambda T: T.searchsorted(T.tensor([1.0, 3, 3, 5]), T.tensor([0.0, 1, 3, 5, 9]), right=True),
    "searchsorted side": lambda T: T.searchsorted(T.tensor([1, 3, 5]), T.tensor([3]), side="right", out_int32=True),
    "searchsorted mixed": lambda T: T.searchsorted(T.tensor([1.0, 2.5, 3]), T.tensor([3, 2])),
    "searchsorted number": lambda T: T.searchsorted(T.tensor([1.0, 3, 5]), 3),
    "searchsorted rows": lambda T: T.searchsorted(T.tensor([[1.0, 3, 5], [2, 4, 6]]), T.tensor([[3.0, 0], [4, 9]])),
    "searchsorted nan": lambda T: T.searchsorted(T.tensor([1.0, 3, INF]), T.tensor([NAN, INF, -INF])),
    "searchsorted nans": lambda T: T.searchsorted(T.tensor([1.0, NAN, NAN]), T.tensor([NAN, 2.0])),
    "searchsorted nans right": lambda T: T.searchsorted(T.tensor([1.0, NAN, NAN]), T.tensor([NAN, 2.0]), right=True),
    "searchsorted empty": lambda T: T.searchsorted(T.tensor([]), T.tensor([1.0, 2.0])),
    "searchsorted no values": lambda T: T.searchsorted(T.tensor([1.0]), T.ones(0, 2)),
    "searchsorted sorter": lambda T: T.searchsorted(T.tensor([5.0, 1, 3]), T.tensor([3.0]), sorter=T.tensor([1, 2, 0])),
    "searchsorted strided": lambda T: T.searchsorted(T.arange(10.0)[::3], T.arange(12.0).reshape(3, 4).t()),
    "bucketize": lambda T: T.bucketize(T.tensor([[0.0, 3], [6, 1]]), T.tensor([1.0, 3, 5])),
    "bucketize number": lambda T: T.bucketize(3, T.tensor([1.0, 3, 5]), right=True),
    "isin": lambda T: T.isin(T.tensor([[1, 2], [3, 2]]), T.tensor([2, 5, 1])),
    "isin number": lambda T: T.isin(T.arange(4), 2),
    "isin number first": lambda T: T.isin(2, T.arange(4)),
    "isin invert": lambda T: T.isin(T.arange(6.0), T.tensor([2.0, 3]), invert=True),
    "isin empty": lambda T: T.isin(T.arange(3), T.tensor([], dtype=T.int64), invert=True),
    "isin nan": lambda T: T.isin(T.tensor([NAN, 1.0]), T.tensor([NAN, 1.0])),
    "isin mixed": lambda T: T.isin(T.arange(3), T.tensor([1.0, 1.5])),
    "is_nonzero": lambda T: T.is_nonzero(T.tensor([0.5])),
    "is_same_size": lambda T: T.is_same_size(T.ones(2, 1), T.ones(2)),
    "cartesian_prod": lambda T: T.cartesian_prod(T.tensor([1, 2]), T.tensor([3, 4, 5]), T.tensor([6])),
    "cartesian_prod empty": lambda T: T.cartesian_prod(T.tensor([1, 2]), T.tensor([], dtype=T.int64)),
    "combinations": lambda T: T.combinations(T.tensor([1, 2, 3, 4]), 3),
    "combinations again": lambda T: T.combinations(T.tensor([1.0, 2, 3]), with_replacement=True),
    "combinations none": lambda T: T.combinations(T.tensor([1, 2]), 0),
    "combinations few": lambda T: T.combinations(T.tensor([1, 2]), 3),
    "combinations empty": lambda T: T.combinations(T.tensor([])),
    "vander": lambda T: T.vander(T.tensor([1, 2, 3], dtype=T.int32)),
    "vander wide": lambda T: T.vander(T.tensor([1.0, 2, 3]), 5, True),
    "vander none": lambda T: T.vander(T.tensor([1.0, 2, 3]), 0),
    "unravel_index": lambda T: T.unravel_index(T.tensor([[3, 5], [-1, 7]]), (2, 3)),
    "unravel_index int": lambda T: T.unravel_index(T.tensor(3), 4),
    "hann": lambda T: T.hann_window(5),
    "hann whole": lambda T: T.hann_window(5, periodic=False, dtype=T.float64),
    "bartlett": lambda T: T.bartlett_window(6),
    "bartlett whole": lambda T: T.bartlett_window(7, False, dtype=T.float64),
    "bartlett 2": lambda T: T.bartlett_window(2, periodic=False),
    "kaiser": lambda T: T.kaiser_window(9, dtype=T.float64),
    "kaiser whole": lambda T: T.kaiser_window(8, False, 3.5, dtype=T.float64),
    "kaiser 1": lambda T: T.kaiser_window(1),
    "kaiser 0": lambda T: T.kaiser_window(0),
    "hann 0": lambda T: T.hann_window(0),
    "hann 1": lambda T: T.hann_window(1),
    "hamming": lambda T: T.hamming_window(6, True, 0.6, 0.3),
    "blackman": lambda T: T.blackman_window(7, dtype=T.float64),
}
DIFFERENTIABLE: dict[str, Callable[[Any, Any], Any]] = {
    "trapezoid": lambda T, x: T.trapezoid(x, dx=2.5),
    "trapezoid dim": lambda T, x: T.trapezoid(x, dim=0),
    "trapezoid places": lambda T, x: T.trapezoid(x, T.tensor([0.0, 1, 3, 4], dtype=T.float64)),
    "trapezoid places dim": lambda T, x: T.trapezoid(x, T.tensor([0.0, 1, 3], dtype=T.float64), dim=0),
    "trapezoid places of all": lambda T, x: T.trapz(x, x.detach() ** 2),
    "trapezoid of one": lambda T, x: T.trapezoid(x[:, :1]),
    "cumulative": lambda T, x: T.cumulative_trapezoid(x),
    "cumulative places": lambda T, x: T.cumulative_trapezoid(x, x.detach() ** 2, dim=0),
    "gradient": lambda T, x: T.gradient(x)[0],
    "gradient of one": lambda T, x: T.gradient(x, spacing=0.5, dim=1)[0],
    "gradient of both": lambda T, x: T.gradient(x, spacing=(0.5, 2.0), edge_order=2)[1],
    "gradient places": lambda T, x: T.gradient(x, spacing=[T.tensor([0.0, 1, 3, 4], dtype=T.float64)], dim=1)[0],
    "gradient places 2": lambda T, x: T.gradient(
        x, spacing=[T.tensor([0.0, 1, 3, 7], dtype=T.float64)], dim=1, edge_order=2
    )[0],
    "cartesian_prod": lambda T, x: T.cartesian_prod(x[0], x[1]),
    "combinations": lambda T, x: T.combinations(x[0], 2),
    "chain_matmul": lambda T, x: T.chain_matmul(x, x.t(), x),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "searchsorted side": lambda T: T.searchsorted(T.ones(3), T.ones(1), side="up"),
    "searchsorted sides": lambda T: T.searchsorted(T.ones(3), T.ones(1), side="left", right=True),
    "searchsorted rows": lambda T: T.searchsorted(T.ones(2, 3), T.ones(1)),
    "searchsorted sorter": lambda T: T.searchsorted(T.ones(3), T.ones(1), sorter=T.ones(2).long()),
    "bucketize": lambda T: T.bucketize(T.ones(3), T.ones(2, 2)),
    "is_nonzero": lambda T: T.is_nonzero(T.ones(2)),
    "combinations": lambda T: T.combinations(T.ones(2, 2)),
    "combinations r": lambda T: T.combinations(T.ones(2), -1),
    "cartesian_prod": lambda T: T.cartesian_prod(T.ones(2, 2)),
    "vander": lambda T: T.vander(T.ones(2, 2)),
    "vander N": lambda T: T.vander(T.ones(2), -1),
    "trapezoid": lambda T: T.trapezoid(T.tensor(1.0)),
    "trapezoid places": lambda T: T.trapezoid(T.ones(2, 3), T.ones(2)),
    "trapezoid no places": lambda T: T.trapezoid(T.ones(2, 3), T.tensor(1.0)),
    "gradient": lambda T: T.gradient(T.ones(1)),
    "gradient order": lambda T: T.gradient(T.ones(4), edge_order=3),
    "gradient spacing": lambda T: T.gradient(T.ones(4), spacing=(1.0, 2.0)),
    "gradient dims": lambda T: T.gradient(T.ones(4, 4), dim=(0, 0)),
    "unravel_index": lambda T: T.unravel_index(T.tensor([1.0]), (2, 3)),
    "hann": lambda T: T.hann_window(-1),
    "bartlett": lambda T: T.bartlett_window(-1),
    "kaiser": lambda T: T.kaiser_window(-1),
    "kaiser dtype": lambda T: T.kaiser_window(4, dtype=T.int64),
    "hann dtype": lambda T: T.hann_window(4, dtype=T.int64),
    "chain_matmul": lambda T: T.chain_matmul(T.ones(2), T.ones(2, 2)),
}
# Words that PyTorch's message and ours share.
WORDS = {
    "gradient order": "edge_order",
    "hann dtype": "floating point",
    "gradient spacing": "spacing",
    "hann": "window_length",
    "trapezoid no places": "The size of tensor",
}


def flat(made: Any) -> list[Any]:
    return [x for part in made for x in flat(part)] if isinstance(made, (tuple, list)) else [made]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    wanted, got = (flat(VALUES[name](library)) for library in (torch, rgrad))
    for a, b in zip(wanted, got, strict=True):
        if not isinstance(a, torch.Tensor):
            assert a == b
            continue
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    numbers = np.random.default_rng(0).uniform(0.5, 2, (3, 4))
    told = []
    for library in (torch, rgrad):
        x = library.tensor(numbers, requires_grad=True)
        made = DIFFERENTIABLE[name](library, x)
        (made * library.cos(library.arange(made.numel(), dtype=library.float64)).reshape(made.shape)).sum().backward()
        told.append((made.detach().numpy(), x.grad.numpy()))
    np.testing.assert_allclose(told[1][0], told[0][0], rtol=1e-9)
    np.testing.assert_allclose(told[1][1], told[0][1], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as theirs:
        REFUSED[name](torch)
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[name](rgrad)
    words = WORDS.get(name)
    if words is None:
        assert str(theirs.value).splitlines()[0][:35].rstrip(".").lower() in str(ours.value).lower()
    else:
        assert words in str(theirs.value)
        assert words in str(ours.value)


def test_functions_in_place_are_pytorchs() -> None:
    theirs = {n for n in dir(torch) if n.endswith("_") and not n.startswith("_") and hasattr(rgrad.Tensor, n)}
    assert {n for n in theirs if hasattr(rgrad, n)} == theirs
    assert {n for n in IN_PLACE if n.endswith("_")} <= theirs
    x = rgrad.tensor([1.0, 2.0])
    assert rgrad.exp_(x) is x
    assert rgrad.clamp_(x, max=3.0) is x
    assert x.tolist() == pytest.approx([2.7182817, 3.0])
