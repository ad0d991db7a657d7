"""What scripts that write a file of the repository share: `--check`, and lines of tables."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def line(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |\n"


def main(
    doc: str | None,
    target: Path,
    text: Callable[[], str],
    others: Mapping[str, tuple[str, Callable[[], None]]] | None = None,
) -> int:
    """Write a file; with --check, fail with a diff if that would change it.

    Args:
        doc: The script's docstring.
        target: The file.
        text: Makes its text.
        others: Further options, each with its help and with what is done instead.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff if it is not current")
    parser.add_argument("--file", type=Path, default=target, help="the file")
    for option, (what, _) in (others or {}).items():
        parser.add_argument(option, action="store_true", help=what)
    given = vars(parser.parse_args())
    for option, (_, does) in (others or {}).items():
        if given[option.removeprefix("--")]:
            does()
            return 0
    file: Path = given["file"]
    new = text()
    if not given["check"]:
        file.write_text(new, encoding="utf-8")
        return 0
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    if old == new:
        return 0
    print("\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), "made anew", lineterm="")))
    print(f"{file.name} is not current: run python scripts/{Path(sys.argv[0]).name}", file=sys.stderr)
    return 1
