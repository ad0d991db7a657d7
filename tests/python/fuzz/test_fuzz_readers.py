"""Readers of bytes under broken input: some thousand inputs for each, the same ones in every run.

`./run long fuzz` gives them new ones for longer.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz_mutations import BYTES, JSON, PICKLE
from fuzz_targets import TARGETS, outcome
from places import ROOT

SCRIPT = ROOT / "tests" / "python" / "fuzz" / "fuzz.py"


def fuzz(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(SCRIPT), *arguments, "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", TARGETS)
def test_broken_input_is_a_value_or_a_documented_error(name: str, tmp_path: Path) -> None:
    status, said = fuzz(tmp_path, name, "--count", "1500")
    assert status == 0, said
    assert f"{name}: 1500 inputs from seed 0, " in said


@pytest.mark.parametrize("name", TARGETS)
def test_what_it_begins_with_is_read(name: str) -> None:
    target = TARGETS[name]
    answers = [outcome(target, data) for data in target.corpus()]
    assert sum(answer.startswith("read ") for answer in answers) >= len(answers) // 4


@pytest.mark.parametrize("mutation", dict.fromkeys((*BYTES, *JSON, *PICKLE)), ids=lambda mutation: mutation.__name__)
def test_changes_depend_on_the_seed_alone(mutation) -> None:
    pool = [data for name in ("pickle", "header", "idx") for data in TARGETS[name].corpus()[:3]] + [b"", b"x"]
    first, second = ([mutation(rng, data, pool) for data in pool * 5] for rng in (random.Random(5), random.Random(5)))
    assert first == second
    assert first != pool * 5


BAD = """
import os, signal, sys, time
sys.path.insert(0, {folder!r})
import fuzz, fuzz_targets

def bad(data):
    if len(data) % 50 == 7:
        {deed}

fuzz_targets.TARGETS["idx"] = fuzz_targets.TARGETS["idx"]._replace(run=bad)
fuzz.SECONDS = 0.5
sys.exit(fuzz.child("idx", 0, 10_000, 60))
"""


@pytest.mark.parametrize(
    ("deed", "status", "words"),
    {
        "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", -11, ""),
        "hang": ("while True: pass", -27, ""),
        "memory": ("bytearray(1 << 40)", 1, "MemoryError"),
        "error": ("raise ZeroDivisionError", 1, "ZeroDivisionError"),
        "depth": ("raise RecursionError", 1, "RecursionError"),
    }.values(),
    ids=["crash", "hang", "memory", "error", "depth"],
)
def test_harm_is_seen(deed: str, status: int, words: str, tmp_path: Path) -> None:
    program = BAD.format(folder=str(SCRIPT.parent), deed=deed)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    # The input that did it is there.
    assert len((tmp_path / "current").read_bytes()) % 50 == 7


CARELESS = """
import sys
sys.path.insert(0, {folder!r})
import fuzz
from rgrad._files.restricted_pickle import RestrictedUnpickler

RestrictedUnpickler._target = lambda machine, what: machine._top()
sys.exit(fuzz.child("pickle-allowed", 0, 4000, 0))
"""


def test_a_machine_that_writes_to_everything_is_found(tmp_path: Path) -> None:
    program = CARELESS.format(folder=str(SCRIPT.parent))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Finding: the pickle has changed a class" in done.stderr


def test_harm_is_reported_and_can_be_repeated(tmp_path: Path) -> None:
    import fuzz as runner

    current = tmp_path / "current"
    current.write_bytes(b"\0\0\x08\x01\0\0\0\0")
    assert runner._kept("idx", -11, current, tmp_path / "kept") is False
    (kept,) = (tmp_path / "kept").iterdir()
    status, said = fuzz(tmp_path, "idx", "--replay", str(kept))
    assert (status, said) == (0, "read rgrad.uint8\n")
    status, said = fuzz(tmp_path, "nothing")
    assert status == 2
    assert "no target 'nothing'; there are: archive" in said
