"""Samplers that draw more numbers than memory holds: they draw in parts, and what is short comes as it did at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pytest

import rgrad
from rgrad.utils.data import (
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
    sampler,
)

ENDLESS = 10**12


def seeded(seed: int = 3) -> Any:
    return rgrad.Generator().manual_seed(seed)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_AT_ONCE", 100)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda g: RandomSampler(range(7), num_samples=ENDLESS, generator=g),
        lambda g: RandomSampler(range(7), replacement=True, num_samples=ENDLESS, generator=g),
        lambda g: RandomSampler(range(ENDLESS), replacement=True, generator=g),
        lambda g: WeightedRandomSampler([1.0, 0.0, 3.0], ENDLESS, generator=g),
        lambda g: DistributedSampler(range(ENDLESS), 3, 1, shuffle=False),
    ],
    ids=["permutations", "replacement", "all of many", "weighted", "distributed"],
)
@pytest.mark.usefixtures("small_parts")
def test_endless_orders_begin(make: Any, given: bool) -> None:
    def first() -> list[int]:
        if not given:
            rgrad.manual_seed(5)
        return list(islice(make(seeded() if given else None), 1000))

    found = first()
    assert len(found) == 1000
    assert first() == found
    assert all(type(number) is int for number in found)


@pytest.mark.usefixtures("small_parts")
def test_what_is_drawn_meanwhile_does_not_matter() -> None:
    """Without a generator of its own, an order is decided where the iteration begins."""
    for make in (
        lambda: RandomSampler(range(7), num_samples=500),
        lambda: RandomSampler(range(7), replacement=True, num_samples=500),
        lambda: WeightedRandomSampler([1.0, 2.0], 500),
    ):
        rgrad.manual_seed(1)
        whole = list(make())
        rgrad.manual_seed(1)
        slow = []
        for number in make():
            rgrad.rand(3)
            slow.append(number)
        assert slow == whole
        assert len(whole) == 500


@pytest.mark.usefixtures("small_parts")
def test_long_orders_have_every_number_as_often() -> None:
    found = list(RandomSampler(range(7), num_samples=1003))
    assert set(Counter(found[:1001]).values()) == {143}
    assert set(found[1001:]) <= set(range(7))
    # Orders of their own, not one again and again.
    assert len({tuple(found[n : n + 7]) for n in range(0, 1001, 7)}) > 100
    drawn = Counter(RandomSampler(range(4), replacement=True, num_samples=8000, generator=seeded()))
    assert all(count / 8000 == pytest.approx(0.25, abs=0.03) for count in drawn.values())
    weighted = Counter(WeightedRandomSampler([1.0, 0.0, 3.0], 8000, generator=seeded()))
    assert weighted[1] == 0
    assert weighted[2] / 8000 == pytest.approx(0.75, abs=0.02)


def test_short_orders_are_those_of_one_draw() -> None:
    n = 50
    order = rgrad.randperm(n, generator=seeded(), device="cpu").tolist()
    assert list(RandomSampler(range(n), generator=seeded())) == order
    assert list(RandomSampler(range(n), num_samples=20, generator=seeded())) == order[:20]
    generator = seeded()
    rounds = [rgrad.randperm(n, generator=generator, device="cpu").tolist() for _ in range(3)]
    assert list(RandomSampler(range(n), num_samples=120, generator=seeded())) == [*chain(*rounds)][:120]
    drawn = rgrad.randint(0, n, (400,), generator=seeded(), device="cpu").tolist()
    assert list(RandomSampler(range(n), replacement=True, num_samples=400, generator=seeded())) == drawn
    weights = rgrad.tensor([1.0, 2.0, 3.0], dtype=rgrad.float64)
    drawn = rgrad.multinomial(weights, 400, True, generator=seeded()).tolist()
    assert list(WeightedRandomSampler(weights, 400, generator=seeded())) == drawn


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [float("nan")]])
def test_wrong_weights_are_an_error_where_the_iteration_begins(weights: list[float]) -> None:
    with pytest.raises(RuntimeError):
        iter(WeightedRandomSampler(weights, ENDLESS))


class AsList(Sampler[int]):
    """The same order, of a class that loaders know nothing of."""

    def __init__(self, order: RandomSampler) -> None:
        self.order = order

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


@pytest.mark.parametrize("size", [1, 3, 7, 99, 100, 101, 250, 5000])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.usefixtures("small_parts")
def test_loaders_cut_parts_as_they_would_the_whole(size: int, drop_last: bool, replacement: bool) -> None:
    data = TensorDataset(rgrad.arange(7))

    def order() -> RandomSampler:
        return RandomSampler(range(7), replacement, num_samples=1003, generator=seeded())

    fast = [x.tolist() for (x,) in DataLoader(data, size, sampler=order(), drop_last=drop_last)]
    slow = [x.tolist() for (x,) in DataLoader(data, size, sampler=AsList(order()), drop_last=drop_last)]
    assert fast == slow
    assert [len(batch) for batch in fast[:-1]] == [size] * (len(fast) - 1)


@pytest.mark.usefixtures("small_parts")
def test_a_loader_of_an_endless_order_begins() -> None:
    loader = DataLoader(TensorDataset(rgrad.arange(7)), 64, sampler=RandomSampler(range(7), num_samples=ENDLESS))
    assert [len(x) for (x,) in islice(loader, 20)] == [64] * 20
    assert len(loader) == -(-ENDLESS // 64)


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_shares_are_those_of_the_repeated_order(n: int, drop_last: bool, shuffle: bool) -> None:
    replicas = 3
    common = rgrad.randperm(n, generator=seeded(0), device="cpu").tolist() if shuffle else list(range(n))
    total = n // replicas * replicas if drop_last else -(-n // replicas) * replicas
    repeated = (common * 3)[:total]
    for rank in range(replicas):
        found = list(DistributedSampler(range(n), replicas, rank, shuffle=shuffle, drop_last=drop_last))
        assert found == repeated[rank::replicas]
