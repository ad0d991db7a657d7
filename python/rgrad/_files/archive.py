"""Zip archives without compression: what ``save`` writes.

``zipfile`` could write them too, but it computes a checksum several times slower than a disk reads, writes the head of
every entry twice and reads each byte through two buffers. Format: PKWARE's APPNOTE.TXT, versions 2.0 and, with entries
or archives of 4 GiB and more or 65,535 entries and more, 4.5 (zip64).
"""

from __future__ import annotations

import struct
from types import TracebackType
from typing import IO

from .. import _core

# Sizes, offsets and counts from here on are written in zip64's records, and these values in their place.
LIMIT_32 = 0xFFFFFFFF
LIMIT_16 = 0xFFFF

# The bytes of entries begin at multiples of this, so that maps of a file are aligned for every dtype.
ALIGNMENT = 64

# 1 January 1980, the first day that archives know: equal content gives equal files.
_DATE = 0x0021


def _flags(called: bytes) -> int:
    """What an entry's head says of its name: whether it is UTF-8."""
    return 0 if called.isascii() else 0x0800


class StoredArchive:
    """Writes entries one after the other to a binary file, which need not seek; leaving the block ends the archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._place = 0
        # Name, checksum, size and place of every entry.
        self._entries: list[tuple[bytes, int, int, int]] = []

    def add(self, name: str, data: bytes | memoryview) -> None:
        """An entry with bytes that lie in one piece."""
        view = memoryview(data).cast("B")
        entry = (name.encode(), _core._crc32(view), len(view), self._place)
        self._entries.append(entry)
        called, checksum, size, _ = entry
        large = size >= LIMIT_32
        extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        padding = -(self._place + 34 + len(called) + len(extra)) % ALIGNMENT
        # PyTorch's id for padding.
        extra += struct.pack("<2sH", b"FB", padding) + bytes(padding)
        shown = LIMIT_32 if large else size
        head = (45 if large else 20, _flags(called), 0, 0, _DATE, checksum, shown, shown, len(called), len(extra))
        self._write(struct.pack("<4s5H3I2H", b"PK\x03\x04", *head) + called + extra)
        self._write(view)

    def __enter__(self) -> StoredArchive:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._end()

    def _write(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        self._place += len(left)
        while left:
            written = self._file.write(left)
            # Files of Python's own take all; those without a buffer may take a part, others may say nothing.
            left = left[len(left) if written is None else written :]

    def _end(self) -> None:
        start = self._place
        self._write(b"".join(_directory_entry(*entry) for entry in self._entries))
        size, count = self._place - start, len(self._entries)
        if count >= LIMIT_16 or size >= LIMIT_32 or start >= LIMIT_32:
            record = (44, 45, 45, 0, 0, count, count, size, start)
            at = self._place
            self._write(struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", *record))
            self._write(struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1))
        short = min(count, LIMIT_16)
        self._write(
            struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, short, short, min(size, LIMIT_32), min(start, LIMIT_32), 0)
        )
        self._file.flush()


def _directory_entry(called: bytes, checksum: int, size: int, place: int) -> bytes:
    wide = ([size, size] if size >= LIMIT_32 else []) + ([place] if place >= LIMIT_32 else [])
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    shown, version = min(size, LIMIT_32), 45 if wide else 20
    # Made by Unix (3), a file that its owner reads and writes.
    head = (version, 3, version, _flags(called), 0, 0, _DATE, checksum, shown, shown, len(called), len(extra), 0, 0, 0)
    return struct.pack("<4s2B5H3I5HII", b"PK\x01\x02", *head, 0o600 << 16, min(place, LIMIT_32)) + called + extra
