"""Writes python/rgrad/__init__.pyi, which tells type checkers what `rgrad` has, from python/rgrad/__init__.py, which
imports most of it when it is first used.

Run it after names of the package have changed: python scripts/make_package_stub.py
A test runs it with --check.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from kept import main
from rgrad import _core
from rgrad._functions.late_methods import LATE, functions
from rgrad._runtime.names import ELSEWHERE, IN_PLACE, REPLACED

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "rgrad"
SOURCE = PACKAGE / "__init__.py"
TARGET = PACKAGE / "__init__.pyi"

HEADER = '''"""What the package has. Written by scripts/make_package_stub.py from __init__.py: do not edit."""

from . import _core as _core
'''


def imported(module: str, names: tuple[str, ...]) -> list[str]:
    """Lines that export names of a module of the package."""
    return [f"from .{module} import {name} as {name}" for name in names]


def stub() -> str:
    """The text of the stub."""
    # Of the native module, what __init__.py takes over; a function of Python has the place of a native one.
    hidden = {*ELSEWHERE, *REPLACED, *functions()}
    native = [n for n in dir(_core) if not n.startswith("_") and n not in hidden]
    lines, values = [HEADER, *imported("_core", tuple(native))], ["_C = _core", "__version__: str"]
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            lines += [
                f"from {module} import {alias.name} as {alias.asname}"
                for alias in node.names
                if alias.asname and not alias.asname.startswith("_")
            ]
        elif isinstance(node, ast.AnnAssign):
            values.append(f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}")
        elif isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
            if name == "_MODULES":
                lines += imported("", ast.literal_eval(node.value))
            elif name == "_NAMES":
                for module, names in ast.literal_eval(node.value).items():
                    lines += imported(module, names)
    # Functions that write in place are the methods.
    late = [name for kinds in LATE.values() for name, kind in kinds.items() if "j" in kind]
    values += [f"{name} = _core.Tensor.{name}" for name in sorted({*IN_PLACE, *(f"{name}_" for name in late)})]
    for module, kinds in LATE.items():
        lines += imported(module, tuple(name for name, kind in kinds.items() if "f" in kind))
    return "\n".join([*lines, *values]) + "\n"


def formatted() -> str:
    """The stub, as ruff wants it."""
    text = stub()
    for command in (["check", "--fix-only", "-q", "--extend-select", "I"], ["format", "-q"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main(__doc__, TARGET, formatted))
