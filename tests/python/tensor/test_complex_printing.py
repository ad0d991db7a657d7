"""The text of complex tensors: PyTorch's layout, with a column of real parts and one of imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    rgrad.set_printoptions(profile="default")
    rgrad.set_default_dtype(rgrad.float32)


# What torch 2.13 prints.
TEXTS: list[tuple[Any, str]] = [
    ([1 + 2j, 3 - 4j], "tensor([1.+2.j, 3.-4.j])"),
    ([1.5 + 2.25j, 3 - 4j], "tensor([1.5000+2.2500j, 3.0000-4.0000j])"),
    (1 + 2j, "tensor(1.+2.j)"),
    ([1e10 + 1e-3j, 3], "tensor([1.0000e+10+0.0010j, 3.0000e+00+0.0000j])"),
    ([complex(math.nan, math.inf), complex(-math.inf, 0), 0], "tensor([nan+infj, -inf+0.j, 0.+0.j])"),
    ([complex(math.nan, math.nan)], "tensor([nan+nanj])"),
    ([1 + 2j, complex(-0.0, 0.0), complex(0.0, -0.0)], "tensor([1.+2.j, -0.+0.j, 0.-0.j])"),
    (
        [[1 + 2j, 1e10 - 3j], [1e-8j, 5]],
        (
            "tensor([[1.0000e+00+2.0000e+00j, 1.0000e+10-3.0000e+00j],\n"
            "        [0.0000e+00+1.0000e-08j, 5.0000e+00+0.0000e+00j]])"
        ),
    ),
]


@pytest.mark.parametrize(("values", "text"), TEXTS, ids=[text[:30] for _, text in TEXTS])
def test_texts(values: Any, text: str) -> None:
    assert repr(rgrad.tensor(values)) == text
    assert f"{rgrad.tensor([values])}" == repr(rgrad.tensor([values]))


def test_only_the_default_dtype_is_not_said() -> None:
    z = [1 + 2j]
    said = {
        rgrad.complex64: "tensor([1.+2.j])",
        rgrad.complex128: "tensor([1.+2.j], dtype=rgrad.complex128)",
        rgrad.complex32: "tensor([1.+2.j], dtype=rgrad.complex32)",
    }
    for dtype, text in said.items():
        assert repr(rgrad.tensor(z, dtype=dtype)) == text
    rgrad.set_default_dtype(rgrad.float64)
    assert repr(rgrad.tensor(z)) == "tensor([1.+2.j])"
    assert repr(rgrad.tensor(z, dtype=rgrad.complex64)) == "tensor([1.+2.j], dtype=rgrad.complex64)"
    rgrad.set_default_dtype(rgrad.float32)
    assert repr(rgrad.zeros(0, dtype=rgrad.complex64)) == "tensor([], dtype=rgrad.complex64)"


def test_options_hold_for_both_parts() -> None:
    z = rgrad.tensor([1.12345 + 2.789j])
    rgrad.set_printoptions(precision=2)
    assert repr(z) == "tensor([1.12+2.79j])"
    rgrad.set_printoptions(profile="default", sci_mode=True)
    assert repr(z) == "tensor([1.1235e+00+2.7890e+00j])"
    # What has no digits to shift stays short.
    assert repr(rgrad.tensor([2 + 0j])) == "tensor([2.0000e+00+0.j])"
    assert repr(rgrad.zeros(2)) == "tensor([0., 0.])"
    rgrad.set_printoptions(profile="default", sci_mode=False)
    assert repr(rgrad.tensor([1.12345e10 + 2.789e-7j])) == "tensor([11234499584.+0.0000j])"


def test_summaries_and_suffixes() -> None:
    many = rgrad.arange(3000).to(rgrad.complex64)
    assert repr(many) == (
        "tensor([0.0000e+00+0.j, 1.0000e+00+0.j, 2.0000e+00+0.j,  ..., 2.9970e+03+0.j,\n"
        "        2.9980e+03+0.j, 2.9990e+03+0.j])"
    )
    leaf = rgrad.tensor([1 + 2j], requires_grad=True)
    assert repr(leaf) == "tensor([1.+2.j], requires_grad=True)"
    assert repr(leaf * 2) == "tensor([2.+4.j], grad_fn=<MulBackward0>)"
    assert repr(rgrad.nn.Parameter(leaf.detach())) == "Parameter containing:\ntensor([1.+2.j], requires_grad=True)"
    assert repr(rgrad.empty(2, dtype=rgrad.complex64, device="meta")) == (
        "tensor(..., device='meta', size=(2,), dtype=rgrad.complex64)"
    )


def test_format() -> None:
    z = rgrad.tensor(1.25 + 2j)
    assert (f"{z}", f"{z:.1f}") == ("(1.25+2j)", "1.2+2.0j")
    with pytest.raises(TypeError, match="unsupported format string passed to Tensor.__format__"):
        f"{rgrad.tensor([z.item()]):.2f}"


def test_notebooks_show_absolute_values() -> None:
    html = rgrad.tensor([3 + 4j, 1.0])._repr_html_()
    assert "absolute values" in html
    assert "max 5" in html
