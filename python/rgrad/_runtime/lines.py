"""The user's lines as reports name them, and the tables that reports are printed as."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from .. import _core

__all__ = ["UNKNOWN", "Line", "line_of", "module_of", "number", "percent", "table"]


class Line(NamedTuple):
    """A line of the user's code. As text it is "train.py:31 in main", with the file relative to the working directory.

    Attributes:
        file: The file as Python knows it; empty if the line is not known.
        number: The number of the line, from 1.
        function: The name of the function.
    """

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        if not self.file:
            return self.function
        return f"{_short(self.file)}:{self.number} in {self.function}"


UNKNOWN = Line("", 0, "unknown line")

_places: dict[int, tuple[Line, str | None]] = {}


def _short(file: str) -> str:
    if not os.path.isabs(file):
        return file
    here = os.path.join(os.getcwd(), "")
    return file[len(here) :] if file.startswith(here) else os.path.join(*file.split(os.sep)[-2:])


def _place(site: int) -> tuple[Line, str | None]:
    known = _places.get(site)
    if known is None:
        place, module = _core._site_place(site), _core._site_module(site)
        known = _places[site] = (UNKNOWN if place is None else Line(*place), module)
    return known


def line_of(site: int) -> Line:
    """The line of an interned call site."""
    return _place(site)[0]


def module_of(site: int) -> str | None:
    """The module whose forward made the call, where that was recorded."""
    return _place(site)[1]


def number(n: int) -> str:
    """A whole number with commas."""
    return f"{n:,}"


def percent(part: int, whole: int) -> str:
    """A share with one digit after the point."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (), indent: str = "  ") -> str:
    """Rows below their head, aligned right but for the columns in ``left``; the last column is not padded."""
    every = [head, *rows]
    widths = [max(len(row[k]) for row in every) for k in range(len(head))]
    lines = []
    for row in every:
        cells = [
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)
