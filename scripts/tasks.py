"""The commands behind ./run: environments, builds, tests, benches. Standard library only.

Everything is written inside the clone (`.venv`, `.venv-oracle`, `target`, `dist`); only cargo and pip keep their own
caches elsewhere. Each step remembers a fingerprint of what it was made from, and does nothing while that is unchanged.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
ORACLE_VENV = ROOT / ".venv-oracle"
DIST = ROOT / "dist"
TORCH = "torch==2.13.0"
CARGO_HOME_BIN = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin"

HELP = """\
./run COMMAND [arguments]

  example [options]    train the example on real handwritten digits (examples/digits.py; --help shows its options)
  test [section ...]   run every test and lint, or only the sections named: {sections}
  oracle [options]     compare with the real PyTorch, installed into an environment of its own (about 5 GB)
  sanitize             run the Rust tests of what is unsafe under AddressSanitizer (five minutes; Linux on x86-64)
  bench [rows ...]     time rgrad beside PyTorch, NumPy and JAX, as far as they are installed (benches/compare)
  build                make .venv and build rgrad into it
  wheel                build a wheel into dist/
  python [arguments]   run .venv's Python
  help                 print this
"""


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


def call(command: Sequence[str | Path], *, venv: Path = VENV, extra: Mapping[str, str] | None = None) -> int:
    """Run `command` in the clone's root with its output shown; return the exit status."""
    words = [str(word) for word in command]
    print(f"$ {' '.join(words)}", flush=True)
    env = environment(venv, extra)
    program = shutil.which(words[0], path=env["PATH"])
    if program is None:
        fail(f"{words[0]} was not found on PATH")
    return subprocess.run([program, *words[1:]], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode


def must(command: Sequence[str | Path], otherwise: str, *, venv: Path = VENV) -> None:
    if call(command, venv=venv) != 0:
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
    wanted = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["rust-version"]
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
    print(f"Making {venv.relative_to(ROOT)} with Python {sys.version.split()[0]}", flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(venv)], cwd=ROOT, stdin=subprocess.DEVNULL, check=False
    )
    if made.returncode != 0:
        fail(f"{sys.executable} -m venv failed; its message is above")


def requirements(*extras: str) -> list[str]:
    """The package's dependencies with those of `extras`, and maturin, as pyproject.toml states them."""
    table = project()
    meta, build = table["project"], table["build-system"]
    assert isinstance(meta, dict)
    assert isinstance(build, dict)
    wanted: list[str] = [*build["requires"], *meta["dependencies"]]
    for extra in extras:
        wanted += meta["optional-dependencies"][extra]
    return wanted


def ensure_packages(venv: Path, wanted: list[str]) -> None:
    """Install `wanted` into `venv` unless a former call did; what earlier calls wanted stays."""
    ensure_venv(venv)
    file = venv / "packages.json"
    have = set(json.loads(file.read_text())) if file.is_file() else set()
    if have.issuperset(wanted):
        return
    must(
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted],
        "pip could not install the packages above: look at its message, and whether the network is reachable",
        venv=venv,
    )
    file.write_text(json.dumps(sorted(have.union(wanted))))


# ------------------------------------------------------------------------------------------------------- builds

NATIVE = [ROOT / name for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "build.rs", "src")]


def build(*extras: str, profile: str = "work") -> int:
    """Bring `.venv` up to date: packages, and rgrad in the given profile (Python files are used where they lie)."""
    ensure_packages(VENV, requirements(*extras))
    module = ROOT / "python" / "rgrad" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    locked = (ROOT / "Cargo.lock").exists()
    key = fingerprint(NATIVE, profile)
    if module.exists() and stamp_is(VENV, "build", f"{key} {module.stat().st_mtime_ns}"):
        return 0
    check_rust()
    # Once installed, only the module is made anew: Python files are used where they lie.
    installed = next(VENV.glob("lib/python*/site-packages/rgrad-*.dist-info"), None) is not None
    must(
        [VENV / "bin" / "maturin", "develop", "--profile", profile, *(["--skip-install"] if installed else [])],
        "the build failed; the compiler's message is above",
    )
    if not module.exists():
        fail(f"maturin finished, yet {module.relative_to(ROOT)} is not there")
    # Building may have made Cargo.lock. Else the key is the one from before: what was edited meanwhile is not built.
    set_stamp(VENV, "build", f"{key if locked else fingerprint(NATIVE, profile)} {module.stat().st_mtime_ns}")
    return 0


def wheel() -> Path:
    """A release wheel in dist/, from the very objects that `build` compiled."""
    build(profile="release")
    key = fingerprint([*NATIVE, ROOT / "python", ROOT / "README.md"])
    found = sorted(DIST.glob("rgrad-*.whl"))
    if len(found) == 1 and stamp_is(VENV, "wheel", key):
        return found[0]
    for old in found:
        old.unlink()
    python = VENV / "bin" / "python"
    command: list[str | Path] = [VENV / "bin" / "maturin", "build", "--release", "--interpreter", python, "--out", DIST]
    if sys.platform == "linux":
        command += ["--compatibility", "linux"]
    must(command, "the wheel could not be built; the message is above")
    set_stamp(VENV, "wheel", fingerprint([*NATIVE, ROOT / "python", ROOT / "README.md"]))
    return next(DIST.glob("rgrad-*.whl"))


def oracle_environment() -> Path:
    """`.venv-oracle`: the wheel beside the real PyTorch. Returns its Python."""
    file = wheel()
    ensure_packages(ORACLE_VENV, [*requirements("test"), TORCH])
    key = hashlib.sha256(file.read_bytes()).hexdigest()
    python = ORACLE_VENV / "bin" / "python"
    if not stamp_is(ORACLE_VENV, "wheel", key):
        must(
            [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", file],
            "the wheel could not be installed; pip's message is above",
            venv=ORACLE_VENV,
        )
        set_stamp(ORACLE_VENV, "wheel", key)
    return python


# -------------------------------------------------------------------------------------------------------- tests


def rust_format() -> int:
    check_component("fmt", "rustfmt")
    return call(["cargo", "fmt", "--check"])


def rust_clippy() -> int:
    check_component("clippy", "clippy")
    core = call(["cargo", "clippy", "--all-targets", "--", "-D", "warnings"])
    python = {"PYO3_PYTHON": str(VENV / "bin" / "python")}
    return core or call(["cargo", "clippy", "--features", "python", "--", "-D", "warnings"], extra=python)


def rust_test() -> int:
    # The core must not need an interpreter: with this path any attempt to find one ends the build.
    return call(["cargo", "test", "--no-fail-fast"], extra={"PYO3_PYTHON": str(ROOT / "no-interpreter-needed")})


def rust_doc() -> int:
    return call(["cargo", "doc", "--no-deps"], extra={"RUSTDOCFLAGS": "-D warnings"})


def python_ruff() -> int:
    ruff = VENV / "bin" / "ruff"
    check = call([ruff, "check", "."])
    return call([ruff, "format", "--check", "."]) or check


def python_mypy() -> int:
    return call([VENV / "bin" / "mypy"])


def python_stubtest() -> int:
    allowed = ROOT / "tests" / "stubtest-allowlist.txt"
    command: list[str | Path] = [VENV / "bin" / "python", "-m", "mypy.stubtest", "rgrad._core"]
    command += ["--mypy-config-file", "pyproject.toml"]
    return call([*command, "--allowlist", allowed] if allowed.is_file() else command)


def workers() -> list[str]:
    """Options that make pytest use several processes: most tests keep a single core busy."""
    return ["--numprocesses=auto", "--maxprocesses=4", "--dist=worksteal"]


def python_pytest() -> int:
    return call([VENV / "bin" / "python", "-m", "pytest", *workers(), "tests/python"])


SECTIONS: dict[str, tuple[str, Callable[[], int]]] = {
    "fmt": ("Rust formatting", rust_format),
    "clippy": ("Rust lints", rust_clippy),
    "cargo": ("Rust tests, no Python involved", rust_test),
    "doc": ("Rust documentation", rust_doc),
    "ruff": ("Python lints and formatting", python_ruff),
    "mypy": ("Python types", python_mypy),
    "stubtest": ("stubs of the native module", python_stubtest),
    "pytest": ("Python tests", python_pytest),
}
WITHOUT_BUILD = {"fmt", "cargo", "doc"}


def attempt(section: Callable[[], int]) -> str:
    """Run one step; a task error counts as a failure, and the steps after it still run."""
    try:
        return "ok" if section() == 0 else "FAILED"
    except TaskError as error:
        print(f"run: {error}", flush=True)
        return "FAILED"


def test(names: list[str]) -> int:
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        fail(f"no test section {unknown[0]!r}; there are: {' '.join(SECTIONS)}")
    chosen = names or list(SECTIONS)
    check_rust()
    rows: list[tuple[str, str, float]] = []
    start = time.monotonic()
    if not WITHOUT_BUILD.issuperset(chosen):
        heading("Build")
        built = attempt(lambda: build("example", "test"))
        rows.append(("build", built, time.monotonic() - start))
        if built != "ok":
            chosen = [name for name in chosen if name in WITHOUT_BUILD]
    for name in chosen:
        title, section = SECTIONS[name]
        heading(f"{title} ({name})")
        began = time.monotonic()
        rows.append((name, attempt(section), time.monotonic() - began))
    heading("Summary")
    for name, verdict, seconds in rows:
        print(f"{name:10} {verdict:8} {seconds:7.1f} s")
    failed = [name for name, verdict, _ in rows if verdict != "ok"]
    verdict = f"FAILED: {' '.join(failed)}" if failed else "All passed"
    print(f"{verdict} in {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


def heading(title: str) -> None:
    print(f"\n=== {title} {'=' * max(3, 100 - len(title))}", flush=True)


# ----------------------------------------------------------------------------------------------------- commands


def run_example(arguments: list[str]) -> int:
    build("example", profile="release")
    return call([VENV / "bin" / "python", ROOT / "examples" / "digits.py", *arguments])


def run_oracle(arguments: list[str]) -> int:
    heading("Environment with PyTorch")
    python = oracle_environment()
    heading("Comparison with PyTorch (oracle)")
    where = "import rgrad, torch; print('rgrad', rgrad.__file__, rgrad.__version__, 'and torch', torch.__version__)"
    return call([python, "-c", where], venv=ORACLE_VENV) or call(
        [python, "-m", "pytest", *workers(), "tests/oracle", *arguments], venv=ORACLE_VENV
    )


def run_sanitize(arguments: list[str]) -> int:
    """With the sanitizer that comes with the toolchain; stable ones let it be used with RUSTC_BOOTSTRAP only."""
    check_rust()
    target = "x86_64-unknown-linux-gnu"
    programs = ["--lib"]
    for name in ("kernels", "levels", "passes", "soundness", "views_and_indexing"):
        programs += ["--test", name]
    return call(
        ["cargo", "test", "--no-fail-fast", "--target", target, *programs, *arguments],
        extra={
            "RUSTC_BOOTSTRAP": "1",
            "RUSTFLAGS": "-Zsanitizer=address",
            "CARGO_TARGET_DIR": str(ROOT / "target" / "sanitize"),
            "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
            "PYO3_PYTHON": str(ROOT / "no-interpreter-needed"),
        },
    )


def run_bench(arguments: list[str]) -> int:
    """In `.venv-oracle` where that exists, since PyTorch is there; otherwise without a peer in `.venv`."""
    if (ORACLE_VENV / "packages.json").is_file():
        python, venv = oracle_environment(), ORACLE_VENV
    else:
        build(profile="release")
        python, venv = VENV / "bin" / "python", VENV
        print("PyTorch is not installed here; `./run oracle` makes an environment that has it", flush=True)
    return call([python, ROOT / "benches" / "compare", *arguments], venv=venv)


def main(arguments: list[str]) -> int:
    command, *rest = arguments or ["help"]
    if command == "example":
        return run_example(rest)
    if command == "test":
        return test(rest)
    if command == "oracle":
        return run_oracle(rest)
    if command == "sanitize":
        return run_sanitize(rest)
    if command == "bench":
        return run_bench(rest)
    if command == "build":
        return build()
    if command == "wheel":
        print(wheel().relative_to(ROOT))
        return 0
    if command == "python":
        build()
        return subprocess.run([VENV / "bin" / "python", *rest], env=environment(VENV), check=False).returncode
    if command in {"help", "-h", "--help"}:
        print(HELP.format(sections=" ".join(SECTIONS)), end="")
        return 0
    fail(f"no command {command!r}; `./run help` lists them")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TaskError as error:
        print(f"run: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
