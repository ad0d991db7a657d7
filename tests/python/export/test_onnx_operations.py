"""Each operation of ONNX's table: exported, checked, and compared with onnxruntime for two batch sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from onnx_kit import exported
from rgrad import nn
from rgrad.onnx import _export  # noqa: F401  it fills the table
from rgrad.onnx._graph import TABLE

rgrad.manual_seed(0)
IMAGE = rgrad.randn(2, 4, 8, 8)
ROWS = rgrad.randn(2, 3, 4)
POSITIVE = ROWS.abs() + 0.5
PART = rgrad.rand(2, 3) * 0.8 + 0.1
INTEGERS = rgrad.tensor([[7, -7, 3], [5, -2, 9]])
HEADS = rgrad.randn(2, 2, 4, 8)
GRID = rgrad.rand(2, 3, 3, 2) * 2 - 1

UNARY = """
abs acos asin atan asinh atanh ceil cos cosh erf exp floor log neg reciprocal relu sigmoid sign sin sinh sqrt tan tanh
square rsqrt log1p expm1 exp2 log2 log10 erfc trunc frac round isnan isinf isfinite logical_not positive
"""
ACTIVATIONS = """
gelu silu mish elu celu selu hardtanh relu6 hardswish hardsigmoid hardshrink softshrink tanhshrink softplus softsign
leaky_relu logsigmoid sigmoid tanh relu
"""


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_each_element(name: str) -> None:
    exported(lambda x: getattr(rgrad, name)(x), PART)


@pytest.mark.parametrize("opset", [18, 20, 23])
@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activations(name: str, opset: int) -> None:
    exported(lambda x: getattr(F, name)(x), ROWS, opset_version=opset)


def write(x: rgrad.Tensor) -> rgrad.Tensor:
    y = x.clone()
    y[:, 0] = 1
    y[:, 1:, 2] = y[:, 1:, 3] * 2
    y[..., 3] = x[..., 0]
    y += 1
    return y


def in_place(x: rgrad.Tensor) -> rgrad.Tensor:
    y = x.clone().mul_(2).add_(1)
    y.clamp_(0, 2)
    return F.relu(y, inplace=True)


# Of one input.
CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "acosh": (rgrad.acosh, POSITIVE + 1),
    "gelu of tanh": (lambda x: F.gelu(x, approximate="tanh"), ROWS),
    "parameters of activations": (
        lambda x: (F.celu(x, 0.3), F.elu(x, 0.3), F.softplus(x, 2, 1), F.threshold(x, 0.1, 0.2), F.glu(x, -1)),
        ROWS,
    ),
    "numbers": (
        lambda x: (x + 1, 1 - x, x * 2, 1 / x, x**2, x**0.5, 2**x, x // 2, x % 2, 3 // x, rgrad.fmod(x, 2)),
        POSITIVE,
    ),
    "integers": (
        lambda x: (x // 2, x % 3, x // -2, x % -3, rgrad.div(x, 2), -x, x / 2, x & 3, x | 1, ~x, x > 2, x.clamp(0, 5)),
        INTEGERS,
    ),
    "dtypes": (
        lambda x: (x.to(rgrad.float64), x.double().float(), x.long(), x.type(rgrad.int32), (x > 0).float(), x.bool()),
        ROWS,
    ),
    "no change": (lambda x: (x.contiguous(), x.detach(), x.data, x.clone(), x.type_as(x)), ROWS),
    "clamps": (lambda x: (x.clamp(0.6, 1), x.clamp(min=1), x.clamp(max=1), rgrad.clamp_min(x, 0.7)), POSITIVE),
    "masks": (lambda x: (x.masked_fill(x > 1, 5.0), rgrad.where(x > 1, x, 0.0), (x > 0) & ~(x > 1)), POSITIVE),
    "sums": (
        lambda x: (
            x.sum(),
            x.sum(1),
            x.mean((1, 2), keepdim=True),
            x.prod(1),
            x.logsumexp(1),
            x.cumsum(1),
            (x > 0).sum(1),
        ),
        ROWS,
    ),
    "extremes": (
        lambda x: (x.max(), x.max(1), x.min(-1, keepdim=True), x.amax(1), x.amin((1, 2)), x.argmax(1), x.argmin()),
        ROWS,
    ),
    "moments": (
        lambda x: (x.var(1), x.std(1, unbiased=False), x.var(), x.var(0), rgrad.var_mean(x, 1), rgrad.std_mean(x, 1)),
        ROWS,
    ),
    "norms": (
        lambda x: (x.norm(), x.norm(dim=1), rgrad.linalg.norm(x, dim=1), x.norm(1, dim=1), x.norm(3, dim=2)),
        ROWS,
    ),
    "norm of inf": (lambda x: x.norm(math.inf, dim=2), ROWS),
    "truths": (lambda x: ((x > 0).any(1), (x > 0).all(), rgrad.count_nonzero(x, 1)), ROWS),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(1), F.softmin(x, 1)), ROWS),
    "order": (lambda x: (x.topk(2, -1), x.sort(-1), x.argsort(1, descending=True)), ROWS),
    "views": (
        lambda x: (x.view(x.shape[0], -1), x.reshape(-1), x.flatten(1), x.unflatten(2, (2, 2)), x.view(-1, x.size(-1))),
        ROWS,
    ),
    "sizes": (lambda x: (x.reshape(x.shape[0] * 3, 4), x.view(*x.shape[:2], 2, 2), x.new_zeros(x.shape[0], 2)), ROWS),
    "parts": (
        lambda x: (x[None], x[..., 0], x[:, 1:2], x[:, -1], x[:, :, ::2], x[0], x[:, None, 1], x[:, 0, 1:3]),
        ROWS,
    ),
    "parts at positions": (
        lambda x: (
            x[:, rgrad.tensor([2, 0])],
            x[:, rgrad.tensor([0, 2]), rgrad.tensor([1, 3])],
            x[rgrad.tensor([0, 1]), rgrad.tensor([1, 2])],
            x[rgrad.arange(x.shape[0]), rgrad.zeros(1, dtype=rgrad.int64)],
        ),
        ROWS,
    ),
    "writes": (write, ROWS),
    "in place": (in_place, ROWS),
    "turns": (
        lambda x: (x.permute(0, 2, 1), x.transpose(0, 1), x.mT, x.swapaxes(0, 1), x.movedim(0, 1), x[0].T, x[0].t()),
        ROWS,
    ),
    "ones": (lambda x: (x.unsqueeze(0).squeeze(0), x[:, :1].squeeze(1), x.unsqueeze(-1)), ROWS),
    "repeats": (
        lambda x: (
            x[:, :1].expand(-1, 3, -1),
            x[:1].expand(x.shape[0], 3, 4),
            x[:, :1].expand_as(x),
            x.repeat(2, 1, 1),
            x.tile(2),
            x.repeat_interleave(2, 1),
            x.repeat_interleave(3, 0),
        ),
        ROWS,
    ),
    "pieces": (
        lambda x: (x.chunk(2, -1), x.split([1, 2], 1), x.split(2, 1), x.narrow(1, 0, 2), x.select(1, 0), x.unbind(1)),
        ROWS,
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1), (x > 0).tril(-1)), ROWS),
    "turned around": (lambda x: (x.flip(1), x.flip(1, 2), x.roll(1, 1), x.roll((1, -2), (1, 2))), ROWS),
    "put together": (lambda x: (rgrad.cat([x, x], 1), rgrad.stack([x, x], -1), rgrad.cat([x, x.long()], -1)), ROWS),
    "made": (
        lambda x: (
            rgrad.zeros_like(x),
            rgrad.ones(x.shape),
            rgrad.full((x.shape[0], 3), 2.0),
            rgrad.arange(x.shape[0]),
            rgrad.full_like(x, 3.0),
            rgrad.arange(0, x.shape[0] * 2, 2),
        ),
        ROWS,
    ),
    "grids": (
        lambda x: (
            rgrad.meshgrid(x[:, 0, 0], x[0, 0], indexing="ij") + rgrad.meshgrid(x[:, 0, 0], x[0, 0], indexing="xy")
        ),
        ROWS,
    ),
    "together": (lambda x: rgrad.broadcast_tensors(x, x[:1], x[:, :1]), ROWS),
    "scattered": (
        lambda x: (
            rgrad.zeros_like(x).scatter(1, x.argmax(1, keepdim=True), 1.0),
            rgrad.zeros_like(x).scatter_add(1, x.argmax(1, keepdim=True).expand(-1, 3, -1), x),
            x.gather(1, x.argmax(1, keepdim=True)),
            x.index_select(1, rgrad.tensor([0, 2])),
        ),
        ROWS,
    ),
    "edges": (
        lambda x: (
            F.pad(x, (1, 2)),
            F.pad(x, (1, 1, 0, 1), value=3.0),
            F.pad(x, (1, 1), mode="reflect"),
            F.pad(x, (1, 1), mode="replicate"),
            F.pad(x, (1, 1), mode="circular"),
        ),
        ROWS,
    ),
    "products": (
        lambda x: (
            x @ x.mT,
            rgrad.bmm(x, x.mT),
            rgrad.baddbmm(x @ x.mT, x, x.mT, beta=0.5, alpha=2),
            rgrad.addmm(x[0] @ x[0].T, x[0], x[0].T),
            x[0] @ x[0, 0],
            rgrad.dot(x[0, 0], x[0, 1]),
            rgrad.outer(x[0, 0], x[:, 0, 0]),
            rgrad.tensordot(x, rgrad.ones(4, 5), 1),
            rgrad.einsum("bij,bkj->bik", x, x),
        ),
        ROWS,
    ),
    "distances": (lambda x: (F.normalize(x, dim=-1), F.cosine_similarity(x, x * 2 + 1, dim=-1)), ROWS),
    "classes": (lambda x: (F.one_hot(x.argmax(1), 3), F.embedding(x.argmax(1), rgrad.eye(3))), ROWS),
    "attention": (
        lambda x: (
            F.scaled_dot_product_attention(x, x, x),
            F.scaled_dot_product_attention(x, x, x, is_causal=True),
            F.scaled_dot_product_attention(x, x, x, attn_mask=rgrad.ones(4, 4, dtype=rgrad.bool).tril()),
            F.scaled_dot_product_attention(x, x, x, attn_mask=rgrad.arange(16).view(4, 4) * 0.1, scale=0.3),
        ),
        HEADS,
    ),
    "nonzero": (lambda x: (x > 0).nonzero(), ROWS),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    function, given = CALLS[name]
    exported(function, given)


# Of two inputs.
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda a, b: (a + b, rgrad.add(a, b, alpha=2), a - b, a * b, a / b, a**b, a // b, a % b),
    "cut": lambda a, b: (
        rgrad.fmod(a, b),
        rgrad.div(a, b, rounding_mode="trunc"),
        rgrad.div(a, b, rounding_mode="floor"),
    ),
    "chosen": lambda a, b: (rgrad.maximum(a, b), rgrad.minimum(a, b), rgrad.max(a, b), rgrad.where(a > b, a, b)),
    "compared": lambda a, b: (a > b, a < b, a >= b, a <= b, a == b, a != b),
    "logic": lambda a, b: ((a > 1) | (b > 1), (a > 1) ^ (b > 1), rgrad.logical_and(a, b)),
    "three": lambda a, b: (rgrad.addcmul(a, a, b, value=2), rgrad.addcdiv(a, a, b), rgrad.lerp(a, b, 0.3)),
    "bounds": lambda a, b: a.clamp(max=b),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    exported(PAIRS[name], POSITIVE, POSITIVE.flip(0) + 0.1)


LAYERS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), IMAGE),
    "Conv2d same": (lambda: nn.Conv2d(4, 4, 4, padding="same"), IMAGE),
    "Conv2d reflect": (lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), IMAGE),
    "Conv1d": (lambda: nn.Conv1d(3, 5, 2, dilation=2), ROWS),
    "Conv3d": (lambda: nn.Conv3d(4, 2, 2), rgrad.randn(2, 4, 4, 4, 4)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 3, 2, 1, 1), IMAGE),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 4, 2, 2), ROWS),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1), IMAGE),
    "MaxPool2d ceil": (lambda: nn.MaxPool2d(3, 2, ceil_mode=True), IMAGE),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), ROWS),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1), IMAGE),
    "AvgPool2d without edges": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "AdaptiveAvgPool2d 1": (lambda: nn.AdaptiveAvgPool2d(1), IMAGE),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 5)), IMAGE),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), ROWS),
    "AdaptiveMaxPool2d 1": (lambda: nn.AdaptiveMaxPool2d(1), IMAGE),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(4), IMAGE),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), IMAGE),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), ROWS),
    "BatchNorm2d without weights": (lambda: nn.BatchNorm2d(4, affine=False), IMAGE),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm((8, 8)), IMAGE),
    "LayerNorm without weights": (lambda: nn.LayerNorm(8, elementwise_affine=False), IMAGE),
    "RMSNorm": (lambda: nn.RMSNorm(8), IMAGE),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), IMAGE),
    "PReLU": (lambda: nn.PReLU(4), IMAGE),
    "PReLU of one": (lambda: nn.PReLU(), ROWS),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), IMAGE),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), IMAGE),
    "Upsample nearest": (lambda: nn.Upsample(scale_factor=2), IMAGE),
    "Upsample nearest to a size": (lambda: nn.Upsample(size=(5, 5)), IMAGE),
    "Upsample nearest-exact": (lambda: nn.Upsample(size=(5, 5), mode="nearest-exact"), IMAGE),
    "Upsample bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "Upsample bilinear to a size": (lambda: nn.Upsample(size=(9, 11), mode="bilinear"), IMAGE),
    "Upsample with corners": (lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), IMAGE),
    "Upsample bicubic": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE),
    "Upsample linear": (lambda: nn.Upsample(size=7, mode="linear"), ROWS),
    "Embedding": (lambda: nn.Embedding(10, 4), rgrad.tensor([[1, 2, 3], [4, 5, 6]])),
    "Linear": (lambda: nn.Linear(4, 3), ROWS),
    "Linear of a matrix": (lambda: nn.Linear(4, 3), ROWS[0]),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), ROWS),
    "Dropout": (lambda: nn.Dropout(), ROWS),
    "LSTM": (lambda: nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True, dropout=0.5), ROWS),
    "LSTM without bias": (lambda: nn.LSTM(4, 3, bias=False, batch_first=True), ROWS),
    "GRU": (lambda: nn.GRU(4, 3, 2, batch_first=True), ROWS),
    "RNN": (lambda: nn.RNN(4, 3, batch_first=True, bidirectional=True), ROWS),
    "RNN of relu": (lambda: nn.RNN(4, 3, nonlinearity="relu", batch_first=True), ROWS),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3), ROWS[:, 0]),
    "GRUCell": (lambda: nn.GRUCell(4, 3), ROWS[:, 0]),
    "Flatten": (lambda: nn.Flatten(), IMAGE),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), IMAGE),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, given = LAYERS[name]
    exported(make(), given)


@pytest.mark.parametrize("opset", [18, 20])
def test_images_at_the_places_of_a_grid(opset: int) -> None:
    for mode in ("bilinear", "nearest"):
        for edge in ("zeros", "border"):
            exported(
                lambda x, at, m=mode, e=edge: F.grid_sample(x, at, mode=m, padding_mode=e, align_corners=False),
                IMAGE,
                GRID,
                opset_version=opset,
            )


def test_the_first_dimension_of_a_recurrent_network_is_time() -> None:
    exported(nn.LSTM(4, 3), ROWS, dynamic=False)
    exported(nn.LSTM(4, 3), ROWS)


def test_attention_of_several_inputs() -> None:
    exported(nn.MultiheadAttention(4, 2, batch_first=True), ROWS, ROWS, ROWS)
    exported(nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), ROWS, ROWS)


def test_random_numbers_have_the_shape_of_the_input() -> None:
    program = rgrad.onnx.export(lambda x: (rgrad.randn_like(x), rgrad.rand_like(x)), (ROWS,))
    assert program is not None
    normal, uniform = program(ROWS)
    assert normal.shape == uniform.shape == ROWS.shape
    assert (uniform >= 0).all()
    assert (uniform < 1).all()
    assert (normal < 0).any()


def test_a_wrong_converter_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "exp", TABLE["log"])
    with pytest.raises(rgrad.onnx.OnnxExporterError, match="output 0 of onnxruntime differs"):
        exported(lambda x: x.exp(), POSITIVE)
