"""Which combinations of parameters run: they rotate from commit to commit, and `RGRAD_LONG=1` runs all of them.

`@pytest.mark.rotate("op")` says of a parametrized test: of its items that agree in `op` (and in the device), one runs.
The next commit runs the next one, so that as many commits in a row as there are combinations run every one of them.
`take=2` runs two at a time. The others are deselected, and their number is told. A test that goes through combinations
itself, as those of the table of operations do, asks `some()`.

The seed is the number of commits up to HEAD, so that it grows by one from commit to commit; in a shallow clone, which
does not know that number, it is the day of the commit. `RGRAD_ROTATION` sets it. With `RGRAD_PART=8` an eighth of the
tests runs, another one with each seed: what is tried once more in another setting (without vector instructions, on
another Python) needs no more; `RGRAD_WGPU_PART` says it of the tests on wgpu alone, which another run has whole. An
item whose node id is given on the command line runs in any case.
"""

from __future__ import annotations

import functools
import os
import subprocess
import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

LONG = "RGRAD_LONG"
SEED = "RGRAD_ROTATION"
PART = "RGRAD_PART"
WGPU_PART = "RGRAD_WGPU_PART"
# Without git, as in a source archive.
FIXED = 0

T = TypeVar("T")


@dataclass
class Left:
    """How much this run leaves to others."""

    tests: int = 0
    combinations: int = 0


LEFT = Left()


def everything() -> bool:
    """Whether this run leaves nothing out."""
    return os.environ.get(LONG) == "1"


def _git(*command: str) -> str | None:
    """What git says of the clone that this file lies in."""
    try:
        done = subprocess.run(
            ["git", *command],
            cwd=Path(__file__).parent,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@functools.cache
def seed() -> int:
    """The number that decides what runs."""
    if SEED in os.environ:
        return int(os.environ[SEED])
    count = _git("rev-list", "--count", "HEAD")
    if count is None:
        return FIXED
    if _git("rev-parse", "--is-shallow-repository") == "true":
        return int(_git("log", "-1", "--format=%ct") or "0") // (24 * 60 * 60)
    return int(count)


def parts(on_wgpu: bool = False) -> int:
    """Into how many parts the tests, or those on wgpu, are cut, of which one runs."""
    return max(int(os.environ.get(name, "1")) for name in (PART, *([WGPU_PART] if on_wgpu else []))) or 1


def header() -> str:
    """What a run says of itself."""
    if everything():
        return f"rotation: all combinations of parameters ({LONG}=1)"
    cuts = f", one of {parts()} parts ({PART}={parts()})" if parts() > 1 else ""
    if parts(on_wgpu=True) > parts():
        cuts += f", on wgpu one of {parts(on_wgpu=True)} ({WGPU_PART}={parts(on_wgpu=True)})"
    return f"rotation: seed {seed()}{cuts} ({SEED}={seed()} repeats this choice, {LONG}=1 runs all combinations)"


def chosen(count: int, take: int, at: int, key: str = "") -> range:
    """The positions that run of `count` combinations, about `take` at a time, with the seed `at`.

    With any `ceil(count / take)` seeds in a row every position runs exactly once. `key` shifts the order, so that
    different tests do not all run their first combination together.
    """
    if count == 0:
        return range(0)
    period = -(-count // take)
    return range((at + zlib.crc32(key.encode())) % period, count, period)


def some(things: Sequence[T], take: int, key: str) -> list[T]:
    """The things that this run looks at, for a test that goes through them itself."""
    if everything():
        return list(things)
    found = [things[n] for n in chosen(len(things), take, seed(), key)]
    LEFT.combinations += len(things) - len(found)
    return found


def _name(value: Any) -> str:
    name = str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)
    assert " at 0x" not in name, f"{name} has another name in every process"
    return name


def _group(item: pytest.Item, keys: Iterable[str]) -> tuple[Hashable, ...]:
    """What items share of which one runs: file, function, device and the values of `keys`."""
    function = item.nodeid.partition("[")[0]
    params = item.callspec.params if hasattr(item, "callspec") else {}
    device = "wgpu" if item.get_closest_marker("wgpu") is not None else "cpu"
    return (function, device, *(_name(params[key]) for key in keys))


def is_named(item: pytest.Item, named: Iterable[str]) -> bool:
    """Whether one of these arguments of the command line is this very item."""
    return any(argument.endswith(item.nodeid) or item.nodeid.endswith(argument) for argument in named)


def rest(items: list[pytest.Item], arguments: Sequence[str]) -> set[pytest.Item]:
    """The collected items that do not run this time. `arguments` are those of the command line."""
    if everything():
        return set()
    named = {argument.replace(os.sep, "/") for argument in arguments if argument.endswith("]")}
    groups: dict[tuple[Hashable, ...], list[pytest.Item]] = {}
    takes: dict[tuple[Hashable, ...], int] = {}
    for item in items:
        mark = item.get_closest_marker("rotate")
        if mark is not None:
            group = _group(item, mark.args)
            groups.setdefault(group, []).append(item)
            takes[group] = mark.kwargs.get("take", 1)
    cut = {on_wgpu: parts(on_wgpu) for on_wgpu in (False, True)}
    left = {
        item
        for item in items
        if zlib.crc32(f"{seed()} {item.nodeid}".encode()) % cut[item.get_closest_marker("wgpu") is not None]
    }
    left = {item for item in left if not is_named(item, named)}
    for group, members in groups.items():
        keep = set(chosen(len(members), takes[group], seed(), repr(group)))
        left.update(item for n, item in enumerate(members) if n not in keep and not is_named(item, named))
    return left
