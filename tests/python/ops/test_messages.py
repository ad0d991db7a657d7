"""What errors say when an operand has another dtype or shape: words, never the inner form of a value of the core."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from op_table import OPS, Op
from rgrad import Tensor

DTYPES = [
    rgrad.bool, rgrad.uint8, rgrad.int8, rgrad.int16, rgrad.int32, rgrad.int64,
    rgrad.float16, rgrad.bfloat16, rgrad.float32,
]  # fmt: skip
# `Name { field: ..`, `Some(..)`, types of Rust, and the words of what only rgrad can have caused. PyTorch writes a
# tensor as `FloatTensor{[2, 3]}` and sizes as `Size([2, 3])`.
INNER = re.compile(
    r"no kernel takes|\b[A-Z]\w* \{|\b\w+: \w+ \{|\bSome\(|SmallVec|Request|internal|panicked"
    r"|\b(rgrad\w*|core|alloc|std)::"
)


def others(t: Tensor) -> Iterator[Tensor]:
    for dtype in DTYPES:
        u = t.to(dtype)
        yield from (u, rgrad.ones((), dtype=dtype), rgrad.ones((0, *t.shape[1:]), dtype=dtype), u[None])


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_errors_are_words(op: Op) -> None:
    for sample in itertools.islice(op.all_samples(), 4):
        given = [rgrad.from_numpy(a.array().copy()) for a in sample.args]
        for i, t in enumerate(given):
            for other in others(t):
                args: list[Any] = [*given[:i], other, *given[i + 1 :]]
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        op.call(rgrad, *args, **sample.params)
                except Exception as e:
                    assert not INNER.search(str(e)), f"{type(e).__name__}: {e}"  # noqa: PT017
