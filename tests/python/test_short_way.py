"""The short way of operations on few numbers: the bits, nodes, saved values and errors of the long one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import _core

Call = Callable[[Any, Any], Any]

NUMBERS = [2, -3, 0, 1, 2.0, 1.5, -0.25, 1e30, 1e-40, float("inf"), float("nan"), 16777217, 2**62, True]
OPERATORS: dict[str, Call] = {
    "x + n": lambda x, n: x + n,
    "n + x": lambda x, n: n + x,
    "x - n": lambda x, n: x - n,
    "n - x": lambda x, n: n - x,
    "x * n": lambda x, n: x * n,
    "n * x": lambda x, n: n * x,
    "x / n": lambda x, n: x / n,
    "n / x": lambda x, n: n / x,
    "x ** n": lambda x, n: x**n,
    "n ** x": lambda x, n: n**x,
    "x % n": lambda x, n: x % n,
    "n % x": lambda x, n: n % x,
    "x // n": lambda x, n: x // n,
    "maximum": lambda x, n: rgrad.clamp(x, min=n),
    "atan2": lambda x, n: rgrad.atan2(x, n),
    "xlogy": lambda x, n: rgrad.xlogy(x, n),
    "leaky_relu": lambda x, n: rgrad.nn.functional.leaky_relu(x, n),
    "sub alpha": lambda x, n: rgrad.sub(x, x, alpha=n),
}
SHAPES = [(), (1,), (3,), (15,), (4, 4), (17,), (8, 16), (5, 27), (1000,)]


@contextmanager
def long_way() -> Iterator[None]:
    before = _core._set_short_way(False)
    try:
        yield
    finally:
        _core._set_short_way(before)


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    made = np.random.default_rng(len(shape)).standard_normal(shape)
    return rgrad.tensor(np.asarray(made, dtype="float64").tolist(), dtype=dtype)


def bits(t: Any) -> Any:
    a = t.detach().numpy()
    # The sign of a NaN may differ.
    return (a.shape, a.dtype, np.where(np.isnan(a), np.nan, a).tobytes() if a.dtype.kind == "f" else a.tobytes())


def saved(node: Any) -> dict[str, Any]:
    names = [n for n in dir(node) if n.startswith("_saved_")]
    found = {n: getattr(node, n) for n in names}

    def shown(v: Any) -> Any:
        return (bits(v), v.requires_grad, v.grad_fn and v.grad_fn.name()) if isinstance(v, rgrad.Tensor) else repr(v)

    return {n: shown(v) for n, v in found.items()}


def outcome(call: Call, x: Any, number: Any) -> Any:
    """Everything that a user can see of one call, forward and backward."""
    try:
        y = call(x, number)
    except Exception as e:
        return (type(e), str(e))
    if not y.requires_grad:
        return (bits(y), y.is_leaf)
    node = y.grad_fn
    edges = [None if n is None else (n.name(), k) for n, k in node.next_functions]
    kept = saved(node)
    x.grad = None
    y.backward(rgrad.ones_like(y), retain_graph=True)
    first = bits(x.grad)
    (g,) = rgrad.autograd.grad(y, x, rgrad.ones_like(y), create_graph=True)
    second = None
    if g.requires_grad:
        (second,) = rgrad.autograd.grad(g.sum(), x, allow_unused=True)
    return (bits(y), node.name(), edges, kept, first, bits(g), None if second is None else bits(second))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
def test_numbers_go_the_short_way_with_the_same_results(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        for number in NUMBERS:
            for needs in (False, True):
                x = values(shape, dtype).requires_grad_(needs)
                short = outcome(OPERATORS[name], x, number)
                with long_way():
                    long = outcome(OPERATORS[name], x, number)
                assert short == long, (shape, number, needs)


@pytest.mark.parametrize("dtype", [rgrad.bool, rgrad.uint8, rgrad.int32, rgrad.int64], ids=str)
def test_other_types_are_promoted_as_before(dtype: Any) -> None:
    x = rgrad.tensor([[0, 1], [1, 1]]).to(dtype)
    for name, call in OPERATORS.items():
        for number in NUMBERS:
            short = outcome(call, x, number)
            with long_way():
                assert short == outcome(call, x, number), (name, number)


def test_a_number_keeps_the_type_of_a_float_tensor() -> None:
    x = rgrad.ones(2, dtype=rgrad.float32)
    assert {(x * n).dtype for n in (2, 2.5, 2**60)} == {rgrad.float32}
    with pytest.raises(OverflowError):
        x * 2**70


@pytest.mark.parametrize("shape", [(), (4, 4), (17,), (2000,)])
def test_gradients_that_are_handed_on_are_apart(shape: tuple[int, ...]) -> None:
    """Of a sum both operands get the cotangent itself: what is done to one gradient must not be seen in the other."""
    x, y = (values(shape, rgrad.float32).requires_grad_() for _ in range(2))
    seed = rgrad.ones(shape)
    (x + y).backward(seed)
    x.grad.mul_(5)
    assert (y.grad == 1).all()
    assert (seed == 1).all()
    x.grad = y.grad = None
    # Each operand's gradient is added to elsewhere, in the pass.
    z = x + y
    (z - x + z + x * 2 + (y + x) - (x - y)).backward(seed)
    assert (x.grad == 3).all()
    assert (y.grad == 4).all()
    assert (seed == 1).all()
    gx, gy = rgrad.autograd.grad(x - y, (x, y), seed)
    assert (gx == 1).all()
    assert (gy == -1).all()


def test_subclasses_of_float_and_int_are_numbers() -> None:
    class Metres(float):
        pass

    class Count(int):
        pass

    x = rgrad.ones(2)
    assert (x * Metres(2.5)).tolist() == [2.5, 2.5]
    assert (Count(3) - x).tolist() == [2.0, 2.0]
    assert (x * np.float32(0.5)).tolist() == [0.5, 0.5]


def test_the_saved_number_is_no_tensor_for_hooks() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = x * 3
    assert y.grad_fn._saved_other.item() == 3.0
    with pytest.raises(RuntimeError, match="Python number"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    y.backward(rgrad.ones(2))
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_other
