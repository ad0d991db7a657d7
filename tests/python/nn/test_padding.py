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


@pytest.mark.parametrize("mode", [*SOURCES, "circular"])
@pytest.mark.parametrize("pad", [(-5, 0, 0, 0), (0, 0, -2, -2), (1, 1, -4, 0), (-3, -2, 1, 0)], ids=str)
def test_one_of_several_dimensions_may_become_empty(mode: str, pad: tuple[int, ...]) -> None:
    x = rgrad.ones(2, 4, 5, requires_grad=True)
    wanted = (2, 4 + pad[2] + pad[3], 5 + pad[0] + pad[1])
    for made in (F.pad(x, pad, mode=mode), F.pad(x.detach(), pad, mode=mode)):
        assert made.shape == wanted
    F.pad(x, pad, mode=mode).sum().backward()
    assert x.grad is not None
    assert x.grad.eq(0).all()
    if mode != "circular":
        with pytest.raises(RuntimeError, match="is too small"):
            F.pad(x, (-5, 0, -4, 0), mode=mode)
        with pytest.raises(RuntimeError, match="is too small"):
            F.pad(x, (-6, 0, 0, 0), mode=mode)


@pytest.mark.parametrize("pad", [(-1, 0), (0, -2), (-1, 2), (2, -1), (-2, 3), (-2, -3), (3, -2), (-5, 0)], ids=str)
def test_what_is_left_is_repeated(pad: tuple[int, int]) -> None:
    x = rgrad.arange(10.0, requires_grad=True)
    rows = x.view(2, 5)
    kept = rows[:, max(-pad[0], 0) : 5 - max(-pad[1], 0)].detach().numpy()
    wanted = np.pad(kept, ((0, 0), (max(pad[0], 0), max(pad[1], 0))), "wrap") if kept.size else kept
    for made in (F.pad(rows, pad, mode="circular"), F.pad(rows.detach(), pad, mode="circular")):
        np.testing.assert_array_equal(made.detach().numpy(), wanted)
    F.pad(rows, pad, mode="circular").sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.bincount(wanted.astype(int).reshape(-1), minlength=10))


@pytest.mark.parametrize("pad", [(4, -2), (-2, 4), (5, -1), (-5, 1), (1, -5), (-6, 3)], ids=str)
def test_no_more_is_repeated_than_is_left(pad: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(rgrad.ones(2, 5), pad, mode="circular")
    with pytest.raises(RuntimeError, match="Negative padding value is resulting in an empty dimension"):
        F.pad(rgrad.ones(2, 5), (-4, -2), mode="circular")
