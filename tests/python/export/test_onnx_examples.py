"""The models of the examples and of ``rgrad.vision`` as ONNX."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

import rgrad
from onnx_kit import exported, operators, shapes
from places import ROOT

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")
pytest.importorskip("tqdm")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports an example by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(ROOT / "examples") in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_writer_of_characters(example: Any) -> None:
    model = example("characters").Writer(letters=20, length=16, width=8, heads=2, blocks=2, dropout=0.1)
    program = exported(model, rgrad.randint(0, 20, (2, 5)), dynamic_shapes=({0: "batch", 1: "length"},))
    assert operators(program).count("Softmax") == 2
    assert shapes(program.model_proto.graph.output) == {"output": ["batch", "length", 20]}


def test_forecaster(example: Any) -> None:
    model = example("forecast").Forecaster(6)
    program = exported(model, rgrad.randn(2, 7), dynamic_shapes=({0: "batch", 1: "time"}, None), kwargs={"state": None})
    assert operators(program).count("LSTM") == 1


def test_autoencoder(example: Any) -> None:
    autoencoder = example("autoencoder").Autoencoder
    program = exported(autoencoder(4), rgrad.rand(2, 1, 8, 8))
    assert operators(program).count("ConvTranspose") == 1


def test_digits(example: Any) -> None:
    """Its layers are custom Functions, whose forward is recorded."""
    program = exported(example("digits").make_model(), rgrad.randn(3, 64))
    assert operators(program).count("Tanh") == 2


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_networks_of_images(name: str) -> None:
    model = getattr(rgrad.vision.models, name)(num_classes=10)
    program = exported(model, rgrad.randn(1, 3, 64, 64))
    assert operators(program).count("Conv") == {"resnet18": 20, "resnet50": 53}[name]
