"""Reads TensorBoard's event files, with the messages of whichever package wrote them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rgrad.utils.tensorboard._library import library


def records(file: Path) -> Iterator[bytes]:
    """The records of a file: length, its checksum, data, its checksum."""
    data = file.read_bytes()
    at = 0
    while at < len(data):
        (size,) = struct.unpack("<Q", data[at : at + 8])
        assert at + 16 + size <= len(data), "the file ends within a record"
        yield data[at + 12 : at + 12 + size]
        at += 16 + size


def events(folder: Path | str) -> list[Any]:
    """The events of all files of a folder, not of folders in it; the first of each file, its version, is left out."""
    found = []
    for file in sorted(Path(folder).glob("events.out.tfevents.*")):
        first, *others = [library().event.Event.FromString(record) for record in records(file)]
        assert first.file_version == "brain.Event:2"
        found += others
    return found


def values(folder: Path | str) -> dict[str, list[tuple[int, Any]]]:
    """By tag the steps and values that were written."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for event in events(folder):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value))
    return found
