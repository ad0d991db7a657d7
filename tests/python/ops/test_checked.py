"""The decorator of operations written in Python: what annotations demand, and what becomes of ``out``."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import rgrad
from rgrad import Tensor
from rgrad._operation.checked import operation

Both = namedtuple("Both", ["low", "high"])
SEEN: list[Any] = []


@operation("scaled")
def scaled(x: Tensor, by: float = 2.0, *, times: int = 1, sign: str | None = None, out: Tensor | None = None) -> Tensor:
    """Multiply."""
    SEEN.append(out)
    return x * by * times


@operation("both", casts=True)
def both(x: Tensor | float, y: Tensor | float, out: tuple[Tensor, ...] | None = None) -> Any:
    """Give two results."""
    return Both(rgrad.as_tensor(x - y), rgrad.as_tensor(x + y))


def test_what_annotations_demand() -> None:
    x = rgrad.ones(2)
    for call, message in (
        (lambda: scaled(3), r"scaled\(\): argument 'x' \(position 1\) must be Tensor, not int"),
        (lambda: scaled(x, "a"), r"scaled\(\): argument 'by' \(position 2\) must be float, not str"),
        (lambda: scaled(x, times=1.0), r"scaled\(\): argument 'times' must be int, not float"),
        (lambda: scaled(x, times=True), r"scaled\(\): argument 'times' must be int, not bool"),
        (lambda: scaled(x, sign=1), r"scaled\(\): argument 'sign' must be str, not int"),
        (lambda: scaled(x, by=None), r"scaled\(\): argument 'by' \(position 2\) must be float, not NoneType"),
        (lambda: both(1.0, 2.0), r"both\(\): one of the operands must be Tensor, but they are float and float"),
    ):
        with pytest.raises(TypeError, match=message):
            call()  # type: ignore[no-untyped-call]
    assert scaled(x, 3, sign=None).tolist() == [3, 3]


def test_out_is_written_and_never_seen() -> None:
    SEEN.clear()
    out = rgrad.empty(0)
    assert scaled(rgrad.ones(2), out=out) is out
    assert out.tolist() == [2, 2]
    assert SEEN == [None]
    pair = (rgrad.empty(0), rgrad.empty(0))
    made = both(rgrad.ones(1), 2.0, pair)
    assert type(made) is Both
    assert made.low is pair[0]
    assert made.high is pair[1]
    assert [t.tolist() for t in pair] == [[-1], [3]]


def test_out_that_does_not_fit_is_left_as_it_was() -> None:
    out = rgrad.zeros(2, dtype=rgrad.float64)
    with pytest.raises(RuntimeError, match=r"scaled\(\): Expected out tensor to have dtype"):
        scaled(rgrad.ones(2), out=out)
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        both(rgrad.ones(2), 1, out=(out,))
    with pytest.raises(TypeError, match="expected Tensor as element 1"):
        both(rgrad.ones(2), 1, out=(out, 3))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        scaled(rgrad.ones(2, requires_grad=True), out=rgrad.zeros(2))
    assert out.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="can't be cast"):
        both(rgrad.ones(2), 2, out=(out, rgrad.zeros(2, dtype=rgrad.int64)))
    assert out.tolist() == [0, 0]
    both(rgrad.ones(2), 2, out=(out, rgrad.zeros(2)))  # casts
    assert out.tolist() == [-1, -1]
    assert out.dtype == rgrad.float64
