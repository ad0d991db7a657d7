"""What the processes of test_processes do. Spawned processes import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import rgrad


def write(index: int, folder: str, value: float) -> None:
    total = (rgrad.ones(3) * value * (index + 1)).sum().item()
    Path(folder, str(index)).write_text(str(total), encoding="utf-8")


def fail(index: int, which: int) -> None:
    if index == which:
        raise ValueError(f"process number {index} sees a bad value")
    time.sleep(60)


def leave(index: int, code: int) -> None:
    if index == 1:
        os._exit(code)
    time.sleep(60)


def leave_politely(index: int, code: int) -> None:
    raise SystemExit(code)


def be_killed(index: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stay(index: int, seconds: float) -> None:
    time.sleep(seconds)


def ignore_the_end(index: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if index == 0:
        time.sleep(0.5)
        raise ValueError("first")
    time.sleep(60)


def add_one(index: int, shared: rgrad.Tensor) -> None:
    shared[index] += 1


def interrupted(index: int) -> None:
    raise KeyboardInterrupt
