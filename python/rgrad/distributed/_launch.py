"""Starts the processes of a program: finds an ``mpiexec``, marks their output, and says which of them failed first."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ._mpi import INSTALL

#: Where processes write the error that ends them.
ERRORS = "RGRAD_DISTRIBUTED_ERRORS"
# What launchers write before the lines of a process: MPICH's, Open MPI's.
_MARKS = re.compile(rb"\[(?:\d+,)?(\d+)\](?:<std(?:out|err)>: ?| ?)")


class Launcher:
    """An ``mpiexec``.

    Args:
        path: Where it is.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        self.open_mpi = bool(re.search(r"open ?mpi|open-mpi|prrte|prte", said, re.IGNORECASE))
        self.mpich = bool(re.search(r"hydra|mpich|intel", said, re.IGNORECASE)) and not self.open_mpi

    def environment(self) -> dict[str, str]:
        """The variables that it needs: Open MPI wants to be told that containers run programs as root."""
        env = dict(os.environ)
        if self.open_mpi:
            env.setdefault("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
            if hasattr(os, "geteuid") and os.geteuid() == 0:
                for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
                    env.setdefault(name, "1")
                    env.setdefault(f"{name}_CONFIRM", "1")
        return env

    def command(self, processes: int, hosts: str | None) -> list[str]:
        """The words that start so many processes, whose lines are marked."""
        words = [self.path, "-n", str(processes)]
        if self.open_mpi:
            words += ["--output", "tag", "--bind-to", "none"]
            if hosts:
                words += ["--host", hosts]
        elif self.mpich:
            words += ["-prepend-rank"]
            if hosts:
                words += ["-hosts", hosts]
        elif hosts:
            words += ["-hosts", hosts]
        return words


def find_launcher() -> Launcher:
    """The ``mpiexec`` of this Python's environment, or else the first one on the path.

    Raises:
        RuntimeError: There is none.
    """
    near = os.pathsep.join([str(Path(sys.executable).parent), sysconfig.get_path("scripts")])
    for where in (near, None):
        for name in ("mpiexec", "mpirun"):
            if found := shutil.which(name, path=where):
                return Launcher(found)
    raise RuntimeError(f"there is no mpiexec; {INSTALL}")


def launch(words: Sequence[str], processes: int, hosts: str | None, env: dict[str, str]) -> int:
    """Run a command in so many processes, and say what came of it.

    Returns:
        0, or the status of the process that failed first.
    """
    with tempfile.TemporaryDirectory(prefix="rgrad-run-") as folder:
        # Elsewhere the folder would not be found, and the error goes to stderr.
        env = dict(env) if hosts else {**env, ERRORS: folder}
        if processes == 1 and not hosts:
            status = subprocess.run(list(words), env=env, check=False).returncode
        else:
            launcher = find_launcher()
            env = {**launcher.environment(), **env}
            status = _marked([*launcher.command(processes, hosts), *words], env)
        failures = sorted((json.loads(file.read_text()) for file in Path(folder).glob("*.json")), key=_when)
    if not failures:
        # A process that a signal ended says nothing.
        return 128 - status if status < 0 else status
    first = failures[0]
    rank = first["rank"]
    text: str = first["text"]
    for line in text.splitlines():
        sys.stderr.write(f"[rank{rank}]: {line}\n")
    others = [failure["rank"] for failure in failures[1:]]
    if others:
        sys.stderr.write(f"rgrad.distributed.run: rank {rank} failed first; ranks {others} failed, too\n")
    return int(first["status"]) or 1


def _when(failure: dict[str, float]) -> float:
    return failure["time"]


def _marked(words: Sequence[str], env: dict[str, str]) -> int:
    """Run mpiexec; lines of processes begin with ``[rank0]: ``."""
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            _pass_on(process.stdout, sys.stdout.buffer)
        except KeyboardInterrupt:
            # mpiexec has got the signal, too, and ends its processes.
            _pass_on(process.stdout, sys.stdout.buffer)
        return process.wait()


def _pass_on(given: IO[bytes], to: IO[bytes]) -> None:
    for line in given:
        line = line.replace(b"\0", b"")
        to.write(_MARKS.sub(rb"[rank\1]: ", line, count=1) if _MARKS.match(line) else line)
        to.flush()
