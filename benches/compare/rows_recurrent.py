"""A layer of long short-term memory of float32: 32 sequences of 64 steps, 256 features, with all gradients."""

from __future__ import annotations

from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

BATCH, STEPS, SIZE = 32, 64, 256


def both(lib: ModuleType) -> Work:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return lib.tensor(rng.standard_normal(shape, dtype=np.float32) / 16)

    x, g = draw(STEPS, BATCH, SIZE), draw(STEPS, BATCH, SIZE)
    weights = [draw(4 * SIZE, SIZE), draw(4 * SIZE, SIZE), draw(4 * SIZE), draw(4 * SIZE)]
    first = [draw(1, BATCH, SIZE), draw(1, BATCH, SIZE)]
    leaves = [t.requires_grad_() for t in (x, *weights)]

    def once() -> Any:
        out = lib.lstm(x, first, weights, True, 1, 0.0, True, False, False)[0]
        return lib.autograd.grad(out, leaves, g)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            look(once()[0])

    return Work(run, lambda: to_numpy(once()[0]))


ROWS: list[Row] = [Row("lstm_grad", "lstm, 64 steps of 32x256, there and back", 1.2, both, rtol=1e-3)]
