"""Gives readers of bytes broken input, and looks for crashes, hangs, memory without bound, and undocumented errors.

Each target runs in a process of its own with little memory and little time for each input. The inputs depend on the
seed alone. An input that does harm is kept in a file, and ``fuzz.py TARGET --replay FILE`` runs it again.

    fuzz.py [TARGET ...] [--seed N] [--count N | --seconds S] [--keep FOLDER]

Without targets all run. The seconds are those of all targets together.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

# As pytest has it.
sys.path.append(str(Path(__file__).resolve().parents[1] / "helpers"))

# No more than this beyond what an idle process has.
MEMORY = 1 << 30
# Processor time of one input.
SECONDS = 20
# Inputs that lead to something new are changed further.
POOL = 2000


def guarded() -> None:
    """Little memory and time for what follows; no file of memory is left by a crash."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def child(name: str, seed: int, count: int | None, seconds: float) -> int:
    """Run one target in this process. The current input is in the file `current` of this folder."""
    from fuzz_targets import TARGETS, outcome

    target = TARGETS[name]
    pool = target.corpus()
    seen: dict[str, int] = {}
    for data in pool:
        said = outcome(target, data)
        seen[said] = seen.get(said, 0) + 1
    guarded()
    rng = random.Random(f"{name} {seed}")
    end = time.monotonic() + seconds
    done = 0
    with open("current", "wb", buffering=0) as current:
        while done < count if count is not None else time.monotonic() < end:
            data = rng.choice(pool)
            for _ in range(rng.choice((1, 1, 2, 3, 5))):
                data = rng.choice(target.mutations)(rng, data, pool)[: 1 << 16]
            current.seek(0)
            current.truncate()
            current.write(data)
            # The system ends this process if that is too little.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            said = outcome(target, data)
            done += 1
            if said not in seen and len(pool) < POOL:
                pool.append(data)
            seen[said] = seen.get(said, 0) + 1
    print(f"{name}: {done} inputs from seed {seed}, {len(seen)} outcomes, {len(pool)} inputs to change")
    return 0


def replay(name: str, file: Path) -> int:
    from fuzz_targets import TARGETS, outcome

    guarded()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    print(outcome(TARGETS[name], file.read_bytes()))
    return 0


def run(name: str, options: argparse.Namespace, seconds: float) -> bool:
    """Run one target in another process; tell whether it did no harm."""
    with tempfile.TemporaryDirectory(prefix="rgrad-fuzz-") as folder:
        command = [sys.executable, __file__, name, "--child", "--seed", str(options.seed), "--seconds", str(seconds)]
        if options.count is not None:
            command += ["--count", str(options.count)]
        paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        setting = {**os.environ, "PYTHONPATH": paths, "TMPDIR": folder, "PYTHONFAULTHANDLER": "1"}
        # A group of its own, so that what it has started ends with it.
        process = subprocess.Popen(
            command, cwd=folder, env=setting, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            # Far more than it needs, however slow the machine is.
            said = process.communicate(timeout=1800 + 10 * seconds)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            said = "no processor time is used, and no end is reached"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(said, end="", flush=True)
        if process.returncode == 0:
            return True
        return _kept(name, process.returncode, Path(folder) / "current", options.keep)


def _kept(name: str, status: int, current: Path, folder: Path) -> bool:
    what = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    if not current.exists():
        print(f"{name}: {what} before the first input")
        return False
    data = current.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{zlib.crc32(data):08x}"
    file.write_bytes(data)
    print(f"{name}: {what}; the input is {file}: {data[:200]!r}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="all if none is named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="how many inputs for each target")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together, if there is no count")
    parser.add_argument("--keep", type=Path, default=Path("target/fuzz"), help="where inputs that do harm are kept")
    parser.add_argument("--replay", type=Path, help="a file to give to the target")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.targets[0], options.seed, options.count, options.seconds)
    if options.replay:
        return replay(options.targets[0], options.replay)
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzz_targets import TARGETS

    names = options.targets or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are: {' '.join(TARGETS)}")
    harmless = [run(name, options, options.seconds / len(names)) for name in names]
    return 0 if all(harmless) else 1


if __name__ == "__main__":
    sys.exit(main())
