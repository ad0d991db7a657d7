"""The commands behind ./run: tests, comparisons, benches. Standard library only; `builds.py` makes what they run on."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from builds import (
    ORACLE_VENV,
    ROOT,
    VENV,
    TaskError,
    build,
    call,
    check_rust,
    ensure_packages,
    environment,
    fail,
    heading,
    install,
    oracle_environment,
    output_of,
    requirements,
    say,
    wheel,
)
from sections import SECTIONS, test, workers
from steps import Step, step, summary

HELP = """\
./run COMMAND [arguments]

  example [options]    train the example on real handwritten digits (examples/digits.py; --help shows its options)
  test [section ...]   run every test and lint, or only the sections named: {sections}
                       more words go to the last one: test pytest -k NAME, test cargo NAME
  oracle [options]     compare with the real PyTorch, installed into an environment of its own (about 5 GB)
  shipped              build the wheel as users get it, and try it: its size, some tests, the example, benches
  long [section ...]   what is too long for every change, an hour or more, or only: {long}
  sanitize             run the Rust tests of what is unsafe under AddressSanitizer (five minutes; Linux on x86-64)
  bench [rows ...]     time rgrad beside PyTorch, NumPy and JAX, as far as they are installed (benches/compare)
  tune [family ...]    measure the thresholds between algorithms on this machine (conv, matmul, pool)
  environments         make the environments of oracle and shipped, which these commands do themselves if need be
  build                make .venv and build rgrad into it to work with: incremental, with assertions
  wheel                build a wheel into dist/
  python [arguments]   run .venv's Python
  help                 print this
"""


# For an environment in which rgrad is not installed: the package as it lies in the clone.
IN_PLACE = {"PYTHONPATH": str(ROOT / "python")}


def run_example(arguments: list[str]) -> int:
    build("example")
    return call([VENV / "bin" / "python", ROOT / "examples" / "digits.py", *arguments])


def run_oracle(arguments: list[str]) -> int:
    build()
    heading("Environment with PyTorch")
    python = oracle_environment()
    heading("Comparison with PyTorch (oracle)")
    where = "import rgrad, torch; print('rgrad', rgrad.__file__, rgrad.__version__, 'and torch', torch.__version__)"
    return call([python, "-c", where], venv=ORACLE_VENV, extra=IN_PLACE) or call(
        [python, "-m", "pytest", *workers(), "tests/oracle", *arguments], venv=ORACLE_VENV, extra=IN_PLACE
    )


# ------------------------------------------------------------------------------------------ the package as shipped

SHIPPED_VENV = ROOT / ".venv-shipped"
MODULE_MB, WHEEL_MB = 24, 10
SHIPPED_TESTS = (
    "package/test_import",
    "concurrency/test_same_bits",
    "fusion/test_fusion",
    "ops/test_long_reductions",
    "autograd/test_autograd_engine",
    "project/test_tutorials",
)


def shipped_size() -> int:
    """Sizes of the wheel and its module; the code by family, of the module to work with, which has symbols."""
    file = wheel()
    python = shipped_environment()
    module = output_of([python, "-c", "import rgrad._core; print(rgrad._core.__file__)"])
    if module is None:
        fail("the installed wheel cannot be imported")
    size = file.stat().st_size / 1e6
    say(f"the wheel: {size:.2f} MB of at most {WHEEL_MB}")
    script = ROOT / "scripts" / "code_size.py"
    build()
    for built in (ROOT / "python" / "rgrad").glob("_core*.so"):
        call([python, script, built])
    return call([python, script, module.strip(), "--max-mb", str(MODULE_MB)]) or int(size > WHEEL_MB)


def shipped_packages() -> None:
    ensure_packages(SHIPPED_VENV, requirements("example", "test", "distributed"))


def shipped_environment() -> Path:
    """`.venv-shipped`, with the wheel as users get it. Returns its Python."""
    shipped_packages()
    return install(SHIPPED_VENV, wheel())


def shipped_tests() -> int:
    files = [ROOT / "tests" / "python" / f"{name}.py" for name in SHIPPED_TESTS]
    return call([shipped_environment(), "-m", "pytest", *workers(), *files], venv=SHIPPED_VENV)


def shipped_example() -> int:
    out = ROOT / "examples" / "output" / "shipped"
    return call(
        [shipped_environment(), ROOT / "examples" / "digits.py", "--epochs", "3", "--out", out], venv=SHIPPED_VENV
    )


def shipped_benches() -> int:
    """Some rows of the benches: their results are compared, their times only printed."""
    return call(
        [shipped_environment(), ROOT / "benches" / "compare", "--quick", "grad_*", "mlp_step"], venv=SHIPPED_VENV
    )


def run_shipped() -> int:
    rows: list[Step] = []
    steps: list[tuple[str, str, Callable[[], int]]] = [
        ("wheel", "The package as users get it", lambda: 0 if wheel() else 1),
        ("size", "Sizes of the wheel and the module", shipped_size),
        ("tests", "Some tests on the installed wheel", shipped_tests),
        ("example", "The example, a few epochs", shipped_example),
        ("benches", "Some benches, briefly", shipped_benches),
    ]
    for name, title, section in steps:
        if step(rows, name, title, section) != "ok" and name == "wheel":
            break
    return summary(rows)


# ------------------------------------------------------------------------------------------------------ long runs


def long_python() -> int:
    build()
    return call([VENV / "bin" / "python", "-m", "pytest", *workers(), "tests/python"], extra={"RGRAD_LONG": "1"})


def long_oracle() -> int:
    build()
    extra = {**IN_PLACE, "RGRAD_LONG": "1"}
    return call([oracle_environment(), "-m", "pytest", *workers(), "tests/oracle"], venv=ORACLE_VENV, extra=extra)


def long_accuracy() -> int:
    return call(["cargo", "test", "--release", "--test", "rust", "accuracy", "--", "--ignored", "--nocapture"])


def long_programs() -> int:
    """Ten minutes of random programs on each device, from a seed never used before."""
    build()
    failed = 0
    for device in ("cpu", "wgpu"):
        extra = {
            "RGRAD_FUSION_MINUTES": "10",
            "RGRAD_FUSION_SEED": str(secrets.randbits(24)),
            "RGRAD_FUSION_DEVICE": device,
        }
        say(str(extra))
        tests = ["tests/python/fusion/test_fusion_random.py", "-k", "for_minutes"]
        failed |= call([VENV / "bin" / "python", "-m", "pytest", *tests], extra=extra)
    return failed


def long_autograd() -> int:
    """Half an hour of random autograd programs beside PyTorch, from a seed never used before."""
    build()
    start = str(secrets.randbits(30))
    command: list[str | Path] = [
        oracle_environment(),
        "tests/oracle/autograd_search.py",
        "--start",
        start,
        "--seconds",
        "1800",
    ]
    return call(command, venv=ORACLE_VENV, extra=IN_PLACE)


def long_stress() -> int:
    build()
    tests = ["tests/python/concurrency/test_stress_threads.py"]
    return call([VENV / "bin" / "python", "-m", "pytest", *tests], extra={"RGRAD_STRESS_SECONDS": "60"})


def long_fuzz() -> int:
    """Broken input for the readers of bytes, from a seed never used before; `RGRAD_FUZZ_SECONDS` for all together."""
    build()
    options = ["--seconds", os.environ.get("RGRAD_FUZZ_SECONDS", "3600"), "--seed", str(secrets.randbits(30))]
    return call([VENV / "bin" / "python", "tests/python/fuzz/fuzz.py", *options])


def long_assertions() -> int:
    """The Rust tests with the assertions and overflow checks of kernels, which the profile `work` leaves out."""
    return call(["cargo", "test", "--workspace", "--no-fail-fast"], extra={"CARGO_PROFILE_DEV_OVERFLOW_CHECKS": "true"})


def long_loom() -> int:
    """Every order in which threads can run the crate's own handles and locks, by the model checker loom."""
    extra = {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(ROOT / "target" / "loom")}
    return call(["cargo", "test", "--release", "--manifest-path", "tests/loom/Cargo.toml"], extra=extra)


LONG: dict[str, tuple[str, Callable[[], int]]] = {
    "python": ("Every combination of operation, dtype and layout", long_python),
    "oracle": ("The same beside PyTorch", long_oracle),
    "programs": ("Random programs, fused and unfused", long_programs),
    "autograd": ("Random autograd programs beside PyTorch", long_autograd),
    "stress": ("Threads against each other for a minute", long_stress),
    "fuzz": ("Broken input for what reads files and bytes", long_fuzz),
    "accuracy": ("Every float32 through every row", long_accuracy),
    "loom": ("Models of handles and locks", long_loom),
    "assertions": ("Rust tests with assertions in kernels", long_assertions),
    "sanitize": ("Rust tests under AddressSanitizer", lambda: run_sanitize([])),
}


def run_long(names: list[str]) -> int:
    unknown = [name for name in names if name not in LONG]
    if unknown:
        fail(f"no long section {unknown[0]!r}; there are: {' '.join(LONG)}")
    ensure_packages(VENV, requirements("example", "test", "distributed"))
    rows: list[Step] = []
    for name in names or LONG:
        step(rows, name, *LONG[name])
    return summary(rows)


def run_sanitize(arguments: list[str]) -> int:
    """With the sanitizer that comes with the toolchain; stable ones let it be used with RUSTC_BOOTSTRAP only."""
    check_rust()
    target = "x86_64-unknown-linux-gnu"
    return call(
        ["cargo", "test", "--workspace", "--no-fail-fast", "--target", target, "--lib", "--test", "rust", *arguments],
        extra={
            "RUSTC_BOOTSTRAP": "1",
            "RUSTFLAGS": "-Zsanitizer=address",
            "CARGO_TARGET_DIR": str(ROOT / "target" / "sanitize"),
            "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
            "PYO3_PYTHON": str(ROOT / "no-interpreter-needed"),
        },
    )


def run_bench(arguments: list[str]) -> int:
    """In `.venv-oracle` where that exists, since PyTorch is there; otherwise without a peer."""
    if (ORACLE_VENV / "packages.json").is_file():
        python, venv = install(ORACLE_VENV, wheel()), ORACLE_VENV
    else:
        python, venv = shipped_environment(), SHIPPED_VENV
        say("PyTorch is not installed here; `./run oracle` makes an environment that has it")
    return call([python, ROOT / "benches" / "compare", *arguments], venv=venv)


def run_tune(arguments: list[str]) -> int:
    """With the wheel as users get it: the module to work with has assertions."""
    return call([shipped_environment(), ROOT / "scripts" / "tune.py", *arguments], venv=SHIPPED_VENV)


def main(arguments: list[str]) -> int:
    command, *rest = arguments or ["help"]
    if command == "example":
        return run_example(rest)
    if command == "test":
        return test(rest)
    if command == "oracle":
        return run_oracle(rest)
    if command == "shipped":
        return run_shipped()
    if command == "long":
        return run_long(rest)
    if command == "sanitize":
        return run_sanitize(rest)
    if command == "bench":
        return run_bench(rest)
    if command == "tune":
        return run_tune(rest)
    if command == "environments":
        oracle_environment()
        shipped_packages()
        return 0
    if command == "build":
        return build()
    if command == "wheel":
        print(wheel().relative_to(ROOT))
        return 0
    if command == "python":
        build()
        return subprocess.run([VENV / "bin" / "python", *rest], env=environment(VENV), check=False).returncode
    if command in {"help", "-h", "--help"}:
        print(HELP.format(sections=" ".join(SECTIONS), long=" ".join(LONG)), end="")
        return 0
    raise TaskError(f"no command {command!r}; `./run help` lists them")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TaskError as error:
        print(f"run: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
