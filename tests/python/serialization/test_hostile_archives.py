"""Archives that claim what is not so: sizes, places, names. No memory is asked for on their word."""

from __future__ import annotations

import io
import json
import resource
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rgrad import serialization
from rgrad._files.archive import StoredArchive


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    """More than these files need, and much less than they claim."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 29), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def header(*tensors: Any, obj: Any = None, views: Any = None) -> bytes:
    count = list(range(len(tensors)))
    made = {"format": "rgrad", "version": 2, "tensors": list(tensors), "views": count if views is None else views}
    return json.dumps({**made, "obj": ["list", *[["tensor", n] for n in count]] if obj is None else obj}).encode()


def stored(content: dict[str, bytes]) -> bytearray:
    file = io.BytesIO()
    with StoredArchive(file) as out:
        for name, data in content.items():
            out.add(name, data)
    return bytearray(file.getvalue())


def refused(data: bytes, words: str = "is damaged") -> None:
    with pytest.raises(RuntimeError, match=r"^load: ") as caught:
        rgrad.load(io.BytesIO(data))
    assert words in str(caught.value)


FLOATS = {"dtype": "float32", "shape": [4]}
GOOD = {"header.json": header(FLOATS), "tensors/0": bytes(16)}


def directory(data: bytes, name: bytes) -> int:
    """Where the directory's entry of a name begins."""
    at = -1
    while (at := data.index(b"PK\x01\x02", at + 1)) >= 0:
        length = struct.unpack_from("<H", data, at + 28)[0]
        if data[at + 46 : at + 46 + length] == name:
            return at
    raise AssertionError(name)


def test_the_example_is_read() -> None:
    assert rgrad.load(io.BytesIO(stored(GOOD)))[0].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "shape",
    [[10**15], [2**31, 2**31], [2**62, 2**62], [2**64], [10**30], [0, 10**30], [1] * 65, [1] * 10_000, [-4], [4.0]],
    ids=lambda shape: str(shape)[:20],
)
def test_large_tensors_are_refused(shape: list[Any]) -> None:
    for kind in ("float32", "bfloat16", "bool"):
        refused(stored({"header.json": header({"dtype": kind, "shape": shape}), "tensors/0": b""}))
        refused(stored({"header.json": header({"dtype": kind, "shape": shape}), "tensors/0": bytes(16)}))


@pytest.mark.parametrize("kind", ["object", "O", "V8", "U4", "datetime64", "complex64x", "", None, ["float32"], {}, 3])
def test_other_types_of_elements_are_refused(kind: Any) -> None:
    refused(stored({"header.json": header({"dtype": kind, "shape": [2]}), "tensors/0": bytes(8)}))


def test_truth_values_are_0_or_1() -> None:
    refused(
        stored({"header.json": header({"dtype": "bool", "shape": [2]}), "tensors/0": b"\x01\x02"}), "neither 0 nor 1"
    )


@pytest.mark.parametrize("size", [10**15, 2**63, 2**64 - 1])
@pytest.mark.parametrize("name", ["header.json", "tensors/0"])
def test_sizes_of_zip64_are_compared_with_the_file(size: int, name: str) -> None:
    """An archive in which one entry says that it is larger than any memory, in both of its heads."""
    data = bytearray()
    entries = []
    content = {"header.json": header({"dtype": "uint8", "shape": [size]}), "tensors/0": bytes(16)}
    for called, held in content.items():
        claimed = size if called == name else len(held)
        extra = struct.pack("<HHQQ", 1, 16, claimed, claimed)
        place, text = len(data), called.encode()
        fields = (45, 0, 0, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(text), len(extra))
        data += struct.pack("<4s5H3I2H", b"PK\x03\x04", *fields) + text + extra + held
        head = (45, *fields, 0, 0, 0, 0, place)
        entries.append(struct.pack("<4s6H3I5HII", b"PK\x01\x02", *head) + text + extra)
    start, listed = len(data), b"".join(entries)
    data += listed + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 2, 2, len(listed), start, 0)
    refused(data)


def test_entries_that_are_compressed_are_refused() -> None:
    for name in GOOD:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as out:
            for called, data in GOOD.items():
                out.writestr(called, data, zipfile.ZIP_DEFLATED if called == name else zipfile.ZIP_STORED)
        refused(file.getvalue(), "is compressed")
    # A header of 32 MiB of blanks, in a hundredth of that.
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out,
        out.open("header.json", "w") as blank,
    ):
        for _ in range(1 << 5):
            blank.write(b" " * (1 << 20))
    refused(file.getvalue(), "is compressed")


def test_pickles_that_are_compressed_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("header.json", header(obj=["object", 0, "x"]))
        out.writestr("objects/0", bytes(1000), zipfile.ZIP_DEFLATED)
    refused(file.getvalue(), "is compressed")
    with pytest.raises(RuntimeError, match="is compressed"):
        serialization.get_unsafe_globals_in_checkpoint(file)


def test_a_header_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgrad._files.archive_reader.MOST_HEADER", 1000)
    refused(stored({"header.json": header(obj="x" * 1000)}), "expected at most 1000")
    assert rgrad.load(io.BytesIO(stored({"header.json": header(obj="x" * 500)}))) == "x" * 500


def test_entries_that_overlap_are_refused() -> None:
    """Many entries of the same bytes would make much of a small file."""
    tensors = [{"dtype": "float32", "shape": [1000]}] * 3
    data = stored({"header.json": header(*tensors), **{f"tensors/{n}": bytes(4000) for n in range(3)}})
    first = struct.unpack_from("<I", data, directory(data, b"tensors/0") + 42)[0]
    for place in (first, first + 4, first - 4):
        changed = bytearray(data)
        struct.pack_into("<I", changed, directory(data, b"tensors/1") + 42, place)
        refused(changed)


def test_an_entry_does_not_reach_into_the_next_one() -> None:
    # Its own head has more behind the name than the directory knows.
    data = stored({**GOOD, "tensors/1": bytes(16)})
    place = struct.unpack_from("<I", data, directory(data, b"tensors/0") + 42)[0]
    extra = struct.unpack_from("<H", data, place + 28)[0]
    for more in (1, 200, 65_535 - extra):
        changed = bytearray(data)
        struct.pack_into("<H", changed, place + 28, extra + more)
        refused(changed)


@pytest.mark.parametrize("name", [b"tensors/0", b"header.json"])
def test_places_outside_of_the_file_are_refused(name: bytes) -> None:
    data = stored(GOOD)
    for place in (len(data), len(data) - 40, 2**31, 2**32 - 2):
        changed = bytearray(data)
        struct.pack_into("<I", changed, directory(data, name) + 42, place)
        refused(changed)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("twice", ["header.json", "tensors/0", "else"])
def test_a_name_occurs_once(twice: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, data in {**GOOD, "else": b""}.items():
            for _ in range(1 + (name == twice)):
                out.writestr(name, data)
    refused(file.getvalue(), "there are two entries")


@pytest.mark.parametrize("name", ["tensors/00", "tensors/+0", "Tensors/0", "/tensors/0", "./tensors/0", "tensors/0/"])
def test_other_names_are_other_entries(name: str) -> None:
    refused(stored({"header.json": header(FLOATS), name: bytes(16)}), "there is no entry 'tensors/0'")


@pytest.mark.parametrize("name", ["objects/1", "objects/x", "objects/", "objects/00"])
def test_pickles_have_numbers(name: str) -> None:
    refused(stored({**GOOD, name: b"N."}), "there is no entry 'objects/0'")


def test_entries_of_others_are_left_alone() -> None:
    assert len(rgrad.load(io.BytesIO(stored({**GOOD, "readme": b"text", "../../etc": b"x"})))) == 1


@pytest.mark.parametrize(
    "view",
    [
        [0, 0, [2**31, 2**31, 2**31], [0, 0, 0]],
        [0, 0, [1] * 65, [0] * 65],
        [0, 2**63, [1], [1]],
        [0, 0, [1], [2**70]],
        [0, 0, [2], [2**63]],
        [0, 4, [1], [1]],
        [0, 0, [1], [-1]],
    ],
    ids=str,
)
def test_views_stay_in_their_memory(view: Any) -> None:
    try:
        (found,) = rgrad.load(io.BytesIO(stored({**GOOD, "header.json": header(FLOATS, views=[view])})))
    except RuntimeError as error:
        assert "is damaged" in str(error)  # noqa: PT017
    else:
        # A stride of one place does not matter.
        assert found.numel() == 1


@pytest.mark.parametrize("kind", ['["dict"', '["odict", null'])
def test_keys_with_chosen_hashes_are_refused(kind: str) -> None:
    entries = ", ".join(f"[{number * (2**61 - 1)}, 0]" for number in range(1, 5000))
    text = header(obj=0).replace(b'"obj": 0', f'"obj": {kind}, {entries}]'.encode())
    refused(stored({"header.json": text}), "their hashes are the same")


def test_deep_headers_are_one_clear_error() -> None:
    for depth in (300, 900, 5000, 100_000):
        nested = b'["list",' * depth + b"1" + b"]" * depth
        for more in ({}, {"objects/0": b"cos\ngetpid\n)R."}):
            text = header(obj=0).replace(b'"obj": 0', b'"obj": ' + nested)
            data = stored({"header.json": text, **more})
            with pytest.raises(Exception, match=r"^(load: |Weights only load failed)") as caught:
                rgrad.load(io.BytesIO(data))
            assert type(caught.value).__name__ in ("RuntimeError", "UnpicklingError")


@pytest.mark.parametrize(
    "text", ['["float", "0x1p99999"]', '["complex", "0x1p99999", "0x0"]', "1e999", "NaN", "9" * 5000]
)
def test_numbers_that_are_none(text: str) -> None:
    refused(stored({"header.json": header(obj=0).replace(b'"obj": 0', b'"obj": ' + text.encode())}))
