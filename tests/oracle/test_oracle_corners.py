"""Corners of calls beside PyTorch: lists of subscripts, padding that takes away, numbers as tensors, given factors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, same  # noqa: E402

pytestmark = pytest.mark.oracle

EINSUM = """
a, [0, 1], b, [1, 2], [0, 2] | a, [0, 1], b, [1, 2] | a, [3, 1], b, [1, 2] | a, (0, 1), b, (1, 2), (2, 0)
a, [0, 1], [] | a, [..., 1], b, [1, 2], [..., 2]
c, [..., 1], b, [1, 2] | c, [0, ...], a, [0, 5], [5, ...] | a, [51, 30]
a, [30, 20] | q, [0, 0], [0] | q, [0, 0] | row, [0, 1], a, [0, 1], [0, 1] | row, [0, 1], a, [0, 1], [0]
row, [...], a, [...], [...] | row.T, [0, 1], q, [1, 2], [0, 1, 2] | s, [], s, []
s, [...], a, [...] | a, [0, 1], T.tensor([1, 0]) | a, range(2)
a, [0] | a, [0, 52] | a, [0, -1] | a, [0, 1], [0, 0] | a, [0, 1], [2] | a | "ij" | a, [0, 1.5] | a, ["i", "j"] | a, "ij"
a, 3 | a, [0, 1], 3, [1, 2] | a, [..., ...] | a, [0, 1], [..., 0, ...] | a, [0, 1], a, [1, 2] | "ij->ji", [a] | 3, a
"""
PADS = [
    (mode, shape, pad)
    for mode in ("replicate", "reflect", "circular", "constant")
    for shape, pads in {
        (2, 5): [(-1, 0), (-1, 2), (2, -1), (-2, 1), (-3, -2), (-3, -3), (-6, 3), (0, -5)],
        (2, 4, 5): [(-1, 1, 1, -1), (1, 1, -1, -1), (-4, 0, 0, 1), (-5, 0, 0, 0), (0, 0, -2, -2), (-5, 0, -4, 0)],
        (2, 2, 3, 4): [(-1, 1, 1, -1, 0, 0), (-2, 1, -1, 1, -1, 1), (0, 0, 0, 0, -2, 0), (-1, 0, 0, -2, 1, -1)],
    }.items()
    for pad in pads
]
NUMBERS = """
linalg.norm(x, n) | linalg.norm(x, n, dim=0) | linalg.vector_norm(x, n) | linalg.cond(x, n) | gradient(x, spacing=n)[0]
pinverse(x, n / 100) | linalg.lstsq(x, x, n / 100)[0] | histc(x, 2, 0, n) | zeros(2, 2).fill_diagonal_(n)
"""


def listed(text: str) -> list[str]:
    return [call for line in text.strip().splitlines() for call in line.split(" | ")]


def compared(call: Any) -> None:
    mine, theirs = attempt(lambda: call(rgrad)), attempt(lambda: call(torch))
    assert mine.error == theirs.error, (mine.message, theirs.message)
    if theirs.error is None:
        same(mine.value, theirs.value, 10.0, strides=False, history=False)


@pytest.mark.parametrize("arguments", listed(EINSUM))
def test_subscripts(arguments: str) -> None:
    def call(T: Any) -> Any:
        leaves = {
            "a": T.arange(6.0).view(2, 3),
            "b": T.arange(12.0).view(3, 4) - 5,
            "c": T.arange(24.0).view(2, 4, 3) / 7,
            "q": T.arange(9.0).view(3, 3),
            "row": T.arange(3.0).view(1, 3) + 1,
            "s": T.tensor(2.0),
        }
        leaves = {name: leaf.double().requires_grad_() for name, leaf in leaves.items()}
        made = T.einsum(*eval(f"({arguments},)", {"T": T, **leaves}))
        grads = T.autograd.grad((made**2).sum(), list(leaves.values()), allow_unused=True)
        return made, [g for g in grads if g is not None]

    compared(call)


@pytest.mark.parametrize(("mode", "shape", "pad"), PADS, ids=str)
def test_padding_that_takes_away(mode: str, shape: tuple[int, ...], pad: tuple[int, ...]) -> None:
    def call(T: Any) -> Any:
        x = T.arange(120.0)[: T.Size(shape).numel()].view(shape).requires_grad_()
        made = T.nn.functional.pad(x, pad, mode=mode)
        return made, *T.autograd.grad((made**2).sum(), x)

    if mode == "reflect" and len(shape) == 4 and pad == (0, 0, 0, 0, -2, 0):
        pytest.skip("PyTorch reads memory for the gradient that it has not written")
    if mode == "constant" and pad == (-6, 3):
        pytest.skip("PyTorch takes no more away than there is, rgrad takes it from the constant")
    compared(call)


@pytest.mark.parametrize("number", ["2.0", "2", "1.0, requires_grad=True", "[2.0]"])
@pytest.mark.parametrize("call", listed(NUMBERS))
def test_numbers_that_are_tensors(call: str, number: str) -> None:
    def function(T: Any) -> Any:
        n = eval(f"T.tensor({number})", {"T": T})
        return eval(f"T.{call}", {"T": T, "x": T.tensor([[1.0, 2.0], [3.0, 5.0]]), "n": n})

    if "pinverse" in call and number != "2.0" and number != "2":
        pytest.skip("a method of another signature")
    compared(function)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_derivatives_by_a_factor(batch: tuple[int, ...], upper: bool) -> None:
    """Of the triangle that is read."""

    def call(T: Any) -> Any:
        whole = (T.arange(9.0).view(3, 3) / 16 + 3 * T.eye(3)).double().expand(*batch, 3, 3)
        L = (whole.triu() if upper else whole.tril()).clone().requires_grad_()
        B = T.arange(6.0).view(3, 2).double().requires_grad_()
        inverse, solution = T.cholesky_inverse(L, upper=upper), T.cholesky_solve(B.expand(*batch, 3, 2), L, upper)
        grads = [T.autograd.grad((made**2).sum(), L, retain_graph=True)[0] for made in (inverse, solution)]
        grads = [g.triu() if upper else g.tril() for g in grads]
        return inverse, solution, *grads, *T.autograd.grad(solution.sum(), B)

    compared(call)
