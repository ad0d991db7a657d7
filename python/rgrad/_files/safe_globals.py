"""Which classes and functions ``load`` may use for pickled objects of files that are not trusted."""

from __future__ import annotations

import os
import pickle
import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Container, Iterable, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import IO, Any

from .archive_reader import DATA, as_damage, folder_of, reading
from .default_globals import DEFAULT
from .torch_names import name_here, torch_name

Global = Callable[..., Any] | tuple[Callable[..., Any], str]

# Nothing of these is ever allowed, whoever asks for it.
_NEVER = ("sys", "os", "posix", "nt")

# What `add_safe_globals` has allowed, for the process.
_marked: set[Any] = set()
# What the blocks around have allowed. Threads and signal handlers do not see each other's blocks.
_blocks: ContextVar[tuple[tuple[Any, ...], ...]] = ContextVar("safe_globals", default=())


def add_safe_globals(safe_globals: list[Global]) -> None:
    """Let ``load`` use classes and functions for the objects of files that it reads without ``weights_only=False``.

    Args:
        safe_globals: Classes and functions that may be called, or pairs of one and the full name that it has in files;
            the default is ``module.qualname``. Allow only what may run with any arguments.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> rgrad.save(rgrad.nn.ReLU(), file)
        >>> rgrad.serialization.add_safe_globals([rgrad.nn.ReLU])
        >>> _ = file.seek(0)
        >>> rgrad.load(file)
        ReLU()
        >>> rgrad.serialization.clear_safe_globals()
    """
    _marked.update(set(safe_globals))


def get_safe_globals() -> list[Global]:
    """The classes and functions that were allowed by `add_safe_globals`, and are by `safe_globals`.

    Example:
        >>> with rgrad.serialization.safe_globals([rgrad.nn.ReLU]):
        ...     rgrad.serialization.get_safe_globals()
        [<class 'rgrad.nn.modules.activation.ReLU'>]
    """
    return list({*_marked, *(entry for block in _blocks.get() for entry in block)})


def clear_safe_globals() -> None:
    """Allow nothing any more but what is allowed by default, also in the blocks of `safe_globals` around.

    Example:
        >>> rgrad.serialization.clear_safe_globals()
        >>> rgrad.serialization.get_safe_globals()
        []
    """
    _marked.clear()
    _blocks.set(())


class safe_globals:
    """A block in which ``load`` may use classes and functions, as after `add_safe_globals`.

    It holds for the thread that runs it, and not for other threads at that time.

    Args:
        safe_globals: Classes and functions, or pairs of one and its full name in files.

    Example:
        >>> with rgrad.serialization.safe_globals([rgrad.nn.ReLU]):
        ...     len(rgrad.serialization.get_safe_globals())
        1
    """

    def __init__(self, safe_globals: list[Global]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._block = tuple(self.safe_globals)
        hash(self._block)  # what cannot be looked up is an error here
        _blocks.set((*_blocks.get(), self._block))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        # Not a reset to what was before: `clear_safe_globals` in the block is to last.
        left = list(_blocks.get())
        for place in reversed(range(len(left))):
            if left[place] is self._block:
                del left[place]
                break
        _blocks.set(tuple(left))


def allowed() -> dict[str, Any]:
    """What may be used, by its full name in files.

    Raises:
        ValueError: A tuple was added that is no pair.
        TypeError: The name in a pair is no string.
    """
    found = dict(DEFAULT)
    for entry in get_safe_globals():
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), "
                    f"but got tuple of length: {len(entry)}"
                )
            if type(entry[1]) is not str:
                raise TypeError(
                    f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}"
                )
            found[entry[1]] = entry[0]
        else:
            module, name = str(entry.__module__), entry.__qualname__
            found[f"{module}.{name}"] = entry
            # Files have PyTorch's names of what is PyTorch's.
            found[".".join(torch_name(module, name))] = entry
    return found


def find(module: str, name: str, permitted: Mapping[str, Any]) -> Any:
    """The class or function of a name in a pickle, if it is among those permitted.

    Raises:
        Exception: ``pickle.UnpicklingError``: it is not.
    """
    full = f"{module}.{name}"
    if module.partition(".")[0] in _NEVER:
        raise pickle.UnpicklingError(
            f"Weights only load failed: trying to load unsupported GLOBAL {full} whose module {module} is blocked."
        )
    if full not in permitted:
        raise pickle.UnpicklingError(f"Weights only load failed: {not_allowed(full)}")
    return permitted[full]


def not_allowed(full: str) -> str:
    """What a message says of a name that is not allowed."""
    full = full.removeprefix("builtins.") or full
    here = ".".join(name_here(*full.rpartition(".")[::2])).removeprefix(".")
    return (
        f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`rgrad.serialization.add_safe_globals([{here}])` or the `rgrad.serialization.safe_globals([{here}])` "
        "context manager to allowlist this global if you trust this class/function."
    )


def named(pickles: Iterable[bytes | bytearray]) -> set[str]:
    """The full names of all classes and functions that pickles name, found without running them."""
    found: set[str] = set()
    for written in pickles:
        pushed: list[str | None] = []
        memo: list[str | None] = []
        for operation, given, _ in pickletools.genops(written):
            value: Any = given
            match operation.name:
                case "MEMOIZE":
                    memo.append(pushed[-1] if pushed else None)
                case "BINGET" | "LONG_BINGET":
                    pushed.append(memo[value] if value < len(memo) else None)
                case "GLOBAL":
                    module, _, name = value.partition(" ")
                    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
                    found.add(f"{module}.{name}")
                    pushed.append(None)
                case "STACK_GLOBAL":
                    module, name = (pushed[-2:] + [None, None])[:2]
                    found.add(f"{module}.{name}")
                    pushed.append(None)
                case _:
                    pushed.append(value if isinstance(value, str) else None)
    return found


def unsafe(pickles: Iterable[bytes | bytearray], permitted: Container[str]) -> list[str]:
    """The full names in pickles that are not among those permitted."""
    return sorted(name for name in named(pickles) if name not in permitted)


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | IO[bytes]) -> list[str]:
    """The full names of classes and functions in a file that ``load`` does not use unless they are allowed.

    They are the names that the file has: those of PyTorch's classes are PyTorch's. Nothing of the file is run.

    Args:
        f: Path or seekable binary file.

    Raises:
        ValueError: The file is no archive.
        RuntimeError: It is damaged.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> rgrad.save({"layer": rgrad.nn.ReLU(), "weight": rgrad.ones(2)}, file)
        >>> rgrad.serialization.get_unsafe_globals_in_checkpoint(file)
        ['torch.nn.modules.activation.ReLU']
    """
    import zipfile

    if not zipfile.is_zipfile(f):
        raise ValueError("Expected input to be a checkpoint returned by rgrad.save")
    permitted = allowed()
    with reading(f) as archive, as_damage(archive.name):
        folder = folder_of(archive.names())
        pickles = archive.objects() if folder is None else [archive.read(f"{folder}{DATA}")]
        return unsafe(pickles, permitted)
