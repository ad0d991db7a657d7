"""Models as tables: shapes, counts that add up, and models that are left as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import nn
from rgrad.nn._summary import Summary
from rgrad.vision import models

F = nn.functional


def rows(table: Summary) -> dict[str, Any]:
    return {row.name: row for row in table.layers}


def test_a_small_model() -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2, bias=False), nn.Dropout()))
    table = rgrad.summary(model, rgrad.ones(16, 8))
    found = rows(table)
    assert list(found) == ["", "0", "1", "2", "2.0", "2.1"]
    assert found["0"] == ("0", "Linear", 1, ((16, 8),), ((16, 4),), 1, 36, 36, 256, 512, None)
    assert found["2.0"].multiply_adds == 16 * 4 * 2
    assert (table.total_parameters, table.trainable_parameters, table.multiply_adds) == (44, 44, 640)
    assert (table.input_bytes, table.output_bytes, table.parameter_bytes) == (512, 2 * 256 + 2 * 128, 176)
    assert str(table) == repr(table)
    assert str(table).splitlines()[:8] == [
        "Layer (type)       Output shape  Parameters  Output memory  Multiply-adds",
        "─────────────────────────────────────────────────────────────────────────",
        "Sequential         [16, 2]                –              –              –",
        "├─ 0 (Linear)      [16, 4]               36          256 B            512",
        "├─ 1 (ReLU)        [16, 4]                –          256 B              –",
        "└─ 2 (Sequential)  [16, 2]                –              –              –",
        "   ├─ 0 (Linear)   [16, 2]                8          128 B            128",
        "   └─ 1 (Dropout)  [16, 2]                –          128 B              –",
    ]
    html = table._repr_html_()
    assert html.count("<tr>") == 7
    assert "Multiply-adds: 640" in html


@pytest.mark.parametrize("depth", range(5))
def test_columns_add_up_at_every_depth(depth: int) -> None:
    model = models.resnet18(num_classes=10)
    whole = rgrad.summary(model, input_size=(2, 3, 64, 64), depth=9)
    table = rgrad.summary(model, input_size=(2, 3, 64, 64), depth=depth)
    assert max(row.level for row in table.layers) == min(depth, 4)
    for name in ("total_parameters", "trainable_parameters", "multiply_adds", "output_bytes", "parameter_bytes"):
        assert getattr(table, name) == getattr(whole, name), name
    assert whole.total_parameters == sum(p.numel() for p in model.parameters())
    assert whole.buffer_bytes == sum(b.numel() * b.element_size() for b in model.buffers())


def test_resnet_has_its_known_size() -> None:
    table = rgrad.summary(models.resnet18(), input_size=(1, 3, 224, 224))
    assert table.total_parameters == 11_689_512
    # The 1.8 billion of the paper.
    assert table.multiply_adds == 1_814_073_344


class Tied(nn.Module):
    """Two layers with one weight, one layer under two names, one that is never called, a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.again = self.first
        self.unused = nn.Linear(4, 3)
        self.frozen = nn.Linear(4, 2).requires_grad_(False)
        self.own = nn.Parameter(rgrad.ones(5))

    def forward(self, x: rgrad.Tensor, y: rgrad.Tensor | None = None) -> dict[str, Any]:
        x = self.again(self.second(self.first(x)))
        return {"a": self.frozen(x), "b": [x @ x.mT]}


def test_shared_and_frozen_parameters() -> None:
    table = rgrad.summary(Tied(), {"x": rgrad.ones(3, 4)})
    found = rows(table)
    assert found["first"].parameters == 16
    assert found["first"].calls == 2
    assert found["first"].multiply_adds == 2 * 3 * 16
    assert found["second"].parameters == 0
    assert found["again"].shared == "first"
    assert found["unused"].calls == 0
    assert found["frozen"].trainable == 0
    assert found[""].parameters == 5
    assert found[""].multiply_adds == 3 * 3 * 4
    assert found[""].output_shapes == ((3, 2), (3, 3))
    assert table.total_parameters == 16 + 15 + 10 + 5
    assert table.total_parameters - table.trainable_parameters == 10
    text = str(table)
    assert "as first" in text
    assert "[3, 4] × 2" in text
    assert "not called" in text


def test_without_input_there_are_parameters_only() -> None:
    table = rgrad.summary(Tied())
    assert not table.was_run
    assert table.total_parameters == 46
    assert str(table).splitlines()[0].split() == ["Layer", "(type)", "Parameters"]
    assert "Multiply-adds" not in table._repr_html_()


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model[3].eval()
    seen: list[int] = []
    handle = model[0].register_forward_hook(lambda *_: seen.append(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    rgrad.manual_seed(3)
    expected = rgrad.rand(4)
    for training in (False, True):
        rgrad.manual_seed(3)
        rgrad.summary(model, rgrad.randn(8, 4) if not training else None, training=training)
        rgrad.manual_seed(3)
        rgrad.summary(model, input_size=(8, 4), training=training)
        assert rgrad.equal(rgrad.rand(4), expected)
    for name, value in model.state_dict().items():
        assert rgrad.equal(value, before[name])
    assert [m.training for m in model] == [True, True, True, False]
    assert len(seen) == 3
    assert list(model[0]._forward_hooks) == [handle.id]
    assert not model[1]._hooked
    assert all(p.grad is None for p in model.parameters())
    assert rgrad.is_grad_enabled()


def test_buffers_that_cannot_be_written_are_left_alone() -> None:
    frozen = nn.BatchNorm1d(3)
    for buffer in frozen.buffers():
        buffer.freeze_()
    rgrad.summary(frozen, rgrad.ones(2, 3))
    with rgrad.inference_mode():
        inference = nn.BatchNorm1d(3)
        rgrad.summary(inference, rgrad.rand(2, 3), training=True)
    assert inference.running_mean.tolist() == [0.0, 0.0, 0.0]
    meta = nn.BatchNorm1d(3, device="meta")
    assert rgrad.summary(meta, rgrad.ones(2, 3, device="meta"), training=True).total_parameters == 6


def test_training_uses_dropout_and_statistics_of_the_batch() -> None:
    modes = []

    class Probe(nn.Module):
        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            modes.append((self.training, rgrad.is_grad_enabled()))
            return x

    rgrad.summary(Probe(), rgrad.ones(2))
    rgrad.summary(Probe(), rgrad.ones(2), training=True)
    assert modes == [(False, False), (True, False)]


def test_lazy_layers_stay_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    table = rgrad.summary(model, input_size=(3, 5))
    assert table.total_parameters == 5 * 4 + 4 + 8
    assert rows(table)["0"].kind == "Linear"
    assert type(model[0]) is nn.LazyLinear
    assert model[0].has_uninitialized_params()
    assert rgrad.summary(model).total_parameters == 4 or rgrad.summary(model).total_parameters == 0


def test_sizes_dtypes_and_devices(device: str) -> None:
    rgrad.set_default_device("cpu")
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)).to(device)
    table = rgrad.summary(model, input_size=(3, 7), dtypes=[rgrad.int64])
    assert rows(table)["1"].output_shapes == ((3, 7, 2),)
    assert table.input_bytes == 21 * 8

    class Two(nn.Module):
        def forward(self, a: rgrad.Tensor, b: rgrad.Tensor) -> tuple[rgrad.Tensor, rgrad.Tensor]:
            return a @ b, b

    table = rgrad.summary(Two(), input_size=[(2, 3), (3, 4)], device=device)
    assert table.layers[0].input_shapes == ((2, 3), (3, 4))
    assert table.multiply_adds == 24


def test_many_results_are_cut() -> None:
    class Many(nn.Module):
        def forward(self, x: rgrad.Tensor) -> tuple[rgrad.Tensor, ...]:
            return x.unbind()

    assert "[2], [2], [2] + 3 more" in str(rgrad.summary(Many(), rgrad.ones(6, 2)))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: rgrad.summary(3), TypeError, "expected an nn.Module, got int"),
        (lambda m: rgrad.summary(nn.Linear), TypeError, "expected an nn.Module, got type"),
        (lambda m: rgrad.summary(m, rgrad.ones(2), input_size=(2,)), ValueError, "both input and input_size"),
        (lambda m: rgrad.summary(m, input_size=(2, -1)), ValueError, r"got input_size=\(2, -1\)"),
        (lambda m: rgrad.summary(m, input_size="12"), ValueError, "got input_size='12'"),
        (lambda m: rgrad.summary(m, input_size=3), ValueError, "got input_size=3"),
        (lambda m: rgrad.summary(m, input_size=[(2, 2), 3]), ValueError, "expected a shape of whole numbers"),
        (lambda m: rgrad.summary(m, input_size=(2, 2), dtypes=[]), ValueError, "got 0 dtypes for 1 inputs"),
        (lambda m: rgrad.summary(m, dtypes=[rgrad.int64]), ValueError, "of use only with input_size"),
        (lambda m: rgrad.summary(m, depth=-1), ValueError, "got depth=-1"),
        (lambda m: rgrad.summary(m, depth="a"), TypeError, "got depth of type str"),
    ],
)
def test_bad_input(call: Callable[..., Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(nn.Linear(2, 2))


def test_errors_name_the_layer() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))
    with pytest.raises(RuntimeError) as caught:
        rgrad.summary(model, rgrad.ones(5, 2))
    assert "summary: this was raised by layer '1.1'" in caught.value.__notes__
    assert not any(m._forward_hooks or m._hooked for m in model.modules())


def counted(f: Callable[[], Any]) -> int:
    class Work(nn.Module):
        def forward(self, _x: rgrad.Tensor) -> None:
            f()

    return rgrad.summary(Work(), rgrad.ones(1)).multiply_adds


def test_counts_by_hand() -> None:
    a, b, c = rgrad.ones(3, 4), rgrad.ones(4, 5), rgrad.ones(2, 3, 4)
    cases: list[tuple[Callable[[], Any], int]] = [
        (lambda: a @ b, 60),
        (lambda: a.mm(b), 60),
        (lambda: rgrad.matmul(c, b), 120),
        (lambda: rgrad.bmm(c, c.mT), 2 * 3 * 3 * 4),
        (lambda: a.mv(b[:, 0]), 12),
        (lambda: rgrad.dot(a[0], b[:, 0]), 4),
        (lambda: rgrad.addmm(rgrad.ones(5), a, b), 60),
        (lambda: rgrad.baddbmm(rgrad.ones(3), c, c.mT), 72),
        (lambda: rgrad.addbmm(rgrad.ones(3), c, c.mT), 72),
        (lambda: rgrad.addmv(rgrad.ones(3), a, b[:, 0]), 12),
        (lambda: rgrad.einsum("ij,jk->ik", a, b), 60),
        (lambda: rgrad.einsum("ij,jk", a, b), 60),
        (lambda: rgrad.einsum("ij,jk,kl->il", a, b, rgrad.ones(5, 6)), 60 + 90),
        (lambda: rgrad.einsum("bij,bkj->bik", c, c), 72),
        (lambda: rgrad.einsum("...ij,...jk", c, b), 2 * 60),
        (lambda: rgrad.einsum("...ij,...jk->...ik", c, b), 2 * 60),
        (lambda: rgrad.tensordot(a, b, dims=1), 60),
        (lambda: F.linear(a, rgrad.ones(7, 4)), 84),
        (lambda: F.bilinear(a, a, rgrad.ones(6, 4, 4)), 3 * 4 * 4 * 6 + 3 * 4 * 6),
        (lambda: F.conv2d(rgrad.ones(2, 4, 8, 8), rgrad.ones(6, 2, 3, 3), groups=2), 2 * 6 * 36 * 18),
        (lambda: F.conv1d(rgrad.ones(2, 4, 8), rgrad.ones(6, 4, 3), padding="same"), 2 * 6 * 8 * 12),
        (lambda: F.conv_transpose2d(rgrad.ones(1, 3, 4, 4), rgrad.ones(3, 5, 2, 2)), 48 * 20),
        (lambda: F.scaled_dot_product_attention(c, c, c), 2 * 3 * 3 * 8),
        (lambda: nn.LSTM(4, 5, 2)(rgrad.ones(7, 3, 4)), 21 * (20 * 4 + 20 * 5 * 3)),
        (lambda: nn.GRU(4, 5, bidirectional=True)(rgrad.ones(7, 3, 4)), 21 * 2 * (15 * 4 + 15 * 5)),
        (lambda: nn.RNNCell(4, 5)(rgrad.ones(3, 4)), 3 * 5 * 9),
        (lambda: (a + a).exp().sum(), 0),
    ]
    for i, (f, want) in enumerate(cases):
        assert counted(f) == want, i
