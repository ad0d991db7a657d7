"""Calls of functions of `nn.functional`, most of them mistakes, by function and what is special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "rrelu: bounds in the wrong order": lambda T, F: F.rrelu(T.ones(3), 0.5, 0.1),
    "dropout1d: 4 dimensions": lambda T, F: F.dropout1d(T.ones(1, 2, 3, 4)),
    "dropout1d: 1 dimension": lambda T, F: F.dropout1d(T.ones(3)),
    "dropout2d: integers": lambda T, F: F.dropout2d(T.ones(2, 3, 4, 4).int()),
    "alpha_dropout: probability above 1": lambda T, F: F.alpha_dropout(T.ones(3), 2.0, True),
    "feature_alpha_dropout: 1 dimension": lambda T, F: F.feature_alpha_dropout(T.ones(3), 0.5, True),
    "gaussian_nll_loss: negative variance": lambda T, F: F.gaussian_nll_loss(T.ones(2, 3), T.ones(2, 3), -T.ones(2, 3)),
    "gaussian_nll_loss: sizes": lambda T, F: F.gaussian_nll_loss(T.ones(2, 3), T.ones(2, 3), T.ones(3, 3)),
    "gaussian_nll_loss: reduction": lambda T, F: F.gaussian_nll_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(2, 3), reduction="x"
    ),
    "gaussian_nll_loss: variance a float": lambda T, F: F.gaussian_nll_loss(T.ones(2, 3), T.ones(2, 3), 2.0),
    "gaussian_nll_loss: variance an integer": lambda T, F: F.gaussian_nll_loss(T.ones(2, 3), T.ones(2, 3), 2),
    "poisson_nll_loss: reduction": lambda T, F: F.poisson_nll_loss(T.ones(2, 3), T.ones(2, 3), reduction="x"),
    "margin_ranking_loss: dimensions": lambda T, F: F.margin_ranking_loss(T.ones(2, 3), T.ones(2, 3), T.ones(2)),
    "margin_ranking_loss: reduction": lambda T, F: F.margin_ranking_loss(
        T.ones(2), T.ones(2), T.ones(2), reduction="x"
    ),
    "hinge_embedding_loss: reduction": lambda T, F: F.hinge_embedding_loss(T.ones(2), T.ones(2), reduction="x"),
    "cosine_embedding_loss: target of 2 dimensions": lambda T, F: F.cosine_embedding_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(2, 3)
    ),
    "cosine_embedding_loss: inputs of 1 dimension": lambda T, F: F.cosine_embedding_loss(
        T.ones(2), T.ones(2), T.ones(2)
    ),
    "cosine_embedding_loss: target of 0 dimensions": lambda T, F: F.cosine_embedding_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(())
    ),
    "cosine_embedding_loss: single vectors": lambda T, F: F.cosine_embedding_loss(T.ones(3), T.ones(3), T.ones(())),
    "cosine_embedding_loss: targets of another size": lambda T, F: F.cosine_embedding_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(3)
    ),
    "soft_margin_loss: shapes": lambda T, F: F.soft_margin_loss(T.ones(2, 3), T.ones(3)),
    "soft_margin_loss: reduction": lambda T, F: F.soft_margin_loss(T.ones(2, 3), T.ones(2, 3), reduction="x"),
    "multilabel_soft_margin_loss: shapes": lambda T, F: F.multilabel_soft_margin_loss(T.ones(2, 3), T.ones(2)),
    "multilabel_soft_margin_loss: reduction": lambda T, F: F.multilabel_soft_margin_loss(
        T.ones(2, 3), T.ones(2, 3), reduction="x"
    ),
    "multilabel_soft_margin_loss: 0 dimensions": lambda T, F: F.multilabel_soft_margin_loss(T.ones(()), T.ones(())),
    "multilabel_margin_loss: shapes": lambda T, F: F.multilabel_margin_loss(T.ones(2, 3), T.ones(2).long()),
    "multilabel_margin_loss: 3 dimensions": lambda T, F: F.multilabel_margin_loss(
        T.ones(2, 3, 1), T.ones(2, 3, 1).long()
    ),
    "multilabel_margin_loss: targets of floats": lambda T, F: F.multilabel_margin_loss(T.ones(2, 3), T.ones(2, 3)),
    "multilabel_margin_loss: targets out of range": lambda T, F: F.multilabel_margin_loss(
        T.ones(2, 3), 4 * T.ones(2, 3).long()
    ),
    "multilabel_margin_loss: targets below -1": lambda T, F: F.multilabel_margin_loss(
        T.ones(2, 3), -4 * T.ones(2, 3).long()
    ),
    "multilabel_margin_loss: 0 dimensions": lambda T, F: F.multilabel_margin_loss(T.ones(()), T.ones(()).long() * 0),
    "multi_margin_loss: power 3": lambda T, F: F.multi_margin_loss(T.ones(2, 3), T.ones(2).long(), p=3),
    "multi_margin_loss: weights of another size": lambda T, F: F.multi_margin_loss(
        T.ones(2, 3), T.ones(2).long(), weight=T.ones(2)
    ),
    "multi_margin_loss: targets of another size": lambda T, F: F.multi_margin_loss(T.ones(2, 3), T.ones(3).long()),
    "multi_margin_loss: targets of floats": lambda T, F: F.multi_margin_loss(T.ones(2, 3), T.ones(2)),
    "multi_margin_loss: targets out of range": lambda T, F: F.multi_margin_loss(T.ones(2, 3), 5 * T.ones(2).long()),
    "multi_margin_loss: 3 dimensions": lambda T, F: F.multi_margin_loss(T.ones(2, 3, 2), 5 * T.ones(2).long()),
    "multi_margin_loss: 1 dimension, target of 0": lambda T, F: F.multi_margin_loss(
        T.ones(3), T.ones(()).long(), reduction="none"
    ),
    "multi_margin_loss: 1 dimension, target of 1": lambda T, F: F.multi_margin_loss(
        T.ones(3), T.ones(1).long(), reduction="none"
    ),
    "multi_margin_loss: 0 dimensions": lambda T, F: F.multi_margin_loss(
        T.ones(()), T.ones(()).long() * 0, reduction="none"
    ),
    "triplet_margin_loss: dimensions": lambda T, F: F.triplet_margin_loss(T.ones(2, 3), T.ones(2, 3), T.ones(3)),
    "triplet_margin_loss: negative margin": lambda T, F: F.triplet_margin_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(2, 3), margin=-1
    ),
    "triplet_margin_loss: 1 dimension": lambda T, F: F.triplet_margin_loss(
        T.ones(3), T.ones(3), T.ones(3), reduction="none"
    ),
    "triplet_margin_with_distance_loss: negative margin": lambda T, F: F.triplet_margin_with_distance_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(2, 3), margin=-1
    ),
    "triplet_margin_with_distance_loss: dimensions": lambda T, F: F.triplet_margin_with_distance_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(3)
    ),
    "triplet_margin_with_distance_loss: reduction": lambda T, F: F.triplet_margin_with_distance_loss(
        T.ones(2, 3), T.ones(2, 3), T.ones(2, 3), reduction="x"
    ),
    "cosine_similarity: dimension that is not there": lambda T, F: F.cosine_similarity(T.ones(3), T.ones(3)),
    "cosine_similarity: integers": lambda T, F: F.cosine_similarity(T.ones(2, 3).int(), T.ones(2, 3).int()),
    "cosine_similarity: an integer and a float": lambda T, F: F.cosine_similarity(T.ones(2, 3).int(), T.ones(2, 3)),
    "cosine_similarity: broadcast": lambda T, F: F.cosine_similarity(T.ones(2, 3), T.ones(3)),
    "pairwise_distance: sizes": lambda T, F: F.pairwise_distance(T.ones(2, 3), T.ones(3, 3)),
    "pairwise_distance: 0 dimensions": lambda T, F: F.pairwise_distance(T.ones(()), T.ones(())),
    "pdist: 1 dimension": lambda T, F: F.pdist(T.ones(2)),
    "pdist: negative power": lambda T, F: F.pdist(T.ones(2, 2), -1),
    "pdist: integers": lambda T, F: F.pdist(T.ones(2, 2).int()),
    "pdist: one row": lambda T, F: F.pdist(T.ones(1, 2)),
    "cdist: 1 dimension": lambda T, F: T.cdist(T.ones(2), T.ones(2)),
    "cdist: columns": lambda T, F: T.cdist(T.ones(2, 3), T.ones(2, 2)),
    "cdist: negative power": lambda T, F: T.cdist(T.ones(2, 3), T.ones(2, 3), -1),
    "cdist: mode": lambda T, F: T.cdist(T.ones(2, 3), T.ones(2, 3), compute_mode="x"),
    "cdist: batches": lambda T, F: T.cdist(T.ones(2, 2, 3), T.ones(3, 2, 3)),
    "cdist: integers": lambda T, F: T.cdist(T.ones(2, 3).int(), T.ones(2, 3).int()),
    "cdist: two dtypes": lambda T, F: T.cdist(T.ones(2, 3), T.ones(2, 3).double()),
    "cdist: no columns": lambda T, F: T.cdist(T.ones(2, 0), T.ones(3, 0)),
    "bilinear: dimensions of the inputs": lambda T, F: F.bilinear(T.ones(2, 3), T.ones(2, 2, 4), T.ones(5, 3, 4)),
    "bilinear: rows of the inputs": lambda T, F: F.bilinear(T.ones(2, 3), T.ones(3, 4), T.ones(5, 3, 4)),
    "bilinear: columns of the first input": lambda T, F: F.bilinear(T.ones(2, 3), T.ones(2, 4), T.ones(5, 2, 4)),
    "bilinear: columns of the second input": lambda T, F: F.bilinear(T.ones(2, 3), T.ones(2, 4), T.ones(5, 3, 3)),
    "bilinear: bias": lambda T, F: F.bilinear(T.ones(2, 3), T.ones(2, 4), T.ones(5, 3, 4), T.ones(4)),
    "bilinear: inputs of 1 dimension": lambda T, F: F.bilinear(T.ones(3), T.ones(4), T.ones(5, 3, 4)).shape,
    "embedding: index out of range": lambda T, F: F.embedding(T.tensor([5]), T.ones(3, 2)),
    "embedding: negative index": lambda T, F: F.embedding(T.tensor([-1]), T.ones(3, 2)),
    "embedding: indices of floats": lambda T, F: F.embedding(T.ones(3), T.ones(3, 2)),
    "embedding: weight of 1 dimension": lambda T, F: F.embedding(T.tensor([1]), T.ones(3)),
    "embedding: padding out of range": lambda T, F: F.embedding(T.tensor([1]), T.ones(3, 2), padding_idx=5),
    "embedding: indices of int32": lambda T, F: F.embedding(T.tensor([1]).int(), T.ones(3, 2)),
    "embedding: indices of int8": lambda T, F: F.embedding(T.tensor([1]).char(), T.ones(3, 2)),
    "embedding: weight of integers": lambda T, F: F.embedding(T.tensor([1]), T.ones(3, 2).int()),
    "embedding_bag: indices of 3 dimensions": lambda T, F: F.embedding_bag(T.ones(2, 2, 2).long(), T.ones(3, 2)),
    "embedding_bag: offsets beside indices of 2 dimensions": lambda T, F: F.embedding_bag(
        T.ones(2, 2).long(), T.ones(3, 2), T.tensor([0])
    ),
    "embedding_bag: no offsets": lambda T, F: F.embedding_bag(T.ones(2).long(), T.ones(3, 2)),
    "embedding_bag: offsets of 2 dimensions": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.ones(2, 2).long()
    ),
    "embedding_bag: first offset not 0": lambda T, F: F.embedding_bag(T.ones(2).long(), T.ones(3, 2), T.tensor([1])),
    "embedding_bag: offset beyond the indices": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0, 5])
    ),
    "embedding_bag: mode": lambda T, F: F.embedding_bag(T.ones(2).long(), T.ones(3, 2), T.tensor([0]), mode="x"),
    "embedding_bag: gradients scaled in mode max": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0]), mode="max", scale_grad_by_freq=True
    ),
    "embedding_bag: weights of samples in mode mean": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0]), per_sample_weights=T.ones(2)
    ),
    "embedding_bag: shape of the weights of samples": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0]), per_sample_weights=T.ones(3), mode="sum"
    ),
    "embedding_bag: dtype of the weights of samples": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0]), per_sample_weights=T.ones(2).double(), mode="sum"
    ),
    "embedding_bag: index out of range": lambda T, F: F.embedding_bag(
        4 * T.ones(2).long(), T.ones(3, 2), T.tensor([0])
    ),
    "embedding_bag: indices of floats": lambda T, F: F.embedding_bag(T.ones(2), T.ones(3, 2), T.tensor([0])),
    "embedding_bag: offsets that go down": lambda T, F: F.embedding_bag(
        T.ones(4).long(), T.ones(3, 2), T.tensor([0, 3, 2])
    ),
    "embedding_bag: nothing": lambda T, F: F.embedding_bag(T.ones(0).long(), T.ones(3, 2), T.tensor([]).long()).shape,
    "embedding_bag: last offset included": lambda T, F: (
        F.embedding_bag(T.ones(3).long(), T.ones(3, 2), T.tensor([0, 1]), include_last_offset=True).shape
    ),
    "embedding_bag: padding out of range": lambda T, F: F.embedding_bag(
        T.ones(2).long(), T.ones(3, 2), T.tensor([0]), padding_idx=4
    ),
    "pixel_shuffle: 2 dimensions": lambda T, F: F.pixel_shuffle(T.ones(3, 3), 2),
    "pixel_shuffle: channels": lambda T, F: F.pixel_shuffle(T.ones(3, 3, 3), 2),
    "pixel_shuffle: factor 0": lambda T, F: F.pixel_shuffle(T.ones(3, 3, 3), 0),
    "pixel_unshuffle: 2 dimensions": lambda T, F: F.pixel_unshuffle(T.ones(3, 3), 2),
    "pixel_unshuffle: height": lambda T, F: F.pixel_unshuffle(T.ones(3, 3, 4), 2),
    "pixel_unshuffle: width": lambda T, F: F.pixel_unshuffle(T.ones(3, 4, 3), 2),
    "pixel_unshuffle: factor 0": lambda T, F: F.pixel_unshuffle(T.ones(3, 3, 3), 0),
    "channel_shuffle: 2 dimensions": lambda T, F: F.channel_shuffle(T.ones(2, 3), 1),
    "channel_shuffle: channels": lambda T, F: F.channel_shuffle(T.ones(2, 3, 4), 2),
    "channel_shuffle: no groups": lambda T, F: F.channel_shuffle(T.ones(2, 3, 4), 0),
    "pad: an odd number of sizes": lambda T, F: F.pad(T.ones(2, 3), (1,)),
    "pad: more sizes than dimensions": lambda T, F: F.pad(T.ones(2, 3), (1,) * 6),
    "pad: less than nothing is left": lambda T, F: F.pad(T.ones(2, 3), (-2, -2)),
    "pad: nothing is left": lambda T, F: F.pad(T.ones(2, 3), (-1, -2)),
    "pad: mode": lambda T, F: F.pad(T.ones(2, 3), (1, 1), mode="x"),
    "pad reflect: 1 dimension": lambda T, F: F.pad(T.ones(3), (1, 1), mode="reflect"),
    "pad reflect: as wide as the input": lambda T, F: F.pad(T.ones(2, 3), (3, 3), mode="reflect"),
    "pad reflect: 4 sizes of 2 dimensions": lambda T, F: F.pad(T.ones(2, 3), (1, 1, 1, 1), mode="reflect"),
    "pad reflect: with a value": lambda T, F: F.pad(T.ones(2, 3), (1, 1), mode="reflect", value=1.0),
    "pad circular: wider than the input": lambda T, F: F.pad(T.ones(2, 3), (4, 0), mode="circular"),
    "pad circular: 4 sizes of 2 dimensions": lambda T, F: F.pad(T.ones(2, 3), (1, 1, 1, 1), mode="circular"),
    "pad circular: 1 dimension": lambda T, F: F.pad(T.ones(3), (1, 1), mode="circular"),
    "pad circular: negative": lambda T, F: F.pad(T.ones(2, 3), (-1, 1), mode="circular"),
    "pad reflect: negative": lambda T, F: F.pad(T.arange(4.0).reshape(1, 4), (-1, 2), mode="reflect"),
    "pad replicate: negative": lambda T, F: F.pad(T.arange(4.0).reshape(1, 4), (-1, 2), mode="replicate"),
    "pad replicate: no columns": lambda T, F: F.pad(T.ones(2, 0), (1, 1), mode="replicate"),
    "pad replicate: 2 sizes of 4 dimensions": lambda T, F: F.pad(T.ones(1, 1, 2, 3), (1, 1), mode="replicate"),
    "pad replicate: less than nothing is left": lambda T, F: F.pad(
        T.arange(4.0).reshape(1, 4), (-3, -3), mode="replicate"
    ),
    "pad: sizes that are floats": lambda T, F: F.pad(T.ones(2, 3), (1.0, 1.0)),
    "pad: integers with a fraction": lambda T, F: F.pad(T.ones(2, 3).int(), (1, 1), value=2.5),
    "pad reflect: integers": lambda T, F: F.pad(T.arange(6).reshape(2, 3), (1, 1), mode="reflect"),
    "pad reflect: bool": lambda T, F: F.pad(T.ones(2, 3).bool(), (1, 1), mode="reflect"),
    "local_response_norm: 2 dimensions": lambda T, F: F.local_response_norm(T.ones(2, 3), 2).shape,
    "local_response_norm: 1 dimension": lambda T, F: F.local_response_norm(T.ones(3), 2),
    "local_response_norm: size 0": lambda T, F: F.local_response_norm(T.ones(2, 3, 4), 0),
    "affine_grid: integers": lambda T, F: F.affine_grid(T.ones(1, 2, 3).int(), (1, 1, 2, 2), False),
    "affine_grid: shape of the matrices": lambda T, F: F.affine_grid(T.ones(1, 3, 3), (1, 1, 2, 2), False),
    "affine_grid: size of 3 numbers": lambda T, F: F.affine_grid(T.ones(1, 2, 3), (1, 1, 2), False),
    "affine_grid: size 0": lambda T, F: F.affine_grid(T.ones(1, 2, 3), (1, 1, 2, 0), False),
    "affine_grid: batches": lambda T, F: F.affine_grid(T.ones(2, 2, 3), (1, 1, 2, 2), False),
    "affine_grid: default of align_corners": lambda T, F: F.affine_grid(T.ones(1, 2, 3), (1, 1, 2, 1)).shape,
    "ctc_loss: lengths of inputs too few": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), T.tensor([4]), T.tensor([2, 2])
    ),
    "ctc_loss: length beyond the input": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), T.tensor([5, 4]), T.tensor([2, 2])
    ),
    "ctc_loss: length beyond the targets": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), T.tensor([4, 4]), T.tensor([3, 2])
    ),
    "ctc_loss: lengths of targets too few": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), T.tensor([4, 4]), T.tensor([2])
    ),
    "ctc_loss: blank out of range": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), T.tensor([4, 4]), T.tensor([2, 2]), blank=3
    ),
    "ctc_loss: targets of floats": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2), T.tensor([4, 4]), T.tensor([2, 2])
    ),
    "ctc_loss: joined targets too short": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(3).long(), T.tensor([4, 4]), T.tensor([2, 2])
    ),
    "ctc_loss: joined targets": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(4).long(), T.tensor([4, 4]), T.tensor([2, 2])
    ),
    "ctc_loss: lengths of floats": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(4).long(), T.tensor([4.0, 4]), T.tensor([2, 2])
    ),
    "ctc_loss: reduction": lambda T, F: F.ctc_loss(T.ones(4, 2, 3), T.ones(2, 2).long(), (4, 4), (2, 2), reduction="x"),
    "ctc_loss: no batch, lengths of 0 dimensions": lambda T, F: F.ctc_loss(
        T.ones(4, 3), T.ones(2).long(), T.tensor(4), T.tensor(2), reduction="none"
    ),
    "ctc_loss: no batch, lengths in tuples": lambda T, F: F.ctc_loss(
        T.ones(4, 3), T.ones(2).long(), (4,), (2,), reduction="none"
    ),
    "ctc_loss: lengths of 0": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), (0, 1), (0, 2), reduction="none"
    ),
    "ctc_loss: negative length": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3), T.ones(2, 2).long(), (-1, 1), (0, 2), reduction="none"
    ),
    "ctc_loss: integers": lambda T, F: F.ctc_loss(
        T.ones(4, 2, 3).int(), T.ones(2, 2).long(), (1, 1), (0, 2), reduction="none"
    ),
    "ctc_loss: input of 1 dimension": lambda T, F: F.ctc_loss(
        T.ones(4), T.ones(2, 2).long(), (1, 1), (0, 2), reduction="none"
    ),
    "select_scatter: shape": lambda T, F: T.select_scatter(T.ones(3, 4), T.ones(3), 0, 0),
    "select_scatter: index out of range": lambda T, F: T.select_scatter(T.ones(3, 4), T.ones(4), 0, 5),
    "select_scatter: dtype": lambda T, F: T.select_scatter(T.ones(3, 4), T.ones(4).double() * 2, 0, 1).dtype,
    "slice_scatter: shape": lambda T, F: T.slice_scatter(T.ones(3, 4), T.ones(3, 4), 0, 0, 2),
    "slice_scatter: step 0": lambda T, F: T.slice_scatter(T.ones(3, 4), T.ones(3, 4), 0, 0, 2, 0),
    "slice_scatter: negative start": lambda T, F: T.slice_scatter(T.zeros(5), T.ones(2), 0, -4, None, 2),
    "diagonal_scatter: shape": lambda T, F: T.diagonal_scatter(T.ones(3, 4), T.ones(4)),
    "matrix_power: not square": lambda T, F: T.matrix_power(T.ones(2, 3), 2),
    "matrix_power: 1 dimension": lambda T, F: T.matrix_power(T.ones(3), 2),
    "matrix_power: power 0": lambda T, F: T.matrix_power(T.ones(2, 2) * 3, 0),
    "renorm: rows": lambda T, F: T.renorm(T.ones(2, 3), 2, 0, 1.0),
    "renorm: 1 dimension": lambda T, F: T.renorm(T.ones(3), 2, 0, 1.0),
    "renorm: negative power": lambda T, F: T.renorm(T.ones(2, 3), -1, 0, 1.0),
    "renorm: negative norm": lambda T, F: T.renorm(T.ones(2, 3), 1, 0, -1.0),
    "ldexp: integers": lambda T, F: T.ldexp(T.ones(2).int(), T.ones(2).int()),
    "addmv: two dtypes": lambda T, F: T.addmv(T.ones(3), T.ones(3, 2), T.ones(2).double()),
    "addmv: beta 0": lambda T, F: T.addmv(T.ones(3) * float("nan"), T.ones(3, 2), T.ones(2), beta=0),
    "addmv: no matrix": lambda T, F: T.addmv(T.ones(3), T.ones(3), T.ones(2)),
    "addmv: size": lambda T, F: T.addmv(T.ones(2), T.ones(3, 2), T.ones(2)),
    "addr: sizes": lambda T, F: T.addr(T.ones(2, 3), T.ones(2), T.ones(2)),
    "addr: two dtypes": lambda T, F: T.addr(T.ones(2, 3), T.ones(2).double(), T.ones(3)).dtype,
    "addr: beta 0": lambda T, F: T.addr(T.ones(2, 3) * float("nan"), T.ones(2), T.ones(3), beta=0),
    "addbmm: sizes": lambda T, F: T.addbmm(T.ones(2, 3), T.ones(2, 2, 4), T.ones(2, 3, 4)),
    "addbmm: broadcast": lambda T, F: T.addbmm(T.ones(3), T.ones(2, 2, 4), T.ones(2, 4, 3)),
    "addbmm: dimensions": lambda T, F: T.addbmm(T.ones(3), T.ones(2, 2, 4), T.ones(2, 4)),
}
