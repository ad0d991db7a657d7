"""What the fuzzers begin with: small good inputs of each reader, made anew for each run."""

from __future__ import annotations

import collections
import gzip
import io
import json
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rgrad
from container_writer import container
from rgrad import nn
from rgrad._files.archive import StoredArchive
from rgrad.distributed import checkpoint


class Plain:
    """An object with attributes, as most classes have them."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Slots:
    """An object with slots."""

    __slots__ = ("a", "b")


class Row(list[Any]):
    """A list with attributes."""


class Pair(NamedTuple):
    """A tuple with names."""

    a: Any
    b: Any


class Kept(Plain):
    """A class of which there is one object."""

    one: Any = None

    def __new__(cls, *given: Any, **named: Any) -> Kept:
        if cls.one is None:
            cls.one = object.__new__(cls)
        found: Kept = cls.one
        return found


def _objects() -> list[Any]:
    slots, row = Slots(), Row([1, 2])
    slots.a, row.name = 1, "row"  # type: ignore[attr-defined]
    ordered = collections.OrderedDict(a=1, b=(2, 3))
    return [
        [1, -1, 2**40, 2**100, 1.5, None, True, "text", b"bytes", bytearray(b"more"), (), (1,), (1, 2), (1, 2, 3, 4)],
        {"a": {1, 2}, (1, 2): frozenset([3, (4, 5)]), "c": collections.Counter("aab"), "o": ordered},
        [complex(1, 2), rgrad.Size([2, 3]), rgrad.device("cpu"), "x" * 300, list(range(50))],
        [Plain(a=1, b=Plain(c=[])), slots, row, Pair(1, [2]), Kept()],
        nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh())),
    ]


def _saved(obj: Any) -> bytes:
    file = io.BytesIO()
    rgrad.save(obj, file)
    return file.getvalue()


def _tensors() -> list[Any]:
    x = rgrad.arange(12.0).view(3, 4)
    small = rgrad.arange(3).to(rgrad.uint16)
    return [
        {"x": x, "view": x.T[1:], "again": x, "p": nn.Parameter(rgrad.ones(2)), "mask": x > 3},
        [rgrad.ones(0), rgrad.tensor(1.0).to(rgrad.bfloat16), 2.5, b"bytes", rgrad.float16, (1, 2), 1j],
        nn.Linear(2, 2).state_dict(),
        [small, rgrad.ones(1, dtype=rgrad.complex64), rgrad.empty(2, device="meta"), small.untyped_storage()],
    ]


def archives() -> list[bytes]:
    """Files of `save`, rgrad's own containers, and what others write such archives with."""
    objects = [*_tensors(), *_objects()]
    whole = [*map(_saved, objects), *(container(obj).getvalue() for obj in (*objects[:3], *_objects()))]
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole[0])) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return [*whole, packed.getvalue()]


def headers() -> list[bytes]:
    """The texts that describe such files."""
    found = []
    for obj in _tensors()[:3]:
        with zipfile.ZipFile(container(obj)) as archive:
            found.append(archive.read("header.json"))
    one = {"format": "rgrad", "version": 1, "tensors": [{"dtype": "float32", "shape": [2]}], "obj": ["tensor", 0]}
    everything = ["list", ["odict", None, ["a", 1]], ["dict", [["tuple", 1], ["size", 1, 2]]], ["device", "cpu"]]
    return [
        *found,
        json.dumps(one).encode(),
        json.dumps({**one, "version": 2, "views": [[0, 0, [2], [1]]]}).encode(),
    ] + [json.dumps({**one, "version": 2, "views": [0], "obj": everything}).encode()]


def pickles() -> list[bytes]:
    """The pickles in such files, and bad ones of which each names something else."""
    found = []
    for obj in _objects():
        with zipfile.ZipFile(container(Plain(obj=obj, x=rgrad.ones(1)))) as archive:
            found.append(archive.read("objects/0"))
    found += [pickle.dumps(obj, protocol) for obj in _objects()[:4] for protocol in (2, 4, 5)]
    # Small ones, in which most changes hit what matters.
    small = (Kept(), Plain(a=1), Row([1]), Pair(1, 2), Plain, collections.OrderedDict, [Kept, {"a": 1}])
    found += [pickle.dumps(obj, 4) for obj in small]
    return found


def torch_pickles() -> list[bytes]:
    """The pickles in files of `save`."""
    found = []
    for obj in [*_tensors(), *_objects()]:
        with zipfile.ZipFile(io.BytesIO(_saved(obj))) as archive:
            found.append(archive.read("archive/data.pkl"))
    return found


def checkpoints() -> list[bytes]:
    """What names the tensors and files of checkpoints."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for state in ({"x": rgrad.ones(2, 3), "list": [1, {"y": rgrad.tensor(2)}]}, {"words": ["a"]}, {}):
            checkpoint.save(state, checkpoint_id=folder, no_dist=True)
            found.append((Path(folder) / ".metadata").read_bytes())
    return found


def in_torch_archive(data: bytes) -> bytes:
    """A file with good checksums around a pickle that may be anything."""
    file = io.BytesIO()
    with StoredArchive(file) as out:
        out.add("archive/data.pkl", data)
        for key, size in enumerate((48, 8, 12, 6, 8, 16)):
            out.add(f"archive/data/{key}", bytes(size))
    return file.getvalue()


def first_forms() -> list[bytes]:
    """Files as PyTorch wrote them before version 1.6."""
    found = []
    for obj in [*_tensors()[:3], *_objects()]:
        file = io.BytesIO()
        rgrad.save(obj, file, _use_new_zipfile_serialization=False)
        found.append(file.getvalue())
    return found


def safetensors() -> list[bytes]:
    """Files of safetensors."""
    found = []
    for kind, shape, size in (("F32", [2, 3], 24), ("BF16", [2], 4), ("BOOL", [3], 3), ("U16", [0, 2], 0)):
        one = {"dtype": kind, "shape": shape, "data_offsets": [0, size]}
        two = {"dtype": "I8", "shape": [5], "data_offsets": [size, size + 5]}
        text = json.dumps({"__metadata__": {"a": "b"}, "x": one, "y": two}).encode()
        found.append(struct.pack("<Q", len(text)) + text + bytes(size + 5))
    return found


def in_archive(header: bytes, tensors: int = 4, objects: tuple[bytes, ...] = ()) -> bytes:
    """A file with good checksums around parts that may be anything."""
    file = io.BytesIO()
    with StoredArchive(file) as out:
        out.add("header.json", header)
        for number in range(tensors):
            out.add(f"tensors/{number}", bytes(8))
        for number, data in enumerate(objects):
            out.add(f"objects/{number}", data)
    return file.getvalue()


def idx_files() -> list[bytes]:
    """Files of images as MNIST's are, packed and not."""
    found = []
    for code, values in ((8, np.arange(6, dtype=">u1")), (13, np.ones(4, ">f4")), (12, np.zeros(0, ">i4"))):
        for shape in ((len(values),), (1, len(values))):
            head = bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
            found += [head + values.tobytes(), gzip.compress(head + values.tobytes(), mtime=0)]
    return found


def arrays() -> list[bytes]:
    """Descriptions of arrays: type, dimensions, offset, sizes, strides, and the bytes they lie in."""
    found = []
    for kind in range(12):
        for sizes, strides in (((4,), (8,)), ((2, 3), (24, 8)), ((2, 2), (-8, 16)), ((3,), (0,)), ((), ())):
            head = struct.pack("<BBH", kind, len(sizes), 16) + struct.pack(f"<{2 * len(sizes)}h", *sizes, *strides)
            found.append(head + bytes(range(64)))
    return found


def states() -> list[bytes]:
    """States of generators of random numbers."""
    found = []
    for seed in (0, 5, 2**63):
        generator = rgrad.Generator().manual_seed(seed)
        for _ in range(3):
            found.append(bytes(generator.get_state().tolist()))
            rgrad.rand(7, generator=generator)
            rgrad.randn(3, generator=generator)
    return found
