"""Operations in place whose operand shares memory with what they write: values, derivatives and errors beside torch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import same  # noqa: E402 - torch must be there first
from inplace_aliases import ALIASES, ALONE, CALLS, operands  # noqa: E402

pytestmark = pytest.mark.oracle

# Their values are drawn.
RANDOM = {"bernoulli_", "exponential_", "normal_", "random_", "uniform_"}
# Constant almost everywhere: rgrad gives a gradient of zero; torch refuses, or keeps the old history.
STEPS = {"div_ floor", "logical_and_", "logical_or_", "logical_xor_"}
MODIFIED = re.compile(
    r"modified by an inplace operation: \[\w+\.(\w+ \[[\d, ]*\]).*(is at version \d+; expected version \d+) instead"
)


def gist(error: Exception) -> Any:
    """What errors of the two libraries have in common."""
    found = MODIFIED.search(str(error))
    return found.groups() if found else "refused"


def run(T: Any, name: str, alias: str) -> tuple[Any, list[Any]]:
    """What the write gives, or how it is refused; then the first and second derivatives, or how these are refused."""
    leaf = T.tensor(np.linspace(0.6, 1.4, 16).reshape(4, 4), requires_grad=True)
    y, t, o, x = operands(T, leaf, alias)
    try:
        CALLS[name](T, t, o, x)
    except RuntimeError as error:
        return gist(error), []
    seen = [t.detach().clone() for t in (y, t, o)] + [(t.requires_grad, t._version) for t in (y, t, o)]
    out: list[Any] = []
    try:
        (first,) = T.autograd.grad((y**2).sum(), leaf, create_graph=True, materialize_grads=True)
        out.append(first.detach())
        square = (first**2).sum() + (leaf * 0).sum()
        (second,) = T.autograd.grad(square, leaf, materialize_grads=True)
        out.append(second)
    except RuntimeError as error:
        out.append(gist(error))
    return seen, out


NAMES = [
    n
    for n in CALLS
    if n not in RANDOM | STEPS and (n in ("subscript", "+=", "*=", "/=") or hasattr(torch.Tensor, n.split()[0]))
]


def compare(name: str) -> None:
    """Over every way in which operand and target share memory."""
    for alias in ["itself", "the same part"] if name in ALONE else ALIASES:
        seen, derivatives = run(rgrad, name, alias)
        want_seen, want = run(torch, name, alias)
        if want_seen == "refused":
            continue
        same(seen, want_seen, strides=False)
        if want and want[-1] == "refused":
            # Not for what was written: torch has no derivative there.
            continue
        if (name, alias) == ("addcdiv_", "detached operand"):
            # No gradient needs the divisor; torch saves it nevertheless, and refuses.
            assert len(derivatives) == 2
            continue
        same(derivatives, want, factor=100)


@pytest.mark.parametrize("name", NAMES)
def test_values_derivatives_and_errors(name: str) -> None:
    compare(name)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_steps_differ(name: str) -> None:
    with pytest.raises(AssertionError):
        compare(name)
