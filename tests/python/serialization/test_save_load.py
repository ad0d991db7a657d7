"""`save` and `load`: what goes in comes out, nothing else goes in, and no file makes `load` misbehave."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import re
import threading
import zipfile
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dtypes
import rgrad
from rgrad import nn


def through(obj):
    file = io.BytesIO()
    rgrad.save(obj, file)
    file.seek(0)
    return rgrad.load(file)


@pytest.mark.parametrize("kind", dtypes.ALL)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (4, 3), (2, 3, 2)])
def test_tensors_of_every_kind_and_shape(kind: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape) * 3
    x = rgrad.tensor(values).to(getattr(rgrad, kind))
    y = through(x)
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert type(y) is rgrad.Tensor
    assert rgrad.equal(x, y)
    assert y.data_ptr() != x.data_ptr() or x.numel() == 0


def test_special_values_keep_their_bits() -> None:
    x = rgrad.tensor([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308], dtype=rgrad.float64)
    assert dtypes.array(through(x)).tobytes() == dtypes.array(x).tobytes()


def test_views_and_strides() -> None:
    base = rgrad.arange(12).reshape(3, 4)
    for view in (base.t(), base[:, 1], base[::2], base[1:2].expand(5, 4)):
        assert rgrad.equal(through(view), view)


def test_structures() -> None:
    obj = {
        "list": [1, -(2**70), 2.5, math.inf, True, None, "naïve \u2603 \x00", b"\x00\xff"],
        "tuple": ((), (1, (2, rgrad.ones(2)))),
        3: {2.5: "float key", (1, "a"): "tuple key", None: 1, True: 2},
        "complex": complex(1, -0.5),
        "dtype": rgrad.float64,
        "device": rgrad.device("cpu"),
        "size": rgrad.ones(2, 3).shape,
        "ordered": OrderedDict([("b", 1), ("a", 2)]),
    }
    back = through(obj)
    assert rgrad.equal(back["tuple"][1][1][1], rgrad.ones(2))
    obj["tuple"] = back["tuple"] = ()
    assert back == obj
    assert [type(value) for value in back.values()] == [type(value) for value in obj.values()]
    assert [type(value) for value in back["list"]] == [type(value) for value in obj["list"]]
    assert list(back["ordered"]) == ["b", "a"]
    assert math.isnan(through(math.nan))
    assert math.copysign(1, through(-0.0)) == -1


def test_defaultdicts_of_plain_classes() -> None:
    table = defaultdict(dict)
    table["a"]["b"] = 1
    back = through(table)
    assert back == {"a": {"b": 1}}
    assert back["c"] == {}


def test_requires_grad_and_parameters() -> None:
    x = rgrad.ones(2, requires_grad=True)
    p = nn.Parameter(rgrad.ones(2), requires_grad=False)
    y = x * 2
    back_x, back_p, back_y = through([x, p, y])
    assert back_x.requires_grad
    assert type(back_p) is nn.Parameter
    assert not back_p.requires_grad
    assert back_y.requires_grad
    assert back_y.is_leaf
    assert back_y.grad_fn is None


def test_one_memory_stays_one_memory() -> None:
    x = rgrad.zeros(1000)
    file = io.BytesIO()
    rgrad.save({"a": x, "b": x.detach(), "c": x.clone()}, file)
    assert len(file.getvalue()) < 2 * 4000 + 2000
    file.seek(0)
    back = rgrad.load(file)
    back["a"][0] = 1
    assert back["b"][0].item() == 1
    assert back["c"][0].item() == 0


def test_state_dicts(tmp_path: Path) -> None:
    rgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = rgrad.optim.Adam(model.parameters())
    model(rgrad.randn(5, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint.pt"
    rgrad.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    back = rgrad.load(str(path))
    assert back["epoch"] == 3
    assert back["model"]._metadata == model.state_dict()._metadata
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    assert str(other.load_state_dict(back["model"])) == "<All keys matched successfully>"
    x = rgrad.randn(5, 3)
    assert rgrad.equal(other(x), model(x))
    again = rgrad.optim.Adam(other.parameters())
    again.load_state_dict(back["optimizer"])
    for net, opt in ((model, optimizer), (other, again)):
        opt.zero_grad()
        net(x).pow(2).sum().backward()
        opt.step()
    assert rgrad.equal(other(x), model(x))


# ---------------------------------------------------------------------------------------------------- what is refused


class Thing:
    pass


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (lambda: 0, "function at the top"),
        ({"a": [1, lambda: 0]}, r"function at obj\['a'\]\[1\]"),
        ([{"b": threading.Lock()}], r"lock at obj\[0\]\['b'\]"),
    ],
)
def test_objects_that_cannot_be_pickled_are_refused_before_the_file_is_touched(obj, said: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.pt"
    rgrad.save(1, path)
    before = path.read_bytes()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)) as caught:
        rgrad.save(obj, path)
    assert re.search(f"save: got .*{said}", caught.value.__notes__[0])
    assert path.read_bytes() == before


def pickled(obj):
    """What comes back with trust, after a refusal without."""
    file = io.BytesIO()
    rgrad.save(obj, file)
    for options in ({}, {"weights_only": True}):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed: .*weights_only=False"):
            rgrad.load(file, **options)
    file.seek(0)
    return rgrad.load(file, weights_only=False)


def test_whole_modules_need_trust() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    net[2][1].weight.requires_grad_(False)
    back = pickled(net.eval())
    assert repr(back) == repr(net)
    assert [m.training for m in back.modules()] == [False] * 6
    assert [p.requires_grad for p in back.parameters()] == [p.requires_grad for p in net.parameters()]
    x = rgrad.randn(4, 2)
    assert rgrad.equal(back(x), net(x))
    assert back(x).requires_grad


def test_tensors_of_objects_are_shared_with_what_is_beside_them() -> None:
    layer = nn.Linear(2, 2)
    thing = Thing()
    thing.weight, thing.view = layer.weight, layer.weight.detach()[1]
    back = pickled({"module": layer, "weight": layer.weight, "things": [thing, {1, 2}], "state": layer.state_dict()})
    assert back["weight"] is back["module"].weight is back["things"][0].weight
    assert back["things"][1] == {1, 2}
    with rgrad.no_grad():
        back["weight"].fill_(7.0)
    assert back["things"][0].view.tolist() == [7.0, 7.0]
    assert back["state"]["weight"].tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_a_module_as_extra_state() -> None:
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def get_extra_state(self):
            return [nn.Linear(2, 1)]

        def set_extra_state(self, state) -> None:
            self.__dict__["given"] = state

    holder, other = Holder(), Holder()
    other.load_state_dict(pickled(holder.state_dict()))
    assert repr(other.given) == "[Linear(in_features=2, out_features=1, bias=True)]"


def test_files_with_objects_run_nothing_without_trust(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    file = io.BytesIO()
    rgrad.save([Harmful()], file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        rgrad.load(file)
    assert not (tmp_path / "made").exists()


def test_objects_that_contain_themselves() -> None:
    loop: list = []
    loop.append(loop)
    back = through(loop)
    assert back[0] is back
    shared = [1]
    first, second = through([shared, shared])
    assert first is second
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError, match="nested too deeply"):
        rgrad.save(deep, io.BytesIO())
    while deep:
        deep = deep[0]


def archive(header: object, **files: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("header.json", header if isinstance(header, str) else json.dumps(header))
        for name, content in files.items():
            out.writestr(f"tensors/{name}", content)
    file.seek(0)
    return file


def described(*tensors: object, obj: object = 1, **more: object) -> dict[str, object]:
    return {"format": "rgrad", "version": 1, "tensors": list(tensors), "obj": obj, **more}


FLOATS = {"dtype": "float32", "shape": [2]}


@pytest.mark.parametrize(
    "file",
    [
        io.BytesIO(b""),
        io.BytesIO(b"not a zip file at all"),
        archive("{"),
        archive("[]"),
        archive({}),
        archive(described(version=2)),
        archive(described(format="other")),
        archive(described(obj=["unknown", 1])),
        archive(described(obj=["tensor", 0])),
        archive(described(obj=["tensor", "x"])),
        archive(described(obj=["dtype", "Tensor"])),
        archive(described(obj=["dtype", "__class__"])),
        archive(described(obj=["float", "x"])),
        archive(described(obj=["dict", [1]])),
        archive(described(obj=["dict", [["list"], 1]])),
        archive(described(obj=[])),
        archive(described(obj={"a": 1})),
        archive(described(FLOATS)),
        archive(described(FLOATS), **{"0": b"1234567"}),
        archive(described(FLOATS), **{"0": b"123456789"}),
        archive(described({"dtype": "float32", "shape": [-1]}), **{"0": b""}),
        archive(described({"dtype": "float32", "shape": [2**62]}), **{"0": b"12345678"}),
        archive(described({"dtype": "float32", "shape": [True, 2]}), **{"0": b"12345678"}),
        archive(described({"dtype": "object", "shape": [1]}), **{"0": b"12345678"}),
        archive(described({"dtype": "no such", "shape": [1]}), **{"0": b"1234"}),
        archive(json.dumps(described()).replace('"obj": 1', '"obj": ' + '["list",' * 500 + "1" + "]" * 500)),
    ],
)
def test_damaged_files_are_one_clear_error(file: io.BytesIO) -> None:
    # PyTorch's type where there is nothing at all.
    error = RuntimeError if file.getvalue() else EOFError
    with pytest.raises(error, match=r"^load: "):
        rgrad.load(file)


def test_truncated_files(tmp_path: Path) -> None:
    whole = io.BytesIO()
    rgrad.save({"a": rgrad.ones(100)}, whole)
    content = whole.getvalue()
    for length in range(1, len(content), 37):
        with pytest.raises(RuntimeError, match=r"^load: "):
            rgrad.load(io.BytesIO(content[:length]))
    broken = bytearray(content)
    position = content.index(np.ones(4, np.float32).tobytes())
    broken[position] ^= 0xFF
    with pytest.raises(RuntimeError, match="damaged"):
        rgrad.load(io.BytesIO(bytes(broken)))


def test_a_wrong_bit_is_one_clear_error_or_none() -> None:
    whole = io.BytesIO()
    rgrad.save({"a": rgrad.ones(4)}, whole)
    content = whole.getvalue()
    for position in range(len(content)):
        broken = bytearray(content)
        broken[position] ^= 1 << position % 8
        # Dates, say, are nobody's business.
        try:
            loaded = rgrad.load(io.BytesIO(bytes(broken)))
        except RuntimeError as error:
            assert str(error).startswith("load: ")  # noqa: PT017
        else:
            assert loaded["a"].tolist() == [1.0] * 4


def test_other_peoples_files(tmp_path: Path) -> None:
    path = tmp_path / "torch.pt"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("archive/data.pkl", b"\x80\x02.")
    with pytest.raises(RuntimeError, match="is damaged: Malformed"):
        rgrad.load(path)
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("words/list.txt", b"abc")
    with pytest.raises(RuntimeError, match="is not a file written by save: got a zip archive without data.pkl"):
        rgrad.load(path)
    with pytest.raises(FileNotFoundError):
        rgrad.load(tmp_path / "missing.pt")


def test_files_of_version_1_are_read() -> None:
    """As they were before tensors of one memory were written together."""
    header = {
        "format": "rgrad",
        "version": 1,
        "tensors": [{"dtype": "float32", "shape": [2]}],
        "obj": ["list", ["tensor", 0], ["param", 0, True], ["tensor", 0, True]],
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("tensors/0", np.array([1.0, 2.0], "<f4").tobytes())
    file.seek(0)
    plain, parameter, leaf = rgrad.load(file)
    assert [t.tolist() for t in (plain, parameter, leaf)] == [[1.0, 2.0]] * 3
    assert [t.requires_grad for t in (plain, parameter, leaf)] == [False, True, True]
    plain[0] = 5
    assert leaf.tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    "view",
    [
        [0, 0, [5], [1]],
        [0, -1, [2], [1]],
        [0, 3, [2], [1]],
        [0, 0, [2], [4]],
        [0, 0, [2, 2], [1]],
        [0, 0, [2**62, 2**62], [2**62, 1]],
        [0, 0, [-2], [1]],
        [0, 0.5, [2], [1]],
        [0, 0],
        [1, 0, [1], [1]],
        "0",
        None,
        [],
    ],
    ids=str,
)
def test_views_outside_of_their_memory_are_refused(view: Any) -> None:
    header = {
        "format": "rgrad",
        "version": 2,
        "tensors": [{"dtype": "float32", "shape": [4]}],
        "views": [view],
        "obj": ["tensor", 0],
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("tensors/0", bytes(16))
    file.seek(0)
    with pytest.raises(RuntimeError, match="damaged"):
        rgrad.load(file)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    ("kept", "error", "words"),
    [
        (0, EOFError, "is empty"),
        (4, RuntimeError, "failed reading zip archive: failed finding central directory"),
        (200, RuntimeError, "failed finding central directory; the end of the file is missing"),
        (-30, RuntimeError, "failed finding central directory"),
    ],
)
def test_files_that_end_early(tmp_path: Path, kept: int, error: type[Exception], words: str, in_memory: bool) -> None:
    file = tmp_path / "model"
    rgrad.save({"w": rgrad.ones(100)}, file)
    content = file.read_bytes()[:kept]
    file.write_bytes(content)
    with pytest.raises(error, match=words):
        rgrad.load(io.BytesIO(content) if in_memory else file)


def test_places_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="Parent directory .*missing does not exist"):
        rgrad.save({}, tmp_path / "missing" / "model")
    wrong: Any = 3
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'.*seekable"):
        rgrad.load(wrong)
