"""Embedding of float32: rows of a large table by sparse indices, forward and with the table's gradient."""

from __future__ import annotations

from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

ROWS_OF_TABLE, WIDTH, HITS = 50_000, 256, (64, 256)


def operands(lib: ModuleType) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    table = lib.tensor(rng.standard_normal((ROWS_OF_TABLE, WIDTH), dtype=np.float32))
    gradient = lib.tensor(rng.standard_normal((*HITS, WIDTH), dtype=np.float32))
    return table, lib.tensor(rng.integers(0, ROWS_OF_TABLE, HITS)), gradient


def forward(lib: ModuleType) -> Work:
    table, at, _ = operands(lib)

    def once() -> Any:
        return lib.nn.functional.embedding(at, table)

    def run(n: int) -> None:
        with lib.no_grad():
            for _ in repeat(None, n):
                look(once())

    return Work(run, lambda: to_numpy(once()))


def both(lib: ModuleType) -> Work:
    table, at, gradient = operands(lib)
    table.requires_grad_()

    def once() -> Any:
        return lib.autograd.grad(lib.nn.functional.embedding(at, table), table, gradient)[0]

    def run(n: int) -> None:
        for _ in repeat(None, n):
            look(once())

    return Work(run, lambda: to_numpy(once()))


# The rows that are read and written; on the way back the gradient of each, and of the whole table.
TAKEN = 4 * HITS[0] * HITS[1] * WIDTH
TABLE = 4 * ROWS_OF_TABLE * WIDTH

WHAT = f"embedding, {HITS[0]}x{HITS[1]} of {ROWS_OF_TABLE} rows of {WIDTH}"
ROWS: list[Row] = [
    Row("embedding", WHAT, 1.0, forward, moved=2 * TAKEN),
    Row("embedding_grad", f"{WHAT}, there and back", 1.0, both, moved=3 * TAKEN + TABLE),
]
