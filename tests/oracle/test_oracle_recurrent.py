"""Recurrent networks beside PyTorch: layers, directions, projections, packed sequences, cells, both orders."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402
from test_oracle_attention import close, ours  # noqa: E402


def _network(rng: random.Random) -> tuple[str, tuple[int, int], dict[str, Any]]:
    kind = rng.choice(["LSTM", "GRU", "RNN"])
    hidden = rng.choice([2, 3, 4, 17, 40])
    params: dict[str, Any] = {
        "num_layers": rng.choice([1, 1, 2]),
        "bidirectional": rng.random() < 0.4,
        "batch_first": rng.random() < 0.3,
        "bias": rng.random() < 0.7,
    }
    if kind == "LSTM" and hidden > 2 and rng.random() < 0.4:
        params["proj_size"] = rng.choice([1, 2])
    if kind == "RNN":
        params["nonlinearity"] = rng.choice(["tanh", "relu"])
    return kind, (rng.choice([1, 3, 5, 16]), hidden), params


@pytest.mark.parametrize("seed", range(80))
def test_networks(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    kind, sizes, params = _network(rng)
    dtype = rng.choice(["float32", "float64"])
    theirs = getattr(torch.nn, kind)(*sizes, **params).to(getattr(torch, dtype))
    mine = getattr(rgrad.nn, kind)(*sizes, **params).to(getattr(rgrad, dtype))
    assert repr(theirs) == repr(mine)
    assert list(theirs.state_dict()) == list(mine.state_dict())
    assert theirs._flat_weights_names == mine._flat_weights_names
    mine.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    steps, batch = rng.choice([1, 2, 5]), rng.choice([1, 2, 3, 9, 17])
    way = rng.choice(["dense", "dense", "packed", "alone"])
    first = params["batch_first"]
    shape = (steps, sizes[0]) if way == "alone" else (batch, steps, sizes[0]) if first else (steps, batch, sizes[0])
    x = torch.randn(shape, dtype=getattr(torch, dtype))
    leaves, own = [x], [ours(x).requires_grad_()]
    hidden: Any = None
    own_hidden: Any = None
    if rng.random() < 0.5:
        count = params["num_layers"] * (1 + params["bidirectional"])
        widths = [params.get("proj_size", 0) or sizes[1], *([sizes[1]] if kind == "LSTM" else [])]
        states = [torch.randn((count, w) if way == "alone" else (count, batch, w), dtype=x.dtype) for w in widths]
        own_states = [ours(t).requires_grad_() for t in states]
        states = [t.requires_grad_() for t in states]
        leaves, own = [x, *states], [*own, *own_states]
        hidden, own_hidden = (tuple(states), tuple(own_states)) if kind == "LSTM" else (states[0], own_states[0])
    x.requires_grad_()
    a, b = x, own[0]
    if way == "packed":
        lengths = [rng.randint(1, steps) for _ in range(batch)]
        is_sorted = rng.random() < 0.5
        lengths = sorted(lengths, reverse=True) if is_sorted else lengths
        a, b = (
            T.nn.utils.rnn.pack_padded_sequence(t, lengths, batch_first=first, enforce_sorted=is_sorted)
            for T, t in ((torch, a), (rgrad, b))
        )
        assert a.batch_sizes.tolist() == b.batch_sizes.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, last = theirs(a, hidden)
    b, own_last = mine(b, own_hidden)
    if way == "packed":
        (a, lengths), (b, own_lengths) = (
            T.nn.utils.rnn.pad_packed_sequence(p, batch_first=first, padding_value=1.5, total_length=steps + 1)
            for T, p in ((torch, a), (rgrad, b))
        )
        assert lengths.tolist() == own_lengths.tolist()
    what = (kind, sizes, params, steps, batch, way, dtype)
    outs = [a, *(last if kind == "LSTM" else [last])]
    own_outs = [b, *(own_last if kind == "LSTM" else [own_last])]
    for s, t in zip(outs, own_outs, strict=True):
        close(s, t, what)
    if way == "dense":
        assert a.stride() == b.stride(), what
    picked = rng.choice([[0], [0, 1], [1], list(range(len(outs)))])
    gs = [torch.randn(outs[i].shape, dtype=x.dtype) for i in picked]
    theirs_all, mine_all = [*leaves, *theirs.parameters()], [*own, *mine.parameters()]
    orders = 2 if dtype == "float64" and params.get("nonlinearity") != "relu" and seed % 2 else 1
    for order in range(orders):
        expected = torch.autograd.grad(
            [outs[i] for i in picked], theirs_all, gs, allow_unused=True, retain_graph=True, create_graph=order > 0
        )
        made = rgrad.autograd.grad(
            [own_outs[i] for i in picked],
            mine_all,
            [ours(g) for g in gs],
            allow_unused=True,
            retain_graph=True,
            create_graph=order > 0,
        )
        if order > 0:
            expected = torch.autograd.grad(
                sum((g**2).sum() for g in expected if g is not None), theirs_all, allow_unused=True
            )
            made = rgrad.autograd.grad(sum((g**2).sum() for g in made if g is not None), mine_all, allow_unused=True)
        for k, (s, t) in enumerate(zip(expected, made, strict=True)):
            if s is None and t is not None:
                assert not t.any(), (k, order, what)
            else:
                close(s, t, (k, order, what), 100)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("shape", [(2, 4), (4,)])
def test_cells(kind: str, shape: tuple[int, ...]) -> None:
    theirs, mine = getattr(torch.nn, kind)(4, 3), getattr(rgrad.nn, kind)(4, 3)
    assert repr(theirs) == repr(mine)
    mine.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    x = torch.randn(shape)
    a, b = theirs(x), mine(ours(x))
    for s, t in zip(a, b, strict=True) if kind == "LSTMCell" else [(a, b)]:
        close(s, t, kind)
        if len(shape) == 2:
            assert s.grad_fn.name() == t.grad_fn.name()


BAD = [
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 4)),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 4, 5)),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 5), (T.ones(2, 2, 6), T.ones(2, 3, 6))),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 5), (T.ones(2, 3, 6), T.ones(2, 3, 5))),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 5), (T.ones(2, 6), T.ones(2, 3, 6))),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 5), (T.ones(2, 3, 6), T.ones(2, 3, 6))),
    lambda T: T.nn.LSTM(5, 6, 2)(T.ones(2, 3, 5).double()),
    lambda T: T.nn.GRU(5, 6)(T.ones(2, 3, 5), T.ones(2, 6)),
    lambda T: T.nn.GRU(5, 6, proj_size=2),
    lambda T: T.nn.LSTM(5, 6, proj_size=7),
    lambda T: T.nn.LSTM(5, 6, proj_size=-1),
    lambda T: T.nn.LSTM(5, 0),
    lambda T: T.nn.LSTM(5, 6, 0),
    lambda T: T.nn.LSTM(5, 1.5),
    lambda T: T.nn.LSTM(5, 6, dropout=2),
    lambda T: T.nn.RNN(5, 6, nonlinearity="x"),
    lambda T: T.nn.LSTMCell(5, 6)(T.ones(2, 3, 5)),
    lambda T: T.nn.LSTMCell(5, 6)(T.ones(2, 4)),
    lambda T: T.nn.GRUCell(5, 6)(T.ones(2, 5), T.ones(3, 6)),
    lambda T: T.nn.GRUCell(5, 6)(T.ones(2, 5), T.ones(2, 5)),
    lambda T: T.nn.LSTMCell(5, 6)(T.ones(2, 5), T.ones(2, 5)),
    lambda T: T.nn.utils.rnn.pack_padded_sequence(T.ones(4, 3, 5), [1, 2, 4]),
    lambda T: T.nn.utils.rnn.pack_padded_sequence(T.ones(4, 3, 5), [4, 0, 0]),
    lambda T: T.nn.utils.rnn.pack_padded_sequence(T.ones(4, 3, 5), [4, 3]),
    lambda T: T.nn.utils.rnn.pack_sequence([T.ones(2, 3), T.ones(3, 3)]),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case: int) -> None:
    theirs, mine = attempt(lambda: BAD[case](torch)), attempt(lambda: BAD[case](rgrad))
    assert theirs.error is not None, theirs
    assert mine.error is theirs.error, (theirs, mine)
    assert theirs.message.replace("torch.", "rgrad.")[:50] in mine.message, (theirs, mine)
