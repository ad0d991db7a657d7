"""`python -m rgrad.compat check`: a program is read for the names of PyTorch that rgrad lacks, and not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rgrad.compat


def found(folder: Path, program: str) -> list[tuple[int, str, bool]]:
    file = folder / "program.py"
    file.write_text(program)
    return [(use.line, use.name, use.guarded) for use in rgrad.compat.check(file)]


def test_names_are_followed_through_imports(tmp_path: Path) -> None:
    program = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import nothing_a, relu as r
from torch.nn import nothing_b
from torch.nothing_c.below import d
import torch.nothing_e

torch.relu(torch.nothing_f(1))
nn.Linear(2, 3).nothing_of_an_object()
nn.nothing_g
F.nothing_h.below
torch.Tensor.nothing_i
torch.float32.nothing_of_an_object
nothing_a.is_told_of_once
"""
    assert found(tmp_path, program) == [
        (4, "torch.nothing_a", False),
        (5, "torch.nn.nothing_b", False),
        (6, "torch.nothing_c", False),
        (7, "torch.nothing_e", False),
        (9, "torch.nothing_f", False),
        (11, "torch.nn.nothing_g", False),
        (12, "torch.nn.functional.nothing_h", False),
        (13, "torch.Tensor.nothing_i", False),
    ]


def test_other_things_of_that_name(tmp_path: Path) -> None:
    program = """\
import torch
from .torch import nothing
from torchvision import nothing

def f(torch):
    return torch.nothing_a

def g():
    torch = 3
    return torch.nothing_b

def h():
    import numpy as torch
    return torch.nothing_c, (lambda: torch.nothing_d)()

torch.nothing_e = 1
"""
    assert found(tmp_path, program) == []


def test_a_scope_of_its_own(tmp_path: Path) -> None:
    program = """\
def f():
    from torch import nn as layers
    class A(layers.nothing_a):
        def g(self, x: layers.nothing_b = layers.nothing_c):
            return [layers.nothing_d for _ in x]

layers.nothing_e
"""
    names = ["nothing_a", "nothing_b", "nothing_c", "nothing_d"]
    assert [name for _, name, _ in found(tmp_path, program)] == [f"torch.nn.{name}" for name in names]
    assert [line for line, _, _ in found(tmp_path, "from __future__ import annotations\n" + program)] == [4, 5, 6]


def test_what_a_program_handles(tmp_path: Path) -> None:
    program = """\
try:
    import torch
    from torch import nothing_a
except ImportError:
    torch = None
try:
    torch.nothing_b
except KeyError:
    torch.nothing_c
if hasattr(torch, "nothing_d"):
    torch.nothing_d
x = torch.nothing_e if hasattr(torch, "nothing_e") else torch.nothing_f
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    torch.nothing_g
"""
    assert found(tmp_path, program) == [
        (3, "torch.nothing_a", True),
        (7, "torch.nothing_b", False),
        (9, "torch.nothing_c", False),
        (11, "torch.nothing_d", True),
        (12, "torch.nothing_e", True),
        (12, "torch.nothing_f", True),
    ]


def test_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import torch\ntorch.cuda.nothing\ntorch.matmull\ntorch._C._nothing\ntorch.zzzzzz\n")
    advice = [use.advice for use in rgrad.compat.check(file)]
    assert "is_available" in advice[0]
    assert "matmul" in advice[1]
    assert "public function" in advice[2]
    assert "hasattr" in advice[3]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, "-m", "rgrad.compat", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_the_command(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemError('this is not run')\n")
    (package / "a.py").write_text(
        "import torch\ntorch.nothing_a\ntry:\n    torch.nothing_b\nexcept AttributeError: pass\n"
    )
    for target in ("mine", "mine/a.py", str(package)):
        done = run("check", target, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "a.py:2: torch.nothing_a: " in done.stdout
        assert "(the program handles that it is missing)" in done.stdout
        assert done.stdout.endswith("1 names are missing, 1 more are handled\n")
    (tmp_path / "good.py").write_text("import torch\ntorch.ones(3)\n")
    done = run("check", "good.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 names are missing, 0 more are handled\n")


def test_what_the_command_refuses(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import torch torch\n")
    for arguments, said in [
        (("check", "bad.py"), "bad.py"),
        (("check", "no_such_package"), "no file, folder or package 'no_such_package'"),
        (("nonsense", "bad.py"), "usage:"),
        (("check",), "usage:"),
    ]:
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr
    assert run("--help", cwd=tmp_path).returncode == 0


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing"):
        rgrad.compat.check(tmp_path / "nothing.py")
    (tmp_path / "bad.py").write_text("import torch torch\n")
    with pytest.raises(SyntaxError):
        rgrad.compat.check(tmp_path / "bad.py")
