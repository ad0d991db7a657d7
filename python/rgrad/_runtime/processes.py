"""Processes that run one function, for `rgrad.multiprocessing`. If one fails, the others are ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

#: Accepted for PyTorch's sake: processes are started one after the other.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"

# How long processes have to end after SIGTERM if the caller says nothing, in seconds.
_PATIENCE = 30.0


class ProcessException(Exception):
    """A process failed.

    Args:
        msg: What is told.
        error_index: The number of the process.
        error_pid: Its process id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message has the process's traceback."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code that is not 0.

    Args:
        msg: What is told.
        error_index: The number of the process.
        error_pid: Its process id.
        exit_code: Its exit code, negative for a signal.
        signal_name: The name of the signal.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _end_with_parent() -> None:
    """Let the system interrupt this process when its parent ends. Only Linux has that."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGINT)


def _run(fn: Callable[..., Any], index: int, args: Sequence[Any], report: str) -> None:
    """What a process does: call the function; if it raises, leave the traceback in the file and exit with 1."""
    _end_with_parent()
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        # The parent has ended this process.
        pass
    except Exception:
        Path(report).write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
        sys.exit(1)


class ProcessContext:
    """Processes that :func:`start_processes` has started.

    Args:
        processes: The processes.
        error_files: For each of them the file that a traceback is written to.
    """

    def __init__(self, processes: Sequence[BaseProcess], error_files: Sequence[str]) -> None:
        self.processes = list(processes)
        self.error_files = list(error_files)
        self.sentinels: dict[Any, int] = {process.sentinel: index for index, process in enumerate(self.processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid or 0) for process in self.processes]

    def _wait_for_all(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _end_all(self, grace_period: float | None) -> None:
        """Let all processes end: by themselves, by SIGTERM, by SIGKILL."""
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(_PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _failure(self, index: int) -> ProcessException:
        """What to raise for a process that ended with another exit code than 0."""
        process, report = self.processes[index], Path(self.error_files[index])
        pid, code = int(process.pid or 0), int(process.exitcode or 0)
        if report.exists():
            told = report.read_text(encoding="utf-8")
            report.unlink()
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{told}", index, pid
            )
        if code >= 0:
            return ProcessExitedException(f"process {index} terminated with exit code {code}", index, pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index} terminated with signal {name}", index, pid, code, name)

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, and tell whether all have.

        If one has failed, the others are ended and its failure is raised.

        Args:
            timeout: The most seconds to wait.
            grace_period: Seconds in which the other processes may end by themselves, and again after SIGTERM.

        Raises:
            ProcessRaisedException: A process raised.
            ProcessExitedException: A process ended by a signal, or with another exit code than 0.
        """
        if not self.sentinels:
            return True
        for ended in wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(ended)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                self._end_all(grace_period)
                raise self._failure(index)
        return not self.sentinels


class SpawnContext(ProcessContext):
    """The old name of :class:`ProcessContext`."""

    def __init__(self, processes: Sequence[BaseProcess], error_files: Sequence[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(index, *args)`` in several processes.

    Args:
        fn: The function; it must be importable where processes are spawned.
        args: What all of them get behind their number.
        nprocs: How many.
        join: Wait until all have ended.
        daemon: Whether the processes are daemonic.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Returns:
        None if it waited, else the processes.

    Raises:
        ProcessRaisedException: A process raised.
        ProcessExitedException: A process ended by a signal, or with another exit code than 0.
        ValueError: There is no such start method.
    """
    context = multiprocessing.get_context(start_method)
    processes: list[BaseProcess] = []
    reports: list[str] = []
    for index in range(nprocs):
        # A free name: the file is there only if the process has raised.
        handle, report = tempfile.mkstemp(prefix="rgrad-process-", suffix=".txt")
        os.close(handle)
        Path(report).unlink()
        process = context.Process(target=_run, args=(fn, index, args, report), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
        reports.append(report)
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(index, *args)`` in several new processes.

    Args:
        fn: A function at the top level of a module.
        args: What all of them get behind their number.
        nprocs: How many.
        join: Wait until all have ended.
        daemon: Whether the processes are daemonic.
        start_method: Only ``"spawn"``; :func:`start_processes` takes others.

    Returns:
        None if it waited, else the processes.

    Raises:
        ProcessRaisedException: A process raised.
        ProcessExitedException: A process ended by a signal, or with another exit code than 0.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t rgrad.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
