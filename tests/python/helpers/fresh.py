"""Runs code in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(code: str, **environment: str) -> str:
    """What a fresh interpreter prints for `code`; for what would spoil the device of this one."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
