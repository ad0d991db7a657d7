"""The order of the Python packages: each imports only from those before it, and no two modules import each other."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from places import PACKAGE, sources

# From the bottom up. A module belongs to the longest name here that it starts with.
ROOMS = [
    "rgrad._runtime.lazy",
    "rgrad._runtime.guards",
    "rgrad._runtime.info",
    "rgrad._runtime.lines",
    "rgrad.utils._pytree",
    "rgrad.utils.hooks",
    "rgrad.overrides",
    "rgrad._tensor.construct",
    "rgrad._transforms",
    "rgrad.autograd",
    "rgrad.utils._swap",
    "rgrad.func",
    "rgrad.nn",
    "rgrad.memory",
    "rgrad.cuda",
    "rgrad.optim",
    "rgrad.utils",
    "rgrad.profiler",
    "rgrad.serialization",
    "rgrad.vision",
]

Graph = dict[str, set[str]]


def imports(name: str, file: Path, known: dict[str, Path]) -> set[str]:
    """The modules that a module imports, at its top or inside a function; what is for type checkers only is left out.

    An import of a name that no module has (an object, the native module) is one of the module it is taken from; the
    package itself does not count as that for its native module.
    """
    own = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = own.split(".")[: len(own.split(".")) - child.level + 1]
                    base = ".".join([*above, *([child.module] if child.module else [])])
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    if not full.endswith("._core"):
                        found.add(full if full in known else base)
            elif isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            visit(child)

    visit(ast.parse(file.read_text(encoding="utf-8")))
    return {module for module in found if module in known and module != name}


def graph(package: Path = PACKAGE) -> Graph:
    known = sources(package)
    return {name: imports(name, file, known) for name, file in known.items()}


def room(module: str) -> int | None:
    fitting = [r for r in ROOMS if module == r or module.startswith(r + ".")]
    return ROOMS.index(max(fitting, key=len)) if fitting else None


def test_no_two_modules_import_each_other() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_packages_import_only_from_those_before_them() -> None:
    wrong = []
    for module, others in graph().items():
        place = room(module)
        for other in others:
            below = room(other)
            if place is not None and below is not None and below > place:
                wrong.append(f"{module} imports {other}")
    assert wrong == []


def test_every_room_exists() -> None:
    known = sources()
    assert [r for r in ROOMS if r not in known] == []


def test_a_circle_is_seen_wherever_the_import_stands(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from . import a\n")
    (package / "a.py").write_text("def f():\n    from .b import g\n    return g\n")
    (package / "b.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\ng = 1\n")
    assert graph(package) == {"p": {"p.a"}, "p.a": {"p.b"}, "p.b": set()}
    TopologicalSorter(graph(package)).prepare()
    (package / "b.py").write_text("from p import a\ng = a.f\n")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(package)).prepare()


# Where the switch of recording is turned: the public modes, the guard, the levels (which restore more than this
# switch), and the steps of optimizers, in which a block would cost more than the switch.
SWITCHES = {
    "rgrad._runtime.guards",
    "rgrad._transforms.levels",
    "rgrad.autograd.grad_mode",
    "rgrad.optim.optimizer",
}


def test_there_is_one_guard_against_recording() -> None:
    turning = {
        name
        for name, file in sources().items()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "_set_grad_enabled"
    }
    assert turning == SWITCHES
