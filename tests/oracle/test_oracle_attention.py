"""Attention beside PyTorch: the function, several heads, transformers; values, gradients, names, errors."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

F, R = torch.nn.functional, rgrad.nn.functional
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "float16": 4e-3, "bfloat16": 3e-2}


def ours(t: Any) -> Any:
    """The tensor in rgrad, with the same strides."""
    if t is None:
        return None
    kind = str(t.dtype).rpartition(".")[2]
    whole = t.detach().as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
    wide = whole.float() if kind in ("float16", "bfloat16") else whole
    return rgrad.tensor(wide.numpy()).to(getattr(rgrad, kind)).as_strided(t.shape, t.stride(), t.storage_offset())


# How queries, keys and values lie in memory.
FORMS = ["plain", "plain", "heads inside", "rows first", "part of rows"]


def close(theirs: Any, mine: Any, what: Any, scale: float = 1.0) -> None:
    if theirs is None or mine is None:
        assert theirs is mine, what
        return
    kind = str(theirs.dtype).rpartition(".")[2]
    assert str(mine.dtype).rpartition(".")[2] == kind, what
    assert tuple(theirs.shape) == tuple(mine.shape), what
    a, b = theirs.detach().double(), torch.tensor(mine.detach().double().numpy())
    top = max(1.0, float(a.abs().max())) if a.numel() else 1.0
    assert torch.allclose(a, b, rtol=0, atol=TOLERANCE[kind] * top * scale, equal_nan=True), what


@pytest.mark.parametrize("seed", range(40))
def test_the_function(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(5):
        lead = rng.choice([(), (3,), (2, 4), (2, 4), (2, 4), (2, 1, 2)])
        length, keys = rng.choice([1, 3, 5, 64, 65, 130]), rng.choice([1, 2, 7, 33, 128, 129, 300])
        e = rng.choice([1, 3, 8, 16, 17, 40, 64])
        ev = rng.choice([e, e, e, 1, 33])
        grouped = len(lead) > 0 and rng.random() < 0.3
        of_keys = (*lead[:-1], rng.choice([h for h in (1, 2, 3, 4) if lead[-1] % h == 0])) if grouped else lead
        kind = getattr(torch, rng.choice(["float32", "float32", "float64", "float16", "bfloat16"]))

        def draw(*shape: int) -> Any:
            wide = torch.randn(*shape, dtype=kind)  # noqa: B023
            form = rng.choice(FORMS) if len(shape) > 2 else "plain"
            if form == "rows first" and len(shape) == 4:
                return wide.permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)
            if form in ("heads inside", "rows first"):
                return wide.transpose(-2, -3).contiguous().transpose(-2, -3)
            if form == "part of rows":
                # As heads of one product for queries, keys and values.
                inside = wide.transpose(-2, -3)
                return torch.cat([inside, inside, inside], -2).chunk(3, -2)[1].transpose(-2, -3)
            return wide

        theirs = [draw(*lead, length, e), draw(*of_keys, keys, e), draw(*of_keys, keys, ev)]
        mask = None
        if rng.random() < 0.5:
            shape = (length, keys)
            if rng.random() < 0.5:
                shape = (*(rng.choice([1, n]) for n in lead), rng.choice([1, length]), rng.choice([1, keys]))
            mask = torch.rand(shape) < 0.7 if rng.random() < 0.5 else torch.randn(shape).to(kind)
        causal = mask is None and rng.random() < 0.4
        params = {"is_causal": causal, "scale": rng.choice([None, 0.3]), "enable_gqa": grouped}
        mine = [ours(t).requires_grad_() for t in theirs]
        theirs = [t.requires_grad_() for t in theirs]
        a, b = (
            F.scaled_dot_product_attention(*theirs, mask, **params),
            R.scaled_dot_product_attention(*mine, ours(mask), **params),
        )
        what = (lead, of_keys, length, keys, e, ev, kind, params, mask is not None and (mask.dtype, tuple(mask.shape)))
        close(a, b, what, 4)
        if len(lead) == 2 and min(length, keys, e, ev, *lead) > 1:
            assert a.stride() == b.stride(), what
        g = torch.randn(a.shape).to(kind)
        expected = torch.autograd.grad(a, theirs, g)
        for recorded in (False, True):
            if recorded and length * keys > 2000:
                continue
            made = rgrad.autograd.grad(b, mine, ours(g), create_graph=recorded, retain_graph=True)
            for x, y in zip(expected, made, strict=True):
                close(x, y, (recorded, what), 20)


def _named(T: Any, shapes: tuple[Any, ...], **params: Any) -> Any:
    a = [T.ones(s, requires_grad=True) for s in shapes]
    return T.nn.functional.scaled_dot_product_attention(*a, **params)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
        ((3, 5, 8), (3, 7, 8), (3, 7, 8)),
        ((5, 8), (7, 8), (7, 8)),
        ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4)),
        ((2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 8)),
    ],
)
def test_the_names_of_nodes_and_what_they_keep(shapes: tuple[Any, ...]) -> None:
    a, b = _named(torch, shapes), _named(rgrad, shapes)
    assert a.grad_fn.name() == b.grad_fn.name()
    if "Flash" in a.grad_fn.name():
        kept = {n for n in dir(a.grad_fn) if n.startswith("_saved")}
        assert kept == {n for n in dir(b.grad_fn) if n.startswith("_saved")}
        assert a.grad_fn._saved_logsumexp.stride() == b.grad_fn._saved_logsumexp.stride()


BAD = [
    lambda T, q: (q.double(), q, q),
    lambda T, q: (q[0, 0, 0], q, q),
    lambda T, q: (q, q, q, T.ones(4, 4, dtype=T.int64)),
    lambda T, q: (q, q, q, T.ones(4, 5)),
    lambda T, q: (q, q, q, T.ones(2, 1, 2, 4, 4)),
    lambda T, q: (q, q, q, T.ones(4)),
    lambda T, q: (q, q, q, None, 1.5),
    lambda T, q: (q, q[:, :, :, :2], q),
    lambda T, q: (q.long(), q.long(), q.long()),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case: int) -> None:
    def call(T: Any) -> Any:
        return T.nn.functional.scaled_dot_product_attention(*BAD[case](T, T.ones(1, 2, 4, 8)))

    theirs, mine = attempt(lambda: call(torch)), attempt(lambda: call(rgrad))
    assert theirs.error is not None, theirs
    assert mine.error is theirs.error, (theirs, mine)
    assert theirs.message[:40] in mine.message, (theirs, mine)


def _copied(theirs: Any, mine: Any) -> None:
    with torch.no_grad():
        for p in theirs.parameters():
            p.normal_(0, 0.5)
    assert list(theirs.state_dict()) == list(mine.state_dict())
    assert repr(theirs) == repr(mine)
    mine.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})


@pytest.mark.parametrize("seed", range(60))
def test_several_heads(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    e, heads = rng.choice([(4, 2), (6, 3), (8, 1), (12, 4)])
    kdim, vdim = rng.choice([None, None, 5]), rng.choice([None, None, 3])
    params = {
        "bias": rng.random() < 0.7,
        "add_bias_kv": rng.random() < 0.25,
        "add_zero_attn": rng.random() < 0.25,
        "kdim": kdim,
        "vdim": vdim,
        "batch_first": rng.random() < 0.4,
    }
    theirs, mine = torch.nn.MultiheadAttention(e, heads, **params), rgrad.nn.MultiheadAttention(e, heads, **params)
    _copied(theirs, mine)
    length, keys, batch = rng.choice([1, 3, 5]), rng.choice([2, 4]), rng.choice([1, 2, 3])
    alone = kdim is None and vdim is None and rng.random() < 0.5
    keys = length if alone else keys
    single = rng.random() < 0.3

    def draw(n: int, size: int) -> Any:
        return torch.randn((n, size) if single else (batch, n, size) if params["batch_first"] else (n, batch, size))

    given = [draw(length, e)] if alone else [draw(length, e), draw(keys, kdim or e), draw(keys, vdim or e)]
    own = [ours(t).requires_grad_() for t in given]
    given = [t.requires_grad_() for t in given]
    call: dict[str, Any] = {"need_weights": rng.random() < 0.5, "average_attn_weights": rng.random() < 0.5}
    if rng.random() < 0.4:
        call["key_padding_mask"] = torch.rand(keys if single else (batch, keys)) < 0.3
        call["key_padding_mask"][..., 0] = False
    if rng.random() < 0.5:
        shape = (length, keys) if rng.random() < 0.6 else ((heads if single else batch * heads), length, keys)
        call["attn_mask"] = torch.rand(shape) < 0.3 if rng.random() < 0.5 else torch.randn(shape)
        if call["attn_mask"].dtype == torch.bool:
            call["attn_mask"][..., 0] = False
    elif alone and rng.random() < 0.5:
        call["attn_mask"] = torch.nn.Transformer.generate_square_subsequent_mask(length)
        call["is_causal"] = True
    of_ours = {k: ours(v) if isinstance(v, torch.Tensor) else v for k, v in call.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, weights = theirs(*(given * 3)[:3], **call)
        b, own_weights = mine(*(own * 3)[:3], **of_ours)
    close(a, b, seed)
    close(weights, own_weights, seed)
    g = torch.randn(a.shape)
    expected = torch.autograd.grad(a, [*given, *theirs.parameters()], g, allow_unused=True)
    made = rgrad.autograd.grad(b, [*own, *mine.parameters()], ours(g), allow_unused=True)
    for x, y in zip(expected, made, strict=True):
        close(x, y, seed, 10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_transformers(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    params: dict[str, Any] = {
        "d_model": 8,
        "nhead": 2,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "dim_feedforward": 12,
        "dropout": 0.0,
        "activation": rng.choice(["relu", "gelu"]),
        "batch_first": rng.random() < 0.5,
        "norm_first": rng.random() < 0.5,
        "bias": rng.random() < 0.7,
    }
    theirs, mine = torch.nn.Transformer(**params), rgrad.nn.Transformer(**params)
    _copied(theirs, mine)
    shapes = [(2, 5, 8), (2, 4, 8)] if params["batch_first"] else [(5, 2, 8), (4, 2, 8)]
    given = [torch.randn(s) for s in shapes]
    own = [ours(t).requires_grad_() for t in given]
    given = [t.requires_grad_() for t in given]
    call: dict[str, Any] = {}
    if rng.random() < 0.5:
        call["tgt_mask"] = theirs.generate_square_subsequent_mask(4)
    if rng.random() < 0.5:
        hidden = torch.rand(2, 5) < 0.3
        hidden[:, 0] = False
        call["src_key_padding_mask"] = call["memory_key_padding_mask"] = hidden
    a, b = theirs(*given, **call), mine(*own, **{k: ours(v) for k, v in call.items()})
    close(a, b, seed, 4)
    g = torch.randn(a.shape)
    expected = torch.autograd.grad(a, [*given, *theirs.parameters()], g)
    made = rgrad.autograd.grad(b, [*own, *mine.parameters()], ours(g))
    for x, y in zip(expected, made, strict=True):
        close(x, y, seed, 20)
