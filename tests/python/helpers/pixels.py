"""Reads pictures."""

from __future__ import annotations

import struct
import zlib


def pixels(data: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, channels and bytes of a PNG without filters; checks all of its sums."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    raw = zlib.decompress(chunks[b"IDAT"])
    row = width * channels + 1
    assert len(raw) == row * height
    assert set(raw[::row]) == {0}
    return width, height, channels, b"".join(raw[i + 1 : i + row] for i in range(0, len(raw), row))
