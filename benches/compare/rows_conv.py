"""Convolutions of float32 images, each pass by itself, and products of square matrices: they take arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_large import look


def convolution(
    name: str,
    what: str,
    images: tuple[int, ...],
    kernel: tuple[int, ...],
    target: float = 1.0,
    *,
    turned: bool = False,
    **options: int,
) -> list[Row]:
    """Forward, and the gradients with respect to the image and to the kernel, each alone.

    `images` is (N, C, H, W), `kernel` as PyTorch has it; `turned`: transposed convolution.
    """

    def operands(lib: ModuleType) -> tuple[Any, Any]:
        rng = np.random.default_rng(0)
        x = lib.tensor(rng.standard_normal(images, dtype=np.float32))
        w = lib.tensor(rng.standard_normal(kernel, dtype=np.float32) / np.sqrt(np.prod(kernel[1:])).astype(np.float32))
        return x, w

    def call(lib: ModuleType, x: Any, w: Any) -> Any:
        f = lib.nn.functional
        return (f.conv_transpose2d if turned else f.conv2d)(x, w, **options)

    def forward(lib: ModuleType) -> Work:
        x, w = operands(lib)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, x, w))

        return Work(run, lambda: to_numpy(call(lib, x, w)))

    def gradient(place: int) -> Callable[[ModuleType], Work]:
        def make(lib: ModuleType) -> Work:
            both = operands(lib)
            leaf = both[place].requires_grad_()
            y = call(lib, *both)
            g = lib.tensor(np.random.default_rng(1).standard_normal(tuple(y.shape), dtype=np.float32))

            def once() -> Any:
                return lib.autograd.grad(y, leaf, g, retain_graph=True)[0]

            def run(n: int) -> None:
                for _ in repeat(None, n):
                    look(once())

            return Work(run, lambda: to_numpy(once()))

        return make

    stride, padding = options.get("stride", 1), options.get("padding", 0)
    side = images[2] if turned else (images[2] + 2 * padding - kernel[2]) // stride + 1
    flops = 2 * images[0] * side * side * int(np.prod(kernel))
    # Of the image, the kernel and the result; where there is little arithmetic for each, memory is what takes the time.
    channels = kernel[1] * options.get("groups", 1) if turned else kernel[0]
    result = images[0] * channels * ((side - 1) * stride - 2 * padding + kernel[2] if turned else side) ** 2
    moved = 4 * (int(np.prod(images)) + int(np.prod(kernel)) + result)
    moved = moved if flops < 16 * moved else 0
    return [
        Row(f"conv_{name}", f"conv {what}", target, forward, rtol=1e-4, flops=flops, moved=moved),
        Row(f"conv_{name}_x", "  gradient of the image", target, gradient(0), rtol=1e-4, flops=flops, moved=moved),
        Row(f"conv_{name}_w", "  gradient of the kernel", target, gradient(1), rtol=1e-3, flops=flops, moved=moved),
    ]


def product(size: int, dtype: str) -> Row:
    def make(lib: ModuleType) -> Work:
        rng = np.random.default_rng(0)
        a, b = (lib.tensor(rng.standard_normal((size, size)).astype(dtype)) for _ in range(2))

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(a @ b)

        return Work(run, lambda: to_numpy(a @ b))

    flops = 2 * size**3 * (2 if dtype == "float64" else 1)
    return Row(f"square_{size}_{dtype}", f"matmul {size}, {dtype}", 1.0, make, rtol=1e-4, flops=flops)


ROWS: list[Row] = [
    *convolution("digits_1", "32x1x28x28, 20 of 3x3", (32, 1, 28, 28), (20, 1, 3, 3)),
    *convolution("digits_2", "32x20x26x26, 50 of 3x3", (32, 20, 26, 26), (50, 20, 3, 3)),
    *convolution("stem", "4x3x224x224, 64 of 7x7 by 2", (4, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
    *convolution("56", "4x64x56x56, 64 of 3x3", (4, 64, 56, 56), (64, 64, 3, 3), padding=1),
    *convolution("28_by_2", "4x64x56x56, 128 of 3x3 by 2", (4, 64, 56, 56), (128, 64, 3, 3), stride=2, padding=1),
    *convolution("14", "4x256x14x14, 256 of 3x3", (4, 256, 14, 14), (256, 256, 3, 3), padding=1),
    *convolution("7", "4x512x7x7, 512 of 3x3", (4, 512, 7, 7), (512, 512, 3, 3), padding=1),
    *convolution("7_single", "1x512x7x7, 512 of 3x3", (1, 512, 7, 7), (512, 512, 3, 3), padding=1),
    *convolution("1x1", "4x256x28x28, 128 of 1x1", (4, 256, 28, 28), (128, 256, 1, 1)),
    *convolution("1x1_by_2", "4x64x56x56, 128 of 1x1 by 2", (4, 64, 56, 56), (128, 64, 1, 1), stride=2),
    *convolution("1x1_narrow", "8x96x56x56, 24 of 1x1", (8, 96, 56, 56), (24, 96, 1, 1)),
    *convolution("1x1_small", "64x32x7x7, 32 of 1x1", (64, 32, 7, 7), (32, 32, 1, 1)),
    *convolution("1x1_groups", "8x240x28x28, 3 groups of 1x1", (8, 240, 28, 28), (240, 80, 1, 1), groups=3),
    *convolution("patches", "2x3x224x224, 384 of 16x16 by 16", (2, 3, 224, 224), (384, 3, 16, 16), stride=16),
    *convolution("7x7", "4x64x28x28, 64 of 7x7", (4, 64, 28, 28), (64, 64, 7, 7), padding=3),
    *convolution("deep", "8x64x56x56 depthwise 3x3", (8, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64),
    *convolution(
        "deep_by_2", "8x64x56x56 depthwise 3x3 by 2", (8, 64, 56, 56), (64, 1, 3, 3), stride=2, padding=1, groups=64
    ),
    *convolution("deep_5x5", "8x240x14x14 depthwise 5x5", (8, 240, 14, 14), (240, 1, 5, 5), padding=2, groups=240),
    *convolution("deep_small", "4x1152x7x7 depthwise 5x5", (4, 1152, 7, 7), (1152, 1, 5, 5), padding=2, groups=1152),
    *convolution("groups", "8x64x28x28, 4 groups of 3x3", (8, 64, 28, 28), (64, 16, 3, 3), padding=1, groups=4),
    *convolution(
        "turned",
        "4x64x28x28 transposed, 32 of 4x4 by 2",
        (4, 64, 28, 28),
        (64, 32, 4, 4),
        turned=True,
        stride=2,
        padding=1,
    ),
    *(product(size, dtype) for dtype in ("float32", "float64") for size in (128, 256, 512, 1024, 2048, 4096)),
]
