"""What functions of `nn.functional` refuse, in words that name the function, and what they got."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F

TABLE = rgrad.arange(12.0).view(4, 3)


@pytest.mark.parametrize("weights", [rgrad.ones(2), rgrad.ones(3, 1), rgrad.ones(0)], ids=lambda w: str(list(w.shape)))
def test_factors_of_bags_have_the_shape_of_the_indices(weights: Any) -> None:
    with pytest.raises(ValueError, match="must have the same shape as the input"):
        F.embedding_bag(rgrad.tensor([0, 1, 2]), TABLE, rgrad.tensor([0, 1]), mode="sum", per_sample_weights=weights)
    with pytest.raises(ValueError, match="must have the same shape as the input"):
        F.embedding_bag(rgrad.tensor([[0, 1], [2, 3]]), TABLE, mode="sum", per_sample_weights=rgrad.ones(4))
    bag = rgrad.nn.EmbeddingBag(4, 3, mode="sum")
    with pytest.raises(ValueError, match="must have the same shape as the input"):
        bag(rgrad.tensor([0, 1, 2]), rgrad.tensor([0]), weights)


def test_factors_of_bags_of_another_kind() -> None:
    indices, starts = rgrad.tensor([0, 1, 2]), rgrad.tensor([0, 1])
    with pytest.raises(TypeError, match="argument 'per_sample_weights' must be Tensor, not list"):
        F.embedding_bag(indices, TABLE, starts, mode="sum", per_sample_weights=[1.0, 2.0, 3.0])  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="type Float does not equal Double"):
        F.embedding_bag(indices, TABLE, starts, mode="sum", per_sample_weights=rgrad.ones(3).double())
    for mode in ("mean", "max"):
        with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
            F.embedding_bag(indices, TABLE, starts, mode=mode, per_sample_weights=rgrad.ones(3))


def test_bags_in_the_old_order_of_arguments() -> None:
    indices, starts = rgrad.tensor([0, 1, 2]), rgrad.tensor([0, 1])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        made = F.embedding_bag(TABLE, indices, starts, mode="sum", per_sample_weights=rgrad.ones(3))
    assert made.equal(F.embedding_bag(indices, TABLE, starts, mode="sum"))


def test_offsets_of_bags_are_integers() -> None:
    with pytest.raises(RuntimeError, match="scalar types: Long, Int; but got Float"):
        F.embedding_bag(rgrad.tensor([0, 1, 2]), TABLE, rgrad.tensor([0.0, 1.0]))


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_normalization_needs_a_dimension_of_channels(shape: tuple[int, ...]) -> None:
    x = rgrad.ones(shape)
    with pytest.raises(IndexError, match="batch_norm"):
        F.batch_norm(x, None, None, training=True)
    with pytest.raises(IndexError, match="batch_norm"):
        F.batch_norm(x, rgrad.zeros(3), rgrad.ones(3))
    with pytest.raises(ValueError, match=rf"expected 2D or 3D input \(got {len(shape)}D input\)"):
        rgrad.nn.BatchNorm1d(3)(x)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.batch_norm(rgrad.ones(1), None, None, training=True)


def test_triplets_by_position() -> None:
    x = rgrad.ones(2, 3)
    with pytest.raises(TypeError, match=r"triplet_margin_with_distance_loss\(\) takes 3 positional arguments"):
        F.triplet_margin_with_distance_loss(x, x, x, 1.0)  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"triplet_margin_with_distance_loss\(\) missing .*'negative'"):
        F.triplet_margin_with_distance_loss(x, x)  # type: ignore[call-arg]
    for made in (
        F.triplet_margin_with_distance_loss(anchor=x, positive=x, negative=x),
        rgrad.nn.TripletMarginWithDistanceLoss()(x, x, x),
    ):
        assert made.item() == 1.0


def test_distances_name_dtypes() -> None:
    x = rgrad.ones(2, 3)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        rgrad.cdist(x, x.double())
    with pytest.raises(RuntimeError, match="cdist only supports floating-point dtypes, X2 got: Long"):
        rgrad.cdist(x, x.long())
    with pytest.raises(RuntimeError, match="pdist only supports floating-point dtypes"):
        F.pdist(x.long())
    with pytest.raises(RuntimeError, match="yet common dtype is Long"):
        F.cosine_similarity(x.long(), x.long())
