"""Where things lie in the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
PICTURES = ROOT / "docs" / "pictures"
PACKAGE = ROOT / "python" / "rgrad"

# With this set to 1 tests write the pictures of the documents anew.
WRITE = "RGRAD_WRITE_PICTURES"


def sources(package: Path = PACKAGE) -> dict[str, Path]:
    """Every Python module of the package by its name."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = [package.name, *file.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found
