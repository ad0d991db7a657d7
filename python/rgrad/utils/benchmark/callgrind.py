"""Instructions that a statement takes, by function: what valgrind's tool callgrind has counted."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..._tensor.text import PRINT_OPTS
from .measurement import TaskSpec

#: More rows than this are shown by their first and their last.
_MOST_ROWS = 18


class FunctionCount(NamedTuple):
    """The instructions of one function, which is named as ``file:function [library]``."""

    count: int  # type: ignore[assignment]
    function: str


@dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Instructions by function, the most first. Counts can be added, subtracted, indexed, filtered and renamed."""

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Any:
        found = self._data[item]
        return FunctionCounts(found, self.inclusive, truncate_rows=False) if isinstance(item, slice) else found

    def __repr__(self) -> str:
        width = max((len(str(row.count)) for row in self), default=0)
        room = max((self._linewidth or PRINT_OPTS.linewidth) - width - 4, 40)
        lines = []
        for row in self:
            name = row.function
            if len(name) > room:
                left = (room - 5) // 2
                name = name[:left] + " ... " + name[-(room - left - 5) :]
            lines.append(f"  {row.count:>{width}}  {name}")
        if self.truncate_rows and len(lines) > _MOST_ROWS:
            half = _MOST_ROWS // 2
            lines = [*lines[:half], "...".rjust(width + 2), *lines[-half:]]
        if not self.inclusive:
            lines += ["", f"Total: {self.sum()}"]
        return "\n".join([object.__repr__(self), *lines])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._with(other, operator.pos)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._with(other, operator.neg)

    def __mul__(self, other: float) -> FunctionCounts:
        return _sorted({row.function: int(row.count * other) for row in self}, self.inclusive)

    def _with(self, other: FunctionCounts, sign: Callable[[int], int]) -> FunctionCounts:
        if self.inclusive != other.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        counts: defaultdict[str, int] = defaultdict(int)
        for row in self:
            counts[row.function] += row.count
        for row in other:
            counts[row.function] += sign(row.count)
        return _sorted(counts, self.inclusive)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """The counts under other names; those that get one name are added.

        Args:
            map_fn: Gives the new name of a function.
        """
        counts: defaultdict[str, int] = defaultdict(int)
        for row in self:
            counts[map_fn(row.function)] += row.count
        return _sorted(counts, self.inclusive)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """The counts of some functions.

        Args:
            filter_fn: Whether a function, given by its name, stays.
        """
        return FunctionCounts(tuple(row for row in self if filter_fn(row.function)), self.inclusive)

    def sum(self) -> int:
        """All instructions."""
        return sum(row.count for row in self)

    def denoise(self) -> FunctionCounts:
        """The counts without Python's look-up of names, which varies from run to run."""
        return self.filter(lambda name: re.search(r"dictobject\.c:(lookdict_unicode|unicodekeys_lookup)", name) is None)


def _sorted(counts: dict[str, int], inclusive: bool) -> FunctionCounts:
    rows = (FunctionCount(count, name) for name, count in counts.items() if count)
    return FunctionCounts(tuple(sorted(rows, reverse=True)), inclusive)


# What a standardized name loses: where rgrad and Python were built, and the library.
_PLACES = (
    (r"^.+build/\.\./", "build/../"),
    (r"^.+/Python/", "Python/"),
    (r"^.+/Objects/", "Objects/"),
    (r"\s\[.+\]$", ""),
)


def _standardized(counts: FunctionCounts) -> FunctionCounts:
    def renamed(name: str) -> str:
        for pattern, text in _PLACES:
            name = re.sub(pattern, text, name)
        return name

    return counts.transform(renamed)


@dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """What `Timer.collect_callgrind` has counted, of the statement and of a loop that does nothing."""

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        base, threads = self.baseline_exclusive_stats, self.task_spec.num_threads
        text = (
            f"{object.__repr__(self)}\n{self.task_spec.summarize()}\n"
            f"  {'':>25}All{'':>10}Noisy symbols removed\n"
            f"    Instructions: {self.counts():>12}{'':>15}{self.counts(denoise=True):>12}\n"
            f"    Baseline:     {base.sum():>12}{'':>15}{base.denoise().sum():>12}\n"
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' if threads > 1 else ''}"
        )
        if not self.built_with_debug_symbols:
            text += "\nWarning: rgrad was not built with debug symbols: its functions are shown without files."
        return text

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """Instructions by function.

        Args:
            inclusive: Add the instructions of what each function called.
        """
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions of all runs.

        Args:
            denoise: Leave out what varies from run to run, see `FunctionCounts.denoise`.
        """
        return (self.stmt_exclusive_stats.denoise() if denoise else self.stmt_exclusive_stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """How many more instructions each function takes here than there.

        Args:
            other: The other counts.
            inclusive: Add the instructions of what each function called.
        """
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """The same with names that do not say where files and libraries are, to be compared with other builds."""
        return replace(
            self,
            baseline_inclusive_stats=_standardized(self.baseline_inclusive_stats),
            baseline_exclusive_stats=_standardized(self.baseline_exclusive_stats),
            stmt_inclusive_stats=_standardized(self.stmt_inclusive_stats),
            stmt_exclusive_stats=_standardized(self.stmt_exclusive_stats),
            stmt_callgrind_out=None,
        )


class CopyIfCallgrind:
    """Marks a global that `Timer.collect_callgrind` may copy into its process.

    Args:
        value: A number, string, bytes, or a module.
        setup: Code that runs there before the copy is read.

    Raises:
        ValueError: The value is of another type.
    """

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        from ...nn import Module

        kinds = (str, bytes, bool, int, float, complex, Module)
        if not isinstance(value, kinds):
            names = "\n".join(f"  {kind.__name__}" for kind in kinds)
            raise ValueError(
                f"Unsupported type: {type(value)}\n"
                f"`collect_callgrind` restricts globals to the following types:\n{names}"
            )
        self._value = value
        self._setup = setup

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    @property
    def setup(self) -> str | None:
        """The code."""
        return self._setup

    @staticmethod
    def unwrap_all(globals: dict[str, Any]) -> dict[str, Any]:
        """The names with their values.

        Args:
            globals: Names with values, marked or not.
        """
        return {name: v.value if isinstance(v, CopyIfCallgrind) else v for name, v in globals.items()}


def parsed(text: str, inclusive: bool) -> FunctionCounts:
    """What ``callgrind_annotate`` has printed.

    Raises:
        OSError: It is something else.
    """
    total = re.search(r"^([0-9,]+)\s+PROGRAM TOTALS", text, re.MULTILINE)
    head = re.search(r"^Ir\s+file:function\n-+\n", text, re.MULTILINE)
    if total is None or head is None:
        raise OSError(f"Failed to read what callgrind_annotate printed:\n{text[:1000]}")
    rows = []
    for line in text[head.end() :].splitlines():
        row = re.match(r"^\s*([0-9,]+)\s+(.+:.+)$", line)
        if row is None:
            break
        # The whole program is no function.
        if row.group(1) != total.group(1):
            rows.append(FunctionCount(int(row.group(1).replace(",", "")), row.group(2)))
    return FunctionCounts(tuple(sorted(rows, reverse=True)), inclusive)
