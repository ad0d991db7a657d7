"""Reads a program, without running it, for the names of PyTorch that it uses and rgrad lacks."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ._finder import NAME, own_name

# What to do about what is not there, by the beginning of the name; the longest one that fits counts.
ADVICE = {
    "torch.cuda": "there are no CUDA devices; ask torch.cuda.is_available() first",
    "torch.sparse": "tensors are dense; use a dense tensor",
    "torch.nested": "there are no nested tensors; pad to one shape, or use a list",
    "torch.ao": "there is no quantisation; leave the model in floats",
    "torch.quantization": "there is no quantisation; leave the model in floats",
    "torch.distributed": "processes find each other by MPI; stores, tensor.parallel and pipelines are not there",
    "torch.distributed.rpc": "there are no remote calls; use multiprocessing",
    "torch.xpu": 'GPUs are reached by the device "wgpu"; ask torch.xpu.is_available() first',
    "torch.mps": 'GPUs are reached by the device "wgpu"; ask torch.mps.is_available() first',
    "torch._inductor": "nothing is compiled; guard the use",
    "torch._dynamo": "nothing is compiled; guard the use",
    "torch._C": "this is inside of PyTorch's native module; use a public function",
}
# Exceptions whose handler shows that a program can do without a name.
_HANDLED = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException", "RuntimeError"}
_SKIPPED = {"__pycache__", ".git", "node_modules", "build", "dist"}


class Lacking(NamedTuple):
    """A use of a name that rgrad lacks.

    Attributes:
        file: The program's file.
        line: The number of the line, from 1.
        name: PyTorch's name: ``torch.foo.bar``.
        guarded: Whether the program handles its absence: in a ``try`` with a handler, or behind ``hasattr``.
        advice: What to do.
    """

    file: str
    line: int
    name: str
    guarded: bool
    advice: str


def _member(owner: Any, name: str, full: str) -> tuple[bool, Any]:
    """Whether a name is there, and what it is."""
    try:
        return True, inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)
    except AttributeError:
        if not isinstance(owner, ModuleType):
            return False, None
    try:
        return True, import_module(own_name(full))
    except ImportError:
        return False, None


@cache
def first_missing(full: str) -> tuple[str, str] | None:
    """The part of a dotted name that rgrad lacks, and what to do; None if it has all that can be known.

    Args:
        full: A name such as ``"torch.nn.functional.relu"``.
    """
    owner: Any = import_module(own_name(NAME))
    known = NAME
    for part in full.split(".")[1:]:
        below = f"{known}.{part}"
        there, found = _member(owner, part, below)
        if not there:
            return below, _advice(below, part, owner)
        if not isinstance(found, (ModuleType, type)):
            # What an object has, nobody knows before it is there.
            return None
        owner, known = found, below
    return None


def _advice(full: str, name: str, owner: Any) -> str:
    fitting = [start for start in ADVICE if (full + ".").startswith(start + ".")]
    if fitting:
        return ADVICE[max(fitting, key=len)]
    like = difflib.get_close_matches(name, [n for n in dir(owner) if not n.startswith("_")], n=2, cutoff=0.8)
    if like and not name.startswith("_"):
        return f"similar names are there: {', '.join(like)}"
    return "use what is there in its place, or guard it with hasattr"


def _is_handled(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind).rpartition(".")[2] in _HANDLED for kind in types)


class _Reader(ast.NodeVisitor):
    """Follows the names that imports of torch bind, scope by scope."""

    def __init__(self, tree: ast.Module, file: str) -> None:
        self.file = file
        self.found: list[Lacking] = []
        self._guards = 0
        self._lazy_annotations = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body
        )
        self._scopes: list[dict[str, str | None]] = [self._bound(tree.body)]
        for node in tree.body:
            self.visit(node)

    @staticmethod
    def _bound(body: Iterable[ast.AST]) -> dict[str, str | None]:
        """The names that a scope binds: to a name of torch, or to what is not known (None).

        Of several meanings one of torch counts: in ``try: import torch`` with ``torch = None`` in the handler.
        """
        names: dict[str, str | None] = {}
        todo = list(body)

        def bind(name: str, meaning: str | None) -> None:
            names[name] = names.get(name) or meaning

        while todo:
            node = todo.pop()
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    whole = alias.name if alias.asname else first
                    bind(alias.asname or first, whole if first == NAME else None)
            elif isinstance(node, ast.ImportFrom):
                ours = node.level == 0 and (node.module or "").partition(".")[0] == NAME
                for alias in node.names:
                    bind(alias.asname or alias.name, f"{node.module}.{alias.name}" if ours else None)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bind(node.name, None)
                continue
            elif isinstance(node, ast.Lambda):
                continue
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bind(node.id, None)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                bind(node.name, None)
            todo.extend(ast.iter_child_nodes(node))
        return names

    def _add(self, node: ast.AST, full: str) -> None:
        missing = first_missing(full)
        if missing is not None:
            line = getattr(node, "lineno", 0)
            self.found.append(Lacking(self.file, line, missing[0], self._guards > 0, missing[1]))

    def _meaning(self, name: str) -> str | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == NAME:
                self._add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and (node.module or "").partition(".")[0] == NAME:
            for alias in node.names:
                self._add(node, str(node.module) if alias.name == "*" else f"{node.module}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            meaning = self._meaning(inner.id)
            # The import itself has told of a name that it lacks.
            if meaning is not None and isinstance(node.ctx, ast.Load) and first_missing(meaning) is None:
                self._add(node, ".".join([meaning, *reversed(parts)]))
        else:
            self.visit(inner)

    def _guarded(self, nodes: Sequence[ast.AST]) -> None:
        self._guards += 1
        for node in nodes:
            self.visit(node)
        self._guards -= 1

    def visit_Try(self, node: ast.Try) -> None:
        if any(_is_handled(handler) for handler in node.handlers):
            self._guarded(node.body)
        else:
            for statement in node.body:
                self.visit(statement)
        for rest in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(rest)

    def visit_If(self, node: ast.If) -> None:
        asked = ast.unparse(node.test)
        if asked.rpartition(".")[2] == "TYPE_CHECKING":
            for statement in node.orelse:
                self.visit(statement)
        elif "hasattr(" in asked:
            self.visit(node.test)
            self._guarded([*node.body, *node.orelse])
        else:
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        if "hasattr(" in ast.unparse(node.test):
            self._guarded([node.body, node.orelse])
        else:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if not self._lazy_annotations:
            self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        outside = [*node.decorator_list, *given.defaults, *filter(None, given.kw_defaults)]
        if not self._lazy_annotations:
            outside += filter(None, [node.returns, *(arg.annotation for arg in every)])
        for expression in outside:
            self.visit(expression)
        self._scopes.append({**self._bound(node.body), **{arg.arg: None for arg in every}})
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*.py")):
        if not _SKIPPED & set(file.relative_to(path).parts):
            yield file


def check(path: str | Path) -> list[Lacking]:
    """The names of PyTorch that a program uses and rgrad lacks. The program is read, not run.

    Names are followed through imports and attributes: ``import torch.nn as nn`` and ``nn.Foo``. What methods a tensor
    is asked for is not known without running.

    Args:
        path: A Python file, or a folder with some.

    Returns:
        Each use, in the order of files and lines; a name once for each line.

    Raises:
        OSError: A file cannot be read.
        SyntaxError: A file is no Python.

    Example:
        >>> rgrad.compat.check(rgrad.nn.init.__file__)
        []
    """
    found: list[Lacking] = []
    for file in _files(Path(path)):
        tree = ast.parse(file.read_bytes(), str(file))
        found += _Reader(tree, str(file)).found
    return sorted(set(found))
