"""Writes python/rgrad/_core.pyi from the built native module: names, parameters, defaults and documentation are its own
(pointwise operations have them from their rows), types come from stub_types.py.

Run it after names or signatures of the native module have changed: python scripts/make_stubs.py
A test runs it with --check, and `stubtest` compares the stub with the module.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_overloads

import rgrad._core as core
import rgrad._functions.late_methods as late_methods
import stub_types as types_of
from kept import main

TARGET = Path(__file__).resolve().parents[1] / "python" / "rgrad" / "_core.pyi"

HEADER = '''"""Types of the native module. Written by scripts/make_stubs.py: do not edit."""
# ruff: noqa: PLW0211

from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import slice as _slice
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np

from typing_extensions import disjoint_base

from . import return_types as _return_types
from ._tensor.size import Size as Size
from ._tensor.typed_storage import TypedStorage as _TypedStorage
from ._tensor.untyped_storage import UntypedStorage as _UntypedStorage
from .autograd.backward import TensorsOrEdges as _TensorsOrEdges
from .autograd.backward import V as _V

'''

ALIASES = """
_Number: TypeAlias = _bool | _int | _float
_Operand: TypeAlias = Tensor | _Number | _complex
_Sizes: TypeAlias = Sequence[_int]
_Dims: TypeAlias = _int | Sequence[_int]
_DType: TypeAlias = dtype
_DeviceObject: TypeAlias = device
_Device: TypeAlias = device | _str | _int
_Index: TypeAlias = Any
"""

# Names that Python's own protocol provides, or that say nothing about use.
SKIPPED = {
    "__doc__", "__module__", "__dict__", "__weakref__", "__file__", "__loader__", "__name__", "__package__",
    "__spec__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__sizeof__", "__str__", "__reduce__",
    "__subclasshook__", "__init_subclass__", "__static_attributes__", "__firstlineno__", "__annotations__",
    "__slots__", "__orig_bases__", "__parameters__",
}  # fmt: skip


class Problems(Exception):
    """What the tables lack, or have in vain."""


class Table:
    """Looks things up by the most special name, and remembers what was found."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = entries
        self.used: set[str] = set()

    def find(self, *names: str) -> Any:
        for name in names:
            if name in self.entries:
                self.used.add(name)
                return self.entries[name]
        return None


PARAMETERS = Table(types_of.PARAMETERS)
RESULTS = Table(types_of.RESULTS)
PROPERTIES = Table(types_of.PROPERTIES)
BY_HAND = Table(types_of.BY_HAND)
OVERLOADS = Table(types_of.OVERLOADS)
FUNCTION_OVERLOADS = Table(types_of.FUNCTION_OVERLOADS)
METHOD_OVERLOADS = Table(types_of.METHOD_OVERLOADS)
missing: list[str] = []

# What the entries of declared functions call the types of their parameters (`src/python/functions/declared.rs`).
DECLARED_TYPES = {
    "Tensor": "Tensor",
    "int": "_int",
    "float": "_float",
    "bool": "_bool",
    "Number": "_Number",
    "str": "_str",
    "dtype": "_DType",
    "tuple of ints": "_Dims",
}


def declared_type(function: str, name: str) -> str | None:
    """The type of a parameter of a declared function, without None where that is the default."""
    parameters = core._declared_functions.get(function, ((),))[0]
    if name == "out" and parameters:
        return "Tensor" if not core._declared_functions[function][1] else "_tuple[Tensor, Tensor]"
    return next((DECLARED_TYPES[kind] for n, kind, _ in parameters if n == name), None)


def is_private(*names: str) -> bool:
    return any(name.startswith("_") and not name.startswith("__") for name in names)


def type_of(owner: str, function: str, name: str, star: str = "") -> str:
    """The type of a parameter; private functions need none."""
    place = f"{owner}.{function}" if owner else function
    plain = function.removesuffix("_")
    special = [f"{place}.{name}", f"{function}.{name}", f"{plain}.{name}"]
    operator = name == "value" and function.startswith("__")
    if owner in ("", "Tensor") and (declared := declared_type(function, name)) is not None:
        return declared
    found = PARAMETERS.find(*special, *([] if operator else [star + name]))
    if found is None and (name.startswith("_") or operator):
        return "_Operand" if operator and owner == "Tensor" else "Any"
    if found is None and not is_private(owner, function):
        missing.append(f"parameter {place}.{star}{name}")
    return found or "Any"


def default_of(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, float, str, tuple))
    return repr(value) if plain else "..."


def parameter(owner: str, function: str, p: inspect.Parameter) -> str:
    if p.kind is p.VAR_POSITIONAL:
        return f"*{p.name}: {type_of(owner, function, p.name, '*')}"
    if p.kind is p.VAR_KEYWORD:
        return f"**{p.name}: Any"
    kind = type_of(owner, function, p.name)
    if p.default is p.empty:
        return f"{p.name}: {kind}"
    if p.default is None and kind != "Any":
        kind += " | None"
    return f"{p.name}: {kind} = {default_of(p.default)}"


def arguments(owner: str, function: str, signature: inspect.Signature, bound: bool) -> str:
    """The text between the brackets; the first parameter of a method is left as it is."""
    parts: list[str] = []
    kinds = [p.kind for p in signature.parameters.values()]
    starred = False
    for i, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not starred and inspect.Parameter.VAR_POSITIONAL not in kinds:
            parts.append("*")
            starred = True
        parts.append(p.name if bound and i == 0 else parameter(owner, function, p))
        last_positional = p.kind is p.POSITIONAL_ONLY and (i + 1 == len(kinds) or kinds[i + 1] is not p.POSITIONAL_ONLY)
        # A method's self alone needs no slash.
        if last_positional and not (bound and i == 0):
            parts.append("/")
    return ", ".join(parts)


def result_of(owner: str, function: str) -> str:
    """What a function gives: its declaration or its row says so, its name, or the table."""
    if owner in ("", "Tensor") and function in core._declared_functions:
        _, pair, is_method = core._declared_functions[function]
        if pair and not is_method:
            return "_tuple[Tensor, Tensor]"
        return f"_return_types.{function}" if pair else "Tensor"
    found: str | None = RESULTS.find(f"{owner}.{function}", function)
    if found is not None:
        return found
    if function == "__new__":
        return "Self"
    if owner in ("", "Tensor") and is_pointwise(function):
        return "Tensor"
    # What writes to its tensor gives that very object.
    if owner == "Tensor" and writes(function):
        return "Self"
    if not is_private(owner):
        missing.append(f"result {owner}.{function}" if owner else f"result {function}")
    return "Any"


def is_pointwise(function: str) -> bool:
    """Whether a function or method, or the one that it is the other form of, has a row in the table of operations."""
    return function in core.pointwise_names or function in core.pointwise_functions


def writes(method: str) -> bool:
    return (method.endswith("_") and not method.endswith("__")) or (
        method.startswith("__i") and method not in ("__init__", "__int__", "__invert__", "__iter__", "__index__")
    )


def docstring(of: Any, indent: str) -> str:
    """The documentation as it stands in a stub, with long paragraphs wrapped; empty where there is none."""
    text = inspect.getdoc(of) or ""
    if not text:
        return ""
    width = 120 - len(indent) - 6
    lines: list[str] = []
    for line in text.replace('"""', "'''").splitlines():
        lines.extend(textwrap.wrap(line, width, subsequent_indent=" " * (len(line) - len(line.lstrip()))) or [""])
    start = 'r"""' if "\\" in text else '"""'
    if len(lines) == 1:
        return f'{indent}{start}{lines[0]}"""'
    return "\n".join([indent + start + lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""'])


def with_doc(definition: str, of: Any, name: str, indent: str) -> str:
    """A definition with its documentation in the place of the dots; operators document themselves."""
    text = "" if name.startswith("__") else docstring(of, indent)
    return f"{definition.removesuffix(' ...')}\n{text}" if text else definition


def forms(owner: str, name: str) -> list[tuple[str, str]] | None:
    """The forms of an overloaded function or method: parameters after the tensor, result."""
    if owner not in ("", "Tensor"):
        return None
    own = (METHOD_OVERLOADS if owner else FUNCTION_OVERLOADS).find(name)
    if own is not None and not owner:
        return list(own)
    found: list[tuple[str, str]] | None = own or OVERLOADS.find(name)
    first = "self" if owner else "input: Tensor"
    return None if found is None else [(f"{first}, {text}" if text else first, result) for text, result in found]


def function_stub(name: str, f: Any, owner: str = "", static: bool = False) -> str:
    indent = "        " if owner else "    "
    by_hand: str | None = BY_HAND.find(f"{owner}.{name}" if owner else name)
    if by_hand is not None:
        return by_hand
    if (several := forms(owner, name)) is not None:
        texts = [f"@overload\ndef {name}({text}) -> {result}: ..." for text, result in several]
        texts[0] = with_doc(texts[0], f, name, "    ")
        return textwrap.indent("\n".join(texts), "    " if owner else "").strip()
    if name == "__init_subclass__":
        return ""
    if name in ("__eq__", "__ne__"):
        return f"def {name}(self, value: object, /) -> _bool: ..."
    signature = inspect.signature(f)
    text = arguments(owner, name, signature, bool(owner) and not static)
    return with_doc(f"def {name}({text}) -> {result_of(owner, name)}: ...", f, name, indent)


# Methods that Python adds to Tensor, each with its module.
LATE = {
    method: module
    for module, names in late_methods.LATE.items()
    for name, kinds in names.items()
    for method, kind in ((name, "m"), (f"{name}_", "i"))
    if kind in kinds
}


def late_stub(name: str, module: str) -> str:
    """A method that is written in Python: its annotations are its own, but for the form in place of a native one."""
    method = late_methods.method_of(module, name)
    doc = (inspect.getdoc(method) or "").partition("\n\n")[0]
    function: Any = getattr(import_module(f"rgrad.{module}"), name, method)
    several = get_overloads(getattr(function, "__wrapped__", function))
    if not several:
        return f'{late_form(name, inspect.signature(method))}\n        """{doc}"""'
    # The parameters of the function without those that the method does not have.
    kept = inspect.signature(method).parameters
    first = function._tensors[0]
    texts = []
    for form in several:
        signature = inspect.signature(form)
        parameters = [p.replace(name="self") if p.name == first else p for p in signature.parameters.values()]
        signature = signature.replace(parameters=[p for p in parameters if p.name in kept])
        texts.append(f"@overload\n    {late_form(name, signature)} ...")
    texts[0] = texts[0].removesuffix(" ...") + f'\n        """{doc}"""'
    return "\n    ".join(texts)


def late_form(name: str, signature: inspect.Signature) -> str:
    """One form of the method, without a body."""
    parts, starred = ["self"], False
    for p in list(signature.parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if p.default is p.empty else f" = {default_of(p.default)}"
        kind = type_of("Tensor", name[:-1], p.name) if p.annotation is p.empty else late_type(name, p)
        parts.append(f"{p.name}: {kind}{default}")
    result = "Self" if writes(name) else in_class(signature.return_annotation)
    return f"def {name}({', '.join(parts)}) -> {result}:"


def late_type(function: str, p: inspect.Parameter) -> str:
    """The type of a parameter; where the function itself says nothing, that of the name."""
    if p.annotation != "Any":
        return in_class(p.annotation)
    found = PARAMETERS.find(f"Tensor.{function}.{p.name}", f"{function}.{p.name}", p.name)
    return f"{found or 'object'}{' | None' if p.default is None else ''}"


def in_class(annotation: Any) -> str:
    """An annotation for inside of a class that has methods named as built-in types are."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    names = "bool|float|int|return_types|str|tuple|type|TypedStorage|UntypedStorage"
    return re.sub(rf"(?<!_)\b({names})\b", r"_\1", text)


def class_stub(name: str, cls: type) -> str:
    bases = [b for b in cls.__bases__ if b is not object]
    shown = [b.__name__ if b.__module__ != "builtins" else f"{b.__name__}" for b in bases]
    lines = []
    try:
        type("Sub", (cls,), {})
    except TypeError:
        lines.append("@final")
    else:
        if not issubclass(cls, BaseException) and cls.__basicsize__ > object.__basicsize__:
            # Memory layout of its own: no class can derive from two of these.
            lines.append("@disjoint_base")
    lines.append(f"class {name}({', '.join(shown)}):" if shown else f"class {name}:")
    body = [docstring(cls, "").strip()] if cls.__doc__ else []
    for key, value in sorted(vars(cls).items()):
        if key in SKIPPED or (key.startswith("_") and not key.startswith("__") and key not in dir(core.Tensor)):
            continue
        late = LATE.get(key) if name == "Tensor" else None
        if late is not None:
            body.append(late_stub(key, late))
        elif isinstance(value, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
            found = PROPERTIES.find(f"{name}.{key}")
            if found is None and not is_private(name):
                missing.append(f"property {name}.{key}")
            kind, access = found or ("Any", "r")
            body.append(with_doc(f"@property\n    def {key}(self) -> {kind}: ...", value, key, "        "))
            if "w" in access:
                body.append(f"@{key}.setter\n    def {key}(self, value: {kind}) -> None: ...")
            if "d" in access:
                body.append(f"@{key}.deleter\n    def {key}(self) -> None: ...")
        elif isinstance(value, staticmethod) and key != "__new__":
            body.append("@staticmethod\n    " + function_stub(key, value.__func__, name, static=True))
        elif key == "__new__":
            text = "cls, *args: Any, **kwargs: Any"
            if not issubclass(cls, BaseException):
                try:
                    signature = inspect.signature(cls)
                    text = ", ".join(["cls", arguments("", name, signature, False)]).rstrip(", ")
                except (ValueError, TypeError):
                    pass
            body.append(f"def __new__({text}) -> Self: ...")
        elif key == "__hash__" and value is None:
            body.append("__hash__: None  # type: ignore[assignment]")
        elif isinstance(value, classmethod) or type(value).__name__ == "classmethod_descriptor":
            body.append("@classmethod\n    " + function_stub(key, getattr(cls, key), name, static=True))
        elif callable(value):
            body.append(function_stub(key, value, name))
        else:
            body.append(f"{key}: {_type_name(value)}")
    lines.extend(f"    {entry}" for entry in body if entry)
    if len(body) == 0:
        lines[-1] += " ..."
    return "\n".join(lines)


def _type_name(value: Any) -> str:
    name = type(value).__name__ if not inspect.ismodule(value) else "Any"
    return f"_{name}" if name in ("int", "float", "bool", "str") else name


def module_stub() -> str:
    exported = list(core.__all__)
    parts = [HEADER]
    names = sorted(n for n in dir(core) if n not in SKIPPED and n not in ("__all__", "__getattr__"))
    classes = [n for n in names if isinstance(getattr(core, n), type)]
    for name in classes:
        cls = getattr(core, name)
        if name == "Size":
            continue  # imported by the header
        parts.append(class_stub(name, cls) + "\n")
    parts.append(ALIASES)
    for name in names:
        value = getattr(core, name)
        if name in classes:
            continue
        if callable(value):
            parts.append(function_stub(name, value))
        elif isinstance(value, tuple):
            parts.append(f"{name}: _tuple[_str, ...]")
        elif isinstance(value, dict):
            parts.append(f"{name}: dict[_str, Any]")
        else:
            parts.append(f"{name}: {_type_name(value)}")
    parts.append(f"\n__all__ = {sorted(exported)!r}")
    return "\n".join(parts) + "\n"


def formatted() -> str:
    """The stub, as ruff wants it."""
    text = module_stub()
    for kind, table in tables().items():
        missing.extend(f"unused {kind} {name}" for name in table.entries if name not in table.used)
    if missing:
        raise Problems("scripts/stub_types.py:\n  " + "\n  ".join(missing))
    # Unused imports go first, so that what remains is formatted.
    for command in (["check", "--fix-only", "-q"], ["format", "-q"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def tables() -> dict[str, Table]:
    return {
        "parameter": PARAMETERS,
        "result": RESULTS,
        "property": PROPERTIES,
        "definition": BY_HAND,
        "overload": OVERLOADS,
        "function overload": FUNCTION_OVERLOADS,
        "method overload": METHOD_OVERLOADS,
    }


if __name__ == "__main__":
    sys.exit(main(__doc__, TARGET, formatted))
