"""Scaled dot-product attention of float32: 8 heads of 64, of several lengths, forward and with all gradients."""

from __future__ import annotations

from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

HEADS, SIZE = 8, 64


def attention(length: int, causal: bool) -> list[Row]:
    def operands(lib: ModuleType) -> list[Any]:
        rng = np.random.default_rng(0)
        return [lib.tensor(rng.standard_normal((1, HEADS, length, SIZE), dtype=np.float32)) for _ in range(4)]

    def call(lib: ModuleType, *a: Any) -> Any:
        return lib.nn.functional.scaled_dot_product_attention(*a, is_causal=causal)

    def forward(lib: ModuleType) -> Work:
        *a, _ = operands(lib)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, *a))

        return Work(run, lambda: to_numpy(call(lib, *a)))

    def both(lib: ModuleType) -> Work:
        *a, g = operands(lib)
        leaves = [t.requires_grad_() for t in a]

        def once() -> Any:
            return lib.autograd.grad(call(lib, *leaves), leaves, g)

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(once()[0])

        return Work(run, lambda: to_numpy(once()[0]))

    name = f"attention_{length}{'_causal' if causal else ''}"
    what = f"attention, 8 heads of {length}x64{', causal' if causal else ''}"
    # There are two products forward; five on the way back, of which one is that of the scores again.
    product = 2 * HEADS * length * length * SIZE // (2 if causal else 1)
    return [
        Row(name, what, 1.2, forward, rtol=1e-4, flops=2 * product),
        Row(f"{name}_grad", f"{what}, there and back", 1.2, both, rtol=1e-3, flops=7 * product),
    ]


ROWS: list[Row] = [row for length in (128, 512, 4096) for causal in (False, True) for row in attention(length, causal)]
