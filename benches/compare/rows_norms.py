"""Layer, batch, group and root-mean-square norm of float32, with parameters, forward and with all gradients.

They wait for memory: forward reads x and writes y, backward reads the gradient and x and writes the gradient of x.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look


def norm(name: str, what: str, call: Callable[..., Any], shape: tuple[int, ...], params: int) -> list[Row]:
    def operands(lib: ModuleType) -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        x, g = (lib.tensor(rng.standard_normal(shape, dtype=np.float32)) for _ in range(2))
        w, b = (lib.tensor(rng.standard_normal(params, dtype=np.float32)) for _ in range(2))
        return x, w, b, g

    def forward(lib: ModuleType) -> Work:
        x, w, b, _ = operands(lib)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, x, w, b))

        return Work(run, lambda: to_numpy(call(lib, x, w, b)))

    def both(lib: ModuleType) -> Work:
        x, w, b, g = operands(lib)
        leaves = [t.requires_grad_() for t in (x, w, b)]

        def once() -> Any:
            return lib.autograd.grad(call(lib, x, w, b), leaves, g, allow_unused=True)

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(once()[0])

        return Work(run, lambda: to_numpy(once()[0]))

    size = 4 * int(np.prod(shape))
    return [
        Row(name, what, 1.0, forward, rtol=1e-5, moved=2 * size),
        Row(f"{name}_grad", f"{what}, there and back", 1.0, both, rtol=1e-4, moved=5 * size),
    ]


IMAGE = (32, 64, 56, 56)

ROWS: list[Row] = [
    *norm(
        "layer_norm_512",
        "layer_norm, 512x768",
        lambda T, x, w, b: T.nn.functional.layer_norm(x, (768,), w, b),
        (512, 768),
        768,
    ),
    *norm(
        "layer_norm_4096",
        "layer_norm, 4096x1024",
        lambda T, x, w, b: T.nn.functional.layer_norm(x, (1024,), w, b),
        (4096, 1024),
        1024,
    ),
    *norm(
        "layer_norm_narrow",
        "layer_norm, 20000x16",
        lambda T, x, w, b: T.nn.functional.layer_norm(x, (16,), w, b),
        (20000, 16),
        16,
    ),
    *norm(
        "rms_norm_4096",
        "rms_norm, 4096x1024",
        lambda T, x, w, b: T.nn.functional.rms_norm(x, (1024,), w),
        (4096, 1024),
        1024,
    ),
    *norm(
        "batch_norm_image",
        "batch_norm, 32x64x56x56",
        lambda T, x, w, b: T.nn.functional.batch_norm(x, None, None, w, b, training=True),
        IMAGE,
        64,
    ),
    *norm(
        "group_norm_image",
        "group_norm of 32, 32x64x56x56",
        lambda T, x, w, b: T.nn.functional.group_norm(x, 32, w, b),
        IMAGE,
        64,
    ),
    *norm(
        "group_norm_small",
        "group_norm of 8, 8x512x7x7",
        lambda T, x, w, b: T.nn.functional.group_norm(x, 8, w, b),
        (8, 512, 7, 7),
        512,
    ),
]
