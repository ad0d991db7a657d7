"""Print the bytes of machine code in an ELF file, by family: reductions, casts, the Python layer, and so on.

    python scripts/code_size.py FILE                 # needs symbols: build with CARGO_PROFILE_SHIPPED_STRIP=none
    python scripts/code_size.py FILE --max-mb 16     # exits with 1 if it has more than 16 MB (10^6 bytes) when stripped
    python scripts/code_size.py FILE --largest 20    # and the functions that take most, all instances of one together

A function belongs to the module of the project that its symbol names first. Rust's older symbol names leave out what a
generic function was made for: those of the standard library and of other crates count there, whoever uses them. The
size of the file is that of its loaded sections, which is what stripping leaves. Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

# Rooms under src/ that are families of their own. Of `backend::cpu` each module is one.
ROOMS = {
    "backend::wgpu": "wgpu",
    "layout": "layout",
    "rows": "rows",
    "host": "host",
    "simd": "simd",
    "call": "call",
    "program": "program",
    "array": "array",
    "autograd": "autograd",
    "ops": "ops",
    "python": "python layer",
}
# Other crates that belong to a family, by the beginnings of their names.
CRATES = {"cpu matmul": ("gemm",), "python layer": ("pyo3", "numpy")}

OUTSIDE = "std and dependencies"
REST = "rest"


class NotElf(Exception):
    """The file cannot be read as an ELF file of 64 bits."""


class Section(NamedTuple):
    """One section's header."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    entry: int


class Elf(NamedTuple):
    """What is asked of a file: the bytes that stripping leaves, and name and size of each function."""

    stripped: int
    functions: list[tuple[str, int]]


SYMTAB, NOBITS, ALLOC, FUNCTION = 2, 8, 2, 2


def read_elf(data: bytes) -> Elf:
    """Sections and functions of an ELF file of 64 bits."""
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4] != 2:
        raise NotElf("not an ELF file of 64 bits")
    order = "<" if data[5] == 1 else ">"
    (table,) = struct.unpack_from(order + "Q", data, 40)
    width, count = struct.unpack_from(order + "HH", data, 58)
    sections = []
    for i in range(count):
        _, kind, flags, _, offset, size, link, _, _, entry = struct.unpack_from(
            order + "IIQQQQIIQQ", data, table + i * width
        )
        sections.append(Section(kind, flags, offset, size, link, entry))
    loaded = [s for s in sections if s.flags & ALLOC and s.kind != NOBITS]
    stripped = max((s.offset + s.size for s in loaded), default=0) + count * width
    functions = {}
    for s in sections:
        if s.kind != SYMTAB:
            continue
        names = sections[s.link]
        for at in range(s.offset, s.offset + s.size, s.entry):
            name, info, _, section, value, size = struct.unpack_from(order + "IBBHQQ", data, at)
            if info & 15 == FUNCTION and section != 0 and size > 0:
                start = names.offset + name
                text = data[start : data.index(b"\0", start)].decode(errors="replace")
                # Several names of one place count once.
                functions[value] = (text, size)
    return Elf(min(stripped, len(data)), list(functions.values()))


ESCAPES = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "LP": "(", "RP": ")", "C": ",", "SP": "@"}


def readable(symbol: str) -> str:
    """The path in a Rust symbol, without the hash; of Rust's newer symbols the identifiers; others as they are."""
    if symbol.startswith("_R"):
        return "::".join(identifiers(symbol[2:]))
    if not symbol.startswith("_ZN"):
        return symbol
    at, parts = 3, []
    while number := re.match(r"\d+", symbol[at:]):
        begin = at + number.end()
        at = begin + int(number.group())
        parts.append(symbol[begin:at])
    if parts and re.fullmatch(r"h[0-9a-f]{16}", parts[-1]):
        parts.pop()
    text = "::".join(p.removeprefix("_") if p.startswith("_$") else p for p in parts)
    text = re.sub(r"\$u([0-9a-f]+)\$", lambda m: chr(int(m.group(1), 16)), text)
    return re.sub(r"\$(\w+)\$", lambda m: ESCAPES.get(m.group(1), m.group()), text).replace("..", "::")


def identifiers(text: str) -> list[str]:
    """The identifiers of a symbol in Rust's newer form, in their order, without the hashes of crates."""
    found, at = [], 0
    while at < len(text):
        # The hash of a crate, or a reference to what stood before.
        if skipped := re.match(r"(Cs|B)[0-9a-zA-Z]*_", text[at:]):
            at += skipped.end()
        if number := re.match(r"(\d+)_?", text[at:]):
            begin = at + number.end()
            at = begin + int(number.group(1))
            found.append(text[begin:at])
        else:
            at += 1
    return found


def family(name: str) -> str:
    """The family of a function with this readable name."""
    if path := re.search(r"\brgrad(?:_kernels)?::((?:\w+(?:::)?)+)", name):
        inside = path.group(1) + "::"
        if kernel := re.match(r"backend::cpu::(\w+)", inside):
            return f"cpu {kernel.group(1)}"
        return next((found for room, found in ROOMS.items() if inside.startswith(room + "::")), REST)
    crate = re.search(r"[A-Za-z]\w*", name)
    for found, beginnings in CRATES.items():
        if crate and crate.group().startswith(beginnings):
            return found
    return OUTSIDE


def by_family(functions: list[tuple[str, int]]) -> Counter[str]:
    """Bytes of each family."""
    sizes: Counter[str] = Counter()
    for symbol, size in functions:
        sizes[family(readable(symbol))] += size
    return sizes


def main(arguments: list[str] | None = None) -> int:
    """Read the file, print the table, and say whether the file is small enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="a module or library in ELF format")
    parser.add_argument("--max-mb", type=float, help="the most megabytes that it may have when stripped")
    parser.add_argument("--largest", type=int, default=0, help="how many of the largest functions to print")
    options = parser.parse_args(arguments)
    try:
        elf = read_elf(options.file.read_bytes())
    except (OSError, NotElf, struct.error) as e:
        print(f"code_size: {options.file}: {e}", file=sys.stderr)
        return 2
    if elf.functions:
        sizes = by_family(elf.functions)
        for name, size in [*sizes.most_common(), ("all code", sizes.total())]:
            print(f"{size / 1e6:9.3f} MB  {name}")
        names: Counter[str] = Counter()
        for symbol, size in elf.functions:
            names[readable(symbol)] += size
        for name, size in names.most_common(options.largest):
            print(f"{size:10d}  {name}")
    else:
        hint = "build with CARGO_PROFILE_SHIPPED_STRIP=none to see families"
        print(f"code_size: {options.file} has no symbols; {hint}", file=sys.stderr)
        if options.max_mb is None:
            return 2
    print(f"{elf.stripped / 1e6:9.3f} MB  the file, stripped")
    if options.max_mb is not None and elf.stripped > options.max_mb * 1e6:
        print(f"code_size: more than the {options.max_mb:g} MB that it may have", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
