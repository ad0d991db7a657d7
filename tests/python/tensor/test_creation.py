"""Creation, conversion and questions: stored outcomes of PyTorch; memory shared with NumPy; random numbers."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

import rgrad
from expressions import EXPRESSIONS, outcome
from places import DATA

STORED = json.loads((DATA / "expressions.json").read_text())


def test_all_expressions_are_stored() -> None:
    assert list(STORED) == EXPRESSIONS


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    assert outcome(lambda: eval(expression, {"T": rgrad, "np": np})) == STORED[expression]


def test_from_numpy_and_numpy_share_memory() -> None:
    a = np.arange(6.0).reshape(2, 3)
    t = rgrad.from_numpy(a)
    a[0, 0] = 10
    assert t[0, 0].item() == 10.0
    t[1, 2] = -1
    assert a[1, 2] == -1.0
    back = t.t().numpy()
    back[0, 1] = 77
    assert a[1, 0] == 77.0
    v = rgrad.from_numpy(a[:, 1:])
    v.zero_()
    assert a.tolist() == [[10.0, 0.0, 0.0], [77.0, 0.0, 0.0]]


def test_the_array_outlives_its_names() -> None:
    t = rgrad.from_numpy(np.full(1000, 3.0))
    assert t.sum().item() == 3000.0
    a = rgrad.full((1000,), 4.0).numpy()
    assert a.sum() == 4000.0


def test_tensor_copies_as_tensor_shares() -> None:
    a = np.zeros(2)
    copied, shared = rgrad.tensor(a), rgrad.as_tensor(a)
    a[0] = 1
    assert copied.tolist() == [0.0, 0.0]
    assert shared.tolist() == [1.0, 0.0]
    t = rgrad.ones(2)
    assert rgrad.as_tensor(t) is t
    assert rgrad.as_tensor(t, dtype=rgrad.float64) is not t


def test_read_only_arrays_warn() -> None:
    a = np.zeros(2)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        rgrad.from_numpy(a)


def test_tensor_of_a_tensor_warns_and_copies() -> None:
    x = rgrad.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="clone"):
        y = rgrad.tensor(x)
    assert not y.requires_grad
    assert y.data_ptr() != x.data_ptr()


def test_seeds_and_generators() -> None:
    rgrad.manual_seed(5)
    a, b = rgrad.rand(4), rgrad.randn(4)
    rgrad.manual_seed(5)
    assert rgrad.equal(rgrad.rand(4), a)
    assert rgrad.equal(rgrad.randn(4), b)
    g = rgrad.Generator()
    g.manual_seed(9)
    before = rgrad.rand(3)
    one = rgrad.rand(3, generator=g)
    g.manual_seed(9)
    assert rgrad.equal(rgrad.rand(3, generator=g), one)
    assert not rgrad.equal(before, one)
    state = g.get_state()
    two = rgrad.randperm(10, generator=g)
    g.set_state(state)
    assert rgrad.equal(rgrad.randperm(10, generator=g), two)
    assert g.initial_seed() == 9


def test_random_numbers_do_not_depend_on_the_number_of_threads() -> None:
    threads = rgrad.get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            rgrad.set_num_threads(n)
            rgrad.manual_seed(1)
            results.append((rgrad.randn(100_003), rgrad.rand(70_001), rgrad.randperm(5_000)))
    finally:
        rgrad.set_num_threads(threads)
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            assert rgrad.equal(x, y)


def test_results_are_the_same_bits_for_any_number_of_threads() -> None:
    x = rgrad.tensor(np.random.default_rng(0).standard_normal((1237, 911)).astype("f4"))
    threads = rgrad.get_num_threads()
    results: list[Any] = []
    try:
        for n in (1, 2, 3, 7):
            rgrad.set_num_threads(n)
            w = x.clone().requires_grad_()
            (w.tanh() @ x.t()).softmax(1).var(0).sum().backward()
            results.append((x.sum(), x.sum(0), x.sum(1), x @ x.t(), x.cumsum(0), x.norm(), x.exp().mean(), w.grad))
    finally:
        rgrad.set_num_threads(threads)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_copies_of_tensors() -> None:
    x = rgrad.tensor([1.0, 2.0], requires_grad=True)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
    z = pickle.loads(pickle.dumps(x))
    assert z.tolist() == [1.0, 2.0]
    assert z.requires_grad
    assert z.dtype == x.dtype


def test_hash_is_identity() -> None:
    x, y = rgrad.ones(1), rgrad.ones(1)
    assert len({x, y, x}) == 2
    assert {x: "x"}[x] == "x"


def test_iteration_gives_differentiable_parts() -> None:
    x = rgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    sum(k * row.sum() for k, row in enumerate(x, 1)).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    a, b = x
    assert b.tolist() == [3.0, 4.0]
    assert a.requires_grad


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (255.5, rgrad.uint8),
        (-0.5, rgrad.uint8),
        (127.5, rgrad.int8),
        (-128.5, rgrad.int8),
        (2.0**31 - 0.5, rgrad.int32),
    ],
)
def test_fractions_beyond_a_dtype(value: float, dtype: rgrad.dtype) -> None:
    with pytest.raises(
        RuntimeError, match=f"value cannot be converted to type {str(dtype).removeprefix('rgrad.')} without overflow"
    ):
        rgrad.tensor([value], dtype=dtype)
    assert rgrad.tensor([int(value)], dtype=dtype).item() == int(value)
