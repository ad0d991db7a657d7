"""Starts a program in several processes: ``python -m rgrad.distributed.run --nproc-per-node 4 train.py [args]``.

The options are torchrun's. The processes are started by an ``mpiexec``, that of the environment or the first one on
the path.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Sequence

from ._launch import launch
from ._mpi import INSTALL, found

__all__ = ["get_args_parser", "main", "parse_args", "run"]

# Options of torchrun that MPI has no use for, with what they take.
_WITHOUT_EFFECT = {
    "--rdzv-backend": str,
    "--rdzv-endpoint": str,
    "--rdzv-conf": str,
    "--monitor-interval": float,
    "--start-method": str,
    "--role": str,
    "--log-dir": str,
    "-r": str,
    "-t": str,
    "--local-ranks-filter": str,
    "--local-addr": str,
    "--logs-specs": str,
    "--node-rank": int,
}
_LONGER = {"-r": "--redirects", "-t": "--tee"}


def _both(name: str) -> list[str]:
    """An option with dashes and with underscores, as PyTorch takes it."""
    names = [name, _LONGER[name]] if name in _LONGER else [name]
    return list(dict.fromkeys([*names, *(n[:2] + n[2:].replace("-", "_") for n in names)]))


def get_args_parser() -> argparse.ArgumentParser:
    """The options of the command.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="python -m rgrad.distributed.run",
        description="Start a program in several processes, which find each other by MPI.",
        allow_abbrev=False,
    )
    parser.add_argument("--nnodes", default="1", help="how many machines: 1, unless --hosts names them")
    parser.add_argument(
        *_both("--nproc-per-node"),
        default="1",
        help="processes on each machine: a number, or auto or cpu for all cores",
    )
    parser.add_argument("--hosts", help="names of machines that mpiexec reaches, with commas between them")
    parser.add_argument(*_both("--max-restarts"), type=int, default=0, help="how often to start again after a failure")
    parser.add_argument(*_both("--rdzv-id"), default="none", help="the name of the run: TORCHELASTIC_RUN_ID")
    parser.add_argument(*_both("--master-addr"), default="127.0.0.1", help="MASTER_ADDR, which MPI does not need")
    parser.add_argument(*_both("--master-port"), type=int, default=29500, help="MASTER_PORT, which MPI does not need")
    parser.add_argument("--standalone", action="store_true", help="one machine, which is the default")
    parser.add_argument("-m", "--module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument(*_both("--no-python"), action="store_true", help="PROGRAM is a command, not a Python file")
    parser.add_argument(*_both("--run-path"), action="store_true", help="PROGRAM is a Python file: the default")
    for name, kind in _WITHOUT_EFFECT.items():
        parser.add_argument(*_both(name), type=kind, help="accepted, as torchrun's; MPI has no use for it")
    parser.add_argument("training_script", metavar="PROGRAM", help="a Python file")
    parser.add_argument("training_script_args", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options that were given.

    Args:
        args: The words; by default those of the command line.

    Returns:
        The options.
    """
    return get_args_parser().parse_args(args)


def _processes(said: str) -> int:
    if said in ("auto", "cpu"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if said == "gpu":
        raise ValueError("--nproc-per-node gpu: there are no CUDA devices; give a number, or cpu")
    try:
        count = int(said)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {said}; give a number, auto or cpu") from None
    if count < 1:
        raise ValueError(f"--nproc-per-node must be at least 1, got {count}")
    return count


def run(args: argparse.Namespace) -> int:
    """Start the processes, and wait until they have ended.

    Args:
        args: What :func:`parse_args` returns.

    Returns:
        0, or the status of the process that failed first.

    Raises:
        ValueError: An option says something impossible.
        RuntimeError: There is no mpi4py, or no ``mpiexec``.
    """
    hosts = [host for host in (args.hosts or "").split(",") if host]
    nodes = str(args.nnodes).rpartition(":")[2]
    if nodes != "1" and int(nodes) != len(hosts):
        raise ValueError(
            f"--nnodes {args.nnodes}: MPI starts the processes of all machines at once; name the machines with "
            f"--hosts, or "
            "use srun or mpiexec"
        )
    each = _processes(args.nproc_per_node)
    processes = each * max(len(hosts), 1)
    if processes > 1 and not found():
        raise RuntimeError(f"{processes} processes need mpi4py; {INSTALL}")
    if args.no_python:
        command = [shutil.which(args.training_script) or args.training_script]
    else:
        command = [sys.executable, "-m", "rgrad.distributed._rank", *(["-m"] if args.module else [])]
        command.append(args.training_script)
    env = {**os.environ, "MASTER_ADDR": args.master_addr, "MASTER_PORT": str(args.master_port)}
    if hosts:
        env["MASTER_ADDR"] = socket.gethostname()
    env["TORCHELASTIC_RUN_ID"] = args.rdzv_id if args.rdzv_id != "none" else uuid.uuid4().hex[:8]
    env["TORCHELASTIC_MAX_RESTARTS"] = str(args.max_restarts)
    if processes > 1:
        env.setdefault("OMP_NUM_THREADS", "1")
    status = 0
    for attempt in range(args.max_restarts + 1):
        env["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        status = launch([*command, *args.training_script_args], processes, ",".join(hosts) or None, env)
        if status in (0, 130):
            break
        if attempt < args.max_restarts:
            sys.stderr.write(
                f"rgrad.distributed.run: status {status}; starting again ({attempt + 1} of {args.max_restarts})\n"
            )
    return status


def main(args: Sequence[str] | None = None) -> None:
    """Run the command. The interpreter ends with a status that is not 0 if a process fails, or an option is wrong.

    Args:
        args: The words; by default those of the command line.
    """
    try:
        status = run(parse_args(args))
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"python -m rgrad.distributed.run: {error}\n")
        raise SystemExit(2) from None
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    main()
