"""The archives that `save` writes: others read them, large ones have zip64's records, and maps of them are aligned."""

from __future__ import annotations

import io
import mmap
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import _core
from rgrad._files import archive as archives
from rgrad._files.archive import StoredArchive
from rgrad._files.archive_reader import reading

CONTENT = {"header.json": b"{}", "tensors/0": bytes(range(256)) * 5, "empty": b"", "tensors/ü": b"\x00" * 64}


def archive(content: dict[str, bytes] = CONTENT) -> io.BytesIO:
    file = io.BytesIO()
    with StoredArchive(file) as out:
        for name, data in content.items():
            out.add(name, data)
    return file


def unpacked(file: io.BytesIO) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as found:
        assert found.testzip() is None
        return {name: found.read(name) for name in found.namelist()}


@pytest.mark.parametrize("size", [0, 1, 7, 63, 64, 1000, 4097])
def test_checksums_are_zlibs(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert _core._crc32(data) == zlib.crc32(data)
    assert _core._crc32(data, 5) == zlib.crc32(data, 5)
    assert _core._crc32(memoryview(bytearray(data))) == zlib.crc32(data)


def test_checksums_are_of_bytes_in_one_piece() -> None:
    with pytest.raises(BufferError):
        _core._crc32(memoryview(b"abcd")[::2])
    with pytest.raises((TypeError, BufferError)):
        _core._crc32(np.ones(2))
    with pytest.raises(TypeError):
        _core._crc32("abc")


def test_python_reads_what_was_written() -> None:
    assert unpacked(archive()) == CONTENT


def test_equal_content_gives_equal_files() -> None:
    assert archive().getvalue() == archive().getvalue()


def test_entries_are_aligned() -> None:
    file = archive()
    with reading(file) as found:
        assert found.names() == list(CONTENT)
        for name, data in CONTENT.items():
            assert found.place(name) % archives.ALIGNMENT == 0
            assert found.read(name) == data


@pytest.mark.parametrize("limit", [0, 1, 100, 1500])
def test_large_archives_have_zip64s_records(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # What real archives of 4 GiB have: every size and place from the limit on stands in a record of its own.
    written = archive().getvalue()
    monkeypatch.setattr(archives, "LIMIT_16", 2)
    with_many = archive().getvalue()
    assert with_many.count(b"PK\x06\x06") == 1
    assert len(with_many) == len(written) + 56 + 20
    monkeypatch.setattr(archives, "LIMIT_32", limit)
    file = io.BytesIO()
    with StoredArchive(file) as out:
        for name, data in CONTENT.items():
            out.add(name, data)
    assert file.getvalue().count(b"PK\x06\x06") == 1
    assert (b"\x01\x00\x10\x00" + struct.pack("<QQ", 1280, 1280) in file.getvalue()) == (limit <= 1280)


def test_more_entries_than_a_short_archive_can_count() -> None:
    content = {f"tensors/{i}": b"" for i in range(70_000)}
    with zipfile.ZipFile(archive(content)) as found:
        assert len(found.namelist()) == 70_000


class Pieces(io.RawIOBase):
    """A file that takes few bytes at a time, and cannot seek."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data[:100])
        return min(len(data), 100)


def test_files_that_take_parts() -> None:
    file = Pieces()
    rgrad.save({"w": rgrad.arange(300.0)}, file)
    assert rgrad.load(io.BytesIO(file.data))["w"].tolist() == list(range(300))


def test_files_that_begin_later(tmp_path: Path) -> None:
    file = io.BytesIO()
    file.write(b"something else")
    rgrad.save(rgrad.ones(3), file)
    assert rgrad.load(file).tolist() == [1.0] * 3


class Full(io.BytesIO):
    def write(self, data: Any) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_an_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        rgrad.save(rgrad.ones(3), Full())


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16", "int8", "bool"])
def test_mapped_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mapped.pt"
    tensors = [rgrad.arange(n).to(getattr(rgrad, kind)) for n in (1, 3, 64, 0)]
    rgrad.save({"a": tensors, "b": tensors[1][1:]}, path)
    found = rgrad.load(path, mmap=True)
    for mine, other in zip(found["a"], tensors, strict=True):
        assert mine.dtype == other.dtype
        assert rgrad.equal(mine, other)
    found["a"][1].fill_(1)
    assert found["b"].tolist() == [1, 1]
    # Writes stay in this process.
    assert rgrad.equal(rgrad.load(path)["a"][1], tensors[1])
    assert rgrad.load(path, map_location="meta", mmap=True)["a"][2].shape == (64,)


def test_shared_maps_are_written_through(tmp_path: Path) -> None:
    path = tmp_path / "mapped.pt"
    rgrad.save(rgrad.zeros(3), path)
    with rgrad.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        rgrad.load(path, mmap=True).fill_(2.0)
    assert rgrad.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    # Whoever writes changes checksums, so only maps, which compare none, read such a file.
    assert rgrad.load(path, mmap=True).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="checksum"):
        rgrad.load(path)


def test_files_of_before_are_mapped_as_far_as_they_are_aligned(tmp_path: Path) -> None:
    path, other = tmp_path / "new.pt", tmp_path / "old.pt"
    rgrad.save({"a": rgrad.arange(5.0), "b": rgrad.arange(3.0)}, path)
    with zipfile.ZipFile(path) as new, zipfile.ZipFile(other, "w") as old:
        for name in new.namelist():
            old.writestr(name, new.read(name))
    assert [t.tolist() for t in rgrad.load(other, mmap=True).values()] == [[0, 1, 2, 3, 4], [0, 1, 2]]


@pytest.mark.parametrize("kept", [0, 4, 200, 3000, -30])
def test_a_file_that_ends_early_is_not_mapped(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "mapped.pt"
    rgrad.save({"a": rgrad.ones(1000), "b": rgrad.zeros(2)}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises((RuntimeError, EOFError), match=r"^load: "):
        rgrad.load(path, mmap=True)


def test_maps_are_of_paths() -> None:
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        rgrad.load(io.BytesIO(), mmap=True)
