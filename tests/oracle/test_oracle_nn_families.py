"""Modules of activations, dropout, losses, distances, tables and padding beside PyTorch's: results, state, printing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

RNG = np.random.default_rng(0)
MATRIX = (RNG.standard_normal((3, 4)),)
TRIPLE = tuple(RNG.standard_normal((3, 4)) for _ in range(3))
IMAGE = (RNG.standard_normal((2, 4, 6, 6)),)
SIGNS = np.array([1, -1, 1])

Make = Callable[[Any], Any]
MODULES: dict[str, tuple[Make, tuple[np.ndarray, ...]]] = {
    "PReLU": (lambda nn: nn.PReLU(4, 0.1), MATRIX),
    "SELU": (lambda nn: nn.SELU(), MATRIX),
    "GLU": (lambda nn: nn.GLU(1), MATRIX),
    "RReLU": (lambda nn: nn.RReLU(0.1, 0.2).eval(), MATRIX),
    "Softmin": (lambda nn: nn.Softmin(1), MATRIX),
    "Softmax2d": (lambda nn: nn.Softmax2d(), IMAGE),
    "Dropout1d": (lambda nn: nn.Dropout1d(0.3).eval(), MATRIX),
    "Dropout2d": (lambda nn: nn.Dropout2d(0.3, True).eval(), IMAGE),
    "Dropout3d": (lambda nn: nn.Dropout3d().eval(), IMAGE),
    "AlphaDropout": (lambda nn: nn.AlphaDropout(0.0), MATRIX),
    "FeatureAlphaDropout": (lambda nn: nn.FeatureAlphaDropout(0.0), MATRIX),
    "GaussianNLLLoss": (lambda nn: nn.GaussianNLLLoss(full=True), (*MATRIX, TRIPLE[0], TRIPLE[1] ** 2)),
    "PoissonNLLLoss": (lambda nn: nn.PoissonNLLLoss(full=True), (*MATRIX, 3 * TRIPLE[1] ** 2)),
    "MarginRankingLoss": (lambda nn: nn.MarginRankingLoss(0.3), (TRIPLE[0][:, 0], TRIPLE[1][:, 0], SIGNS)),
    "HingeEmbeddingLoss": (lambda nn: nn.HingeEmbeddingLoss(0.4, reduction="sum"), (TRIPLE[0][:, 0], SIGNS)),
    "CosineEmbeddingLoss": (lambda nn: nn.CosineEmbeddingLoss(0.1), (TRIPLE[0], TRIPLE[1], SIGNS)),
    "SoftMarginLoss": (lambda nn: nn.SoftMarginLoss(), (TRIPLE[0], np.sign(TRIPLE[1]).astype("float32"))),
    "MultiLabelSoftMarginLoss": (lambda nn: nn.MultiLabelSoftMarginLoss(), (TRIPLE[0], (TRIPLE[1] > 0) * 1.0)),
    "MultiLabelMarginLoss": (
        lambda nn: nn.MultiLabelMarginLoss(),
        (TRIPLE[0], np.array([[1, 0, -1, 2], [-1, 0, 1, 2], [3, 2, 1, 0]])),
    ),
    "MultiMarginLoss": (lambda nn: nn.MultiMarginLoss(2, 0.5), (TRIPLE[0], np.array([1, 0, 3]))),
    "TripletMarginLoss": (lambda nn: nn.TripletMarginLoss(swap=True), TRIPLE),
    "TripletMarginWithDistanceLoss": (lambda nn: nn.TripletMarginWithDistanceLoss(margin=2.0), TRIPLE),
    "CosineSimilarity": (lambda nn: nn.CosineSimilarity(), TRIPLE[:2]),
    "PairwiseDistance": (lambda nn: nn.PairwiseDistance(3.0, keepdim=True), TRIPLE[:2]),
    "Embedding": (
        lambda nn: nn.Embedding(5, 3, padding_idx=-1, scale_grad_by_freq=True),
        (np.array([[1, 4], [1, 0]]),),
    ),
    "EmbeddingBag": (lambda nn: nn.EmbeddingBag(5, 3, padding_idx=0), (np.array([1, 4, 1, 0]), np.array([0, 1, 1]))),
    "EmbeddingBag of rows": (lambda nn: nn.EmbeddingBag(5, 3, mode="max"), (np.array([[1, 4], [1, 0]]),)),
    "PixelShuffle": (lambda nn: nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": (lambda nn: nn.PixelUnshuffle(3), IMAGE),
    "ChannelShuffle": (lambda nn: nn.ChannelShuffle(2), IMAGE),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(3, 0.2), IMAGE),
    "CTCLoss": (
        lambda nn: nn.CTCLoss(blank=1),
        (np.log(np.full((4, 2, 3), 1 / 3)), np.array([[0, 2], [2, 2]]), np.array([4, 4]), np.array([1, 2])),
    ),
    **{
        f"{kind}Pad{n}d{extra}": (
            lambda nn, kind=kind, n=n, given=given: getattr(nn, f"{kind}Pad{n}d")(
                given if isinstance(given, int) else given[: 2 * n], *((1.5,) if kind == "Constant" else ())
            ),
            (RNG.standard_normal((2, 3, 4, 5)[4 - n - 1 :] if n < 3 else (2, 3, 4, 5)),),
        )
        for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
        for n in (1, 2, 3)
        for extra, given in (("", 1), (" of sides", (1, 2, 0, 1, 1, 0)))
    },
}


def tensors(T: Any, arrays: tuple[np.ndarray, ...]) -> list[Any]:
    return [T.tensor(a).requires_grad_() if a.dtype == np.float64 else T.tensor(a) for a in arrays]


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_their_gradients(name: str) -> None:
    make, arrays = MODULES[name]
    ours, theirs = make(rgrad.nn).to(rgrad.float64), make(torch.nn).to(torch.float64)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: rgrad.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    xs, ys = tensors(rgrad, arrays), tensors(torch, arrays)
    a, b = ours(*xs), theirs(*ys)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-11, atol=1e-12)
    (a * rgrad.arange(a.numel()).reshape(a.shape)).sum().backward()
    (b * torch.arange(b.numel()).reshape(b.shape)).sum().backward()
    pairs = [*zip(xs, ys, strict=True), *zip(ours.parameters(), theirs.parameters(), strict=True)]
    for x, y in pairs:
        if y.grad is None:
            assert x.grad is None or not x.grad.numpy().any()
        else:
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted({n.split()[0] for n in MODULES}))
def test_parameters(name: str) -> None:
    def parameters(T: Any) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(getattr(T.nn, name).__init__).parameters.values()
        return [(p.name, p.kind, p.default) for p in found]

    assert parameters(rgrad) == parameters(torch)


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda T: T.nn.Dropout2d(1.5),
    "margin": lambda T: T.nn.TripletMarginLoss(margin=0),
    "margin with distance": lambda T: T.nn.TripletMarginWithDistanceLoss(margin=-1),
    "exponent": lambda T: T.nn.MultiMarginLoss(3),
    "weight": lambda T: T.nn.MultiMarginLoss(weight=T.ones(2, 2)),
    "padding row": lambda T: T.nn.Embedding(3, 2, padding_idx=3),
    "padding row of bags": lambda T: T.nn.EmbeddingBag(3, 2, padding_idx=-4),
    "table": lambda T: T.nn.Embedding(3, 2, _weight=T.ones(2, 3)),
    "table from": lambda T: T.nn.Embedding.from_pretrained(T.ones(3)),
    "softmax2d": lambda T: T.nn.Softmax2d()(T.ones(2, 3)),
    "circular": lambda T: T.nn.CircularPad2d(1)(T.ones(2, 3)),
    "reflection": lambda T: T.nn.ReflectionPad2d(3)(T.ones(1, 2, 3)),
    "channels": lambda T: T.nn.PReLU(3)(T.ones(2, 4)),
    "old reduction": lambda T: T.nn.SoftMarginLoss(size_average=False)(T.ones(2), T.ones(2)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = (attempt(lambda T=T: MISTAKES[name](T)) for T in (rgrad, torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned


def test_frozen_tables() -> None:
    for T in (rgrad, torch):
        table = T.nn.Embedding.from_pretrained(T.ones(3, 2))
        bags = T.nn.EmbeddingBag.from_pretrained(T.ones(3, 2), freeze=False, mode="sum")
        assert not table.weight.requires_grad
        assert bags.weight.requires_grad
        assert bags(T.tensor([[0, 1]])).tolist() == [[2.0, 2.0]]
