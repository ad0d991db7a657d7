"""Writes the table of docs/accuracy.md from what the slow test of `tests/rust/accuracy.rs` prints.

    cargo test --release --test rust accuracy -- --ignored --nocapture | python scripts/accuracy_table.py

Lines of several runs may be given together, also those of another day: of each row, the run over most inputs counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
START = "<!-- The table below is written by scripts/accuracy_table.py. -->\n"
HEAD = "| row | inputs | nearest | largest error in ULP | at | may be |\n|---|---:|---:|---:|---:|---|\n"
EVERY = 1 << 32


def main() -> None:
    best: dict[str, list[str]] = {}
    for line in sys.stdin:
        fields = line.rstrip("\n").split("\t")
        if fields[0].strip() != "accuracy":
            continue
        name = fields[1]
        if name not in best or int(fields[3]) >= int(best[name][3]):
            best[name] = fields
    if not best:
        sys.exit("no line of the test was given")
    rows = []
    for name, fields in sorted(best.items()):
        count, ulps, at, nearest, bound = fields[3:8]
        inputs = "all" if int(count) == EVERY else f"every {round(EVERY / int(count))}th"
        where = f"`{float(at):.9g}`" if float(ulps) > 0 else ""
        rows.append(f"| `{name}` | {inputs} | {nearest} % | {float(ulps):.3f} | {where} | {bound} |\n")
    before = PAGE.read_text().split(START)[0]
    PAGE.write_text(before + START + "\n" + HEAD + "".join(rows))


if __name__ == "__main__":
    main()
