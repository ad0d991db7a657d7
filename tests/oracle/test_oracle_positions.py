"""Positions in the errors of functions and of methods: those of methods do not count `self`, as in PyTorch."""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

# Functions of a matrix `x` that are methods, too, with wrong arguments behind it; `i` holds integers.
WRONG = """
addbmm 3, x | addcmul "a", x | addcmul x, "a" | addmm 3, x | addmm x, 3 | addmv 3, x | addr x, 3 | amax "a" | argmax "a"
atan2 None | baddbmm x, 3 | bincount "a" | bmm "a" | cholesky_solve 3 | cross 3 | cummax "a"
diagonal_scatter 3 | diff 1, 0, 3 | dist 3 | dot 3 | gcd 3 | ger 3 | heaviside 3 | histc "a" | histc 2, "a" | hypot "a"
index_reduce 0, i[0], 3, "mean" | inner 3 | kron 3 | kthvalue "a" | ldexp "a" | log_softmax "a" | logcumsumexp "a"
logsumexp "a" | matmul 3 | minimum "a" | mm 3 | mode "a" | mul "a" | mv 3 | mvlgamma "a" | nansum "a"
nextafter 3 | outer 3 | pinverse "a" | prelu 3 | put 3, x | qr "a" | renorm "a", 0, 1 | renorm 2, "a", 1
scatter_reduce 0, i, 3, "sum" | scatter_reduce 0, i, x, 3 | select_scatter 3, 0, 0 | slice_scatter 3 | softmax "a"
softmax [] | topk "a" | topk 1, "a" | triangular_solve 3 | vdot 3 | matrix_power "a"
"""
CALLS = [tuple(call.strip().split(" ", 1)) for line in WRONG.strip().splitlines() for call in line.split(" | ")]


def told(T: Any, call: str) -> tuple[str, ...]:
    """The argument that an error is about, and its position."""
    scope = {"T": T, "x": T.ones(2, 2), "i": T.zeros(2, 2, dtype=T.int64)}
    with pytest.raises(TypeError) as raised:
        eval(call, scope)
    found = re.search(r"(\w+)\(\): argument '(\w+)' \(position (\d+)\) must be", str(raised.value))
    assert found is not None, str(raised.value)
    return found.groups()


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda text: text)
def test_of_methods(name: str, arguments: str) -> None:
    call = f"x.{name}({arguments})"
    assert told(rgrad, call) == told(torch, call)


@pytest.mark.parametrize("name", ["mul_", "atan2_", "addcmul_", "fill_diagonal_"])
def test_of_methods_that_write(name: str) -> None:
    call = f"x.{name}('a'{', x' if name == 'addcmul_' else ''})"
    assert told(rgrad, call) == told(torch, call)


@pytest.mark.parametrize(("name", "arguments"), [c for c in CALLS if hasattr(torch, c[0])], ids=lambda text: text)
def test_of_functions(name: str, arguments: str) -> None:
    call = f"T.{name}(x, {arguments})"
    assert told(rgrad, call) == told(torch, call)


@pytest.mark.parametrize("call", ["x.scatter(0, i, 'a')", "x.index_fill(0, i[0], 'a')", "x.masked_fill(x > 0, 'a')"])
def test_arguments_that_are_tensors_or_numbers(call: str) -> None:
    """PyTorch lists its overloads here, so rgrad's method is compared with rgrad's function."""
    function = re.sub(r"x\.(\w+)\(", r"T.\1(x, ", call)
    (name, argument, place), of_function = told(rgrad, call), told(rgrad, function)
    assert of_function == (name, argument, str(int(place) + 1))
