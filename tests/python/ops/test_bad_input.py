"""Bad input: an error of PyTorch's type with the values in it, and inputs that are as they were before."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import rgrad
from bad_input_shapes import DIMS, SHAPES, Case, Inputs
from bad_input_values import CREATION, DTYPES, INDICES

ALL = [
    pytest.param(case, id=f"{group}-{case[0]}".replace(" ", "_"))
    for group, cases in (
        ("shape", SHAPES),
        ("dim", DIMS),
        ("index", INDICES),
        ("dtype", DTYPES),
        ("creation", CREATION),
    )
    for case in cases
]


@pytest.mark.parametrize("case", ALL)
def test_refused(case: Case) -> None:
    _, action, kind, pattern = case
    inputs = Inputs(rgrad)
    before = inputs.state()
    with pytest.raises(kind, match="(?is)" + pattern):
        action(rgrad, inputs)
    assert inputs.state() == before
    assert rgrad.is_grad_enabled()


@pytest.mark.parametrize("case", [p for p in ALL if "beyond" not in str(p.id)])
def test_refused_under_autograd(case: Case) -> None:
    """The same with inputs that require grad: no history is left behind and a backward still works."""
    _, action, _, _ = case
    inputs = Inputs(rgrad)
    for name in ("x", "y", "s", "e"):
        leaf = getattr(inputs, name).requires_grad_()
        setattr(inputs, name, leaf * 1)
    before = inputs.state()
    with pytest.raises(Exception):  # noqa: B017, PT011 - the kind is the other test's business
        action(rgrad, inputs)
    assert inputs.state() == before
    (inputs.x.sum() + inputs.y.sum()).backward()


def test_nothing_panics_on_a_closed_standard_error() -> None:
    """Errors are exceptions: the process ends with Python's own status."""
    program = "import rgrad\ntry:\n    rgrad.ones(2) + rgrad.ones(3)\nexcept RuntimeError:\n    raise SystemExit(7)\n"
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert "panick" not in done.stderr


def test_errors_have_a_common_base() -> None:
    for action, kind in (
        (lambda: rgrad.ones(2) + rgrad.ones(3), RuntimeError),
        (lambda: rgrad.ones(2)[5], IndexError),
        (lambda: rgrad.ones(2).sum(7), IndexError),
        (lambda: rgrad.ones(2).backward(), RuntimeError),
    ):
        with pytest.raises(rgrad.RgradError) as caught:
            action()
        assert isinstance(caught.value, kind)


def test_element_that_raises_while_it_is_read() -> None:
    class Bad:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, n: int) -> float:
            raise KeyError("mine")

    with pytest.raises((KeyError, RuntimeError, TypeError, ValueError)):
        rgrad.tensor(Bad())


def test_self_containing_list() -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises((ValueError, RecursionError, TypeError, RuntimeError)):
        rgrad.tensor(nested)


def test_unflatten_of_a_scalar_is_refused() -> None:
    with pytest.raises(RuntimeError):
        rgrad.zeros(()).unflatten(0, (-1,))


def test_zero_sized_things_are_no_errors() -> None:
    e = rgrad.zeros(0, 3)
    assert (e + 1).shape == (0, 3)
    assert e.sum().item() == 0.0
    assert e.prod().item() == 1.0
    assert (e @ rgrad.ones(3, 2)).shape == (0, 2)
    assert (e.t() @ e).tolist() == [[0.0] * 3] * 3
    assert e.sum(0).tolist() == [0.0, 0.0, 0.0]
    assert rgrad.cat([e, rgrad.ones(1, 3)]).shape == (1, 3)
    assert e.sort().values.shape == (0, 3)
    assert e.softmax(0).shape == (0, 3)
    x = rgrad.zeros(0, 3, requires_grad=True)
    x.exp().sum().backward()
    assert x.grad.shape == (0, 3)
