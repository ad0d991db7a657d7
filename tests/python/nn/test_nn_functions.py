"""Functions of `nn.functional` that the table of operations cannot hold: random ones, and those that read lengths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad.autograd import gradcheck, gradgradcheck


def point(*shape: int, seed: int = 0) -> rgrad.Tensor:
    values = np.random.default_rng(seed).uniform(0.2, 1.2, shape)
    return rgrad.tensor(values, requires_grad=True)


# --- random functions -------------------------------------------------------------------------------
CHANNELS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "dropout1d": (F.dropout1d, (40, 50, 3)),
    "dropout2d": (F.dropout2d, (40, 50, 2, 3)),
    "dropout3d": (F.dropout3d, (40, 50, 2, 1, 2)),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels_are_dropped_whole(name: str, device: str) -> None:
    function, shape = CHANNELS[name]
    x = rgrad.ones(shape, device=device, requires_grad=True)
    y = function(x, 0.3)
    flat = y.detach().cpu().reshape(*shape[:2], -1)
    assert (flat == flat[:, :, :1]).all()
    assert sorted(set(flat.flatten().tolist())) == pytest.approx([0.0, 1 / 0.7])
    kept = (flat[:, :, 0] != 0).to(rgrad.float32).mean().item()
    assert abs(kept - 0.7) < 0.06
    y.sum().backward()
    assert (x.grad.cpu() == y.detach().cpu()).all()


@pytest.mark.parametrize("name", CHANNELS)
def test_channel_dropout_in_place_and_off(name: str) -> None:
    function, shape = CHANNELS[name]
    x = rgrad.ones(shape)
    assert function(x, 0.5, False) is x or (function(x, 0.5, False) == x).all()
    assert function(x, 0.5, True, True) is x
    assert 0 < (x == 0).sum() < x.numel()


def test_an_unbatched_input_has_its_channels_first() -> None:
    y = F.dropout1d(rgrad.ones(200, 4))
    assert (y == y[:, :1]).all()
    assert 50 < (y[:, 0] == 0).sum() < 150


@pytest.mark.parametrize("function", [F.alpha_dropout, F.feature_alpha_dropout])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(function: Callable[..., Any], p: float, device: str) -> None:
    rgrad.manual_seed(3)
    x = rgrad.randn(400, 500).to(device)
    y = function(x, p, True).cpu()
    assert abs(y.mean().item()) < 0.02
    assert abs(y.var().item() - 1) < 0.03
    assert function(x, p, False) is x


def test_alpha_dropout_of_everything_is_zero() -> None:
    assert (F.alpha_dropout(rgrad.ones(5), 1.0, True) == 0).all()


def test_random_slopes(device: str) -> None:
    x = rgrad.full((2000,), -1.0, device=device, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.4, training=True)
    slopes = -y.detach().cpu()
    assert 0.2 <= slopes.min() < 0.21
    assert 0.39 < slopes.max() <= 0.4
    y.sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), slopes.numpy())
    assert (F.rrelu(rgrad.ones(9), training=True) == 1).all()


def test_gumbel_softmax_draws_by_the_probabilities() -> None:
    rgrad.manual_seed(1)
    p = rgrad.tensor([0.2, 0.5, 0.3])
    logits = p.log().expand(20000, 3).clone().requires_grad_()
    y = F.gumbel_softmax(logits, hard=True)
    assert (y.detach().sum(-1) == 1).all()
    np.testing.assert_allclose(y.detach().mean(0).numpy(), p.numpy(), atol=0.02)
    (y * rgrad.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum() > 0
    soft = F.gumbel_softmax(logits, tau=0.5, dim=0)
    np.testing.assert_allclose(soft.detach().sum(0).numpy(), np.ones(3), rtol=1e-4)


def test_random_functions_are_repeated_by_their_seed() -> None:
    x = rgrad.randn(4, 5, 3)
    for call in (
        F.dropout1d,
        lambda v: F.alpha_dropout(v, training=True),
        lambda v: F.rrelu(v, training=True),
        F.gumbel_softmax,
    ):
        made = []
        for _ in range(2):
            rgrad.manual_seed(7)
            made.append(call(x))
        assert (made[0] == made[1]).all()


# --- CTC -------------------------------------------------------------------------------------------
def enumerated(p: np.ndarray, target: list[int], blank: int) -> float:
    """The loss by its definition: the sum over all paths that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == target:
            total += math.prod(p[t, k] for t, k in enumerate(path))
    return -math.log(total) if total else math.inf


TARGETS = [[1, 2], [2, 2], [], [1]]
LENGTHS = [5, 4, 3, 1]


def test_ctc_is_the_sum_over_all_paths(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((5, 4, 3)).astype("float32")
    log_p = rgrad.tensor(x).log_softmax(2)
    padded = rgrad.tensor([(t + [1, 1])[:2] for t in TARGETS])
    flat = rgrad.tensor([label for t in TARGETS for label in t])
    counts = [len(t) for t in TARGETS]
    p = log_p.exp().cpu().numpy().astype(float)
    want = [enumerated(p[:n, i], t, 0) for i, (n, t) in enumerate(zip(LENGTHS, TARGETS, strict=True))]
    for targets in (padded, flat):
        got = F.ctc_loss(log_p.to(device), targets.to(device), LENGTHS, counts, reduction="none")
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-4)


def ctc(reduction: str) -> Callable[[Any], Any]:
    padded = rgrad.tensor([(t + [1, 1])[:2] for t in TARGETS])
    return lambda x: F.ctc_loss(x.log_softmax(2), padded, LENGTHS, [len(t) for t in TARGETS], 0, reduction)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_derivatives_of_ctc(reduction: str) -> None:
    x = point(5, 4, 3)
    assert gradcheck(ctc(reduction), (x,))
    assert gradgradcheck(ctc(reduction), (x,))


def test_a_sequence_that_does_not_fit_is_infinite() -> None:
    x = point(3, 2, 3)
    targets = rgrad.tensor([[1, 1], [1, 2]])  # [1, 1] takes three steps
    lengths = [2, 3]
    log_p = x.log_softmax(2)
    plain = F.ctc_loss(log_p, targets, lengths, [2, 2], reduction="none")
    assert plain.isinf().tolist() == [True, False]
    zeroed = F.ctc_loss(log_p, targets, lengths, [2, 2], reduction="none", zero_infinity=True)
    assert zeroed[0] == 0
    zeroed.sum().backward()
    assert (x.grad[:, 0] == 0).all()
    assert x.grad.isfinite().all()
    assert (x.grad[:, 1] != 0).any()


def test_ctc_of_probabilities_of_zero() -> None:
    log_p = rgrad.tensor([[[0.0, -math.inf, -math.inf]], [[-math.inf, 0.0, -math.inf]]], requires_grad=True)
    loss = F.ctc_loss(log_p, rgrad.tensor([[1]]), [2], [1])
    assert loss == 0
    loss.backward()
    assert log_p.grad.isfinite().all()


# --- losses and distances ---------------------------------------------------------------------------
def test_derivatives_of_gaussian_nll() -> None:
    target = point(3, 2, seed=2).detach()
    for var in (point(3, 2, seed=1), point(3, 1, seed=1)):
        assert gradcheck(lambda x, v: F.gaussian_nll_loss(x, target, v), (point(3, 2), var))
        assert gradgradcheck(lambda x, v: F.gaussian_nll_loss(x, target, v), (point(3, 2), var))
    assert F.gaussian_nll_loss(rgrad.ones(2), rgrad.ones(2), 1.0, full=True).item() == pytest.approx(
        0.5 * math.log(2 * math.pi)
    )


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_the_gradient_of_a_distance_of_zero_is_zero(p: float, device: str) -> None:
    x = rgrad.ones(2, 3, device=device, requires_grad=True)
    for result in (
        rgrad.cdist(x, x.detach(), p),
        F.pdist(x, p),
        rgrad.cdist(x, x.detach(), p, "use_mm_for_euclid_dist"),
    ):
        (grad,) = rgrad.autograd.grad(result.sum(), x)
        assert (result.detach().cpu() == 0).all()
        assert (grad.cpu() == 0).all()


def test_counts_and_largest_differences() -> None:
    x, y = rgrad.tensor([[0.0, 1.0, 5.0]]), rgrad.tensor([[0.0, 3.0, 4.0]])
    assert rgrad.cdist(x, y, 0).item() == 2
    assert rgrad.cdist(x, y, math.inf).item() == 2
    assert F.pdist(rgrad.cat([x, y]), 1).item() == 3


# --- tables ----------------------------------------------------------------------------------------
def bags(index: list[int], offsets: list[int], table: np.ndarray, mode: str, padding: int | None) -> np.ndarray:
    ends = [*offsets[1:], len(index)]
    rows = []
    for a, b in zip(offsets, ends, strict=True):
        chosen = table[[i for i in index[a:b] if i != padding]]
        reduce: Callable[..., Any] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
        rows.append(reduce(chosen, axis=0) if len(chosen) else np.zeros(table.shape[1]))
    return np.array(rows)


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str, padding: int | None, device: str) -> None:
    index, offsets = [0, 2, 3, 3, 1, 2], [0, 3, 3, 5]
    table = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
    got = F.embedding_bag(
        rgrad.tensor(index, device=device),
        rgrad.tensor(table, device=device),
        rgrad.tensor(offsets, device=device),
        mode=mode,
        padding_idx=padding,
    )
    np.testing.assert_allclose(got.cpu().numpy(), bags(index, offsets, table, mode, padding), rtol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_derivatives_of_bags(mode: str) -> None:
    index, offsets = rgrad.tensor([0, 2, 3, 3, 1, 2]), rgrad.tensor([0, 3, 3, 5])
    assert gradcheck(lambda w: F.embedding_bag(index, w, offsets, mode=mode, padding_idx=2), (point(4, 3),))
    if mode == "sum":

        def weighted(w: Any, f: Any) -> Any:
            return F.embedding_bag(index, w, offsets, mode="sum", per_sample_weights=f)

        assert gradcheck(weighted, (point(4, 3), point(6)))
        assert gradgradcheck(weighted, (point(4, 3), point(6)))


def test_the_padding_row_has_no_gradient_and_others_share_theirs(device: str) -> None:
    w = rgrad.ones(3, 2, device=device, requires_grad=True)
    index = rgrad.tensor([0, 1, 1, 2], device=device)
    F.embedding(index, w, padding_idx=0).sum().backward()
    assert w.grad.cpu().tolist() == [[0, 0], [2, 2], [1, 1]]
    w.grad = None
    F.embedding(index, w, scale_grad_by_freq=True).sum().backward()
    assert w.grad.cpu().tolist() == [[1, 1], [1, 1], [1, 1]]


def test_rows_in_use_are_limited_in_place() -> None:
    w = rgrad.tensor([[3.0, 4.0], [30.0, 40.0], [0.3, 0.4]], requires_grad=True)
    F.embedding(rgrad.tensor([0, 2]), w, max_norm=1.0)
    np.testing.assert_allclose(w.detach().numpy(), [[0.6, 0.8], [30, 40], [0.3, 0.4]], rtol=1e-5)


def test_sparse_gradients_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(rgrad.tensor([0]), rgrad.ones(1, 1), sparse=True)
    with pytest.raises(NotImplementedError, match="sparse"):
        rgrad.nn.EmbeddingBag(3, 2, sparse=True)(rgrad.tensor([[0]]))


# --- pad -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pad", [(0, 0), (0, 0, -1, 0), (-1, 0), (1, 0), (0, 2, 1, 0)])
def test_padding_makes_a_tensor_of_its_own(pad: tuple[int, ...]) -> None:
    for x in (rgrad.ones(3, 4), rgrad.ones(4, 3).t()):
        F.pad(x, pad).fill_(7)
        assert bool((x == 1).all())


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_what_padding_takes_away_makes_a_tensor_of_its_own_in_every_mode(mode: str) -> None:
    x = rgrad.ones(1, 1, 4, 3)
    F.pad(x, (0, 0, -1, 0), mode=mode).fill_(7)
    assert bool((x == 1).all())


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(2, 1), (0, 3), (1, 2, 2, 0), (0, 0, 1, 1), (2, 2, 1, 0, 1, 1)])
def test_padding_is_numpys_with_and_without_a_graph(mode: str, pad: tuple[int, ...], device: str) -> None:
    count = len(pad) // 2
    values = np.random.default_rng(5).uniform(-1, 1, (2, 3, 4, 5, 4)[4 - count :]).astype("float32")
    widths = [(0, 0)] * (values.ndim - count) + [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(count))]
    want = np.pad(values, widths, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])
    x = rgrad.tensor(values, device=device)
    leaf = rgrad.tensor(values, device=device, requires_grad=True)
    plain, recorded = F.pad(x, pad, mode=mode), F.pad(leaf, pad, mode=mode)
    with rgrad.no_grad():
        unrecorded = F.pad(leaf, pad, mode=mode)
    for got in (plain, recorded, unrecorded):
        np.testing.assert_array_equal(got.detach().cpu().numpy(), want)
        assert got.is_contiguous()
    assert recorded.requires_grad
    assert not unrecorded.requires_grad


def test_what_padding_takes_away_keeps_the_order_of_memory() -> None:
    x = rgrad.arange(60).reshape(3, 4, 5).permute(2, 0, 1)
    assert F.pad(x, (0, 0)).stride() == x.stride()
    assert F.pad(x, (-1, 0)).stride() == (1, 15, 5)
    assert F.pad(x, (1, 0)).stride() == (15, 5, 1)


# --- overrides -------------------------------------------------------------------------------------
class Asked(rgrad.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, kwargs


def test_a_distance_of_ones_own_can_be_overridden() -> None:
    x = rgrad.ones(2, 3)
    func, kwargs = F.triplet_margin_with_distance_loss(x.as_subclass(Asked), x, x, margin=2.0)
    assert func is F.triplet_margin_with_distance_loss
    assert kwargs["margin"] == 2.0
