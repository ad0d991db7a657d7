"""Runs a program with rgrad in PyTorch's place: ``python -m rgrad.run script.py [args]``.

As Python does, it takes ``-m module [args]`` and ``-c code [args]``, too. ``import torch`` in the program and in the
processes that it starts with `multiprocessing` is rgrad (:func:`rgrad.compat.install`). An error shows the program's
lines only.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from .compat import install
from .compat._hints import add_hint

USAGE = """\
usage: python -m rgrad.run [-m MODULE | -c CODE | FILE] [ARGUMENTS ...]

Runs a program in which `import torch` is rgrad. FILE may be a folder or a zip file with a __main__.py, or - for the
standard input. Options of Python itself stand before -m: python -W error -m rgrad.run FILE.
"""


def _fail(why: str) -> SystemExit:
    sys.stderr.write(f"python -m rgrad.run: {why}\n")
    return SystemExit(2)


def _main_module(**attributes: Any) -> ModuleType:
    """A new ``__main__`` in the place of this one, so that classes defined there can be pickled."""
    module = ModuleType("__main__")
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    vars(module).update({"__file__": None, "__spec__": None, **attributes})
    if module.__file__ is None:
        del module.__file__
    sys.modules["__main__"] = module
    return module


def _from_spec(spec: ModuleSpec, name: str) -> tuple[CodeType, ModuleType]:
    """The code of a module that runs as ``__main__``."""
    code = None if spec.loader is None else spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
    if code is None:
        raise _fail(f"No code object available for {name}")
    return code, _main_module(
        __file__=spec.origin, __spec__=spec, __loader__=spec.loader, __package__=spec.parent, __cached__=spec.cached
    )


def _module(name: str) -> tuple[CodeType, ModuleType]:
    """What ``-m`` runs."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise _fail(f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed")
    except (ImportError, ValueError) as error:
        raise _fail(
            f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        ) from None
    if spec is None:
        raise _fail(f"No module named {name}")
    sys.argv[0] = spec.origin or name
    return _from_spec(spec, name)


def _file(name: str) -> tuple[CodeType, ModuleType]:
    """What a file, or a folder or zip file with a ``__main__.py``, runs."""
    import pkgutil

    if Path(name).is_dir() or Path(name).suffix in (".zip", ".pyz"):
        finder = pkgutil.get_importer(name)
        spec = None if finder is None else finder.find_spec("__main__", None)
        if spec is None:
            raise _fail(f"can't find '__main__' module in {name!r}")
        sys.path[0:0] = [name]
        return _from_spec(spec, name)
    try:
        source = Path(name).read_bytes()
    except OSError as error:
        raise _fail(f"can't open file {os.path.abspath(name)!r}: [Errno {error.errno}] {error.strerror}") from None
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(name).resolve().parent)
    module = _main_module(__file__=name, __cached__=None)
    return compile(source, name, "exec"), module


def _text(source: str, name: str) -> tuple[CodeType, ModuleType]:
    """What ``-c`` and the standard input run."""
    if sys.path and not sys.flags.safe_path:
        sys.path[0] = ""
    module = _main_module()
    return compile(source, name, "exec"), module


def _program(arguments: list[str]) -> tuple[CodeType, ModuleType]:
    """What the command line asks to run; ``sys.argv`` is then the program's."""
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c"):
        if not rest:
            raise _fail(f"argument expected for the {first} option\n{USAGE}")
        sys.argv = [first, *rest[1:]]
        return _module(rest[0]) if first == "-m" else _text(rest[0], "<string>")
    if first.startswith("-") and first != "-":
        raise _fail(f"unknown option {first}\n{USAGE}")
    sys.argv = [first, *rest]
    return _text(sys.stdin.read(), "<stdin>") if first == "-" else _file(first)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def main(arguments: list[str]) -> None:
    """Run a program.

    Args:
        arguments: The command line behind ``python -m rgrad.run``.

    Raises:
        SystemExit: The program has ended by it or by an exception, which was printed; or there is no such program.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        raise SystemExit(0 if arguments else 2)
    install()
    try:
        code, module = _program(arguments)
        exec(code, vars(module))
    except SystemExit:
        raise
    except BaseException as error:
        shown = _without_ours(error.__traceback__)
        error.__traceback__ = shown
        add_hint(error)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, shown
        sys.excepthook(type(error), error, shown)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1) from None


if __name__ == "__main__":
    main(sys.argv[1:])
