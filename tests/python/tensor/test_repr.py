"""What tensors print, against strings stored from PyTorch (tests/oracle/make_repr.py writes them)."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

import rgrad
from places import DATA
from rgrad._tensor_str import get_printoptions, printoptions

STORED = json.loads((DATA / "repr.json").read_text())


@pytest.mark.parametrize(("expression", "want"), STORED, ids=[e for e, _ in STORED])
def test_stored(expression: str, want: str) -> None:
    value = eval(expression, {"T": rgrad})
    text = value if isinstance(value, str) else repr(value)
    assert text == want.format(name=rgrad.__name__) if "{name}" in want else text == want


def test_print_options() -> None:
    x = rgrad.tensor([1.23456789, 1e-6])
    try:
        rgrad.set_printoptions(precision=2)
        assert repr(x) == "tensor([1.23e+00, 1.00e-06])"
        rgrad.set_printoptions(precision=3, sci_mode=False)
        assert repr(x) == "tensor([1.235, 0.000])"
        rgrad.set_printoptions(threshold=5, edgeitems=1)
        assert repr(rgrad.arange(10)) == "tensor([0,  ..., 9])"
        rgrad.set_printoptions(profile="default", linewidth=20)
        assert repr(rgrad.arange(10)) == "tensor([0, 1, 2, 3,\n        4, 5, 6, 7,\n        8, 9])"
    finally:
        rgrad.set_printoptions(profile="default", linewidth=80, sci_mode=None)
    assert repr(rgrad.tensor([1.0])) == "tensor([1.])"


def test_repr_changes_nothing_and_reads_no_gradient_of_inner_tensors() -> None:
    x = rgrad.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    repr(y)
    assert y._version == version
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_subclass_and_parameter() -> None:
    p = rgrad.nn.Parameter(rgrad.ones(2))
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_function_name_in_the_suffix() -> None:
    class Twice(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert repr(Twice.apply(rgrad.ones(1, requires_grad=True))) == "tensor([2.], grad_fn=<TwiceBackward>)"


def test_copy_slices_in_the_suffix() -> None:
    y = rgrad.ones(2, requires_grad=True) * 1
    y[0] = 5
    assert repr(y) == "tensor([5., 1.], grad_fn=<CopySlices>)"


def test_inference_tensors_can_be_printed() -> None:
    with rgrad.inference_mode():
        x = rgrad.ones(2)
    assert repr(x) == "tensor([1., 1.])"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"profile": "long"}, ValueError, "got profile='long', expected one of ['default', 'full', 'short']"),
        ({"profile": ""}, ValueError, "got profile='', expected one of"),
        ({"profile": []}, ValueError, "got profile=[], expected one of"),
        ({"precision": -1}, ValueError, "got precision=-1, expected a whole number of 0 or more"),
        ({"precision": 1.5}, ValueError, "got precision=1.5, expected a whole number of 0 or more"),
        ({"precision": math.inf}, ValueError, "got precision=inf, expected a whole number of 0 or more"),
        ({"precision": 10**9}, ValueError, "got precision=1000000000, expected at most 1100"),
        ({"edgeitems": math.nan}, ValueError, "got edgeitems=nan, expected a whole number of 0 or more"),
        ({"edgeitems": True}, ValueError, "got edgeitems=True, expected a whole number of 0 or more"),
        ({"linewidth": 2**80}, ValueError, f"got linewidth={2**80}, expected at most {2**62}"),
        ({"threshold": -math.inf}, ValueError, "got threshold=-inf, expected a whole number of 0 or more"),
        ({"sci_mode": "yes"}, TypeError, "got sci_mode='yes', expected True, False or None"),
        ({"sci_mode": 2}, TypeError, "got sci_mode=2, expected True, False or None"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], error: type[Exception], said: str) -> None:
    before = get_printoptions()
    for more in ({}, {"precision": 2}):
        with pytest.raises(error, match=re.escape(f"set_printoptions: {said}")):
            rgrad.set_printoptions(**{**more, **options})
    assert get_printoptions() == before


def test_options_at_their_limits() -> None:
    with printoptions(precision=1100, threshold=2**80, sci_mode=1):
        text = repr(rgrad.tensor(0.1, dtype=rgrad.float64))
        assert len(text) > 1100
        assert get_printoptions()["threshold"] == math.inf
        assert get_printoptions()["sci_mode"] is True
    assert repr(rgrad.tensor(0.1)) == "tensor(0.1000)"


def test_options_that_are_no_numbers() -> None:
    before = repr(rgrad.tensor([0.123456]))
    for value in ("4", [4], 1j):
        with pytest.raises(TypeError, match="set_printoptions: got precision="):
            rgrad.set_printoptions(precision=value)  # type: ignore[arg-type]
    assert repr(rgrad.tensor([0.123456])) == before
