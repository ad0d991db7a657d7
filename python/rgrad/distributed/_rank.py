"""Runs a program as one of several processes: ``python -m rgrad.distributed._rank [-m] PROGRAM [ARGUMENTS ...]``.

It sets the variables that PyTorch's programs read, and writes an error that ends the program to a file, which the
launcher shows.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
import traceback
from pathlib import Path
from types import CodeType

from ._launch import ERRORS

# What launchers of MPI call a process's place, the number of processes, and both on its machine.
_PLACES = {
    "RANK": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
    "LOCAL_RANK": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "LOCAL_WORLD_SIZE": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"),
}


def _set_places() -> None:
    for name, others in _PLACES.items():
        found = [os.environ[other] for other in others if other in os.environ]
        os.environ[name] = found[0] if found else ("1" if name.endswith("SIZE") else "0")
    for name in ("GROUP_RANK", "ROLE_RANK"):
        os.environ.setdefault(name, "0" if name == "GROUP_RANK" else os.environ["RANK"])
    os.environ.setdefault("GROUP_WORLD_SIZE", "1")
    os.environ.setdefault("ROLE_WORLD_SIZE", os.environ["WORLD_SIZE"])


def _users_lines(error: BaseException) -> str:
    """The traceback from the program's first line on."""
    trace, inside = error.__traceback__, {str(Path(__file__)), runpy.__file__, "<frozen runpy>"}

    def code(of: object) -> CodeType:
        return of.tb_frame.f_code  # type: ignore[attr-defined, no-any-return]

    while trace is not None and trace.tb_next is not None and code(trace).co_filename in inside:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _end(status: int, text: str) -> None:
    """Say why this process ends, and end the others, which would wait for it."""
    folder = os.environ.get(ERRORS)
    if folder is None:
        sys.stderr.write(text)
    else:
        rank = int(os.environ["RANK"])
        file = Path(folder) / f"{rank}.json"
        part = file.with_suffix(".part")
        part.write_text(json.dumps({"rank": rank, "time": time.time(), "status": status, "text": text}))
        part.replace(file)
    sys.stdout.flush()
    sys.stderr.flush()
    if "mpi4py.MPI" in sys.modules and int(os.environ["WORLD_SIZE"]) > 1:
        # Others that fail for the same reason get time to say so.
        time.sleep(0.1)
        sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(status)
    os._exit(status)


def main(arguments: list[str]) -> None:
    """Run the program."""
    _set_places()
    # Whole lines, or those of several processes would mix.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    module = arguments[0] == "-m"
    name, *rest = arguments[1:] if module else arguments
    sys.argv = [name, *rest]
    try:
        if module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(name).resolve().parent))
            runpy.run_path(name, run_name="__main__")
    except SystemExit as error:
        if error.code in (None, 0):
            raise
        said = "" if isinstance(error.code, int) else f"{error.code}\n"
        status = error.code if isinstance(error.code, int) else 1
        _end(status, said or f"SystemExit: {status}\n")
    except BaseException as error:
        _end(130 if isinstance(error, KeyboardInterrupt) else 1, _users_lines(error))


if __name__ == "__main__":
    # What the interpreter has put there for -m is no place of the program's modules.
    del sys.path[0]
    main(sys.argv[1:])
