"""Autocast and the scaler of gradients beside PyTorch: which operations run in which dtype, scales, states, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

RNG = np.random.default_rng(0)
A, B, S = (RNG.random(shape).astype("float32") for shape in ((3, 4), (4, 3), (3, 3)))

Call = Callable[[Any, Any, Any, Any], Any]

# Of a library and three matrices, of the dtype that is tried.
CALLS: dict[str, Call] = {
    "matmul": lambda T, a, b, s: T.matmul(a, b),
    "mm": lambda T, a, b, s: T.mm(a, b),
    "operator": lambda T, a, b, s: a @ b,
    "mv": lambda T, a, b, s: T.mv(a, b[:, 0]),
    "dot": lambda T, a, b, s: T.dot(a[0], a[0]),
    "bmm": lambda T, a, b, s: T.bmm(a[None], b[None]),
    "addmm": lambda T, a, b, s: T.addmm(s, a, b),
    "baddbmm": lambda T, a, b, s: T.baddbmm(s[None], a[None], b[None]),
    "addbmm": lambda T, a, b, s: T.addbmm(s, a[None], b[None]),
    "addmv": lambda T, a, b, s: T.addmv(s[0], a, b[:, 0]),
    "addr": lambda T, a, b, s: T.addr(a, a[:, 0], a[0]),
    "outer": lambda T, a, b, s: T.outer(a[0], a[0]),
    "linear": lambda T, a, b, s: T.nn.functional.linear(a, a, s[0]),
    "einsum": lambda T, a, b, s: T.einsum("ij,jk", a, b),
    "inner": lambda T, a, b, s: T.inner(a, a),
    "tensordot": lambda T, a, b, s: T.tensordot(a, b, 1),
    "matrix_power": lambda T, a, b, s: T.matrix_power(s, 2),
    "attention": lambda T, a, b, s: T.nn.functional.scaled_dot_product_attention(*[a[None, None]] * 3),
    "softmax": lambda T, a, b, s: T.nn.functional.softmax(a, -1),
    "layer_norm": lambda T, a, b, s: T.nn.functional.layer_norm(a, (4,)),
    "exp": lambda T, a, b, s: a.exp(),
    "pow": lambda T, a, b, s: a**2,
    "sum": lambda T, a, b, s: a.sum(),
    "prod": lambda T, a, b, s: a.prod(),
    "prod_dim": lambda T, a, b, s: a.prod(0),
    "cumsum": lambda T, a, b, s: a.cumsum(0),
    "norm": lambda T, a, b, s: a.norm(),
    "cdist": lambda T, a, b, s: T.cdist(a, a),
    "quantile": lambda T, a, b, s: T.quantile(a, 0.5),
    "trace": lambda T, a, b, s: s.trace(),
    "mse_loss": lambda T, a, b, s: T.nn.functional.mse_loss(a, a),
    "l1_loss": lambda T, a, b, s: T.nn.functional.l1_loss(a, a),
    "smooth_l1_loss": lambda T, a, b, s: T.nn.functional.smooth_l1_loss(a, a),
    "huber_loss": lambda T, a, b, s: T.nn.functional.huber_loss(a, a),
    "binary_cross_entropy": lambda T, a, b, s: T.nn.functional.binary_cross_entropy(a, a),
    "with_logits": lambda T, a, b, s: T.nn.functional.binary_cross_entropy_with_logits(a, a),
    "nll_loss": lambda T, a, b, s: T.nn.functional.nll_loss(a, T.tensor([0, 1, 2])),
    "cross_entropy": lambda T, a, b, s: T.nn.functional.cross_entropy(a, T.tensor([0, 1, 2])),
    "kl_div": lambda T, a, b, s: T.nn.functional.kl_div(a, a, reduction="sum"),
    "hinge": lambda T, a, b, s: T.nn.functional.hinge_embedding_loss(a, T.ones(3, 4)),
    "poisson": lambda T, a, b, s: T.nn.functional.poisson_nll_loss(a, a),
    "gaussian": lambda T, a, b, s: T.nn.functional.gaussian_nll_loss(a, a, a),
    "margin": lambda T, a, b, s: T.nn.functional.margin_ranking_loss(a, a, T.ones(3, 4)),
    "soft_margin": lambda T, a, b, s: T.nn.functional.soft_margin_loss(a, T.ones(3, 4)),
    "triplet": lambda T, a, b, s: T.nn.functional.triplet_margin_loss(a, a, a),
    "multi_margin": lambda T, a, b, s: T.nn.functional.multi_margin_loss(a, T.tensor([0, 1, 2])),
    "cosine_embedding": lambda T, a, b, s: T.nn.functional.cosine_embedding_loss(a, a, T.ones(3)),
    "cat": lambda T, a, b, s: T.cat([a, T.ones(3, 4)]),
    "stack": lambda T, a, b, s: T.stack([a, T.ones(3, 4)]),
    "reflect": lambda T, a, b, s: T.nn.functional.pad(a[None], (1, 1), mode="reflect"),
    "replicate": lambda T, a, b, s: T.nn.functional.pad(a[None], (1, 1), mode="replicate"),
    "constant": lambda T, a, b, s: T.nn.functional.pad(a, (1, 1)),
    "conv1d": lambda T, a, b, s: T.nn.functional.conv1d(a[None], a.new_ones(2, 3, 2), a.new_ones(2)),
    "conv2d": lambda T, a, b, s: T.nn.functional.conv2d(a[None, None], a.new_ones(2, 1, 2, 2)),
    "conv3d": lambda T, a, b, s: T.conv3d(a[None, None, None], a.new_ones(2, 1, 1, 2, 2)),
    "conv_transpose1d": lambda T, a, b, s: T.nn.functional.conv_transpose1d(
        a[None], a.new_ones(3, 2, 2), a.new_ones(2)
    ),
    "conv_transpose2d": lambda T, a, b, s: T.nn.functional.conv_transpose2d(s[None, None], s.new_ones(1, 2, 2, 2)),
    "convolution": lambda T, a, b, s: T.convolution(a[None], a[None, :, :2], None, [1], [0], [1], False, [0], 1),
    "conv_tbc": lambda T, a, b, s: T.conv_tbc(a[None], a.new_ones(1, 4, 2), a.new_ones(2)),
    "conv1d mixed": lambda T, a, b, s: T.nn.functional.conv1d(a[None].float(), a[None, :, :2].bfloat16()),
    **{
        f"{kind}_pool{n}d": lambda T, a, b, s, kind=kind, n=n: getattr(T.nn.functional, f"{kind}_pool{n}d")(
            s[None, None].expand(1, 2, *s.shape) if n == 3 else s[None], 2
        )
        for kind in ("max", "avg", "adaptive_avg", "adaptive_max")
        for n in (1, 2, 3)
    },
    "max_pool3d positions": lambda T, a, b, s: T.nn.functional.max_pool3d(
        s[None, None].expand(1, 2, *s.shape), 2, return_indices=True
    )[0],
    "fractional_max_pool2d": lambda T, a, b, s: T.nn.functional.fractional_max_pool2d(
        s[None, None], 2, output_size=2, _random_samples=s[None, :1, :2] * 0 + 0.5
    ),
    "max_unpool1d": lambda T, a, b, s: T.nn.functional.max_unpool1d(a[None, :, :2], T.tensor([[[0, 2]] * 3]), 2),
    "grid_sample": lambda T, a, b, s: T.nn.functional.grid_sample(
        s[None, None], a[None, :, :2, None].expand(1, 3, 2, 2)
    ),
    "reflect volumes": lambda T, a, b, s: T.nn.functional.pad(
        s[None, None, None].expand(1, 1, 2, *s.shape), (1,) * 6, mode="reflect"
    ),
    "index_copy": lambda T, a, b, s: T.index_copy(a, 0, T.tensor([0]), T.ones(1, 4)) if a.dtype != T.float64 else a,
    "solve": lambda T, a, b, s: T.linalg.solve(s + 9 * T.eye(s.shape[0], dtype=s.dtype), s),
    "inverse": lambda T, a, b, s: T.inverse(s + 9 * T.eye(s.shape[0], dtype=s.dtype)),
    "lstsq": lambda T, a, b, s: T.linalg.lstsq(s + 9 * T.eye(s.shape[0], dtype=s.dtype), s)[0],
    "vecdot": lambda T, a, b, s: T.linalg.vecdot(a, a),
    "gelu": lambda T, a, b, s: T.nn.functional.gelu(a),
    "batch_norm": lambda T, a, b, s: T.nn.functional.batch_norm(a, None, None, training=True),
    "lstm": lambda T, a, b, s: T.nn.LSTM(4, 3)(T.ones(2, 3, 4))[0],
    "lstm_cell": lambda T, a, b, s: T.nn.LSTM(4, 3)(T.ones(2, 3, 4))[1][1],
    "gru": lambda T, a, b, s: T.nn.GRU(4, 3)(T.ones(2, 3, 4))[0],
    "heads": lambda T, a, b, s: T.nn.MultiheadAttention(4, 2)(*[T.ones(2, 3, 4)] * 3)[0],
}


def _run(T: Any, call: Call, kind: str) -> Any:
    a, b, s = (T.tensor(x).to(getattr(T, kind)) for x in (A, B, S))
    with T.autocast("cpu"):
        return call(T, a, b, s)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_of_results(name: str, kind: str) -> None:
    try:
        theirs = _run(torch, CALLS[name], kind)
    except RuntimeError as error:
        if "could not create a primitive descriptor" not in str(error):
            raise
        pytest.skip("PyTorch has no recurrent bfloat16 on this processor")
    mine = _run(rgrad, CALLS[name], kind)
    assert str(theirs.dtype).rpartition(".")[2] == str(mine.dtype).rpartition(".")[2]
    if name not in ("lstm", "lstm_cell", "gru", "heads"):
        a, b = theirs.double().numpy(), mine.double().numpy()
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)


@pytest.mark.filterwarnings("ignore")
def test_contexts() -> None:
    for T in (torch, rgrad):
        a, w = T.tensor(A), T.tensor(B).requires_grad_()
        seen = [T.is_autocast_enabled("cpu")]
        with T.autocast("cpu", dtype=T.float16):
            seen.append((a @ w).dtype == T.float16)
            first, second = (a @ w), (a @ w)
            same = first.grad_fn.next_functions[1][0] is second.grad_fn.next_functions[1][0]
            seen.append(same and T.is_autocast_cache_enabled())
            with T.amp.autocast("cpu", enabled=False):
                seen.append((a @ w).dtype == T.float32)
            with T.cpu.amp.autocast():
                # Not the weight, whose float16 form PyTorch keeps and then refuses.
                seen.append((a @ T.tensor(B)).dtype == T.bfloat16)
            seen.append(T.get_autocast_dtype("cpu") == T.float16)
        (first.sum() + second.sum()).backward()
        seen.append(w.grad.dtype == T.float32 and not T.is_autocast_enabled("cpu"))
        seen.append(T.autocast("cpu")(lambda: a @ w)().dtype == T.bfloat16)  # noqa: B023
        assert seen == [False, True, True, True, True, True, True, True], T


def _trained(T: Any) -> list[Any]:
    w = T.nn.Parameter(T.ones(2, 2))
    scaler = T.amp.GradScaler("cpu", growth_interval=2)
    optimizer = T.optim.SGD([w], lr=0.1)
    seen: list[Any] = [scaler.state_dict()]
    for step in range(6):
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        if step == 3:
            w.grad[0, 0] = float("nan")
        if step == 1:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen += [scaler.get_scale(), scaler.state_dict(), [round(v, 5) for v in w.detach().flatten().tolist()]]
    other = T.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    return [*seen, other.state_dict(), [float(t) for t in other.scale([T.ones(()), T.ones(())])]]


def test_the_scaler() -> None:
    assert _trained(torch) == _trained(rgrad)


BAD = [
    lambda T: T.autocast(),
    lambda T: T.autocast(3),
    lambda T: T.amp.GradScaler("cpu", growth_factor=1.0),
    lambda T: T.amp.GradScaler("cpu", backoff_factor=1.0),
    lambda T: T.amp.GradScaler("cpu").update(),
    lambda T: T.amp.GradScaler("cpu").load_state_dict({}),
    lambda T: T.amp.GradScaler("cpu").step(T.optim.SGD([T.ones(1, requires_grad=True)], lr=0.1)),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case: int) -> None:
    theirs, mine = attempt(lambda: BAD[case](torch)), attempt(lambda: BAD[case](rgrad))
    assert theirs.error is not None, theirs
    assert mine.error is theirs.error, (theirs, mine)
    assert theirs.message[:40] in mine.message, (theirs, mine)


def test_custom_functions_know_whether_autocast_was_on() -> None:
    for T in (torch, rgrad):
        seen: list[Any] = []

        class Product(T.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            @T.amp.custom_fwd(device_type="cpu", cast_inputs=T.float32)
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                seen.append((a.dtype == T.float32, T.is_autocast_enabled("cpu")))  # noqa: B023
                return a @ b

            @staticmethod
            @T.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, g: Any) -> Any:
                seen.append(T.is_autocast_enabled("cpu"))  # noqa: B023
                return g @ T.ones(3, 4), None  # noqa: B023

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with T.autocast("cpu"):
                y = Product.apply(T.ones(2, 4, requires_grad=True).to(T.bfloat16), T.ones(4, 3).to(T.bfloat16))
            y.sum().backward()
        assert seen == [(True, False), False], T
