"""Signatures of PyTorch's native functions and methods, which have none at run time: read from its stubs."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path
from typing import Any

import torch

STUBS = Path(torch.__file__).parent / "_C"
NOTHING = inspect.Parameter.empty
# What a stub writes for a default that it does not say.
UNKNOWN = object()


def default(node: ast.expr | None) -> Any:
    if node is None:
        return NOTHING
    try:
        return ast.literal_eval(node)
    except ValueError:
        return UNKNOWN


def signature(function: ast.FunctionDef) -> inspect.Signature:
    """Of one definition; types stand as text."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    found = []

    def add(argument: ast.arg, kind: Any, value: ast.expr | None = None) -> None:
        text = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        found.append(inspect.Parameter(argument.arg, kind, default=default(value), annotation=text))

    for i, (argument, value) in enumerate(zip(plain, defaults, strict=True)):
        positional = i < len(given.posonlyargs) or argument.arg.startswith("__")
        add(
            argument,
            inspect.Parameter.POSITIONAL_ONLY if positional else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            value,
        )
    if given.vararg is not None:
        add(given.vararg, inspect.Parameter.VAR_POSITIONAL)
    for argument, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        add(argument, inspect.Parameter.KEYWORD_ONLY, value)
    if given.kwarg is not None:
        add(given.kwarg, inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature(found)


def overloads(body: list[ast.stmt]) -> dict[str, list[inspect.Signature]]:
    found: dict[str, list[inspect.Signature]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(signature(node))
    return found


@functools.cache
def functions() -> dict[str, list[inspect.Signature]]:
    """Of the functions of the module."""
    return overloads(ast.parse((STUBS / "_VariableFunctions.pyi").read_text(encoding="utf-8")).body)


@functools.cache
def methods() -> dict[str, list[inspect.Signature]]:
    """Of the methods of a tensor, with `self`."""
    tree = ast.parse((STUBS / "__init__.pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return overloads(classes["TensorBase"].body)


@functools.cache
def functional() -> dict[str, list[inspect.Signature]]:
    """Of the functions of `torch.nn.functional` that are native."""
    stub = STUBS.parent / "nn" / "functional.pyi"
    return overloads(ast.parse(stub.read_text(encoding="utf-8")).body)
