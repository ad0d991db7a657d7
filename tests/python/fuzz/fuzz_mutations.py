"""Changes of bytes: small ones anywhere, and ones that know where the parts of a pickle or of a JSON text are."""

from __future__ import annotations

import contextlib
import json
import pickletools
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

# Where counts, sizes and places go wrong.
EDGES = (0, 1, 2, 7, 63, 64, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32)
WIDE = (*EDGES, 10**15, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def flip(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def number(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice((*WIDE, len(data), max(0, len(data) - rng.randrange(64)))) % (1 << 8 * width)
    at = rng.randrange(max(1, len(data) - width + 1))
    return data[:at] + value.to_bytes(width, rng.choice(("little", "little", "big"))) + data[at + width :]


def _slice(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(rng.expovariate(0.05)) + 1)


def delete(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    start, end = _slice(rng, data)
    return data[:start] + data[end:]


def repeat(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    start, end = _slice(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50)) + data[end:]


def insert(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


def truncate(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    other = rng.choice(pool)
    start, end = _slice(rng, other)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at + rng.choice((0, end - start)) :]


BYTES: tuple[Mutation, ...] = (flip, flip, number, number, delete, repeat, insert, truncate, splice)


# ------------------------------------------------------------------------------------------------------------ pickles


def _steps(data: bytes) -> list[bytes]:
    """The opcodes of a pickle with their arguments, as far as it is one."""
    starts = []
    # What is broken further on is one last step.
    with contextlib.suppress(Exception):
        starts.extend(at for _, _, at in pickletools.genops(data) if at is not None)
    return [data[a:b] for a, b in pairwise([*starts, len(data)])] or [data]


# Opcodes that need no argument, among them those that `save` never writes.
_ALONE = [bytes([code]) for code in b"(012N)}]\x88\x89aesudtlbRoQ.\x81\x85\x86\x87\x8f\x90\x91\x92\x93\x94"]
# What calls what is at the top of the stack, or writes to it.
_WRITES = (
    b"}\x8c\x01aK\x01sb",
    b"N}\x8c\x01aK\x01s\x86b",
    b"K\x01a",
    b"(K\x01e",
    b"K\x00K\x01s",
    b"(K\x01\x90",
    b")R",
    b")\x81",
)


def steps(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Leave out, repeat, exchange, put in or take over whole opcodes."""
    parts = _steps(data)
    at = rng.randrange(len(parts))
    kind = rng.randrange(7)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(at, parts[at])
    elif kind == 2:
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    elif kind == 3:
        parts.insert(at, rng.choice(_ALONE))
    elif kind == 4:
        theirs = _steps(rng.choice(pool))
        start = rng.randrange(len(theirs))
        parts[at:at] = theirs[start : start + rng.randrange(1, 12)]
    elif kind == 5:
        parts[at : at + 1] = [parts[at]] * rng.choice((2, 30, 3000))
    else:
        parts[at] = parts[at][:1] + number(rng, parts[at][1:], pool) if len(parts[at]) > 1 else rng.choice(_ALONE)
    return b"".join(parts)


def writes(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Write to what has just been named, made or fetched, or call it."""
    parts = _steps(data)
    places = [
        n for n, part in enumerate(parts, 1) if part[:1] in (b"\x93", b"c", b"\x81", b"\x92", b"R", b"h", b"j", b"Q")
    ]
    at = rng.choice(places or [len(parts)])
    parts[at:at] = [rng.choice(_WRITES)]
    return b"".join(parts)


PICKLE: tuple[Mutation, ...] = (*[steps] * 4, *[writes] * 4, flip, number, delete, splice)


# --------------------------------------------------------------------------------------------------------------- JSON

_TEXTS = ("", "tensor", "param", "list", "dict", "odict", "object", "float32", "bool", "cpu", "meta", "nan", "0x1p9999")


def _value(rng: random.Random) -> Any:
    return rng.choice(
        (
            *(None, True, False, -1, 0.5, rng.choice(WIDE), -rng.choice(WIDE), rng.choice(_TEXTS), [], {}),
            *([rng.choice(WIDE)] * rng.randrange(4), {"a": rng.choice(EDGES)}, 10**30),
        )
    )


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        node = left.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        found.extend((node, key) for key in keys)
        left.extend(node[key] for key in keys)
    return found


def tree(rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Change one value of a JSON text."""
    try:
        root = json.loads(data)
        places = _places(root)
    except (ValueError, RecursionError):
        return flip(rng, data, pool)
    if not places:
        return flip(rng, data, pool)
    node, key = rng.choice(places)
    other, at = rng.choice(places)
    kind = rng.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1:
        # Not `other` itself: the text would have no end.
        node[key] = json.loads(json.dumps(other[at]))
    elif kind == 2 and isinstance(node, list):
        node.insert(key, _value(rng))
    elif kind == 3 and isinstance(node, list):
        node[key : key + 1] = [node[key]] * rng.choice((2, 3, 100))
    elif kind == 4:
        for _ in range(rng.choice((1, 2, 300))):
            node[key] = [rng.choice(_TEXTS), node[key]]
    else:
        node[key] = _value(rng)
    try:
        return json.dumps(root).encode()
    except RecursionError:
        return data


JSON: tuple[Mutation, ...] = (tree, tree, tree, *BYTES)
