"""The package safetensors with rgrad: in torch's place, and through the file that may be offered to that package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import rgrad
from places import ROOT
from rgrad import compat, nn

safetensors = pytest.importorskip("safetensors")
pytestmark = pytest.mark.oracle

DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
]


def tensors() -> dict[str, Any]:
    made: dict[str, Any] = {name: rgrad.arange(6).reshape(2, 3).to(getattr(rgrad, name)) for name in DTYPES}
    return made | {"scalar": rgrad.tensor(3.5), "nothing": rgrad.empty(0, 4), "wide": rgrad.arange(4096.0).view(64, 64)}


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert found[name].tolist() == tensor.tolist(), name


def upstream() -> Any:
    spec = importlib.util.spec_from_file_location("safetensors_rgrad", ROOT / "examples/upstream/safetensors_rgrad.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_in_torchs_place(tmp_path: Path) -> None:
    path, given = tmp_path / "x.safetensors", tensors()
    with compat.as_torch():
        from safetensors import safe_open
        from safetensors.torch import load, load_file, save, save_file

        save_file(given, path, {"made": "here"})
        same(load_file(path), given)
        same(load(save(given)), given)
        assert isinstance(load_file(path)["float32"], rgrad.Tensor)
        with safe_open(path, framework="pt", device="cpu") as opened:
            assert opened.metadata() == {"made": "here"}
            assert set(opened.keys()) == set(given)
            part = opened.get_slice("wide")
            assert list(part.get_shape()) == [64, 64]
            assert part[3:5, 2].tolist() == given["wide"][3:5, 2].tolist()
            assert part[:, -2:].shape == (64, 2)
            assert opened.get_tensor("bfloat16").dtype == rgrad.bfloat16
    # What the package has written, rgrad reads by itself, and parts of it.
    same(rgrad.load(path), given)
    assert rgrad.load(path)["wide"][3:5, 2].tolist() == given["wide"][3:5, 2].tolist()


def test_models_in_torchs_place(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model, other = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)) for _ in range(2))
    with compat.as_torch():
        from safetensors.torch import load_model, save_model

        save_model(model, str(path))
        assert load_model(other, path) == (set(), [])
    x = rgrad.randn(5, 3)
    assert rgrad.equal(other.eval()(x), model.eval()(x))


def test_the_file_for_the_package(tmp_path: Path) -> None:
    module, path, given = upstream(), tmp_path / "x.safetensors", tensors()
    module.save_file(given, path, {"made": "here"})
    same(module.load_file(path), given)
    same(module.load(module.save(given)), given)
    assert path.read_bytes() == module.save(given, {"made": "here"})
    with pytest.raises(ValueError, match="non contiguous tensor: `x`"):
        module.save({"x": given["wide"].t()})
    with pytest.raises(RuntimeError, match="share memory: `x` and `y`"):
        module.save({"x": given["wide"], "y": given["wide"]})
    with pytest.raises(ValueError, match="expected rgrad.Tensor"):
        module.save({"x": 3})
    conjugate = rgrad.tensor([1 + 2j], dtype=rgrad.complex64).conj()
    assert module.load(module.save({"z": conjugate}))["z"].tolist() == [1 - 2j]


def test_models_with_the_file_for_the_package(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    module, path = upstream(), tmp_path / "m.safetensors"
    model, other = Tied(), Tied()
    module.save_model(model, str(path))
    assert module.load_model(other, path) == ([], [])
    x = rgrad.randn(5, 3)
    assert rgrad.equal(other(x), model(x))
    with pytest.raises(RuntimeError, match="unexpected keys"):
        module.load_model(nn.Linear(3, 3), path)
