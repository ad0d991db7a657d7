"""A table of measurements: a row for each second label, a column for each description, blocks by thread count."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BEST = "\033[92m\033[1m"
_GOOD = "\033[34m\033[1m"
_BAD = "\033[2m\033[91m"
_VERY_BAD = "\033[31m\033[1m"
_END = "\033[0m\033[0m"


class Colorize(Enum):
    """Which times a time is compared with to colour it."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _coloured(text: str, value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + 100e-9:
        return _BEST + text + _END
    if value <= best * 1.1:
        return _GOOD + text + _END
    if value >= best * 5:
        return _VERY_BAD + text + _END
    return _BAD + text + _END if value >= best * 2 else text


class _Table:
    """The table of the measurements with one label."""

    def __init__(self, results: list[Measurement], trim: bool, colours: Colorize, warnings: bool) -> None:
        self.results = results
        self.trim, self.colours, self.warnings = trim, colours, warnings
        self.unit, self.scale = select_unit(min(r.median for r in results))
        self.columns = ordered_unique(r.description for r in results)
        rows = ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results)
        # Statements stay in order.
        self.rows = sorted(rows, key=lambda row: row[:2])
        self.cells = {(r.num_threads, r.env, r.as_row_name, r.description): r for r in results}

    def _format(self, column: str | None) -> tuple[int, int, int]:
        """The characters of a column's numbers, those behind the point, and those of a warning."""
        shown = [r for r in self.results if r.description == column]
        digits = [math.ceil(math.log10(r.median / self.scale)) for r in shown]
        after = 1
        if self.trim:
            after = min(max(r.significant_figures - d, 0) for r, d in zip(shown, digits, strict=True))
        width = max(digits) + after + (1 if after else 0)
        return width, after, 7 if self.warnings and any(r.has_warnings for r in shown) else 0

    def _text(self, result: Measurement | None, column: str | None) -> str:
        width, after, warning = self._format(column)
        if result is None:
            return " " * (len(f"{1.0:>{width}.{after}f}") + warning)
        value = result.median / self.scale
        if self.trim:
            value = trim_sigfig(value, result.significant_figures)
        mark = f" (! {result.iqr / result.median * 100:.0f}%)" if warning and result.has_warnings else ""
        return f"{value:>{width}.{after}f}" + mark.rjust(warning)

    def _best(self, row: tuple[int, str, str], column: str | None) -> float:
        if self.colours == Colorize.ROWWISE:
            compared = [self.cells.get((*row, c)) for c in self.columns]
        else:
            compared = [self.cells.get((*r, column)) for r in self.rows if r[0] == row[0]]
        return min(r.median for r in compared if r is not None)

    def __str__(self) -> str:
        envs = {r.env for r in self.results}
        wide = max(len(e) for e in envs) + 4 if len(envs) > 1 else 4
        names = []
        before: tuple[int, str] | None = None
        for threads, env, name in self.rows:
            shown = f"({env})" if len(envs) > 1 and before != (threads, env) else ""
            before = (threads, env)
            names.append("  " + shown.ljust(wide) + name)
        texts = [[self._text(self.cells.get((*row, c)), c) for c in self.columns] for row in self.rows]
        headers = ["" if c is None else c for c in self.columns]
        first = max(len(n) for n in names)
        widths = [max(len(h), *(len(t[i]) for t in texts)) for i, h in enumerate(headers)]
        lines = ["  |  ".join([" " * first, *(h.center(w) for h, w in zip(headers, widths, strict=True))])]
        overall = len(lines[0])
        threads_before = None
        for row, name, cells in zip(self.rows, names, texts, strict=True):
            if row[0] != threads_before:
                threads_before = row[0]
                lines.append(f"{row[0]} threads: ".ljust(overall, "-"))
            shown_cells = [name.ljust(first)]
            for column, text, width in zip(self.columns, cells, widths, strict=True):
                result = self.cells.get((*row, column))
                text = text.center(width)
                if self.colours != Colorize.NONE and result is not None:
                    text = _coloured(text, result.median, self._best(row, column))
                shown_cells.append(text)
            lines.append("  |  ".join(shown_cells))
        title = f" {self.results[0].label or ''} ".center(overall - 2, "-")
        note = ""
        if self.warnings and any(r.has_warnings for r in self.results):
            note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        body = "\n".join(lines)
        return f"[{title}]\n{body}\n\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n{note}"


class Compare:
    """Shows measurements as tables, one for each label.

    Args:
        results: The measurements.

    Raises:
        ValueError: Something else is among them.
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows only figures that are certain."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours times by their distance from the best of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that differ much from run to run."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        by_label: dict[str | None, list[Measurement]] = defaultdict(list)
        for r in Measurement.merge(self._results):
            by_label[r.label].append(r)
        make = (self._trim_significant_figures, self._colorize, self._highlight_warnings)
        return "\n".join(str(_Table(group, *make)) for group in by_label.values())
