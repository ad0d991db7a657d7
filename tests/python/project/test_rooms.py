"""The rooms of the Python package: each imports only from those before it, and no two modules import each other.

Imports are those of statements, inside functions too. Names that come when they are first used (`lazily`, and the table
of late methods) are given as strings; they are entries of users, not imports.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rgrad
from places import PACKAGE, ROOT, sources

# From the bottom up. A module belongs to the longest name here that it starts with.
ROOMS = [
    # Without operations.
    "rgrad._runtime",
    "rgrad.__future__",
    "rgrad.version",
    "rgrad.torch_version",
    "rgrad.types",
    "rgrad.utils.hooks",
    "rgrad.utils._pytree",
    "rgrad._tensor",
    "rgrad._tensor_str",
    "rgrad._construct",
    # Differentiation.
    "rgrad._transforms",
    "rgrad.autograd",
    # Functions.
    "rgrad._operation",
    "rgrad.return_types",
    "rgrad.amp",
    "rgrad.special",
    "rgrad.linalg",
    "rgrad.masked",
    "rgrad._files",
    "rgrad.serialization",
    "rgrad.storage",
    "rgrad.hub",
    "rgrad._functions",
    # Layers and what trains them.
    "rgrad.futures",
    "rgrad.distributed",
    "rgrad.func",
    "rgrad.utils._foreach_utils",
    "rgrad.utils._swap",
    "rgrad.nn",
    "rgrad._utils",
    "rgrad.fft",
    "rgrad.signal",
    "rgrad.ops",
    "rgrad.distributions",
    "rgrad.ao",
    "rgrad.optim",
    "rgrad.distributed.optim",
    "rgrad.distributed.tensor",
    "rgrad.distributed.fsdp",
    "rgrad.distributed._composable",
    "rgrad.distributed._tensor",
    "rgrad.distributed.checkpoint",
    # Devices and settings.
    "rgrad.wgpu",
    "rgrad.memory",
    "rgrad.random",
    "rgrad.cpu",
    "rgrad.cuda",
    "rgrad.xpu",
    "rgrad.mps",
    "rgrad.mtia",
    "rgrad.accelerator",
    "rgrad.backends",
    "rgrad.compiler",
    "rgrad.package",
    "rgrad.multiprocessing",
    # Tools.
    "rgrad.testing",
    "rgrad.jit",
    "rgrad._jit_internal",
    "rgrad._vmap_internals",
    "rgrad.__config__",
    "rgrad.library",
    "rgrad._custom_ops",
    "rgrad._dynamo",
    "rgrad._subclasses",
    "rgrad.profiler",
    "rgrad.utils",
    "rgrad.autograd._drawing",
    "rgrad.utils.tensorboard",
    "rgrad.nn._summary",
    # The package itself, and then what uses it as a user does.
    "rgrad",
    "rgrad.compat",
    "rgrad.run",
    "rgrad.overrides",
    "rgrad.fx",
    "rgrad.export",
    "rgrad.onnx",
    "rgrad.vision",
    "rgrad.utils.benchmark",
    "rgrad.utils.collect_env",
    "rgrad.env",
    "rgrad.profile",
]

# Private files at the top, and why they stand there.
PRIVATE_FILES = {
    "_custom_ops.py": "PyTorch's older name of `library`, which libraries import",
    "_construct.py": "pickles of tensors name it",
    "_core.pyi": "the stub of the native module",
    "_jit_internal.py": "PyTorch's private name, which libraries import",
    "_tensor_str.py": "PyTorch's name of the options of printing",
    "_utils.py": "PyTorch's private name, which libraries import",
    "_vmap_internals.py": "PyTorch's private name, which libraries import",
}
PRIVATE_FOLDERS = {"_files", "_functions", "_operation", "_runtime", "_tensor", "_transforms"}
# Packages that PyTorch has under these names.
PYTORCH_FOLDERS = {"_dynamo", "_subclasses"}
# Public files at the top that are no attributes of the package: they are run as `python -m rgrad.env`.
COMMANDS = {"env", "profile", "run"}

# What stands apart: each comes when the name here is first used. Nobody else imports it but the modules here.
APART = {
    "rgrad.autograd._drawing": ("rgrad.autograd.graph.draw", {"rgrad.utils.tensorboard._graph"}),
    "rgrad.utils.tensorboard": ("rgrad.utils.tensorboard", set[str]()),
    "rgrad.nn._summary": ("rgrad.summary", set[str]()),
}

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
                visit(ast.Module(child.orelse, []))
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


@cache
def graph(package: Path = PACKAGE) -> Graph:
    known = sources(package)
    return {name: imports(name, file, known) for name, file in known.items()}


def room(module: str, rooms: list[str] = ROOMS) -> int | None:
    """The place of a module's room. The package's own is that of its ``__init__`` alone."""
    fitting = [r for r in rooms if module == r or (r != "rgrad" and module.startswith(r + "."))]
    return rooms.index(max(fitting, key=len)) if fitting else None


def upward(imported: Graph, rooms: list[str] = ROOMS) -> list[str]:
    """Imports of rooms that stand after the module's own, and modules without a room."""
    wrong = []
    for module, others in imported.items():
        place = room(module, rooms)
        if place is None:
            wrong.append(f"{module} stands in no room")
            continue
        for other in sorted(others):
            below = room(other, rooms)
            if below is not None and below > place:
                wrong.append(f"{module} imports {other}")
    return wrong


def test_no_two_modules_import_each_other() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_rooms_import_only_from_those_before_them() -> None:
    imported = graph()
    assert len(imported) > 300
    assert upward(imported) == []


def test_an_import_of_a_later_room_is_seen() -> None:
    rooms = ["rgrad._a", "rgrad.b.low", "rgrad.b", "rgrad"]
    good = {
        "rgrad": {"rgrad.b"},
        "rgrad.b": {"rgrad._a.x"},
        "rgrad.b.low.x": {"rgrad._a"},
        "rgrad._a.x": {"rgrad._a.y"},
    }
    assert upward(good, rooms) == []
    assert upward({"rgrad._a.x": {"rgrad.b.y"}}, rooms) == ["rgrad._a.x imports rgrad.b.y"]
    assert upward({"rgrad.b.low": {"rgrad.b.y"}}, rooms) == ["rgrad.b.low imports rgrad.b.y"]
    assert upward({"rgrad.b.y": {"rgrad"}}, rooms) == ["rgrad.b.y imports rgrad"]
    assert upward({"rgrad.c": set()}, rooms) == ["rgrad.c stands in no room"]


def test_a_package_loads_nothing_that_stands_after_a_room_in_it() -> None:
    """To import `utils.hooks` is to run `utils/__init__.py`, so that imports only what may be imported there."""
    imported, wrong = graph(), []
    for place, name in enumerate(ROOMS):
        package = name.rpartition(".")[0]
        if package in ("", "rgrad") or ROOMS.index(package) < place:
            continue
        wrong += [f"{package} imports {other}" for other in imported[package] if (room(other) or 0) > place]
    assert wrong == []


def test_every_room_exists() -> None:
    known = sources()
    assert [r for r in ROOMS if r not in known] == []
    assert len(set(ROOMS)) == len(ROOMS)


def test_the_top_shows_what_a_user_imports() -> None:
    entries = [e for e in PACKAGE.iterdir() if e.name != "__pycache__" and not e.name.startswith(".")]
    private = [e for e in entries if e.name.startswith("_") and not e.name.startswith("__")]
    assert {e.name for e in private if e.is_dir()} == PRIVATE_FOLDERS | PYTORCH_FOLDERS
    built = {e.name for e in private if e.name.startswith("_core.") and e.suffix in (".so", ".pyd", ".dylib")}
    assert {e.name for e in private if e.is_file()} - built == set(PRIVATE_FILES)
    public = {e.stem for e in entries if e not in private and e.stem != "__init__" and e.name != "py.typed"}
    assert public - {"autograd"} == {
        name
        for name in (*rgrad._MODULES, *COMMANDS)
        if name.startswith("__") or not name.startswith("_")  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("folder", sorted(PRIVATE_FOLDERS))
def test_a_private_folder_says_what_is_in_it_and_what_is_not(folder: str) -> None:
    tree = ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))
    assert "Not here:" in (ast.get_docstring(tree) or "")
    # Whoever imports one module of the folder pays for no other.
    assert len(tree.body) == 1


@pytest.mark.parametrize("apart", APART)
def test_what_stands_apart_is_imported_by_nobody(apart: str) -> None:
    def inside(module: str) -> bool:
        return module == apart or module.startswith(apart + ".")

    users = {name for name, others in graph().items() if not inside(name) and any(map(inside, others))}
    assert users == APART[apart][1]


@pytest.mark.parametrize("apart", APART)
def test_what_stands_apart_comes_when_it_is_used(apart: str) -> None:
    entry = APART[apart][0]
    # All that is no tool, then the entry.
    before = [r for r in ROOMS[: ROOMS.index("rgrad")] if r not in APART]
    code = (
        f"import sys, {', '.join(before)}, rgrad\n"
        "import rgrad.autograd.graph\n"
        f"print({apart!r} in sys.modules)\n{entry}\nprint({apart!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_page_has_the_rooms_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n| rooms of Python |")[2].partition("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert named == [r.removeprefix("rgrad.") for r in ROOMS]


def test_a_circle_is_seen_wherever_the_import_stands(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from . import a\n")
    (package / "a.py").write_text("def f():\n    from .b import g\n    return g\n")
    (package / "b.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\ng = 1\n")
    assert graph(package) == {"p": {"p.a"}, "p.a": {"p.b"}, "p.b": set()}
    TopologicalSorter(graph(package)).prepare()
    graph.cache_clear()
    (package / "b.py").write_text("from p import a\ng = a.f\n")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(package)).prepare()


# Where the switch of recording is turned: the public modes, the guard, the levels (which restore more than this
# switch), and the steps of optimizers, in which a block would cost more than the switch.
SWITCHES = {
    "rgrad._runtime.guards",
    "rgrad._transforms.levels",
    "rgrad.autograd.grad_mode",
    "rgrad.optim._grouped",
}


def test_there_is_one_guard_against_recording() -> None:
    turning = {
        name
        for name, file in sources().items()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "_set_grad_enabled"
    }
    assert turning == SWITCHES
