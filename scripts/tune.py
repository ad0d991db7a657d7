"""Measures the thresholds between algorithms on this machine: `./run tune [family ...]`.

Around each threshold both algorithms compute the same sizes, each in a process that asks for it (`RGRAD_KERNEL`). The
table has their times and what the package chooses by itself. Nothing is changed: thresholds stand at the head of the
file `algorithms.rs` of a family.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Threshold(NamedTuple):
    """A constant, the algorithms on its two sides, what is computed of a point, and points around it."""

    name: str
    below: str
    above: str
    operation: str
    points: tuple[int, ...]


THRESHOLDS = (
    Threshold("matmul DIRECT (512, of m n k)", "matmul.small", "matmul.gemm", "product(p, p, p)", (4, 6, 8, 10, 12)),
    Threshold(
        "matmul FEW_ALONG (rows)", "matmul.skinny", "matmul.packed", "linear(p, 512, 512)", (32, 48, 64, 96, 128)
    ),
    Threshold("matmul FEW_ACROSS (rows)", "matmul.skinny", "matmul.gemm", "product(p, 512, 512)", (16, 32, 48, 64)),
    Threshold("matmul WORTH (rows)", "matmul.gemm", "matmul.packed", "product(p, 256, 256)", (16, 32, 64, 96, 128)),
    Threshold("matmul WORTH (n and k)", "matmul.gemm", "matmul.packed", "product(96, p, p)", (16, 32, 48, 64, 96)),
    Threshold("matmul WORTH_ALONG (rows)", "matmul.gemm", "matmul.packed", "linear(p, 64, 64)", (2, 4, 8, 16, 64)),
    Threshold("conv TINY (side)", "conv.plain", "conv.patches", "convolution(1, 2, 2, p, 3)", (4, 6, 8, 12, 16)),
    Threshold(
        "conv DIRECT_SMALL (channels)", "conv.direct", "conv.patches", "convolution(1, p, 64, 56, 3)", (4, 8, 16)
    ),
    Threshold("conv lanes (channels)", "conv.direct", "conv.depthwise", "depthwise(4, p, 28, 3)", (4, 8, 16, 32)),
    Threshold(
        "conv WEIGHT_COST (channels)", "conv.patches", "conv.winograd", "convolution(4, p, p, 28, 3)", (8, 16, 32, 64)
    ),
    Threshold(
        "conv IMAGE_POSITIONS (side)", "conv.shared", "conv.images", "convolution(8, 512, 512, p, 1)", (5, 8, 11, 16)
    ),
    Threshold(
        "conv DISJOINT_CHANNELS (channels)",
        "conv.disjoint",
        "conv.patches",
        "covering(2, p, 32, 64, 8)",
        (3, 8, 16, 32),
    ),
    Threshold("pool MOST (side of windows)", "pool.across", "pool.rows", "pool(2, 32, 32, p)", (3, 7, 11, 15)),
)
#: What a process asks for that lets the package choose.
BY_ITSELF = ""
SECONDS, FEWEST = 0.05, 5


def operations() -> dict[str, Callable[..., Callable[[], Any]]]:
    """What the operations of thresholds are, each of sizes."""
    import rgrad
    from rgrad.nn import functional

    def product(m: int, n: int, k: int) -> Callable[[], Any]:
        a, b = rgrad.randn(m, k), rgrad.randn(k, n)
        return lambda: a @ b

    def linear(m: int, n: int, k: int) -> Callable[[], Any]:
        a, b = rgrad.randn(m, k), rgrad.randn(n, k)
        return lambda: functional.linear(a, b)

    def convolution(batch: int, channels: int, results: int, side: int, kernel: int) -> Callable[[], Any]:
        x, w = rgrad.randn(batch, channels, side, side), rgrad.randn(results, channels, kernel, kernel)
        return lambda: functional.conv2d(x, w, padding=kernel // 2)

    def depthwise(batch: int, channels: int, side: int, kernel: int) -> Callable[[], Any]:
        x, w = rgrad.randn(batch, channels, side, side), rgrad.randn(channels, 1, kernel, kernel)
        return lambda: functional.conv2d(x, w, padding=kernel // 2, groups=channels)

    def covering(batch: int, channels: int, results: int, side: int, kernel: int) -> Callable[[], Any]:
        x, w = rgrad.randn(batch, channels, side, side), rgrad.randn(results, channels, kernel, kernel)
        return lambda: functional.conv2d(x, w, stride=kernel)

    def pool(batch: int, channels: int, side: int, kernel: int) -> Callable[[], Any]:
        x = rgrad.randn(batch, channels, side, side)
        return lambda: functional.max_pool2d(x, kernel, stride=1)

    made = (product, linear, convolution, depthwise, covering, pool)
    return {f.__name__: f for f in made}


def seconds(run: Callable[[], Any]) -> float:
    """The least time of a call, of as many as take a while together."""
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < FEWEST or time.perf_counter() < until:
        start = time.perf_counter()
        run().data_ptr()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(numbers: list[int]) -> None:
    """Prints, for each point of these thresholds, the kernel that ran and its time."""
    from rgrad.autograd.profiler import profile

    known = operations()
    for number in numbers:
        threshold = THRESHOLDS[number]
        for point in threshold.points:
            run = eval(threshold.operation, {**known, "p": point})
            with profile() as watched:
                run().data_ptr()
            kernels = [event.kernel for event in watched.function_events if event.kernel]
            print((number, point, kernels[-1] if kernels else "", seconds(run)))


def measured(asked: str, numbers: list[int]) -> dict[tuple[int, int], tuple[str, float]]:
    """What `measure` prints in a process that asks for a kernel."""
    words = [sys.executable, __file__, "--measure", *map(str, numbers)]
    done = subprocess.run(words, env={**os.environ, "RGRAD_KERNEL": asked}, capture_output=True, text=True, check=True)
    rows = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    return {(number, point): (kernel, time) for number, point, kernel, time in rows}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--measure"]:
        measure([int(number) for number in arguments[1:]])
        return 0
    families = set(arguments)
    chosen = [i for i, t in enumerate(THRESHOLDS) if not families or t.name.split()[0] in families]
    asked = [BY_ITSELF, *dict.fromkeys(name for i in chosen for name in THRESHOLDS[i][1:3])]
    of = {name: measured(name, [i for i in chosen if name in (*THRESHOLDS[i][1:3], BY_ITSELF)]) for name in asked}
    for i in chosen:
        threshold = THRESHOLDS[i]
        print(f"\n{threshold.name}: {threshold.below} and {threshold.above}, {threshold.operation}")
        for point in threshold.points:
            (one, a), (two, b) = of[threshold.below][i, point], of[threshold.above][i, point]
            if (one, two) != (threshold.below, threshold.above):
                print(f"  p = {point:4}  one of them does not take it: {one or 'none'} and {two or 'none'} ran")
                continue
            by_itself = of[BY_ITSELF][i, point][0]
            print(f"  p = {point:4}  {a * 1e6:10.1f} us {b * 1e6:10.1f} us  ratio {a / b:5.2f}  by itself {by_itself}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
