"""Writes docs/libraries.md: which libraries run with rgrad in PyTorch's place, and how far.

Run it with a Python that has rgrad and the libraries, and no torch: python scripts/libraries.py
For each file of tests/programs/libraries it starts `python -m rgrad.run`. A program fails where a check does; its first
line is a comment with the package, and what it tries. CI does not run it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "programs" / "libraries"
TARGET = ROOT / "docs" / "libraries.md"
_SECONDS = 300

HEAD = """\
# Libraries

Libraries for PyTorch, unchanged, with rgrad [in torch's place](in-torchs-place.md). Each row is a small program in
`tests/programs/libraries`, which imports the library, uses it, and checks what it gives.
`python scripts/libraries.py` writes this page.

"""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _row(program: Path) -> list[str]:
    """A row of the table: package, version, what is tried, how it ends."""
    first = program.read_text(encoding="utf-8").partition("\n")[0]
    package, _, tried = first.removeprefix("# ").partition(": ")
    found = _version(package)
    if not found:
        return [package, "", tried, "not installed, so not tried"]
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "rgrad.run", str(program)],
            capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=PROGRAMS, env=dict(os.environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [package, found, tried, f"does not end within {_SECONDS} seconds"]
    if done.returncode == 0:
        return [package, found, tried, "runs"]
    errors = [line for line in done.stderr.splitlines() if re.match(r"^[\w.]*(Error|Exception|Warning|Exit)\b", line)]
    said = re.sub(r" \(/.*?\)|\. docs/in-torchs-place.*", "", errors[-1] if errors else f"ends with {done.returncode}")
    return [package, found, tried, "`" + said.replace("|", "\\|").replace("`", "'")[:150] + "`"]


def main() -> None:
    """Write the page."""
    rows = []
    for program in sorted(PROGRAMS.glob("*.py")):
        rows.append(_row(program))
        sys.stderr.write(" · ".join(rows[-1]) + "\n")
    lines = [
        "| library | version | what is tried | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    runs = sum(row[-1] == "runs" for row in rows)
    TARGET.write_text(f"{HEAD}{runs} of {len(rows)} run.\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
