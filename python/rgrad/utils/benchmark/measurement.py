"""What was measured, and the times."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ... import _core
from ..._runtime.missing import missing

_MOST_FIGURES = 4
#: Differences below this many seconds say nothing.
_LEAST_INTERVAL = 25e-9
#: Interquartile ranges, as parts of the median, from which a measurement is suspect.
_SUSPECT, _GROSSLY_SUSPECT = 0.1, 0.25

_SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a `Timer` runs, and the labels under which `Compare` shows it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement, with the second label."""
        if self.label is None and "\n" in self.stmt:
            second = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{second}\n" + textwrap.indent(self.stmt, "  ")
        first = self.stmt if self.label is None else self.label
        return first + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup as text; empty without one."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return "setup:\n" + textwrap.indent(self.setup, "  ")
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, in lines."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts)


_SPEC_FIELDS = frozenset(f.name for f in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """The times of one statement in seconds, each of ``number_per_run`` runs.

    It has the fields of its `TaskSpec`, too.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC_FIELDS:
            return getattr(self.task_spec, name)
        return missing(self, name)

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        """The median of `times`."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The range of the middle half of `times`."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median are certain, roughly: from the standard error of the middle half."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _SUSPECT) -> bool:
        """Whether the interquartile range is less than this part of the median."""
        return self.iqr / self.median < threshold

    def _warning(self) -> str | None:
        if not self.raw_times or self.meets_confidence(_SUSPECT):
            return None
        gross = not self.meets_confidence(_GROSSLY_SUSPECT)
        why = (
            "This suggests significant environmental influence." if gross else "This could indicate system fluctuation."
        )
        return (
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
            f"           {why}"
        )

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ so much that the median is suspect."""
        return self._warning() is not None

    @property
    def title(self) -> str:
        """The title of what was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it was measured."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """Its name in the rows of `Compare`."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)
        several, threads = count > 1, self.num_threads
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}",
        ]
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' if several else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if several else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        warning = self._warning()
        return "\n".join([*lines, warning] if warning else lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all of them."""
        groups: dict[TaskSpec, list[float]] = defaultdict(list)
        for m in measurements:
            groups[m.task_spec] += m.times
        return [Measurement(1, times, spec) for spec, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which ``t`` seconds are best shown, and its seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) // 3) if t > 0 else 0, "s")
    return unit, _SCALES[unit]


def unit_to_english(u: str) -> str:
    """``"microsecond"`` for ``"us"``."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` with ``n`` significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in order."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Computes with ``n`` threads in this block."""
    before = _core.get_num_threads()
    try:
        _core.set_num_threads(n)
        yield
    finally:
        _core.set_num_threads(before)
