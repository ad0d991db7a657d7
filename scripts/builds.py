"""What the tasks of ./run stand on: processes, fingerprints, environments, builds. Standard library only.

Everything is written inside the clone (`.venv*`, `target`, `dist`); only cargo and pip keep their own caches elsewhere.
Each step remembers a fingerprint of what it was made from, and does nothing while that is unchanged.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parent.parent
# RGRAD_VENV names another environment, for another Python beside this one.
VENV = ROOT / (os.environ.get("RGRAD_VENV") or ".venv")
ORACLE_VENV = ROOT / ".venv-oracle"
DIST = ROOT / "dist"
TORCH = "torch==2.13.0"
# Its table of operators with their samples needs this (MIT, 11 KB).
EXPECTTEST = "expecttest==0.3.*"
# What PyTorch's own writer of event files needs.
TENSORBOARD = "tensorboard>=2.18,<3"
# Pyright's engine from PyPI (MIT): 75 MB, and a Node.js of 200 MB. It looks for nothing on the network.
PYRIGHT = "basedpyright==1.40.*"
CARGO_HOME_BIN = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin"


class TaskError(Exception):
    """What went wrong and what to do, in one line."""


def fail(message: str) -> NoReturn:
    raise TaskError(message)


# ---------------------------------------------------------------------------------------------------- processes


def environment(venv: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process environment with `venv` active and nothing written outside the clone."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONHOME", "PYTHONPATH", "CONDA_PREFIX"}}
    env["VIRTUAL_ENV"] = str(venv)
    path = [str(venv / "bin"), env.get("PATH", os.defpath)]
    if shutil.which("cargo") is None:
        path.append(str(CARGO_HOME_BIN))
    env["PATH"] = os.pathsep.join(path)
    env.setdefault("MPLBACKEND", "Agg")
    env["MPLCONFIGDIR"] = str(venv / "matplotlib")
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["PIP_NO_INPUT"] = "1"
    env["PIP_ROOT_USER_ACTION"] = "ignore"
    env.update(extra or {})
    return env


class Thread(threading.local):
    """Where this thread prints (None: as usual), and the seconds of CPU that its processes have used."""

    sink: IO[str] | None = None
    used: float = 0.0


THREAD = Thread()


def say(text: str) -> None:
    print(text, file=THREAD.sink, flush=True)


def heading(title: str) -> None:
    say(f"\n=== {title} {'=' * max(3, 100 - len(title))}")


def used() -> float:
    """The seconds of CPU used by the processes that this thread has started and that have ended."""
    return THREAD.used


@contextlib.contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """What this thread and its processes print goes into a file; afterwards the given function returns it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        before, THREAD.sink = THREAD.sink, file

        def text() -> str:
            return contents

        try:
            yield text
        finally:
            THREAD.sink = before
            file.seek(0)
            contents = file.read()


def run_process(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a program in the clone's root; add what it used to the seconds of this thread."""
    process = subprocess.Popen(
        words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=THREAD.sink, stderr=THREAD.sink
    )
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    THREAD.used += usage.ru_utime + usage.ru_stime
    return process.returncode


def call(command: Sequence[str | Path], *, venv: Path = VENV, extra: Mapping[str, str] | None = None) -> int:
    """Run `command` in the clone's root with its output shown; return the exit status."""
    words = [str(word) for word in command]
    say(f"$ {' '.join(words)}")
    env = environment(venv, extra)
    program = shutil.which(words[0], path=env["PATH"])
    if program is None:
        fail(f"{words[0]} was not found on PATH")
    return run_process([program, *words[1:]], env)


def must(
    command: Sequence[str | Path], otherwise: str, *, venv: Path = VENV, extra: Mapping[str, str] | None = None
) -> None:
    if call(command, venv=venv, extra=extra) != 0:
        fail(otherwise)


def output_of(command: Sequence[str | Path]) -> str | None:
    """What `command` prints, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env=environment(VENV),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


# ------------------------------------------------------------------------------------------------ fingerprints


def fingerprint(paths: Iterable[Path], *salt: str) -> str:
    """A hash of the contents of all files below `paths`, and of `salt`."""
    digest = hashlib.sha256(json.dumps([sys.version, *salt]).encode())
    for top in paths:
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top] if top.is_file() else []
        for file in files:
            if file.suffix in {".pyc", ".so"}:
                continue
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


def stamp_is(venv: Path, name: str, value: str) -> bool:
    file = venv / f"{name}.stamp"
    return file.is_file() and file.read_text() == value


def set_stamp(venv: Path, name: str, value: str) -> None:
    (venv / f"{name}.stamp").write_text(value)


# ---------------------------------------------------------------------------------------------------- the tools


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check_rust() -> None:
    """Cargo, a new enough rustc, and a C compiler that links: each missing one is named with its cure."""
    rustup = "https://rustup.rs (curl https://sh.rustup.rs -sSf | sh)"
    env = environment(VENV)
    if shutil.which("cargo", path=env["PATH"]) is None:
        fail(f"cargo was not found: install a Rust toolchain from {rustup}")
    version = output_of([shutil.which("rustc", path=env["PATH"]) or "rustc", "--version"])
    if version is None:
        fail(
            f"cargo is there but rustc does not run: install a toolchain with `rustup default stable`, or from {rustup}"
        )
    wanted = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    if numbers(version) < numbers(wanted):
        fail(f"rustc {wanted} or newer is needed, this is {version.strip()}: update it with `rustup update stable`")
    probe = ROOT / "target" / "probe.c"
    probe.parent.mkdir(exist_ok=True)
    probe.write_text("#include <stdlib.h>\nint main(void) { return abs(0); }\n")
    if output_of(["cc", probe, "-o", probe.with_suffix("")]) is None:
        fail(
            "no working C compiler `cc` with its headers, which Rust needs to link: install one "
            "(Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: xcode-select --install)"
        )


def check_component(command: str, component: str) -> None:
    if output_of(["cargo", command, "--version"]) is None:
        fail(f"cargo {command} was not found: install it with `rustup component add {component}`")


def ensure_venv(venv: Path) -> None:
    """A virtual environment at `venv` made by this very Python version; a broken or older one is made anew."""
    python = venv / "bin" / "python"
    ask = "import sys, pip; print(sys.version)"
    if python.exists() and (output_of([python, "-c", ask]) or "").strip() == sys.version.strip():
        return
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        fail(f"{sys.executable} has no venv module: install it (Debian, Ubuntu: apt install {package})")
    say(f"Making {venv.relative_to(ROOT)} with Python {sys.version.split()[0]}")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(venv)], cwd=ROOT, stdin=subprocess.DEVNULL, check=False
    )
    if made.returncode != 0:
        fail(f"{sys.executable} -m venv failed; its message is above")


def requirements(*extras: str) -> list[str]:
    """What pyproject.toml states: dependencies, those of `extras`, and maturin; and what RGRAD_WITH adds."""
    table = project()
    meta, build = table["project"], table["build-system"]
    assert isinstance(meta, dict)
    assert isinstance(build, dict)
    wanted: list[str] = [*build["requires"], *meta["dependencies"]]
    for extra in extras:
        wanted += meta["optional-dependencies"][extra]
    return [*wanted, *os.environ.get("RGRAD_WITH", "").split()]


def ensure_packages(venv: Path, wanted: list[str]) -> None:
    """Install `wanted` into `venv` unless a former call did; what earlier calls wanted stays."""
    ensure_venv(venv)
    file = venv / "packages.json"
    have = set(json.loads(file.read_text())) if file.is_file() else set()
    if have.issuperset(wanted):
        return
    must(
        # Only what is imported is compiled, when it is: less than a tenth of what PyTorch's environment holds.
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", *wanted],
        "pip could not install the packages above: look at its message, and whether the network is reachable",
        venv=venv,
    )
    file.write_text(json.dumps(sorted(have.union(wanted))))


# ------------------------------------------------------------------------------------------------------- builds

NATIVE = [ROOT / name for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src")]
# Settings for working on rgrad and for its tests. They are those of the package `rgrad` alone: its dependencies and
# kernels are compiled once, as for a release, for the tests, the module to work with and the wheel (Cargo.toml).
WORK = {
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "256",
    "CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS": "true",
    "CARGO_PROFILE_RELEASE_INCREMENTAL": "true",
    "CARGO_PROFILE_RELEASE_STRIP": "none",
    # What is built once, in a clone that is thrown away, need not be prepared for the next time.
    **({"CARGO_INCREMENTAL": "0"} if os.environ.get("CI") == "true" else {}),
}


@contextlib.contextmanager
def kernels_meanwhile() -> Iterator[None]:
    """The first build of the kernels, beside packages that are installed: one needs cores, the other the network.

    What goes wrong is for the build that follows, which tells it.
    """
    if (ROOT / "target" / "release" / "librgrad_kernels.rlib").exists() or shutil.which("cargo") is None:
        yield
        return
    words = ["cargo", "build", "--quiet", "--release", "--package", "rgrad-kernels"]
    with tempfile.TemporaryFile() as nobody:
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment(VENV, WORK), stdin=subprocess.DEVNULL, stdout=nobody, stderr=nobody
        )
        try:
            yield
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()


def build(*extras: str) -> int:
    """Bring `.venv` up to date: packages, and rgrad to work with. Python files are used where they lie."""
    with kernels_meanwhile():
        ensure_packages(VENV, requirements(*extras))
    module = ROOT / "python" / "rgrad" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    locked = (ROOT / "Cargo.lock").exists()
    key = fingerprint(NATIVE)
    if module.exists() and stamp_is(VENV, "build", f"{key} {module.stat().st_mtime_ns}"):
        return 0
    check_rust()
    # Once installed, only the module is made anew: Python files are used where they lie.
    installed = next(VENV.glob("lib/python*/site-packages/rgrad-*.dist-info"), None) is not None
    must(
        [VENV / "bin" / "maturin", "develop", "--release", *(["--skip-install"] if installed else [])],
        "the build failed; the compiler's message is above",
        extra=WORK,
    )
    if not module.exists():
        fail(f"maturin finished, yet {module.relative_to(ROOT)} is not there")
    # Building may have made Cargo.lock. Else the key is the one from before: what was edited meanwhile is not built.
    set_stamp(VENV, "build", f"{key if locked else fingerprint(NATIVE)} {module.stat().st_mtime_ns}")
    return 0


def wheel() -> Path:
    """A wheel in dist/, as users get it."""
    ensure_packages(VENV, requirements())
    sources = [*NATIVE, ROOT / "python", ROOT / "README.md"]
    locked = (ROOT / "Cargo.lock").exists()
    key = fingerprint(sources)
    found = sorted(DIST.glob("rgrad-*.whl"))
    if len(found) == 1 and stamp_is(VENV, "wheel", key):
        return found[0]
    check_rust()
    for old in found:
        old.unlink()
    python = VENV / "bin" / "python"
    command: list[str | Path] = [
        VENV / "bin" / "maturin",
        "build",
        "--release",
        "--interpreter",
        python,
        "--out",
        DIST,
    ]
    if sys.platform == "linux":
        command += ["--compatibility", "linux"]
    must(command, "the wheel could not be built; the message is above", extra={"CARGO_INCREMENTAL": "0"})
    pack_tightly(next(DIST.glob("rgrad-*.whl")))
    # As for the build: what was edited meanwhile is not in it.
    set_stamp(VENV, "wheel", key if locked else fingerprint(sources))
    return next(DIST.glob("rgrad-*.whl"))


def pack_tightly(file: Path) -> None:
    """Compress the wheel `file` as far as deflate goes: maturin does so quickly instead, which is 3 % larger."""
    packed = file.with_suffix(".tmp")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED, 9)
    packed.replace(file)


def install(venv: Path, file: Path) -> Path:
    """Install the wheel `file` into `venv`, unless it is there; return the Python of `venv`."""
    key = hashlib.sha256(file.read_bytes()).hexdigest()
    python = venv / "bin" / "python"
    if not stamp_is(venv, "wheel", key):
        must(
            [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", file],
            "the wheel could not be installed; pip's message is above",
            venv=venv,
        )
        set_stamp(venv, "wheel", key)
    return python


def oracle_environment() -> Path:
    """`.venv-oracle`, with the real PyTorch. Returns its Python."""
    ensure_packages(ORACLE_VENV, [*requirements("test"), TORCH, EXPECTTEST, TENSORBOARD, PYRIGHT])
    return ORACLE_VENV / "bin" / "python"
