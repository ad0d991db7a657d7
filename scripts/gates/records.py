"""The files that gates write, and what differs between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

# Percent by which a value may grow.
ALLOWED = {"counts": 0.5, "sizes": 1.0}
# A kernel with this share of a row's samples in one file must have half of it in the other: luck alone decides who has
# a bit more than 10 %.
SHARE = 0.2
# Of `sizes` these lines decide; the families between them only tell where bytes went.
TOTALS = ("all code", "the file, stripped")


class NoRecord(Exception):
    """A file that no gate has written."""


class Record(NamedTuple):
    """What a gate found: its name, and a value for each case."""

    gate: str
    values: dict[str, Any]


def write(path: Path, gate: str, lines: Iterable[dict[str, Any]], **about: str) -> None:
    """One line of JSON that says what was measured, and one for each case, so that `diff` can be used."""
    with path.open("w", encoding="utf-8") as file:
        for line in ({"gate": gate, **about}, *lines):
            file.write(json.dumps(line) + "\n")


def read(path: Path) -> Record:
    try:
        head, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return Record(head["gate"], {line["case"]: line["value"] for line in lines})
    except (ValueError, KeyError, TypeError) as error:
        raise NoRecord(f"{path} is not what a gate writes: {type(error).__name__}: {error}") from None


def percent(before: float, after: float) -> float:
    return 100 * (after - before) / before if before else float("inf") if after else 0.0


def changed(gate: str, case: str, before: Any, after: Any, allowed: float | None) -> tuple[str, bool]:
    """How a case differs ('' if it does not), and whether that fails the gate."""
    if gate == "hashes":
        return ("", False) if before == after else (f"{before[:12]} -> {after[:12]}", True)
    if gate == "kernels":
        lost = [name for name, share in before.items() if share >= SHARE and after.get(name, 0) < share / 2]
        new = [name for name, share in after.items() if share >= SHARE and before.get(name, 0) < share / 2]
        return (
            (f"lost {', '.join(lost) or 'none'}; new {', '.join(new) or 'none'}", True) if lost or new else ("", False)
        )
    limit = ALLOWED[gate] if allowed is None else allowed
    grown = percent(before, after)
    if abs(grown) <= limit:
        return "", False
    fails = grown > limit and (gate == "counts" or case in TOTALS)
    return f"{before:,.0f} -> {after:,.0f} ({grown:+.2f} %)", fails


def compare(before: Record, after: Record, allowed: float | None = None, most: int = 50) -> tuple[list[str], bool]:
    """Lines that say what differs, and whether nothing of it fails. Cases that only `after` has never fail."""
    if before.gate != after.gate:
        raise NoRecord(f"one file is of {before.gate}, the other of {after.gate}")
    failed: list[str] = []
    noted: list[str] = []
    for case, value in before.values.items():
        if case not in after.values:
            failed.append(f"missing  {case}")
            continue
        told, fails = changed(before.gate, case, value, after.values[case], allowed)
        if told:
            (failed if fails else noted).append(f"{'CHANGED' if fails else 'note   '}  {case}: {told}")
    noted += [f"new      {case}" for case in after.values if case not in before.values]
    lines = []
    for some in (failed, noted):
        lines += some[:most]
        if len(some) > most:
            lines.append(f"... and {len(some) - most} more")
    lines.append(f"{before.gate}: {len(before.values)} cases, {len(failed)} fail")
    return lines, not failed
