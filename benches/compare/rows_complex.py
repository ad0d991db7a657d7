"""Rows of complex numbers: functions of each element, 4M of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

N = 1 << 22
BYTES = {"complex64": 8, "complex128": 16}


def row(name: str, dtype: str, call: Callable[[ModuleType, Any, Any], Any], target: float, parts: int = 0) -> Row:
    """A row on two tensors; where it waits for memory, `parts` are read and written for each element."""

    def make(lib: ModuleType) -> Work:
        pairs = np.random.default_rng(0).standard_normal((2, N, 2))
        a, b = (lib.tensor(p.view(np.complex128).reshape(-1).astype(dtype)) for p in pairs)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, a, b))

        return Work(run, lambda: to_numpy(call(lib, a, b)))

    moved = N * BYTES[dtype] * parts // 2
    return Row(f"complex_{name}_{dtype[7:]}", f"{name} of {dtype}, 4M", target, make, rtol=1e-4, moved=moved)


ROWS = [
    made
    for dtype in BYTES
    for made in (
        row("mul", dtype, lambda lib, a, b: a * b, 1.0, 6),
        row("div", dtype, lambda lib, a, b: a / b, 1.0, 6),
        row("abs", dtype, lambda lib, a, b: a.abs(), 1.0, 3),
        row("exp", dtype, lambda lib, a, b: a.exp(), 1.5),
        row("log", dtype, lambda lib, a, b: a.log(), 2.0),
        row("tanh", dtype, lambda lib, a, b: a.tanh(), 2.0),
    )
]
