"""Whole models as ONNX: their graphs, names and sizes, and what onnxruntime computes with other sizes."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from onnx_kit import exported, onnx, operators, shapes
from rgrad import Tensor, nn
from rgrad.export import Dim

OPSETS = range(18, 24)


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(rgrad.flatten(self.pool(self.layers(self.stem(x))), 1))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.second = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        c = self.up(b)
        c = F.pad(c, (0, a.shape[3] - c.shape[3], 0, a.shape[2] - c.shape[2]))
        return self.last(rgrad.cat([a, c], dim=1)) + F.interpolate(x, size=x.shape[2:], mode="bilinear")


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.places = nn.Embedding(32, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 20)
        self.scale = math.sqrt(8)

    def forward(self, ids: Tensor, padding: Tensor) -> dict[str, Tensor]:
        at = rgrad.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) * self.scale + self.places(at)
        x = self.encoder(x, src_key_padding_mask=padding)
        return {"scores": self.head(x), "pooled": x.mean(1)}


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, 2, width // 2).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(10, 3)

    def forward(self, ids: Tensor) -> Tensor:
        out, (h, _) = self.lstm(self.tokens(ids))
        return self.fc(rgrad.cat([h[-2], h[-1]], dim=1)) + self.fc(out[:, -1])


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4 * 4, 6))
        self.decoder = nn.Sequential(
            nn.Linear(6, 64), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(x)
        return self.decoder(code), code


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList([nn.Embedding(5, 2), nn.Embedding(7, 3)])
        self.norm = nn.BatchNorm1d(4)
        self.net = nn.Sequential(nn.Linear(9, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        parts = [table(kinds[:, k]) for k, table in enumerate(self.kinds)]
        return self.net(rgrad.cat([*parts, self.norm(numbers)], 1)).softmax(1)


def trained(model: nn.Module) -> nn.Module:
    """With running statistics and weights that are no defaults."""
    with rgrad.no_grad():
        for k, x in enumerate([*model.parameters(), *model.buffers()]):
            if x.is_floating_point():
                x.mul_(0.9).add_(0.01 * (k % 5) + 0.01)
    return model


@pytest.mark.parametrize("opset", OPSETS)
def test_resnet(opset: int) -> None:
    model = trained(ResNet())
    program = exported(model, rgrad.randn(2, 3, 32, 32), opset_version=opset)
    names = {x.name for x in program.model_proto.graph.initializer}
    assert {n for n, _ in model.named_parameters()} <= names
    kinds = operators(program)
    assert (kinds.count("Conv"), kinds.count("BatchNormalization"), kinds.count("Gemm")) == (6, 6, 1)
    assert shapes(program.model_proto.graph.input) == {"x": ["batch", 3, 32, 32]}
    assert shapes(program.model_proto.graph.output) == {"output": ["batch", 10]}
    assert model.training  # as before
    x = rgrad.randn(7, 3, 32, 32)
    rgrad.testing.assert_close(program(x)[0], model.eval()(x), rtol=1e-4, atol=1e-5, check_stride=False)


@pytest.mark.parametrize("opset", [18, 23])
def test_u_net_with_images_of_any_size(opset: int) -> None:
    model = trained(UNet())
    program = exported(
        model, rgrad.randn(2, 1, 8, 8), opset_version=opset, dynamic_shapes=({0: "batch", 2: "height", 3: "width"},)
    )
    for size in ((16, 10), (7, 9)):
        x = rgrad.randn(1, 1, *size)
        rgrad.testing.assert_close(program(x)[0], model.eval()(x), rtol=1e-4, atol=1e-5, check_stride=False)
    assert shapes(program.model_proto.graph.output) == {"output": ["batch", 1, "height", "width"]}


@pytest.mark.parametrize("opset", OPSETS)
def test_transformer_with_texts_of_any_length(opset: int) -> None:
    model = trained(Transformer())
    ids = rgrad.randint(0, 20, (2, 5))
    padding = rgrad.zeros(2, 5, dtype=rgrad.bool)
    padding[1, 3:] = True
    batch, length = Dim("batch", max=64), Dim("length", max=32)
    program = exported(
        model,
        ids,
        padding,
        opset_version=opset,
        dynamic_shapes={"ids": {0: batch, 1: length}, "padding": [batch, length]},
        output_names=["scores", "pooled"],
    )
    assert shapes(program.model_proto.graph.output) == {"scores": ["batch", "length", 20], "pooled": ["batch", 8]}
    ids, padding = rgrad.randint(0, 20, (3, 9)), rgrad.zeros(3, 9, dtype=rgrad.bool)
    expected = model.eval()(ids, padding)
    for found, name in zip(program(ids, padding), ("scores", "pooled"), strict=True):
        rgrad.testing.assert_close(found, expected[name], rtol=1e-4, atol=1e-5, check_stride=False)


def test_causal_attention() -> None:
    program = exported(trained(Causal()), rgrad.randint(0, 20, (2, 6)), dynamic_shapes=({0: "batch", 1: "length"},))
    assert shapes(program.model_proto.graph.output) == {"output": ["batch", "length", 8]}


def test_recurrent_network() -> None:
    program = exported(trained(Recurrent()), rgrad.randint(0, 20, (2, 6)), dynamic_shapes=({0: "batch", 1: "length"},))
    assert operators(program).count("LSTM") == 2


def test_autoencoder() -> None:
    model = trained(Autoencoder())
    program = exported(model, rgrad.rand(2, 1, 8, 8), output_names=["image", "code"])
    assert shapes(program.model_proto.graph.output) == {"image": ["batch", 1, 8, 8], "code": ["batch", 6]}


def test_table() -> None:
    kinds = rgrad.stack([rgrad.arange(4), rgrad.arange(4) + 1], 1)
    program = exported(trained(Table()), rgrad.randn(4, 4), kinds)
    assert list(shapes(program.model_proto.graph.input)) == ["numbers", "kinds"]


def test_the_older_form_with_dynamic_axes(tmp_path: Path) -> None:
    model = trained(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    file = tmp_path / "model.onnx"
    done = rgrad.onnx.export(
        model,
        rgrad.randn(2, 4),
        str(file),
        input_names=["rows"],
        output_names=["out"],
        dynamic_axes={"rows": {0: "many"}, "out": [0]},
        opset_version=18,
        dynamo=False,
    )
    assert done is None
    loaded = onnx.load(str(file))
    onnx.checker.check_model(loaded, full_check=True)
    assert loaded.opset_import[0].version == 18
    assert loaded.producer_name == "rgrad"
    assert shapes(loaded.graph.input) == {"rows": ["many", 4]}
    assert shapes(loaded.graph.output) == {"out": ["out_dynamic_axes_1", 3]}
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    x = np.ones((5, 4), np.float32)
    np.testing.assert_allclose(
        session.run(None, {"rows": x})[0], model(rgrad.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_parameters_as_inputs(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    with_both = rgrad.onnx.export(model, rgrad.ones(1, 3), keep_initializers_as_inputs=True)
    without = rgrad.onnx.export(model, rgrad.ones(1, 3), export_params=False)
    assert with_both is not None
    assert without is not None
    assert list(shapes(with_both.model_proto.graph.input)) == ["input", "weight", "bias"]
    assert len(with_both.model_proto.graph.initializer) == 2
    assert list(shapes(without.model_proto.graph.input)) == ["input", "weight", "bias"]
    assert len(without.model_proto.graph.initializer) == 0
    onnx.checker.check_model(without.model_proto, full_check=True)
    rgrad.testing.assert_close(without(rgrad.ones(1, 3), model.weight, model.bias)[0], model(rgrad.ones(1, 3)).detach())
    plain = rgrad.onnx.export(model, rgrad.ones(1, 3))
    assert plain is not None
    plain.save(tmp_path / "a.onnx", include_initializers=False)
    assert list(shapes(onnx.load(str(tmp_path / "a.onnx")).graph.input)) == ["input", "weight", "bias"]
    plain.save(tmp_path / "b.onnx", external_data=True)
    assert (tmp_path / "b.onnx.data").exists()
    assert len(onnx.load(str(tmp_path / "b.onnx")).graph.initializer) == 2


def test_folding() -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(rgrad.randn(2, 3))

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(x, self.weight / self.weight.norm(dim=1, keepdim=True))

    model = Normed()
    folded = exported(model, rgrad.randn(2, 3))
    written = exported(model, rgrad.randn(2, 3), do_constant_folding=False)
    assert "ReduceL2" not in operators(folded)
    assert "ReduceL2" in operators(written)
    assert [x.name for x in written.model_proto.graph.initializer if x.name == "weight"] == ["weight"]


def test_files_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    def both(x: Tensor, *, pair: tuple[Tensor, Tensor], scale: float = 1.0) -> list[Tensor]:
        assert rgrad.onnx.is_in_onnx_export()
        return [x * scale + pair[0], pair[1], x]

    file = io.BytesIO()
    options: dict[str, Any] = {"kwargs": {"pair": (rgrad.ones(2), rgrad.zeros(2)), "scale": 3.0}}
    program = rgrad.onnx.export(both, (rgrad.ones(2),), file, verbose=True, verify=True, **options)
    assert program is not None
    assert not rgrad.onnx.is_in_onnx_export()
    assert list(shapes(program.model_proto.graph.input)) == ["x", "pair_0", "pair_1"]
    assert onnx.load_from_string(file.getvalue()).graph.name == "both"
    assert "Mul" in capsys.readouterr().out
    assert "inputs ['x', 'pair_0', 'pair_1']" in repr(program)
    assert [y.tolist() for y in program(rgrad.ones(2), rgrad.ones(2), rgrad.zeros(2))] == [[4, 4], [0, 0], [1, 1]]


def test_half_precision_has_its_own_numbers() -> None:
    for dtype in (rgrad.float16, rgrad.bfloat16, rgrad.float64):
        model = nn.Linear(3, 2).to(dtype)
        program = rgrad.onnx.export(model, rgrad.ones(1, 3, dtype=dtype))
        assert program is not None
        onnx.checker.check_model(program.model_proto, full_check=True)
        weight = next(x for x in program.model_proto.graph.initializer if x.name == "weight")
        found = onnx.numpy_helper.to_array(weight).astype(np.float64)
        np.testing.assert_array_equal(found, model.weight.detach().double().numpy())


def test_exported_programs() -> None:
    model = trained(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    exported_program = rgrad.export.export(model, (rgrad.randn(2, 4),), dynamic_shapes=({0: "batch"},))
    program = rgrad.onnx.export(exported_program, dynamic_shapes=({0: "batch"},), verify=True)
    assert program is not None
    assert {x.name for x in program.model_proto.graph.initializer} >= {"0.weight", "0.bias"}
    x = rgrad.randn(5, 4)
    rgrad.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-5, atol=1e-6)
