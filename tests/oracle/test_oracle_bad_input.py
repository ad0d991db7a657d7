"""Bad arguments beside torch: an error that who catches torch's would catch, and inputs that stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from bad_calls import CALLS, SETUP  # noqa: E402
from compare import Outcome, attempt  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

# What differs, and why.
DIFFERENT = {
    "a.to(T.int64,3,4,5,6)": "rgrad takes the number for a device that is not there before it counts arguments",
    "a.take_along_dim(a.long(),0)": "torch wraps an index that is out of range around; rgrad refuses it",
    "T.autograd.grad([r.sum()],[r],[1,2])": "both refuse; rgrad sees the numbers of outputs and gradients first",
    "T.autograd.backward([r.sum()],[None,None])": "torch passes over a gradient too many; rgrad refuses it",
    "T.Generator().manual_seed('x')": "rgrad reads a seed as int() does, as torch.manual_seed does",
}


def outcome(T: Any, code: str) -> tuple[Outcome, bool]:
    """What the call did, and whether it left alone what was there."""
    scope: dict[str, Any] = {"T": T, "np": np}
    exec(SETUP, scope)
    before = {k: v.detach().clone() for k, v in scope.items() if isinstance(v, T.Tensor)}
    done = attempt(lambda: eval(code, scope))
    same = all(v.shape == scope[k].shape and T.equal(v, scope[k].detach()) for k, v in before.items())
    return done, same


@pytest.mark.parametrize("code", CALLS.split("\n")[1:-1])
def test_bad_arguments(code: str) -> None:
    (mine, kept), (theirs, would_keep) = outcome(rgrad, code), outcome(torch, code)
    agree = (mine.error is None) == (theirs.error is None) and issubclass(mine.error or object, theirs.error or object)
    assert agree == (code not in DIFFERENT), (
        f"rgrad: {mine.error} {mine.message!r}; torch: {theirs.error} {theirs.message!r}"
    )
    assert kept or not would_keep


def test_the_list_of_differences_names_calls() -> None:
    assert set(DIFFERENT) <= set(CALLS.split("\n"))
