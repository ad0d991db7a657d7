"""The stub of the native module: current, complete, and true of what operations give."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rgrad
from op_kit import Op, Sample, leaves, views
from op_table import OPS
from places import ROOT
from rgrad import _core
from rgrad._functions.late_methods import LATE
from rgrad._runtime.names import IN_PLACE

STUB = ROOT / "python" / "rgrad" / "_core.pyi"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "make_stubs.py"), "--check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_stub_is_current() -> None:
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_of_the_package_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "make_package_stub.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_stub_of_the_package_has_every_public_name() -> None:
    tree = ast.parse((ROOT / "python" / "rgrad" / "__init__.pyi").read_text(encoding="utf-8"))
    said = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    said |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    # Functions that write in place are methods for type checkers.
    assert set(rgrad.__all__) - said - set(dir(_core)) == set(IN_PLACE) | {
        f"{name}_" for names in LATE.values() for name, forms in names.items() if "j" in forms
    }


def test_a_stub_that_is_not_current_is_told_with_a_diff(tmp_path: Path) -> None:
    old = STUB.read_text(encoding="utf-8")
    line = next(line for line in old.splitlines() if line.startswith("def tanh("))
    changed = tmp_path / "_core.pyi"
    changed.write_text(old.replace(line, "def tanh(x: Tensor) -> Tensor:"), encoding="utf-8")
    done = check("--file", str(changed))
    assert done.returncode == 1
    assert f"+{line}" in done.stdout.splitlines()
    assert "run python scripts/make_stubs.py" in done.stderr
    assert "def tanh(x: Tensor)" in changed.read_text(encoding="utf-8"), "--check writes nothing"


Definitions = dict[str, list[ast.FunctionDef]]


def definitions(body: list[ast.stmt]) -> Definitions:
    found: Definitions = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


@functools.cache
def stub() -> tuple[Definitions, dict[str, Definitions]]:
    """Functions, and the methods of each class."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    return definitions(tree.body), {n.name: definitions(n.body) for n in tree.body if isinstance(n, ast.ClassDef)}


def everything() -> dict[str, ast.FunctionDef]:
    functions, classes = stub()
    places = {"": functions, **{f"{name}.": methods for name, methods in classes.items()}}
    return {
        f"{place}{name}#{i}": node
        for place, names in places.items()
        for name, nodes in names.items()
        for i, node in enumerate(nodes)
        if not (name.startswith("_") and not name.startswith("__")) and not place.startswith("_")
    }


# What may be anything: data to make tensors from, keys, what handlers take and give, objects of any class.
ANYTHING = {
    "data", "obj", "args", "kwargs", "layout", "key", "memo", "func", "types", "new_tensor", "tolist", "as_subclass",
    "__deepcopy__", "__copy__", "__reduce_ex__", "__array_wrap__", "__torch_function__", "__call__", "unpack", "value",
    "unpack_hook",
}  # fmt: skip


def test_types_are_known() -> None:
    unknown = []
    for place, node in everything().items():
        given = node.args
        for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
            if argument is None or argument.arg in {"self", "cls", *ANYTHING} or argument.arg.startswith("_"):
                continue
            if argument.annotation is None or ast.unparse(argument.annotation) == "Any":
                unknown.append(f"{place} {argument.arg}")
        if node.returns is None or (ast.unparse(node.returns) == "Any" and node.name not in ANYTHING):
            unknown.append(place)
    assert unknown == []


def test_public_functions_are_documented() -> None:
    functions, _ = stub()
    silent = [n for n, nodes in functions.items() if not n.startswith("_") and ast.get_docstring(nodes[0]) is None]
    assert silent == []


def test_pointwise_functions_have_the_arguments_of_their_rows() -> None:
    functions, classes = stub()

    def arguments(node: ast.FunctionDef) -> str:
        return ast.unparse(node.args)

    assert arguments(functions["tanh"][0]) == "input: Tensor, *, out: Tensor | None=None"
    assert arguments(functions["atan2"][0]) == "input: Tensor, other: _Operand, *, out: Tensor | None=None"
    assert arguments(classes["Tensor"]["tanh_"][0]) == "self"
    assert arguments(classes["Tensor"]["addcmul"][0]) == "self, tensor1: Tensor, tensor2: Tensor, *, value: _Number=1"
    rows = [name for name in _core.pointwise_names if "args" in ast.unparse(functions[name][0].args)]
    assert rows == []


def holds(value: Any, annotation: str) -> bool:
    """Whether a value is of a type as the stub writes it."""
    if annotation == "Tensor":
        return isinstance(value, rgrad.Tensor)
    if annotation in ("_bool", "_int", "_float", "_str"):
        return type(value).__name__ == annotation.removeprefix("_")
    if annotation.startswith("_tuple["):
        return isinstance(value, tuple) and all(isinstance(v, rgrad.Tensor) for v in value)
    if annotation.startswith("_return_types."):
        return isinstance(value, getattr(rgrad.return_types, annotation.partition(".")[2]))
    if " | " in annotation:
        return any(holds(value, part) for part in annotation.split(" | "))
    raise AssertionError(f"the test knows no {annotation}")


def results(op: Op, samples: list[Sample]) -> list[tuple[str, Any]]:
    """What the native functions gave that an operation called, by name."""
    functions, _ = stub()
    found: list[tuple[str, Any]] = []

    class Watch:
        """The library as the operation sees it."""

        def __getattr__(self, name: str) -> Any:
            own = getattr(rgrad, name)
            if name not in functions or getattr(_core, name, None) is not own:
                return own

            def call(*args: Any, **kwargs: Any) -> Any:
                value = own(*args, **kwargs)
                found.append((name, value))
                return value

            return call

    for sample in samples:
        op.call(Watch(), *views(sample, leaves(rgrad, sample, "float64")), **sample.params)
    return found


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_results_are_what_the_stub_says(op: Op) -> None:
    functions, _ = stub()
    for name, value in results(op, op.all_samples()):
        kinds = {ast.unparse(node.returns) for node in functions[name] if node.returns is not None}
        assert any(holds(value, kind) for kind in kinds), f"{name} gives {type(value)}, the stub says {kinds}"


def test_most_operations_are_functions_whose_results_are_seen() -> None:
    seen = {name for op in OPS for name, _ in results(op, op.all_samples()[:1])}
    assert len(seen) > 140


def test_every_class_is_in_the_module_that_it_names() -> None:
    # Pickles and documentation look for a class there.
    classes = {name: value for name, value in vars(_core).items() if isinstance(value, type)}
    assert {"HookHandle", "SavedTensor", "Tensor"} <= set(classes)
    for name, value in classes.items():
        module = importlib.import_module(value.__module__)
        assert getattr(module, name, None) is value, f"{name} says {value.__module__}"
