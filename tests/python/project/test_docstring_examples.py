"""Every example in a docstring of the package runs and prints what it says: of modules, classes, functions and methods.

In an example ``rgrad``, ``nn`` (``rgrad.nn``) and ``F`` (``rgrad.nn.functional``) are there without an import.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from places import sources
from rgrad._functions.late_methods import LateMethod, method_of
from rgrad._tensor_str import get_printoptions
from shown import said_alone, said_by


def is_own(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module.startswith("rgrad") or (inspect.isbuiltin(value) and not module)


def members(owner: Any) -> Iterator[tuple[str, Any]]:
    """What a class or module has, and what stands in a class until it is first asked for."""
    for name in dir(owner) if owner in (rgrad, rgrad.Tensor) else list(vars(owner)):
        value = inspect.getattr_static(owner, name, None)
        # Reading it would put the function into the class, where other tests see it.
        yield name, method_of(value.module, value.name) if isinstance(value, LateMethod) else value
        if not isinstance(value, LateMethod):
            yield name, getattr(owner, name, None)


def walk(name: str, value: Any, seen: dict[int, Any]) -> Iterator[tuple[str, str]]:
    if id(value) in seen:
        return
    seen[id(value)] = value
    value = getattr(value, "__func__", value)
    doc = getattr(value, "__doc__", None)
    # Not of its class, such as Python's own text about a `ParamSpec`.
    if isinstance(doc, str) and ">>> " in doc and doc != type(value).__doc__:
        yield name, doc
    if inspect.isclass(value) and is_own(value):
        for member, found in members(value):
            if callable(found) or isinstance(found, (property, classmethod, staticmethod)) or inspect.isroutine(found):
                yield from walk(f"{name}.{member}", found, seen)


def every_example() -> dict[str, str]:
    """The docstrings that have examples, each once, by a name of what has it."""
    found: dict[str, str] = {}
    seen: dict[int, Any] = {}
    for module in (*sources(), "rgrad._core"):
        if module.endswith("__main__"):
            continue
        value = importlib.import_module(module)
        docs = [(module, value.__doc__ or "")] if ">>> " in (value.__doc__ or "") else []
        for name, member in members(value):
            if is_own(member) or value is rgrad._core:
                docs.extend(walk(f"{module}.{name}", member, seen))
        for name, doc in docs:
            found.setdefault(doc, name)
    assert len(set(found.values())) == len(found)
    return {name: doc for doc, name in found.items()}


EXAMPLES = every_example()


def settings() -> list[Any]:
    return [
        get_printoptions(),
        rgrad.get_default_dtype(),
        rgrad.get_default_device(),
        rgrad.is_grad_enabled(),
        rgrad.are_deterministic_algorithms_enabled(),
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    before = settings()
    # Memory is counted for the whole process: other tests' threads and collections would change it in between.
    said, shows = (said_alone if "memory" in name else said_by)(EXAMPLES[name])
    assert said == ""
    assert shows, "nothing is shown that could be compared"
    assert settings() == before, "the example leaves a setting behind"


def first_line_and_example(doc: str) -> tuple[str, str]:
    """What a docstring has in the text of the package even where it shares the rest with its family."""
    first, _, rest = inspect.cleandoc(doc).partition("\n")
    return first, rest.partition("\nExample:\n")[2] or rest


def test_no_docstring_is_missed() -> None:
    """Those in the text of the package, of whatever has one."""
    written = set()
    for module, file in sources().items():
        if module.endswith("__main__"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                doc = ast.get_docstring(node)
                if doc and ">>> " in doc:
                    written.add(first_line_and_example(doc))
    assert len(written) > 500
    assert written - {first_line_and_example(doc) for doc in EXAMPLES.values()} == set()


def test_native_functions_and_methods_are_seen() -> None:
    names = {"rgrad.nn.functional.cross_entropy", "rgrad.special.polygamma", "rgrad.kaiser_window", "rgrad.linalg.norm"}
    docs = {
        rgrad.nn.functional.cross_entropy.__doc__,
        rgrad.special.polygamma.__doc__,
        rgrad.kaiser_window.__doc__,
        rgrad.linalg.norm.__doc__,
    }
    assert len(docs) == len(names)
    assert docs <= set(EXAMPLES.values())
    native = [
        value.__doc__
        for owner in (rgrad._core, rgrad.Tensor)
        for name, value in vars(owner).items()
        if not inspect.isclass(value) and ">>> " in (getattr(value, "__doc__", None) or "")
    ]
    assert set(native) <= set(EXAMPLES.values())


def test_what_is_wrong_is_told() -> None:
    said, shows = said_by("Add.\n\nExample:\n    >>> rgrad.ones(1) + 1\n    tensor([3.])\n")
    assert "Got:\n    tensor([2.])" in said
    assert shows
    assert said_by(">>> x = 1")[1] is False
