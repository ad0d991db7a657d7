"""The sections of `./run test`: what each runs, what it reads, and which may run side by side."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from builds import (
    NATIVE,
    ROOT,
    VENV,
    WORK,
    build,
    call,
    check_component,
    check_rust,
    ensure_packages,
    fail,
    fingerprint,
    requirements,
)
from steps import Step, beside, step, summary

Arguments = Sequence[str]
NO_INTERPRETER = {"PYO3_PYTHON": str(ROOT / "no-interpreter-needed")}


def rust_format(arguments: Arguments) -> int:
    check_component("fmt", "rustfmt")
    return call(["cargo", "fmt", "--check", *arguments])


def rust_clippy(arguments: Arguments) -> int:
    # With the bindings, and with all tests and benches: one look at everything.
    check_component("clippy", "clippy")
    command = ["cargo", "clippy", "--workspace", "--all-targets", "--features", "python", "--release", *arguments]
    return call([*command, "--", "-D", "warnings"], extra={**WORK, "PYO3_PYTHON": str(VENV / "bin" / "python")})


def rust_test(arguments: Arguments) -> int:
    # The core must not need an interpreter: with this path any attempt to find one ends the build. `rgrad`, which is
    # compiled three times here, is optimised less; the kernels that it calls are those of a release.
    extra = {**WORK, **NO_INTERPRETER, "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}
    return call(["cargo", "test", "--workspace", "--release", "--no-fail-fast", *arguments], extra=extra)


def rust_doc(arguments: Arguments) -> int:
    command = ["cargo", "doc", "--workspace", "--no-deps", "--release"]
    return call([*command, *arguments], extra={**WORK, "RUSTDOCFLAGS": "-D warnings"})


def python_ruff(arguments: Arguments) -> int:
    ruff = VENV / "bin" / "ruff"
    where: Arguments = arguments or ["."]
    check = call([ruff, "check", *where])
    return call([ruff, "format", "--check", *where]) or check


def python_mypy(arguments: Arguments) -> int:
    return call([VENV / "bin" / "mypy", *arguments])


def python_stubtest(arguments: Arguments) -> int:
    command: list[str | Path] = [VENV / "bin" / "python", "-m", "mypy.stubtest", "rgrad._core"]
    return call([*command, "--mypy-config-file", "pyproject.toml", *arguments])


def workers() -> list[str]:
    """Options that make pytest use several processes, as most tests keep one core busy, and tell the slowest tests."""
    return ["--numprocesses=auto", "--maxprocesses=4", "--dist=worksteal", "--durations=40", "--durations-min=2"]


def python_pytest(arguments: Arguments) -> int:
    named = any((ROOT / argument.partition("::")[0]).exists() for argument in arguments if not argument.startswith("-"))
    where = [] if named else ["tests/python"]
    return call([VENV / "bin" / "python", "-m", "pytest", *workers(), *where, *arguments])


class Section(NamedTuple):
    """A section: its title, what it runs, the files that it reads, and whether it needs the built module."""

    title: str
    run: Callable[[Arguments], int]
    reads: tuple[str, ...]
    module: bool = False


RUST = (*(path.name for path in NATIVE), "tests/rust", "benches", "rustfmt.toml")
TYPED = ("python", "scripts", "tests", "pyproject.toml")

SECTIONS = {
    "fmt": Section("Rust formatting", rust_format, RUST),
    "ruff": Section("Python lints and formatting", python_ruff, (".",)),
    "clippy": Section("Rust lints", rust_clippy, RUST),
    "doc": Section("Rust documentation", rust_doc, RUST),
    "cargo": Section("Rust tests, no Python involved", rust_test, (".",)),
    "mypy": Section("Python types", python_mypy, TYPED),
    "stubtest": Section("stubs of the native module", python_stubtest, (*RUST, *TYPED), module=True),
    "pytest": Section("Python tests", python_pytest, (".",), module=True),
}
# cargo lets one of its commands compile at a time; what needs no cargo runs beside them. The last one wants all cores.
WITH_CARGO = ("fmt", "build", "cargo", "clippy", "doc")
BESIDE_CARGO = ("ruff", "mypy", "stubtest")


def chosen(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The sections that are named, and the arguments for the last of them: all from the first other word on."""
    named: list[str] = []
    for word in words:
        if word not in SECTIONS:
            break
        named.append(word)
    arguments = list(words[len(named) :])
    if arguments and (not named or (arguments[0].isidentifier() and len(named) > 1)):
        fail(f"no test section {arguments[0]!r}; there are: {' '.join(SECTIONS)}")
    return named, arguments[1:] if arguments[:1] == ["--"] else arguments


# -------------------------------------------------------------------------------------- what has passed already

GREEN = ROOT / "target" / "green.json"


def state(section: Section) -> str:
    """A hash of what decides how a section ends: the files it reads, the packages, the settings, the hidden drivers."""
    settings = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith(("RGRAD_", "VK_", "__EGL", "CARGO_")))
    packages = (VENV / "packages.json").read_text(encoding="utf-8")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *section.reads],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        return ""  # not a clone: everything runs
    names = sorted(name for name in listed.stdout.decode().split("\0") if name)
    return fingerprint([ROOT / name for name in names], packages, *settings)


def passed_before() -> dict[str, str]:
    return dict(json.loads(GREEN.read_text())) if GREEN.is_file() else {}


def remember(rows: Sequence[Step], states: dict[str, str]) -> None:
    """Keep what has passed, in the state that it was in before it ran."""
    known = passed_before()
    for row in rows:
        if row.name in states:
            known[row.name] = states[row.name] if row.verdict == "ok" else ""
    GREEN.parent.mkdir(exist_ok=True)
    GREEN.write_text(json.dumps(known))


# --------------------------------------------------------------------------------------------------- the command


def test(words: Sequence[str]) -> int:
    """Run the sections that `words` name, in that order, or all: then what needs no cargo runs beside what does."""
    named, arguments = chosen(words)
    check_rust()
    ensure_packages(VENV, requirements("example", "test", "distributed"))
    if named:
        return one_after_the_other(named, arguments)
    always = os.environ.get("CI") == "true" or os.environ.get("RGRAD_ALL") == "1"
    states = {name: state(section) for name, section in SECTIONS.items()}
    known = {} if always else passed_before()
    left_out = [name for name, now in states.items() if now and known.get(name) == now]
    rows: list[Step] = []
    built = threading.Event()

    def run(name: str) -> None:
        if name not in left_out:
            section = SECTIONS[name]
            step(rows, name, section.title, partial(section.run, []))

    def others() -> None:
        for name in BESIDE_CARGO:
            if not SECTIONS[name].module:
                run(name)
            else:
                built.wait()
                if works:
                    run(name)

    works = False
    with beside(others):
        for name in WITH_CARGO:
            if name != "build":
                run(name)
                continue
            try:
                works = step(rows, "build", "Build", build) == "ok"
            finally:
                built.set()
    if works:
        run("pytest")
    remember(rows, states)
    return summary(rows, left_out)


def one_after_the_other(named: Sequence[str], arguments: Arguments) -> int:
    rows: list[Step] = []
    built: str | None = None
    for name in named:
        section = SECTIONS[name]
        given = arguments if name == named[-1] else []
        if section.module and built is None:
            built = step(rows, "build", "Build", build)
        if not section.module or built == "ok":
            step(rows, name, section.title, partial(section.run, given))
    return summary(rows)
