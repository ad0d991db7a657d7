"""Counts of floating point operations."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from rgrad import nn
from rgrad.nn import functional as F
from rgrad.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula


def test_products_in_forward_and_backward() -> None:
    x, w = rgrad.ones(3, 4, requires_grad=True), rgrad.ones(4, 5, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        (x @ w).sum().backward()
    assert counter.get_flop_counts() == {"Global": {"aten.mm": 3 * 2 * 3 * 4 * 5}}


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda: rgrad.ones(2, 3, 4) @ rgrad.ones(2, 4, 5), ("aten.bmm", 2 * 2 * 3 * 4 * 5)),
        (lambda: rgrad.ones(2, 3, 4) @ rgrad.ones(4, 5), ("aten.mm", 2 * 2 * 3 * 4 * 5)),
        (lambda: rgrad.addmm(rgrad.ones(5), rgrad.ones(3, 4), rgrad.ones(4, 5)), ("aten.addmm", 120)),
        (lambda: F.linear(rgrad.ones(3, 4), rgrad.ones(5, 4), rgrad.ones(5)), ("aten.addmm", 120)),
        (lambda: F.linear(rgrad.ones(3, 4), rgrad.ones(5, 4)), ("aten.mm", 120)),
        (
            lambda: F.conv2d(rgrad.ones(2, 4, 8, 8), rgrad.ones(6, 2, 3, 3), groups=2, padding=1, stride=2),
            ("aten.convolution", 2 * 2 * 6 * 4 * 4 * 2 * 9),
        ),
        (
            lambda: F.conv_transpose1d(rgrad.ones(2, 4, 8), rgrad.ones(4, 4, 3), stride=2),
            ("aten.convolution", 2 * 2 * 4 * 8 * 4 * 3),
        ),
    ],
)
def test_forward(work: Any, expected: tuple[str, int]) -> None:
    with FlopCounterMode(display=False) as counter:
        work()
    assert counter.get_flop_counts() == {"Global": dict([expected])}


def test_gradients_of_convolutions_cost_as_much_each() -> None:
    x, w = rgrad.ones(2, 3, 8, 8, requires_grad=True), rgrad.ones(4, 3, 3, 3, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        F.conv2d(x, w).sum().backward()
    once = 2 * 2 * 4 * 36 * 27
    assert counter.get_flop_counts()["Global"] == {"aten.convolution": once, "aten.convolution_backward": 2 * once}


def test_attention() -> None:
    q, k, v = (rgrad.randn(2, 3, n, 8, requires_grad=True) for n in (5, 7, 7))
    with FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(q, k, v).sum().backward()
    counts = counter.get_flop_counts()["Global"]
    forward = 2 * 2 * (2 * 3 * 5 * 7) * 8
    assert counts["aten._scaled_dot_product_flash_attention"] == forward
    assert counts["aten._scaled_dot_product_flash_attention_backward"] == forward * 5 // 2


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers(kind: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    layer = getattr(nn, kind)(3, 5)
    data, width = rgrad.rand(7, 2, 3), gates * 5
    with FlopCounterMode(display=False) as counter:
        layer(data)[0].sum().backward()
    counts = counter.get_flop_counts()
    forward = 2 * 14 * width * (3 + 5)
    # Of the states' gradients the first one is not wanted.
    backward = 2 * 14 * width * 3 + 2 * width * 5 * (14 + 12)
    assert counts["Global"] == {"aten.addmm": forward, "aten.mm": backward}
    assert counts[kind] == counts["Global"]


def test_recurrent_layers_in_gradients_of_gradients_are_counted_once() -> None:
    layer, data = nn.GRU(3, 5), rgrad.rand(4, 2, 3)
    with FlopCounterMode(display=False) as counter:
        out = layer(data)[0].sum()
        once = counter.get_total_flops()
        rgrad.autograd.grad(out, layer.weight_hh_l0, create_graph=True)
    # The steps are run again, and have gradients for weights and states; nothing is counted twice.
    assert once < counter.get_total_flops() - once < 4 * once


def test_projections_and_packed_sequences() -> None:
    layer = nn.LSTM(3, 6, proj_size=2)
    with FlopCounterMode(display=False) as counter:
        layer(rgrad.rand(5, 2, 3))
    assert counter.get_total_flops() == 2 * 10 * (24 * 3 + 24 * 2 + 6 * 2)
    packed = nn.utils.rnn.pack_padded_sequence(rgrad.rand(5, 2, 3), [5, 2])
    with FlopCounterMode(display=False) as counter:
        nn.GRU(3, 4)(packed)
    assert counter.get_total_flops() == 2 * 7 * (12 * 3 + 12 * 4)


def test_modules_have_their_backward() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        model(rgrad.ones(3, 4)).sum().backward()
    counts = counter.get_flop_counts()
    first, last = 2 * 3 * 4 * 8, 2 * 3 * 8 * 2
    assert {name: sum(c.values()) for name, c in counts.items()} == {
        "Global": 2 * first + 3 * last,
        "Sequential": 2 * first + 3 * last,
        "Sequential.0": 2 * first,
        "Sequential.2": 3 * last,
    }
    table = counter.get_table()
    assert "Sequential.0" in table
    assert "Sequential.0" not in counter.get_table(1)
    assert "Global" not in table


def test_counts_so_far_and_the_printed_table(capsys: pytest.CaptureFixture[str]) -> None:
    x = rgrad.ones(100, 100)
    with FlopCounterMode() as counter:
        assert counter.get_total_flops() == 0
        x @ x
        assert counter.get_total_flops() == 2_000_000
        x @ x
    assert counter.get_total_flops() == 4_000_000
    assert capsys.readouterr().out.splitlines() == [
        "Module           FLOP    % Total",
        "----------  ---------  ---------",
        "Global      4000.000K    100.00%",
        " - aten.mm  4000.000K    100.00%",
    ]
    with counter:
        pass
    assert capsys.readouterr().out.splitlines()[-1].split() == ["Global", "0", "0%"]


def test_formulas_of_users() -> None:
    def elements(shape: list[int], out_shape: list[int] | None = None) -> int:
        assert out_shape == shape
        return 7 * shape[0]

    with FlopCounterMode(display=False, custom_mapping={"aten.tanh": elements}) as counter:
        rgrad.ones(3).tanh()
    assert counter.get_flop_counts() == {"Global": {"aten.tanh": 21}}
    register_flop_formula(["aten::exp", "sin"])(elements)
    try:
        with FlopCounterMode(display=False) as counter:
            rgrad.ones(2).exp().sin()
        assert counter.get_flop_counts() == {"Global": {"aten.exp": 14, "aten.sin": 14}}
    finally:
        flop_registry.clear()


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="name of an operation"):
        register_flop_formula(rgrad.mm)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name of an operation"):
        FlopCounterMode(custom_mapping={rgrad.mm: len})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="get_raw"):
        register_flop_formula("mm", get_raw=True)
    with pytest.warns(UserWarning, match="not needed"):
        FlopCounterMode(nn.Linear(2, 2))
    with FlopCounterMode(display=False) as counter, pytest.raises(RuntimeError, match="its block is running"):
        counter.__enter__()
