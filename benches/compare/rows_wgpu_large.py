"""Rows about large work on the wgpu device: how near it comes to what the memory and the arithmetic units give.

They say something about real GPUs only; on a software adapter they say that it is one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from harness import Check, Settings

NUMBERS = 64 << 20
MATRIX = 4096
ROUNDS = 9
REPEAT = 8


def seconds(call: Callable[[], object], wait: Callable[[], object]) -> float:
    """Median seconds of one call, of which `REPEAT` are asked for before one wait."""
    call()
    wait()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(REPEAT):
            call()
        wait()
        times.append((time.perf_counter() - start) / REPEAT)
    return statistics.median(times)


def plain_copy(rgrad: Any, count: int) -> float:
    """Seconds for a copy of `count` float32 from buffer to buffer through wgpu-py: what the memory gives."""
    device = rgrad.wgpu.current_device()
    source, target = (device.create_buffer(size=4 * count, usage="COPY_SRC|COPY_DST") for _ in range(2))

    def copy() -> None:
        encoder = device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, 0, target, 0, 4 * count)
        device.queue.submit([encoder.finish()])

    return seconds(copy, lambda: device.queue.read_buffer(target, 0, 4))


# Name, what it does to x (rows of 1024), and how often each number is read or written.
WORK: dict[str, tuple[Callable[[Any], Any], int]] = {
    "add": (lambda x: x + x, 2),
    "sum": (lambda x: x.sum(), 1),
    "softmax": (lambda x: x.softmax(-1), 2),
}


def bandwidth(rgrad: Any, name: str, count: int) -> tuple[float, float]:
    """Bytes per second of an operation over `count` float32, and of a plain copy of as many."""
    call, passes = WORK[name]
    x = rgrad.ones(count // 1024, 1024, device="wgpu")
    spent = seconds(lambda: call(x), rgrad.wgpu.synchronize)
    return 4 * count * passes / spent, 8 * count / plain_copy(rgrad, count)


def flops(rgrad: Any, size: int) -> float:
    """Arithmetic operations per second of a product of two square matrices."""
    a = rgrad.ones(size, size, device="wgpu")
    return 2 * size**3 / seconds(lambda: a @ a, rgrad.wgpu.synchronize)


def refusal(rgrad: Any) -> str:
    """Why there is nothing to measure here, or ''."""
    if not rgrad.wgpu.is_available():
        return "no adapter here"
    info = rgrad.wgpu.current_device().adapter.info
    return f"software adapter ({info['device']})" if info["adapter_type"] == "CPU" else ""


def measured(name: str) -> Callable[[Settings], tuple[str, str, bool | None]]:
    def measure(settings: Settings) -> tuple[str, str, bool | None]:
        rgrad = settings.modules["rgrad"]
        if why := refusal(rgrad):
            return why, "", None
        if name == "matmul":
            return f"{flops(rgrad, MATRIX) / 1e12:.2f} TFLOP/s", "", None
        ours, copy = bandwidth(rgrad, name, NUMBERS)
        return f"{ours / 1e9:.0f} GB/s", f"a copy: {copy / 1e9:.0f} GB/s", ours >= 0.7 * copy

    return measure


CHECKS = [
    *(
        Check(f"wgpu_{name}_64m", f"{name} over {NUMBERS >> 20}M float32 on wgpu", ">= 0.7 of a copy", measured(name))
        for name in WORK
    ),
    Check(
        f"wgpu_matmul_{MATRIX}", f"{MATRIX}x{MATRIX} float32 matrix product on wgpu", "figure only", measured("matmul")
    ),
]
