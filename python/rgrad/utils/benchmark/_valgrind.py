"""Runs a statement in another process under valgrind, which counts its instructions."""

from __future__ import annotations

import os
import pickle
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which
from typing import Any

from .callgrind import CallgrindStats, CopyIfCallgrind, FunctionCounts, parsed
from .measurement import TaskSpec

_TOOLS = ("valgrind", "callgrind_control", "callgrind_annotate")


def check() -> None:
    """Tell whether instructions can be counted here.

    Raises:
        OSError: They cannot.
    """
    if sys.platform != "linux":
        raise OSError("Valgrind is not supported on this platform.")
    missing = [tool for tool in _TOOLS if which(tool) is None]
    if missing:
        raise OSError("Missing: " + ", ".join(missing))
    if platform.machine() != "x86_64":
        raise OSError("Valgrind is not supported on this platform.")


def _packed(globals: dict[str, Any], folder: Path) -> list[tuple[str, str, str | None]]:
    """The user's names, the files of their values, and the code before them.

    Raises:
        ValueError: A value is not marked as one to be copied, or stands for rgrad itself.
    """
    import rgrad

    found = []
    for name, given in globals.items():
        if name == "__builtins__" or given is rgrad:
            continue
        if name in ("rgrad", "torch"):
            raise ValueError(f"`collect_callgrind` does not support mocking out `{name}`.")
        if not isinstance(given, CopyIfCallgrind):
            raise ValueError(
                "`collect_callgrind` requires that globals be wrapped in `CopyIfCallgrind` so that serialization is "
                "explicit."
            )
        file = folder / f"{name}.pkl"
        file.write_bytes(pickle.dumps(given.value))
        found.append((name, str(file), given.setup))
    return found


def _annotated(file: Path, inclusive: bool) -> FunctionCounts:
    command = ["callgrind_annotate", f"--inclusive={'yes' if inclusive else 'no'}", "--threshold=100"]
    done = subprocess.run(
        [*command, "--show-percs=no", "--auto=no", str(file)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise OSError(f"callgrind_annotate failed:\n{done.stderr}")
    return parsed(done.stdout, inclusive)


def collect(
    spec: TaskSpec, globals: dict[str, Any], number: int, repeats: int, baseline: bool, retain: bool
) -> tuple[CallgrindStats, ...]:
    """Count the instructions of a statement, some times.

    Args:
        spec: The statement.
        globals: The names that it sees, marked by `CopyIfCallgrind`.
        number: How often it runs each time.
        repeats: How many times.
        baseline: Count those of a loop that does nothing, too.
        retain: Keep what callgrind has written.

    Raises:
        OSError: Valgrind is not there, or the process failed.
        ValueError: A value cannot be copied.
    """
    check()
    with tempfile.TemporaryDirectory(prefix="rgrad-callgrind-") as name:
        folder = Path(name)
        job = {
            "stmt": spec.stmt,
            "setup": spec.setup,
            "number": number,
            "repeats": repeats,
            "baseline": baseline,
            "threads": spec.num_threads,
            "globals": _packed(globals, folder),
        }
        (folder / "job").write_bytes(pickle.dumps(job))
        out = folder / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no"]
        command += [sys.executable, "-c", "from rgrad.utils.benchmark._under_valgrind import main; main()", name]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        # Sets and dicts of strings take as many steps each time.
        environment.setdefault("PYTHONHASHSEED", "0")
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        told = folder / "error"
        if done.returncode != 0 or told.exists():
            why = told.read_text(encoding="utf-8") if told.exists() else "Unknown error.\n" + done.stderr
            raise OSError(f"Failed to collect callgrind profile:\n{why}")
        # Callgrind counts the files that it writes from one.
        files = [folder / f"callgrind.out.{i + 1}" for i in range(repeats + baseline)]
        counts = [(_annotated(file, True), _annotated(file, False)) for file in files]
        empty = (FunctionCounts((), True), FunctionCounts((), False))
        base = counts[repeats] if baseline else empty
        return tuple(
            CallgrindStats(
                task_spec=spec,
                number_per_run=number,
                built_with_debug_symbols=any("src/" in row.function.partition(":")[0] for row in own),
                baseline_inclusive_stats=base[0],
                baseline_exclusive_stats=base[1],
                stmt_inclusive_stats=inclusive,
                stmt_exclusive_stats=own,
                stmt_callgrind_out=file.read_text(encoding="utf-8") if retain else None,
            )
            for (inclusive, own), file in zip(counts[:repeats], files, strict=False)
        )
