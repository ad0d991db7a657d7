"""The readers of bytes, each with what it may answer to any input: a value, or one of the errors that it documents."""

from __future__ import annotations

import io
import math
import pickle
import re
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fuzz_corpus as corpus
import rgrad
from fuzz_corpus import Kept, Pair, Plain, Row, Slots, in_archive, in_torch_archive
from fuzz_mutations import BYTES, JSON, PICKLE, Mutation
from rgrad import nn, serialization
from rgrad._files.rebuild import NotHere
from rgrad.distributed import checkpoint
from rgrad.vision import datasets


class Finding(AssertionError):
    """A reader has answered what it must not answer."""


class Target(NamedTuple):
    """A reader."""

    corpus: Callable[[], list[bytes]]
    mutations: Sequence[Mutation]
    #: Reads; returns what was read, for the report.
    run: Callable[[bytes], Any]
    #: The errors that it documents.
    errors: tuple[type[BaseException], ...]


_DOCUMENTED = (RuntimeError, EOFError, pickle.UnpicklingError)
_KINDS = ("u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", ">i4", ">f8", "u2")


def _file(data: bytes) -> Path:
    """A file with this content, always the same one."""
    path = Path(tempfile.gettempdir()) / "input"
    path.write_bytes(data)
    return path


def _tensors(value: Any) -> Iterator[rgrad.Tensor]:
    left, seen = [value], set()
    while left:
        entry = left.pop()
        if id(entry) in seen:
            continue
        seen.add(id(entry))
        if isinstance(entry, rgrad.Tensor):
            yield entry
        elif isinstance(entry, dict):
            left += [*entry.keys(), *entry.values()]
        elif isinstance(entry, (list, tuple, set, frozenset)):
            left += entry


def _is_large(shape: Sequence[int]) -> bool:
    """Whether it has too many elements or rows to look at. Rows without elements count, too."""
    return math.prod(max(1, size) for size in shape) > 100_000


def _looked_at(value: Any) -> str:
    """Read every element, as far as there are not too many of them."""
    for tensor in _tensors(value):
        if tensor.device.type == "cpu" and not _is_large(tensor.shape):
            tensor.tolist()
            tensor.sum()
    return type(value).__name__


def archive(data: bytes) -> str:
    if zlib.crc32(data) % 4 == 0:
        # Mapped, too.
        return _looked_at(rgrad.load(_file(data), mmap=True))
    try:
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    except ValueError as error:
        if not str(error).startswith("Expected input to be a checkpoint"):
            raise
    return _looked_at(rgrad.load(io.BytesIO(data)))


def header(data: bytes) -> str:
    return _looked_at(rgrad.load(io.BytesIO(in_archive(data, objects=(b"\x80\x04]."[: 4 * (len(data) % 2)],)))))


_ALLOWED: list[Any] = [Plain, Slots, Row, Pair, Kept, nn.Sequential, nn.ReLU, nn.Tanh]
_OBJECT = (
    b'{"format": "rgrad", "version": 3, "tensors": [{"dtype": "float32", "shape": [2]}], "views": [0], '
    b'"obj": ["object", 0, "x"]}'
)


def _shared() -> list[Any]:
    """What belongs to everybody, and no file may change."""
    Kept()
    kinds = [*_ALLOWED, Kept.one, rgrad.Tensor, nn.Parameter, rgrad.Size]
    return [(id(vars(kind)) if isinstance(kind, Plain) else 0, dict(vars(kind))) for kind in kinds]


def _unpickled(data: bytes) -> str:
    return _read_alone(in_archive(_OBJECT, objects=(data,)))


def _read_alone(file: bytes) -> str:
    before = _shared()
    try:
        return _looked_at(rgrad.load(io.BytesIO(file)))
    finally:
        if _shared() != before:
            raise Finding("the pickle has changed a class, or an object that was there before")


def torch_pickle(data: bytes) -> str:
    return _read_alone(in_torch_archive(data))


def torch_pickle_of_allowed_classes(data: bytes) -> str:
    with serialization.safe_globals(_ALLOWED):
        return torch_pickle(data)


def checkpoint_metadata(data: bytes) -> str:
    """What names the tensors of a checkpoint; nothing else is in its folder, which is always the same one."""
    folder = Path(tempfile.gettempdir()) / "folder"
    folder.mkdir(exist_ok=True)
    (folder / ".metadata").write_bytes(data)
    try:
        metadata = checkpoint.FileSystemReader(folder).read_metadata()
    except RuntimeError as error:
        # The reason alone tells one input from another.
        raise RuntimeError(str(error).partition("it is damaged")[2]) from error
    state = {name: rgrad.zeros(2, 3) for name in list(metadata.state_dict_metadata)[:3]}
    try:
        checkpoint.load(state, checkpoint_id=folder, no_dist=True)
    except checkpoint.CheckpointException as error:
        failures = {type(failure).__name__ for failure, _ in error.failures.values()}
        if not failures <= {"FileNotFoundError", "RuntimeError", "ValueError"}:
            raise Finding(str(error)) from error
        return f"{len(metadata.state_dict_metadata)} entries, {failures}"
    return f"{len(metadata.state_dict_metadata)} entries"


def first_form(data: bytes) -> str:
    return _read_alone(data)


def safetensors(data: bytes) -> str:
    path = Path(tempfile.gettempdir()) / "input.safetensors"
    path.write_bytes(data)
    return _looked_at(rgrad.load(path))


def pickle_of_default_classes(data: bytes) -> str:
    return _unpickled(data)


def pickle_of_allowed_classes(data: bytes) -> str:
    with serialization.safe_globals(_ALLOWED):
        return _unpickled(data)


def idx(data: bytes) -> str:
    read = datasets.read_idx(_file(data))
    if read.numel() > 2000 * len(data):
        raise Finding(f"{read.numel()} elements from {len(data)} bytes")
    return str(read.dtype)


def arrays(data: bytes) -> str:
    """NumPy checks that the array lies in its bytes; whatever passes is what the tensor must have."""
    kind, rank, offset = struct.unpack_from("<BBH", data)
    numbers = struct.unpack_from(f"<{2 * (rank % 8)}h", data, 4)
    # NumPy takes negative sizes without a word, and reads behind the bytes then.
    sizes, strides = [abs(size) for size in numbers[: rank % 8]], numbers[rank % 8 :]
    memory = bytearray(data[4 + 2 * len(numbers) :])
    if kind & 0x40:
        memory = bytes(memory)  # type: ignore[assignment]
    if kind & 0x80:
        found = np.frombuffer(memory, _KINDS[kind % len(_KINDS)], *numbers[:1], offset)
    else:
        found = np.ndarray(sizes, _KINDS[kind % len(_KINDS)], memory, offset, strides)
    if _is_large(found.shape):
        return "large"
    for make in (rgrad.from_numpy, rgrad.as_tensor, rgrad.tensor, rgrad.asarray):
        made = make(found)
        if tuple(made.shape) != found.shape or not _same(made.tolist(), found.tolist()):
            raise Finding(f"{make.__name__} gives {made!r} for {found!r}")
        if found.dtype == bool:
            # Bytes other than 0 and 1 are true, too, and none of them counts twice.
            numbers = rgrad.arange(found.size).reshape(made.shape)[made]
            if numbers.numel() != sum(map(bool, found.flat)) or rgrad.nonzero(made).shape[0] != numbers.numel():
                raise Finding(f"{numbers!r} are the places of {made!r}")
        made.sum()
    return str(found.dtype)


def _same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)


def state(data: bytes) -> str:
    generator = rgrad.Generator()
    generator.set_state(rgrad.from_numpy(np.frombuffer(bytearray(data), np.uint8)))
    rgrad.rand(5, generator=generator)
    rgrad.randperm(5, generator=generator)
    again = rgrad.Generator()
    again.set_state(generator.get_state())
    if rgrad.randn(3, generator=again).tolist() != rgrad.randn(3, generator=generator).tolist():
        raise Finding("a state gives other numbers when it is set again")
    return "state"


# They are RuntimeErrors, but no answer to broken input.
_NEVER = (RecursionError, NotImplementedError, rgrad.OutOfMemoryError)
_OF_CLASSES = (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError)

TARGETS: dict[str, Target] = {
    "archive": Target(corpus.archives, BYTES, archive, _DOCUMENTED),
    "header": Target(corpus.headers, JSON, header, _DOCUMENTED),
    "pickle": Target(corpus.pickles, PICKLE, pickle_of_default_classes, _DOCUMENTED),
    "pickle-allowed": Target(corpus.pickles, PICKLE, pickle_of_allowed_classes, (*_DOCUMENTED, *_OF_CLASSES)),
    "torch-pickle": Target(corpus.torch_pickles, PICKLE, torch_pickle, _DOCUMENTED),
    "torch-pickle-allowed": Target(
        corpus.torch_pickles, PICKLE, torch_pickle_of_allowed_classes, (*_DOCUMENTED, *_OF_CLASSES)
    ),
    "checkpoint": Target(corpus.checkpoints, PICKLE, checkpoint_metadata, _DOCUMENTED),
    "first-form": Target(corpus.first_forms, BYTES, first_form, _DOCUMENTED),
    "safetensors": Target(corpus.safetensors, BYTES, safetensors, _DOCUMENTED),
    "idx": Target(corpus.idx_files, BYTES, idx, (ValueError,)),
    "arrays": Target(corpus.arrays, BYTES, arrays, (struct.error, ValueError, TypeError, RuntimeError)),
    "state": Target(corpus.states, BYTES, state, (TypeError, RuntimeError)),
}


def outcome(target: Target, data: bytes) -> str:
    """What a reader has answered, without numbers.

    Raises:
        Exception: What it must not answer.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f"read {target.run(data)}"
        except target.errors as error:
            if isinstance(error, _NEVER) and not isinstance(error, NotHere):
                raise
            said = re.sub(r"<.*? at 0x[0-9a-f]+>|[^ -~]|[0-9]", "", str(error)[:200])
            return f"{type(error).__name__}: {said[:80]}"
