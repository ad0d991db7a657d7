"""A call of every function of `rgrad.nn.functional`, for the table of docs/nn-functional.md.

A call gets the module `F` and `t`, which makes tensors of the dtype and device in question: `t(2, 3)` of numbers
between -1 and 1, `t(2, 3, low=0.1)` between 0.1 and 1. Only those are differentiated. `t.i` makes integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Maker:
    """Makes the tensors of a call: the same numbers for every dtype and device."""

    def __init__(self, library: Any, dtype: Any, device: str, given: list[Any] | None = None) -> None:
        self.library, self.dtype, self.device = library, dtype, device
        self.given = given
        self.random = np.random.default_rng(0)
        self.made: list[Any] = []
        self.is_asked_for_floats = False

    def __call__(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
        self.is_asked_for_floats = True
        if self.given is not None:
            self.made.append(self.given[len(self.made)])
        else:
            values = self.random.uniform(low, high, shape)
            self.made.append(self.library.tensor(values, dtype=self.dtype, device=self.device))
        return self.made[-1]

    def i(self, values: Any) -> Any:
        return self.library.tensor(values, dtype=self.library.int64, device=self.device)

    def fixed(self, values: Any) -> Any:
        """A tensor that is not differentiated."""
        self.is_asked_for_floats = True
        return self.library.tensor(values, dtype=self.dtype, device=self.device)


Call = Callable[[Any, Maker], Any]

IMAGE = {1: (1, 2, 6), 2: (1, 2, 5, 6), 3: (1, 2, 4, 5, 4)}
KERNEL = {1: (3,), 2: (3, 2), 3: (2, 2, 2)}


def each_rank(
    name: str, call: Callable[[Any, Any, Maker, int], Any], ranks: tuple[int, ...] = (1, 2, 3)
) -> dict[str, Call]:
    """The calls of a function that there is for one, two and three dimensions; `{}` in its name is their number."""

    def bound(full: str, rank: int) -> Call:
        return lambda F, t: call(getattr(F, full), F, t, rank)

    return {name.format(rank): bound(name.format(rank), rank) for rank in ranks}


def unpooled(f: Any, F: Any, t: Maker, rank: int) -> Any:
    values, places = getattr(F, f"max_pool{rank}d")(t(1, 2, *(4,) * rank), 2, return_indices=True)
    return f(values, places, 2)


def fractional(f: Any, F: Any, t: Maker, rank: int) -> Any:
    samples = t.fixed([[[0.3] * rank, [0.6] * rank]])
    return f(t(1, 2, *(5,) * rank), 2, output_size=3, _random_samples=samples)


def attention(F: Any, t: Maker) -> Any:
    e = 4
    return F.multi_head_attention_forward(
        t(3, 2, e), t(5, 2, e), t(5, 2, e), e, 2, t(3 * e, e), t(3 * e), None, None, False, 0.0, t(e, e), t(e)
    )


def in_place(name: str, *args: Any) -> dict[str, Call]:
    return {name: lambda F, t: getattr(F, name)(t(2, 3).clone(), *args)}


def plain(name: str, *args: Any, **options: Any) -> dict[str, Call]:
    return {name: lambda F, t: getattr(F, name)(t(2, 3), *args, **options)}


def pair(name: str, **options: Any) -> dict[str, Call]:
    return {name: lambda F, t: getattr(F, name)(t(2, 3), t(2, 3), **options)}


CALLS: dict[str, Call] = {
    **each_rank("adaptive_avg_pool{}d", lambda f, F, t, r: f(t(*IMAGE[r]), 3)),
    **each_rank("adaptive_max_pool{}d", lambda f, F, t, r: f(t(*IMAGE[r]), 3)),
    **each_rank("adaptive_max_pool{}d_with_indices", lambda f, F, t, r: f(t(*IMAGE[r]), 3)),
    "affine_grid": lambda F, t: F.affine_grid(t(2, 2, 3), [2, 1, 3, 2], align_corners=False),
    **plain("alpha_dropout", 0.5, False),
    **each_rank("avg_pool{}d", lambda f, F, t, r: f(t(*IMAGE[r]), 2, padding=1)),
    "batch_norm": lambda F, t: F.batch_norm(t(3, 2, 4), None, None, t(2), t(2), training=True),
    "bilinear": lambda F, t: F.bilinear(t(2, 3), t(2, 4), t(2, 3, 4), t(2)),
    "binary_cross_entropy": lambda F, t: F.binary_cross_entropy(t(2, 3, low=0.1, high=0.9), t(2, 3, low=0.1, high=0.9)),
    **pair("binary_cross_entropy_with_logits"),
    **plain("celu", 1.5),
    **in_place("celu_", 1.5),
    "channel_shuffle": lambda F, t: F.channel_shuffle(t(1, 4, 2), 2),
    **each_rank("conv{}d", lambda f, F, t, r: f(t(*IMAGE[r]), t(3, 2, *KERNEL[r]), t(3), stride=2, padding=1)),
    "conv_tbc": lambda F, t: F.conv_tbc(t(4, 2, 3), t(2, 3, 2), t(2)),
    **each_rank("conv_transpose{}d", lambda f, F, t, r: f(t(*IMAGE[r]), t(2, 3, *KERNEL[r]), t(3), stride=2)),
    "cosine_embedding_loss": lambda F, t: F.cosine_embedding_loss(t(2, 3), t(2, 3), t.i([1, -1]), margin=-0.9),
    **pair("cosine_similarity"),
    "cross_entropy": lambda F, t: F.cross_entropy(t(2, 3), t.i([2, 0])),
    "ctc_loss": lambda F, t: F.ctc_loss(F.log_softmax(t(4, 2, 3), -1), t.i([[1, 2], [2, 1]]), (4, 4), (2, 1)),
    **plain("dropout", 0.5, False),
    **plain("dropout1d", 0.5, False),
    "dropout2d": lambda F, t: F.dropout2d(t(1, 2, 2, 2), 0.5, False),
    "dropout3d": lambda F, t: F.dropout3d(t(1, 2, 2, 2), 0.5, False),
    **plain("elu", 1.5),
    **in_place("elu_", 1.5),
    "embedding": lambda F, t: F.embedding(t.i([[1, 0], [1, 2]]), t(3, 2)),
    "embedding_bag": lambda F, t: F.embedding_bag(t.i([[1, 0], [1, 2]]), t(3, 2)),
    **plain("feature_alpha_dropout", 0.5, False),
    "fold": lambda F, t: F.fold(t(1, 8, 4), (3, 3), (2, 2)),
    **each_rank("fractional_max_pool{}d", fractional, (2, 3)),
    **each_rank("fractional_max_pool{}d_with_indices", fractional, (2, 3)),
    "gaussian_nll_loss": lambda F, t: F.gaussian_nll_loss(t(2, 3), t(2, 3), t(2, 3, low=0.5)),
    **plain("gelu"),
    "glu": lambda F, t: F.glu(t(2, 4)),
    "grid_sample": lambda F, t: F.grid_sample(t(1, 2, 3, 4), t(1, 2, 3, 2, low=-0.9, high=0.9), align_corners=False),
    "group_norm": lambda F, t: F.group_norm(t(2, 4, 3), 2, t(4), t(4)),
    **plain("hardshrink", 0.3),
    **plain("hardsigmoid"),
    **plain("hardswish"),
    **plain("hardtanh", -0.5, 0.5),
    **in_place("hardtanh_", -0.5, 0.5),
    "hinge_embedding_loss": lambda F, t: F.hinge_embedding_loss(t(2, 3), t.i([[1, -1, 1], [-1, -1, 1]])),
    **pair("huber_loss", delta=0.4),
    "instance_norm": lambda F, t: F.instance_norm(t(2, 3, 4), weight=t(3), bias=t(3)),
    "interpolate": lambda F, t: F.interpolate(t(1, 2, 3, 4), size=(5, 3), mode="bilinear", align_corners=False),
    "kl_div": lambda F, t: F.kl_div(t(2, 3), t(2, 3, low=0.1), reduction="batchmean"),
    **pair("l1_loss"),
    "layer_norm": lambda F, t: F.layer_norm(t(2, 3, 4), (4,), t(4), t(4)),
    **plain("leaky_relu", 0.1),
    **in_place("leaky_relu_", 0.1),
    "linear_cross_entropy": lambda F, t: F.linear_cross_entropy(t(2, 3), t(4, 3), t.i([1, 3]), linear_bias=t(4)),
    "linear": lambda F, t: F.linear(t(2, 3), t(4, 3), t(4)),
    "local_response_norm": lambda F, t: F.local_response_norm(t(1, 4, 3), 2),
    **plain("log_softmax", -1),
    **plain("logsigmoid"),
    **each_rank("lp_pool{}d", lambda f, F, t, r: f(t(*IMAGE[r], low=0.2), 3.0, 2)),
    "margin_ranking_loss": lambda F, t: F.margin_ranking_loss(t(3), t(3), t.fixed([1.0, -1.0, 1.0]), margin=0.1),
    **each_rank("max_pool{}d", lambda f, F, t, r: f(t(*IMAGE[r]), 2, padding=1)),
    **each_rank("max_pool{}d_with_indices", lambda f, F, t, r: f(t(*IMAGE[r]), 2)),
    **each_rank("max_unpool{}d", unpooled),
    **plain("mish"),
    **pair("mse_loss"),
    "multi_head_attention_forward": attention,
    "multi_margin_loss": lambda F, t: F.multi_margin_loss(t(2, 3), t.i([2, 0])),
    "multilabel_margin_loss": lambda F, t: F.multilabel_margin_loss(t(2, 3), t.i([[2, 0, -1], [1, -1, 0]])),
    "multilabel_soft_margin_loss": lambda F, t: F.multilabel_soft_margin_loss(
        t(2, 3), t.fixed([[1.0, 0, 1], [0, 0, 1]])
    ),
    "nll_loss": lambda F, t: F.nll_loss(t(2, 3), t.i([2, 0])),
    **plain("normalize", dim=1),
    "one_hot": lambda F, t: F.one_hot(t.i([2, 0]), 4),
    "pad": lambda F, t: F.pad(t(1, 2, 3), (1, 2), "reflect"),
    **pair("pairwise_distance"),
    "pdist": lambda F, t: F.pdist(t(3, 2)),
    "pixel_shuffle": lambda F, t: F.pixel_shuffle(t(1, 4, 2, 2), 2),
    "pixel_unshuffle": lambda F, t: F.pixel_unshuffle(t(1, 1, 4, 4), 2),
    **pair("poisson_nll_loss"),
    "prelu": lambda F, t: F.prelu(t(2, 3), t(3)),
    **plain("relu"),
    **plain("relu6"),
    **in_place("relu_"),
    "rms_norm": lambda F, t: F.rms_norm(t(2, 4), (4,), t(4)),
    **plain("rrelu", 0.1, 0.3, False),
    **in_place("rrelu_", 0.1, 0.3, False),
    "scaled_dot_product_attention": lambda F, t: F.scaled_dot_product_attention(
        t(1, 2, 3, 4), t(1, 2, 5, 4), t(1, 2, 5, 4)
    ),
    **plain("selu"),
    **in_place("selu_"),
    **plain("sigmoid"),
    **plain("silu"),
    **pair("smooth_l1_loss", beta=0.4),
    "soft_margin_loss": lambda F, t: F.soft_margin_loss(t(2, 2), t.fixed([[1.0, -1.0], [-1.0, 1.0]])),
    **plain("softmax", -1),
    **plain("softmin", -1),
    **plain("softplus"),
    **plain("softshrink", 0.3),
    **plain("softsign"),
    **plain("tanh"),
    **plain("tanhshrink"),
    **plain("threshold", 0.1, 2.0),
    **in_place("threshold_", 0.1, 2.0),
    "triplet_margin_loss": lambda F, t: F.triplet_margin_loss(t(2, 3), t(2, 3), t(2, 3)),
    "triplet_margin_with_distance_loss": lambda F, t: F.triplet_margin_with_distance_loss(t(2, 3), t(2, 3), t(2, 3)),
    "unfold": lambda F, t: F.unfold(t(1, 2, 4, 3), (2, 2), padding=1),
    "upsample": lambda F, t: F.upsample(t(1, 2, 3, 4), size=(5, 3), mode="bilinear", align_corners=False),
    "upsample_bilinear": lambda F, t: F.upsample_bilinear(t(1, 2, 3, 4), size=(5, 3)),
    "upsample_nearest": lambda F, t: F.upsample_nearest(t(1, 2, 3, 4), size=(5, 3)),
    "gumbel_softmax": lambda F, t: F.gumbel_softmax(t(2, 3)),
}
