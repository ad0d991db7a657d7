"""Whole PyTorch programs of the kind that tutorials print, run with nothing but the module's name replaced.

The programs are in tests/programs. On the CPU and on wgpu they print the same; tests/oracle compares that with PyTorch.
"""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.py"))


def write_digits(folder: Path) -> None:
    """The files of MNIST with 32 and 16 images, one of them compressed."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 32), ("t10k", 16)):
        images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        classes = random.integers(0, 10, count, dtype=np.uint8)
        packed = struct.pack(">4i", 2051, count, 28, 28) + images.tobytes()
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(packed))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + classes.tobytes())


def renamed(text: str) -> str:
    """The program with the names of the modules replaced."""
    return re.sub(r"\btorch\b", "rgrad", re.sub(r"\btorchvision\b", "rgrad.vision", text))


def printed(program: Path, device: str, folder: Path, library: str = "rgrad", head: str = "") -> str:
    """What a program prints when it runs as a script, with tensors on a device by default."""
    write_digits(folder / "MNIST" / "raw")
    text = program.read_text(encoding="utf-8")
    head += f"DEVICE, DATA = {device!r}, {str(folder)!r}\nimport {library}\n{library}.set_default_device(DEVICE)\n"
    script = folder / program.name
    script.write_text(head + (renamed(text) if library == "rgrad" else text), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def plain(text: str) -> tuple[str, list[float]]:
    """Text without devices and names of libraries, and the numbers in it."""
    text = re.sub(r", device='[\w:]+'", "", text).replace("rgrad.", "").replace("torch.", "")
    number = r"-?\d+\.\d*(?:e[+-]?\d+)?"
    return re.sub(number, "#", text), [float(n) for n in re.findall(number, text)]


def agree(got: str, expected: str) -> None:
    (words, numbers), (other_words, other_numbers) = plain(got), plain(expected)
    assert words.split() == other_words.split()
    np.testing.assert_allclose(numbers, other_numbers, rtol=1e-4, atol=1e-4)


def stored(program: Path) -> str:
    return program.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_prints_what_pytorch_prints(program: Path, tmp_path: Path) -> None:
    agree(printed(program, "cpu", tmp_path), stored(program))


def marked(program: Path) -> Any:
    """A program as a parameter on wgpu."""
    wide = re.search(r"\b(double|float64)\b", program.read_text(encoding="utf-8"))
    return pytest.param(program, marks=pytest.mark.needs("float64") if wide else ())


@pytest.mark.rotate
@pytest.mark.wgpu
@pytest.mark.parametrize("program", [marked(p) for p in PROGRAMS], ids=lambda p: p.stem)
def test_a_program_runs_on_wgpu(program: Path, tmp_path: Path) -> None:
    agree(printed(program, "wgpu", tmp_path), stored(program))


def test_there_are_programs_and_outputs() -> None:
    assert len(PROGRAMS) == 4
    assert {p.stem for p in PROGRAMS} == {p.stem for p in PROGRAMS[0].parent.glob("*.txt")}
