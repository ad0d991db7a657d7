"""Reading the zip archives of ``save`` and PyTorch: each byte once, and nothing that the archive only claims.

Whoever makes a file chooses all its numbers. So an entry must lie in the file, apart from the others and without
compression, before memory is asked for: what is read takes no more than the file has.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import struct
import zipfile
from collections.abc import Iterator
from typing import IO, Any, cast

from .. import _core

HEADER = "header.json"
#: The pickle in files of PyTorch.
DATA = "data.pkl"

#: The most bytes of a header. Its text takes many times as much memory as Python objects.
MOST_HEADER = 1 << 30

File = str | os.PathLike[str] | IO[bytes]


class NoArchive(RuntimeError):
    """A file does not begin as an archive does."""


class Theirs(Exception):
    """Carries an exception of a class or function of the user out of `as_damage`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextlib.contextmanager
def as_damage(name: Any) -> Iterator[None]:
    """What goes wrong with the content of a file is a RuntimeError that says so.

    Raises:
        RuntimeError: Something was wrong.
        Exception: What no content causes (of the system, a lack of memory), and what `Theirs` carries.
    """
    import pickle

    try:
        yield
    except Theirs as carried:
        raise carried.error from carried.error.__cause__
    except (OSError, MemoryError, pickle.UnpicklingError):
        raise
    except Exception as error:
        # RuntimeErrors are zipfile's, too: of encryption, say.
        if isinstance(error, RuntimeError) and str(error).startswith("load:"):
            raise
        raise RuntimeError(f"load: {name} is damaged: {type(error).__name__}: {error}") from error


def name_of(f: File) -> Any:
    """What messages call a file."""
    return os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", f)


@contextlib.contextmanager
def reading(f: File, writable: bool = False) -> Iterator[ArchiveReader]:
    """The archive in a file.

    Args:
        f: Path or seekable binary file.
        writable: Open a path for writing, too, as a shared map needs it.

    Raises:
        EOFError: The file is empty.
        RuntimeError: It is no archive, or is damaged.
        OSError: It cannot be read.
    """
    name = name_of(f)
    with contextlib.ExitStack() as stack:
        file: Any = f
        if isinstance(f, (str, os.PathLike)):
            file = stack.enter_context(open(f, "r+b" if writable else "rb"))
        try:
            archive = stack.enter_context(zipfile.ZipFile(file))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error) as error:
            raise _no_archive(file, name, error) from None
        except OSError as error:
            # Places before the start of the file.
            if error.errno != errno.EINVAL:
                raise
            raise _no_archive(file, name, error) from None
        with as_damage(name):
            reader = ArchiveReader(archive, name)
        yield reader


def _no_archive(file: Any, name: Any, error: Exception) -> Exception:
    file.seek(0)
    start = file.read(4)
    if not start:
        return EOFError(f"load: {name} is empty")
    if start == b"PK\x03\x04":
        return RuntimeError(
            f"load: {name} is damaged: failed reading zip archive: failed finding central directory; the end of "
            "the file is missing, as after an interrupted copy"
        )
    return NoArchive(f"load: {name} is not a file written by save ({error})")


class ArchiveReader:
    """The entries of an archive.

    Args:
        archive: The archive, which stays open.
        name: What messages call its file.

    Raises:
        ValueError: Entries have one name, or do not lie in the file, each apart from the others.
    """

    def __init__(self, archive: zipfile.ZipFile, name: Any) -> None:
        self.name = name
        self._archive = archive
        #: The archive's file.
        self.file = cast(Any, archive.fp)
        entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
        self.file.seek(0, os.SEEK_END)
        ends = [entry.header_offset for entry in entries[1:]] + [self.file.tell()]
        self._entries: dict[str, tuple[zipfile.ZipInfo, int]] = {}
        for entry, end in zip(entries, ends, strict=True):
            if entry.filename in self._entries:
                raise ValueError(f"there are two entries {entry.filename!r}")
            if entry.header_offset < 0 or min(entry.compress_size, entry.file_size) < 0:
                raise ValueError(f"{entry.filename!r} has a negative place or size")
            # The head of an entry takes 30 bytes and more.
            if entry.header_offset + 30 + entry.compress_size > end:
                raise ValueError(
                    f"{entry.filename!r} has {entry.compress_size} bytes from byte {entry.header_offset} on, but the "
                    f"next entry or the end of the file is at {end}"
                )
            self._entries[entry.filename] = entry, end

    def names(self) -> list[str]:
        """The names of all entries."""
        return list(self._entries)

    def _entry(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        if name not in self._entries:
            raise ValueError(f"there is no entry {name!r}")
        entry, end = self._entries[name]
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError(
                f"{name!r} is compressed, {entry.compress_size} bytes for {entry.file_size}; expected it as it is"
            )
        return entry, end

    def size(self, name: str) -> int:
        """The bytes of an entry, which the file has."""
        return self._entry(name)[0].file_size

    def place(self, name: str) -> int:
        """Where the bytes of an entry begin in the file."""
        entry, end = self._entry(name)
        with self._archive.open(entry):
            # It has checked the entry's own head, which has lengths of name and of extra data at byte 26.
            self.file.seek(entry.header_offset + 26)
            lengths = (int.from_bytes(self.file.read(2), "little") for _ in range(2))
            place = entry.header_offset + 30 + sum(lengths)
        if place + entry.file_size > end:
            raise ValueError(f"{name!r} reaches into the next entry, or ends behind the file")
        return place

    def fill(self, name: str, target: memoryview) -> None:
        """Read an entry of the size of the target into it; ``archive.open`` would copy each byte twice more.

        Raises:
            EOFError: The file ends before.
            ValueError: The checksum is another one.
        """
        self.file.seek(self.place(name))
        done = 0
        while done < len(target):
            # Signals are heard between the parts.
            part = target[done : done + (1 << 24)]
            got = self.file.readinto(part) if hasattr(self.file, "readinto") else _copied(self.file, part)
            if not got:
                raise EOFError(f"{name} ends after {done} of {len(target)} bytes")
            done += got
        if _core._crc32(target) != self._entry(name)[0].CRC:
            raise ValueError(f"{name} has another checksum than the archive says")

    def read(self, name: str) -> bytearray:
        """The bytes of an entry."""
        found = bytearray(self.size(name))
        self.fill(name, memoryview(found))
        return found

    def header(self) -> Any:
        """What describes the rest.

        Raises:
            RuntimeError: There is none.
            ValueError: It is larger than those that `save` writes, or no JSON.
        """
        if HEADER not in self._entries:
            raise RuntimeError(
                f"load: {self.name} is not a file written by save: got a zip archive without {DATA} and {HEADER}"
            )
        if self.size(HEADER) > MOST_HEADER:
            raise ValueError(f"{HEADER} has {self.size(HEADER)} bytes, expected at most {MOST_HEADER}")
        return json.loads(self.read(HEADER).decode())

    def objects(self) -> list[bytearray]:
        """All pickles, in the order of their numbers."""
        count = sum(name.startswith("objects/") for name in self._entries)
        return [self.read(f"objects/{number}") for number in range(count)]


def _copied(file: Any, target: memoryview) -> int:
    data = file.read(len(target))
    target[: len(data)] = data
    return len(data)


def folder_of(names: list[str]) -> str | None:
    """The folder of the entries of a file of PyTorch; None if it is none."""
    for name in names:
        folder, _, last = name.rpartition("/")
        if last == DATA and "/" not in folder:
            return folder + "/" if folder else ""
    return None
