"""Objects whose tensors are exchanged while other threads compute with them."""

from __future__ import annotations

import threading
import time

import rgrad
from rgrad.utils import swap_tensors


def test_other_threads_compute() -> None:
    a, b = rgrad.ones(300_000), rgrad.full((2, 400_000), 3.0)
    wrong: list[float] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for t in (a, b):
                mean = t.mean().item()
                if mean not in (1.0, 3.0):
                    wrong.append(mean)
            # A swap waits for a moment in which nobody computes.
            time.sleep(0.002)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    swaps = 0
    refused: list[str] = []
    try:
        for _ in range(100):
            try:
                swap_tensors(a, b)
                swaps += 1
            except RuntimeError as e:
                refused.append(str(e))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    # A thread holds one of the two at that very moment.
    assert all("use_count" in text for text in refused)
    assert swaps > 10
    assert sorted([a.dim(), b.dim()]) == [1, 2]
