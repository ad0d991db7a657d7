"""Layers of long short-term memory of float32, 64 steps: many sequences, few, and one, as in inference."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

STEPS = 64


def network(batch: int, size: int, has_gradient: bool) -> Callable[[ModuleType], Work]:
    """A layer of ``size`` features and hidden units."""

    def make(lib: ModuleType) -> Work:
        rng = np.random.default_rng(0)

        def draw(*shape: int) -> Any:
            return lib.tensor(rng.standard_normal(shape, dtype=np.float32) / 16)

        x, g = draw(STEPS, batch, size), draw(STEPS, batch, size)
        weights = [draw(4 * size, size), draw(4 * size, size), draw(4 * size), draw(4 * size)]
        first = [draw(1, batch, size), draw(1, batch, size)]
        leaves = [t.requires_grad_(has_gradient) for t in (x, *weights)]

        def once() -> Any:
            out = lib.lstm(x, first, weights, True, 1, 0.0, True, False, False)[0]
            return lib.autograd.grad(out, leaves, g)[0] if has_gradient else out

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(once())

        return Work(run, lambda: to_numpy(once()))

    return make


def row(name: str, what: str, target: float, batch: int, size: int, has_gradient: bool) -> Row:
    # Two products in each step; on the way back two more of the same size for each.
    flops = 2 * STEPS * batch * 2 * size * 4 * size * (3 if has_gradient else 1)
    return Row(name, what, target, network(batch, size, has_gradient), rtol=1e-3, flops=flops)


ROWS: list[Row] = [
    row("lstm_grad", "lstm, 64 steps of 32x256, there and back", 1.2, 32, 256, True),
    row("lstm_8_grad", "lstm, 64 steps of 8x512, there and back", 1.0, 8, 512, True),
    row("lstm_1", "lstm, 64 steps of 1x256", 1.0, 1, 256, False),
]
