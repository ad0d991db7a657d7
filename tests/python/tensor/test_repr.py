"""What tensors print, against strings stored from PyTorch (tests/oracle/make_repr.py writes them)."""

from __future__ import annotations

import json

import pytest

import rgrad
from places import DATA

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


def test_options_that_are_no_numbers() -> None:
    before = repr(rgrad.tensor([0.123456]))
    for value in ("4", [4], 1j):
        with pytest.raises(TypeError, match="set_printoptions: got precision="):
            rgrad.set_printoptions(precision=value)  # type: ignore[arg-type]
    assert repr(rgrad.tensor([0.123456])) == before
