"""What the comparisons of transforms share: points, and running a program in both libraries."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

# PyTorch's transforms import this on first use, which crashes where a graphics driver has loaded another LLVM.
pytest.importorskip("torch._dynamo")

import rgrad  # noqa: E402
from compare import attempt, same  # noqa: E402


def point(T: Any, *shape: int, seed: int = 0, grad: bool = False) -> Any:
    return T.tensor(np.random.default_rng(seed).uniform(0.2, 1.2, shape), dtype=T.float64, requires_grad=grad)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for entry in value for leaf in leaves(entry)]
    return [value]


def compared(call: Any, words: tuple[str, ...] = ()) -> None:
    ours, theirs = attempt(lambda: call(rgrad)), attempt(lambda: call(torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    if theirs.error is None:
        got, want = leaves(ours.value), leaves(theirs.value)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, factor=1000, strides=False)
    for word in words:
        assert re.search(word, theirs.message), theirs.message
        assert re.search(word, ours.message), ours.message
