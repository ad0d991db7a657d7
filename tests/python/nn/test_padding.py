"""Padding that takes away on one side and adds on the other, in all modes, against the rule for each position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F

# Where a padded element comes from: of its place in the tensor, which may lie outside, and the size.
SOURCES: dict[str, Callable[[int, int], int]] = {
    "replicate": lambda at, size: min(max(at, 0), size - 1),
    "reflect": lambda at, size: -at if at < 0 else 2 * (size - 1) - at if at >= size else at,
}
# For a size of 5; -5 takes all elements away and -6 more, so that less is added on the other side.
SIDES = [(-1, 0), (0, -2), (-1, 2), (2, -1), (-4, 4), (4, -4), (-5, 3), (3, -5), (-6, 4), (4, -6), (-2, -2), (1, 2)]


def padded(x: np.ndarray, axis: int, before: int, after: int, mode: str) -> np.ndarray:
    size = x.shape[axis]
    places = [SOURCES[mode](at, size) for at in range(-before, size + after)]
    return np.take(x, places, axis)


@pytest.mark.parametrize("mode", SOURCES)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("extra", [1, 2])
@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_one_side_takes_away(mode: str, dims: int, extra: int, sides: tuple[int, int], device: str) -> None:
    shape = (2, 3)[:extra] + (5, 5, 5)[:dims]
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    # The sides are other ones in each dimension.
    pads = [SIDES[(SIDES.index(sides) + 5 * k) % len(SIDES)] for k in range(dims)]
    wanted = values
    for k, (before, after) in enumerate(pads):
        wanted = padded(wanted, len(shape) - 1 - k, before, after, mode)
    x = rgrad.tensor(values, device=device, requires_grad=True)
    flat = tuple(n for pair in pads for n in pair)
    for made in (F.pad(x, flat, mode=mode), F.pad(x.detach(), flat, mode=mode)):
        np.testing.assert_array_equal(made.detach().cpu().numpy(), wanted)
    weights = rgrad.arange(float(wanted.size), device=device).reshape(wanted.shape)
    (F.pad(x, flat, mode=mode) * weights).sum().backward()
    # Each element gets the weights of the places that it comes to.
    came = padded_places(values.shape, pads, mode)
    counted = np.bincount(came.reshape(-1), weights.cpu().numpy().reshape(-1), values.size).reshape(shape)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.cpu().numpy(), counted)


def padded_places(shape: tuple[int, ...], pads: list[tuple[int, int]], mode: str) -> np.ndarray:
    places = np.arange(np.prod(shape)).reshape(shape)
    for k, (before, after) in enumerate(pads):
        places = padded(places, len(shape) - 1 - k, before, after, mode)
    return places


@pytest.mark.parametrize("mode", SOURCES)
@pytest.mark.parametrize("pad", [(-5, 0), (-3, -2), (-9, 3), (0, -6)], ids=str)
def test_nothing_may_be_left(mode: str, pad: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError, match=r"input \(5\) is too small"):
        F.pad(rgrad.ones(2, 5), pad, mode=mode)
