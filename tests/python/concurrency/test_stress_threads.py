"""Threads that run backward, clear gradients, print, collect garbage and use a device at once.

Nothing stalls, and every result is right. It runs for some seconds; `RGRAD_STRESS_SECONDS=60` makes it a long one.
Builds with debug assertions also check the order of locks, and a violation is a failure here.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from places import ROOT

SECONDS = float(os.environ.get("RGRAD_STRESS_SECONDS", "4"))
SCRIPT = ROOT / "tests" / "python" / "helpers" / "stress_threads.py"


def stress(*devices: str) -> None:
    command = [sys.executable, str(SCRIPT), str(SECONDS), *devices]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 300, check=False)
    said = run.stdout + run.stderr
    seen = said if len(said) < 16_000 else f"{said[:4000]}\n[...]\n{said[-12_000:]}"
    assert run.returncode == 0, f"exit status {run.returncode}: {seen}"
    assert "turns of" in run.stdout, seen
    for bad in ("lock order", "panicked", "Exception ignored"):
        assert bad not in said, seen


def test_threads_on_the_cpu() -> None:
    stress("cpu")


@pytest.mark.wgpu
def test_threads_on_the_cpu_and_on_wgpu_at_once() -> None:
    stress("cpu", "wgpu")
