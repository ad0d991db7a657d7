"""Recurrent networks and cells under autocast: inputs, states and weights of several dtypes, and what results have."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from rgrad import nn

FLOATS = [rgrad.float32, rgrad.bfloat16, rgrad.float16]


def result_dtype(kind: str, state: rgrad.dtype, smaller: rgrad.dtype) -> rgrad.dtype:
    """PyTorch's: in a GRU the state meets the products, which have the smaller type."""
    return rgrad.promote_types(state, smaller) if kind == "GRU" else smaller


@pytest.mark.parametrize("smaller", FLOATS[1:], ids=str)
@pytest.mark.parametrize("weights", FLOATS, ids=str)
@pytest.mark.parametrize("given", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_networks(kind: str, given: Any, weights: Any, smaller: Any) -> None:
    rgrad.manual_seed(1)
    exact = getattr(nn, kind)(4, 3, 2, bidirectional=True)
    x = rgrad.randn(5, 2, 4)
    wanted, last = exact(x)
    network = getattr(nn, kind)(4, 3, 2, bidirectional=True).to(weights)
    network.load_state_dict(exact.state_dict())
    state = rgrad.zeros(4, 2, 3, dtype=given)
    for hx in (None, (state, state) if kind == "LSTM" else state):
        with rgrad.autocast("cpu", dtype=smaller):
            out, states = network(x.to(given), hx)
        states = states if kind == "LSTM" else (states,)
        assert [t.dtype for t in (out, *states)] == [result_dtype(kind, given, smaller)] * (1 + len(states))
        assert (out.float() - wanted).abs().max() < 0.03
        assert (states[0].float() - (last[0] if kind == "LSTM" else last)).abs().max() < 0.03
    out.float().sum().backward()
    for p in network.parameters():
        assert p.grad is not None
        assert p.grad.dtype == weights
        assert p.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_packed_sequences(kind: str) -> None:
    network = getattr(nn, kind)(4, 3)
    rows = [rgrad.ones(n, 4, dtype=rgrad.bfloat16) for n in (3, 1, 2)]
    packed = nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
    with pytest.raises(ValueError, match="RNN input dtype"):
        network(packed)
    with rgrad.autocast("cpu"):
        out, _ = network(packed)
    assert out.data.dtype == rgrad.bfloat16
    assert out.data.shape == (6, 3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_float64_stays_and_does_not_mix(kind: str) -> None:
    network, x = getattr(nn, kind)(4, 3).double(), rgrad.ones(5, 2, 4)
    with rgrad.autocast("cpu"):
        assert network(x.double())[0].dtype == rgrad.float64
        with pytest.raises(RuntimeError, match="dtype"):
            network(x)
    with pytest.raises(ValueError, match=r"RNN input dtype \(rgrad.float32\) does not match weight dtype"):
        network(x)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_where_autocast_is_off_networks_are_exact(kind: str) -> None:
    network, x = getattr(nn, kind)(4, 3), rgrad.randn(5, 2, 4)
    wanted = network(x)[0]
    with rgrad.autocast("cpu"), rgrad.autocast("cpu", enabled=False):
        assert network(x)[0].equal(wanted)
    with rgrad.autocast("wgpu"):
        assert network(x)[0].equal(wanted)


@pytest.mark.parametrize("smaller", FLOATS[1:], ids=str)
@pytest.mark.parametrize("weights", FLOATS, ids=str)
@pytest.mark.parametrize("given", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_cells(kind: str, given: Any, weights: Any, smaller: Any) -> None:
    """The state of an LSTM meets the products in its cell, as that of a GRU does."""
    cell = getattr(nn, f"{kind}Cell")(4, 3).to(weights)
    with rgrad.autocast("cpu", dtype=smaller):
        made = cell(rgrad.ones(2, 4, dtype=given))
    wanted = smaller if kind == "RNN" else rgrad.promote_types(given, smaller)
    assert [t.dtype for t in (made if kind == "LSTM" else (made,))] == [wanted] * (2 if kind == "LSTM" else 1)
