"""Operators with complex numbers beside PyTorch, for the samples of its own tests: values, gradients of both orders."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from complex_samples import differences, full_name, lazy_differences, listed, operators  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

ALL = operators()
OPEN = listed()


@pytest.mark.parametrize("op", [op for op in ALL if full_name(op) not in OPEN], ids=full_name)
def test_an_operator_holds(op: Any) -> None:
    assert not differences(op)


@pytest.mark.parametrize("op", [op for op in ALL if full_name(op) in OPEN], ids=full_name)
def test_a_listed_operator_does_not_hold_yet(op: Any) -> None:
    """The list may only shrink: what holds is taken off it."""
    assert differences(op), f"{full_name(op)} holds: take it off tests/oracle/helpers/complex_open.txt"


@pytest.mark.parametrize("op", ALL, ids=full_name)
def test_an_operator_takes_lazy_conjugates(op: Any) -> None:
    """Operands that are lazy conjugates and negatives give what computed ones do, with the same gradients."""
    assert not lazy_differences(op)


def test_the_list_names_operators() -> None:
    assert {full_name(op) for op in ALL} >= OPEN
