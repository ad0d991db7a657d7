"""PNG files of 8 bits per channel, with the standard library alone."""

import struct
import zlib

# Colour types of the format by number of channels.
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def encode(pixels: bytes, width: int, height: int, channels: int) -> bytes:
    """The file of an image.

    Args:
        pixels: Bytes in rows from the top, channels last.
        width: In pixels, at least 1.
        height: In pixels, at least 1.
        channels: 1 (grey), 2 (grey and opacity), 3 (RGB) or 4 (RGB and opacity).

    Raises:
        ValueError: The sizes do not agree, or one is not possible.
    """
    if channels not in _COLOUR_TYPES:
        raise ValueError(f"got an image of {channels} channels, expected 1, 2, 3 or 4")
    if width < 1 or height < 1 or len(pixels) != width * height * channels:
        raise ValueError(f"got {len(pixels)} bytes for an image of {width} x {height} pixels of {channels} channels")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = width * channels
    # Every row begins with the number of its filter; 0 is none.
    lines = b"".join(b"\0" + pixels[i * row : (i + 1) * row] for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(lines, 9)),
            chunk(b"IEND", b""),
        )
    )
