"""Runs a statement often enough for a reliable time."""

from __future__ import annotations

import statistics
import textwrap
import timeit
from collections.abc import Callable
from enum import Enum
from time import perf_counter
from typing import Any, Never

from ... import _core
from ..._runtime.fusion import fusion
from ._valgrind import collect
from .callgrind import CopyIfCallgrind
from .measurement import Measurement, TaskSpec, set_torch_threads

#: The most runs of one block.
_MOST = 2**31 - 1


def timer() -> float:
    """Seconds, after all commands for a device have run."""
    if _core._wgpu_installed():
        _core._wgpu_synchronize()
    return perf_counter()


class Language(Enum):
    """The language of a statement; only Python can be timed."""

    PYTHON = 0
    CPP = 1


def _unindented(code: str) -> str:
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Times a statement, as ``timeit.Timer`` does, with warm-up, a number of threads, and statistics.

    Results are computed at once while it runs, as in ``with rgrad.fusion(False)``: the result of a statement is thrown
    away, and one that waits to be read would never be computed. To time a fused chain, let the statement itself say
    ``with rgrad.fusion(True):`` and read its result.

    Args:
        stmt: The code to time.
        setup: Code that runs once before.
        global_setup: Only for other languages.
        timer: Gives the time in seconds.
        globals: The names that the code sees; ``rgrad`` and ``torch`` (the same module) are always there.
        label, sub_label, description, env: Names for tables.
        num_threads: With how many threads rgrad computes meanwhile.
        language: ``"python"``.

    Raises:
        ValueError: ``stmt`` is no string, there is a ``global_setup``, or the language is unknown.
        NotImplementedError: The language is C++.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: C++ statements are not supported; time Python code")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        import rgrad

        stmt, setup = _unindented(stmt), _unindented(setup)
        names = {"rgrad": rgrad, "torch": rgrad, **CopyIfCallgrind.unwrap_all(globals or {})}
        self._globals = dict(globals or {})
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        # Never 0: times are divided by.
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of ``number`` runs."""
        with set_torch_threads(self._task_spec.num_threads), fusion(False):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> Never:
        """Not there: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> Never:
        """Not there: `blocked_autorange` finds the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many runs make the timer's own cost negligible."""
        overhead = statistics.median(self._timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._timeit(number)
            long_enough = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if long_enough or taken > min_run_time or number * 10 > _MOST:
                return number
            number *= 10

    def _measure(
        self,
        least: float,
        most: float | None,
        enough: Callable[[Measurement], bool],
        callback: Callable[[int, float], Any] | None,
        block: float,
    ) -> Measurement:
        """Blocks until ``least`` seconds have passed and ``enough`` is true, or ``most`` seconds have passed."""
        with set_torch_threads(self._task_spec.num_threads), fusion(False):
            number = self._block_size(block)
            times: list[float] = []
            done = False
            while not done or sum(times) < least:
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                done = enough(self._measured(number, times))
                if most is not None and sum(times) > most:
                    break
        return self._measured(number, times)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of runs for ``min_run_time`` seconds; the size of a block is found first.

        Args:
            callback: Called after each block with its runs and seconds.
            min_run_time: In seconds.
        """
        return self._measure(min_run_time, None, lambda m: True, callback, min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the interquartile range is below ``threshold`` times the median.

        Args:
            threshold: A part of the median.
            min_run_time: The least seconds.
            max_run_time: The most seconds.
            callback: Called after each block with its runs and seconds.
        """

        def enough(m: Measurement) -> bool:
            return len(m.raw_times) > 3 and m.meets_confidence(threshold)

        return self._measure(min_run_time, max_run_time, enough, callback, 0.05)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Count the instructions of the statement with valgrind's callgrind, in another process.

        Args:
            number: How often the statement runs.
            repeats: How often it is measured.
            collect_baseline: Count those of a loop that does nothing, too.
            retain_out_file: Keep what callgrind has written, as `CallgrindStats.stmt_callgrind_out`.

        Returns:
            A `CallgrindStats`, or as many of them as ``repeats`` says.

        Raises:
            ValueError: ``repeats`` is less than 1, or a global is not marked by `CopyIfCallgrind`.
            OSError: Valgrind is not installed, does not exist for this system, or the process failed.
        """
        if repeats is not None and repeats < 1:
            raise ValueError("If specified, `repeats` must be >= 1")
        # A wrong statement is found first.
        self._timeit(1)
        found = collect(
            self._task_spec, self._globals, number, repeats or 1, bool(collect_baseline), bool(retain_out_file)
        )
        return found[0] if repeats is None else found
