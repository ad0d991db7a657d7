"""Steps of a command: each under its heading, timed, and told in a table at the end. Standard library only."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from builds import TaskError, captured, heading, say, used

BEGUN = time.monotonic()


class Step(NamedTuple):
    """One step that has run: how it ended, and the seconds that it took."""

    name: str
    verdict: str
    wall: float
    cpu: float


def step(rows: list[Step], name: str, title: str, section: Callable[[], int]) -> str:
    """Run one step under its heading and add it to `rows`. A task error counts as a failure; later steps still run."""
    heading(f"{title} ({name})")
    wall, cpu = time.monotonic(), used()
    try:
        verdict = "ok" if section() == 0 else "FAILED"
    except TaskError as error:
        say(f"run: {error}")
        verdict = "FAILED"
    rows.append(Step(name, verdict, time.monotonic() - wall, used() - cpu))
    return verdict


@contextlib.contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Runs `work` on a thread of its own meanwhile; what it prints is shown at the end. It must not raise."""
    printed: list[str] = []

    def run() -> None:
        with captured() as text:
            work()
        printed.append(text())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        say("".join(printed).rstrip("\n"))


def summary(rows: Sequence[Step], left_out: Sequence[str] = ()) -> int:
    """Print a table of `rows`; return the exit status."""
    heading("Summary")
    for name, verdict, wall, cpu in rows:
        say(f"{name:10} {verdict:8} {wall:7.1f} s {cpu:7.1f} s of CPU")
    for name in left_out:
        say(f"{name:10} left out: nothing it reads has changed since it passed on this machine (RGRAD_ALL=1 runs it)")
    failed = [row.name for row in rows if row.verdict != "ok"]
    verdict = f"FAILED: {' '.join(failed)}" if failed else "All passed"
    say(f"{verdict} in {time.monotonic() - BEGUN:.0f} s, {sum(row.cpu for row in rows) / 60:.1f} minutes of CPU")
    return 1 if failed else 0
