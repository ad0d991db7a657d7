"""Pooling and changes of size of float32 images, forward and with the gradient.

They wait for memory: forward reads x and writes y (and positions), backward reads the gradient and writes that of x.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look

IMAGES = (32, 64, 56, 56)


def pooled(name: str, what: str, call: Callable[[ModuleType, Any], Any], images: tuple[int, ...] = IMAGES) -> list[Row]:
    def image(lib: ModuleType) -> Any:
        return lib.tensor(np.random.default_rng(0).standard_normal(images, dtype=np.float32))

    def forward(lib: ModuleType) -> Work:
        x = image(lib)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, x))

        return Work(run, lambda: to_numpy(call(lib, x)))

    def both(lib: ModuleType) -> Work:
        x = image(lib).requires_grad_()
        y = call(lib, x)
        g = lib.tensor(np.random.default_rng(1).standard_normal(tuple(y.shape), dtype=np.float32))

        def once() -> Any:
            return lib.autograd.grad(call(lib, x), x, g)[0]

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(once())

        return Work(run, lambda: to_numpy(once()))

    size = 4 * int(np.prod(images))
    return [
        Row(name, what, 1.0, forward, rtol=1e-5, moved=size),
        Row(f"{name}_grad", f"{what}, there and back", 1.0, both, rtol=1e-5, moved=2 * size),
    ]


ROWS: list[Row] = [
    *pooled("max_pool_2", "max_pool2d, 2x2, 32x64x56x56", lambda T, x: T.nn.functional.max_pool2d(x, 2)),
    *pooled(
        "max_pool_3",
        "max_pool2d, 3x3 by 2 with padding, 32x64x56x56",
        lambda T, x: T.nn.functional.max_pool2d(x, 3, 2, 1),
    ),
    *pooled("avg_pool_2", "avg_pool2d, 2x2, 32x64x56x56", lambda T, x: T.nn.functional.avg_pool2d(x, 2)),
    *pooled(
        "adaptive_pool_1",
        "adaptive_avg_pool2d to 1x1, 32x64x56x56",
        lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 1),
    ),
    *pooled(
        "adaptive_pool_7",
        "adaptive_avg_pool2d to 7x7, 32x64x56x56",
        lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 7),
    ),
    *pooled(
        "avg_pool_small",
        "avg_pool2d, 2x2, 8x512x7x7",
        lambda T, x: T.nn.functional.avg_pool2d(x, 2),
        (8, 512, 7, 7),
    ),
    *pooled(
        "max_pool_small",
        "max_pool2d, 3x3 by 2 with padding, 8x512x7x7",
        lambda T, x: T.nn.functional.max_pool2d(x, 3, 2, 1),
        (8, 512, 7, 7),
    ),
    *pooled(
        "adaptive_pool_small",
        "adaptive_avg_pool2d to 3x3, 8x512x7x7",
        lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 3),
        (8, 512, 7, 7),
    ),
    *pooled(
        "avg_pool_same",
        "avg_pool2d, 3x3 by 1 with padding, 8x256x14x14",
        lambda T, x: T.nn.functional.avg_pool2d(x, 3, 1, 1),
        (8, 256, 14, 14),
    ),
    *pooled(
        "max_pool_same",
        "max_pool2d, 3x3 by 1 with padding, 8x256x14x14",
        lambda T, x: T.nn.functional.max_pool2d(x, 3, 1, 1),
        (8, 256, 14, 14),
    ),
    *pooled(
        "adaptive_pool_global",
        "adaptive_avg_pool2d to 1x1, 8x256x14x14",
        lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 1),
        (8, 256, 14, 14),
    ),
    *pooled(
        "max_pool_volume",
        "max_pool3d, 3x3x3 by 2 with padding, 4x128x4x7x7",
        lambda T, x: T.nn.functional.max_pool3d(x, 3, 2, 1),
        (4, 128, 4, 7, 7),
    ),
    *pooled(
        "pad_small",
        "pad by 1, 4x64x28x28",
        lambda T, x: T.nn.functional.pad(x, (1, 1, 1, 1)),
        (4, 64, 28, 28),
    ),
    *pooled(
        "interpolate_nearest",
        "interpolate nearest to 112x112, 32x64x56x56",
        lambda T, x: T.nn.functional.interpolate(x, scale_factor=2),
    ),
    *pooled(
        "interpolate_bilinear",
        "interpolate bilinear to 112x112, 32x64x56x56",
        lambda T, x: T.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    ),
]
