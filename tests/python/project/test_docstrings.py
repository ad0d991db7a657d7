"""Docstrings of autograd, func and nn have the sections that a signature demands."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from places import sources

SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Shape", "Note", "Example")

# Methods that every class of a kind has, or that the class's documentation is about.
COMMON = {"forward", "extra_repr", "clone"}


def public_objects(*packages: str) -> dict[str, Any]:
    """The classes and functions of the Python layer that these packages list, by their full names."""
    found: dict[str, Any] = {}
    for module in sources():
        if not module.startswith(packages):
            continue
        package = importlib.import_module(module)
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            own = getattr(value, "__module__", None) or ""
            if not inspect.isbuiltin(value) and own.startswith("rgrad.") and not is_native(value):
                found.setdefault(f"{value.__module__}.{value.__qualname__}", value)
    return found


def is_native(value: Any) -> bool:
    if isinstance(value, type):
        return getattr(rgrad._core, value.__name__, None) is value
    return not inspect.isfunction(value)


OBJECTS = public_objects("rgrad.autograd", "rgrad.func", "rgrad.memory", "rgrad.nn")
EVERYTHING = public_objects("rgrad")


def methods_of(cls: type) -> Iterator[Any]:
    """Public methods that are defined in Python by the class or by a private base of it."""
    for base in cls.__mro__:
        if base.__module__.startswith("rgrad") and (
            base is cls or f"{base.__module__}.{base.__qualname__}" not in OBJECTS
        ):
            for name, value in vars(base).items():
                function = getattr(value, "__func__", value)
                if inspect.isfunction(function) and not name.startswith("_") and name not in COMMON:
                    yield function


def public_methods() -> dict[str, Any]:
    """Those of all classes, by the full names of the functions."""
    classes = [cls for cls in OBJECTS.values() if isinstance(cls, type)]
    return {f"{f.__module__}.{f.__qualname__}": f for cls in classes for f in methods_of(cls)}


METHODS = public_methods()


def sections(doc: str) -> dict[str, list[str]]:
    """The sections of a docstring by their names, "" for what stands before the first, without indentation."""
    found: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(doc).split("\n"):
        if line.endswith(":") and line[:-1] in SECTIONS:
            current = line[:-1]
            assert current not in found, f"two sections {current}"
            found[current] = []
        else:
            found[current].append(line.removeprefix("    ") if current else line)
    return found


def entries(lines: list[str]) -> dict[str, str]:
    """``name: text`` with continuation lines, which are indented."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if match := re.match(r"\*{0,2}(\w+): (.+)", line):
            name = match[1]
            found[name] = match[2]
        elif line:
            assert name, f"{line!r} belongs to no entry"
            assert line.startswith("    "), f"{line!r} is neither an entry nor a continuation"
            found[name] += " " + line.strip()
    return found


def parameters(value: Any) -> list[str]:
    """The parameters that a caller gives."""
    if not isinstance(value, type):
        return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    if hasattr(value, "_fields"):
        return []
    if issubclass(value, BaseException):
        return []
    for maker in (value.__init__, value.__new__):  # type: ignore[misc]
        # A subclass of Module that defines none takes no arguments.
        if inspect.isfunction(maker) and (value is rgrad.nn.Module or maker is not rgrad.nn.Module.__init__):
            return [name for name in inspect.signature(maker).parameters if name not in ("self", "cls")]
    return []


def returns(function: Any) -> str:
    """The section in which a function says what it gives, or nothing."""
    function = inspect.unwrap(function)
    said = str(inspect.signature(function).return_annotation)
    if said in ("None", "<class 'NoneType'>"):
        return ""
    if inspect.isgeneratorfunction(function):
        return "" if "Generator[None]" in said else "Yields"
    return "Returns"


def check_raises(lines: list[str]) -> None:
    for name, text in entries(lines).items():
        kind = getattr(builtins, name, None) or getattr(rgrad, name, None)
        kind = kind or next(v for k, v in EVERYTHING.items() if k.endswith(f".{name}"))
        # PyTorch's error of checkpoints is no Exception.
        assert issubclass(kind, BaseException)
        assert re.match(r"[A-Z`]", text), f"{name}: {text!r} begins with a small letter"


@pytest.mark.parametrize("name", [*EVERYTHING, *METHODS])
def test_summary_and_style(name: str) -> None:
    doc = (EVERYTHING | METHODS)[name].__doc__
    assert doc
    summary, _, rest = inspect.cleandoc(doc).partition("\n")
    assert summary.endswith("."), "the first line is a sentence"
    assert not rest or rest.startswith("\n"), "an empty line stands after the first"
    found = sections(doc)
    prose = "\n".join(line for section in ("", "Args", "Returns") for line in found.get(section, ()))
    assert not re.search(r"\b[Rr]aises \w+Error", prose), "errors have a section"
    assert all("".join(lines).strip() for lines in found.values()), "no section is empty"
    check_raises(found.get("Raises", []))


@pytest.mark.parametrize("name", OBJECTS)
def test_sections_of_classes_and_functions(name: str) -> None:
    value = OBJECTS[name]
    found = sections(value.__doc__)
    assert list(entries(found.get("Args", []))) == parameters(value)
    if hasattr(value, "_fields"):
        assert tuple(entries(found["Attributes"])) == value._fields
    if not isinstance(value, type):
        wanted = returns(value)
        if not (wanted == "Returns" and is_block(value)):
            assert ({"Returns", "Yields"} & set(found)) == ({wanted} if wanted else set())
    assert any(line.startswith(">>> ") for line in found["Example"])
    if isinstance(value, type) and issubclass(value, rgrad.nn.Module) and is_layer(value):
        assert "Shape" in found


def is_block(function: Any) -> bool:
    """A context manager that gives nothing to its block."""
    inner = inspect.unwrap(function)
    return inspect.isgeneratorfunction(inner) and "Generator[None]" in str(inspect.signature(inner).return_annotation)


def is_layer(cls: type) -> bool:
    return (
        "forward" in vars(cls) and "containers" not in cls.__module__ and cls.__name__ not in ("Module", "Sequential")
    )


@pytest.mark.parametrize("name", METHODS)
def test_sections_of_methods(name: str) -> None:
    """Each parameter has an entry, or the text names it; what is given has a section where there are any."""
    function = METHODS[name]
    found = sections(function.__doc__)
    names = parameters(function)
    if "Args" in found:
        assert list(entries(found["Args"])) == names
        wanted = returns(function)
        assert ({"Returns", "Yields"} & set(found)) == ({wanted} if wanted else set())
    else:
        text = "\n".join(found[""])
        assert [n for n in names if not re.search(rf"``[^`]*\b{n}\b[^`]*``", text)] == []


def test_the_packages_are_seen() -> None:
    assert len(OBJECTS) > 140
    assert len(METHODS) > 60
    for name in (
        "rgrad.autograd.backward.grad",
        "rgrad._transforms.vmap.vmap",
        "rgrad.nn.functional._loss.cross_entropy",
        "rgrad.nn.modules.linear.Linear",
        "rgrad.nn.init.eye_",
        "rgrad.autograd.graph.saved_tensors_hooks",
    ):
        assert name in OBJECTS
    assert "rgrad.nn.modules._state.HasState.load_state_dict" in METHODS


@pytest.mark.parametrize(
    ("doc", "message"),
    [
        ("Give it.\n\nArgs:\n    x: One.\n\nRaises:\n    ValueError: bad.\n", "small letter"),
        ("Give it.\n\nRaises:\n    ValueError, TypeError: Bad.\n", "belongs to no entry"),
        ("Give it.\n\nRaises:\n    ValueError: Bad.\n    Or worse.\n", "neither an entry"),
        ("Give it.\n\nArgs:\n    x: One.\n\nArgs:\n    y: One.\n", "two sections"),
    ],
)
def test_what_is_wrong_is_told(doc: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_raises(sections(doc).get("Raises", []))
