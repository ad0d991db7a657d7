"""One row behind another in one shader: drivers have made wrong code of two functions that were right alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import rgrad
import rotation
from fusion_programs import rows

pytestmark = pytest.mark.wgpu

# Values that all rows take to something finite, and special ones.
VALUES = np.concatenate(
    [np.linspace(-3, 3, 49), [0.0, -0.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]],
).astype("float32")


def unary() -> list[str]:
    """The rows that take one float32 tensor and give one."""
    x = rgrad.ones(2)
    found = []
    for name in rows()[1]:
        try:
            made = getattr(rgrad._core, name)(x)
        except (TypeError, RuntimeError):
            continue
        if made.dtype == rgrad.float32:
            found.append(name)
    return sorted(set(found))


def bits(first: str, second: str, fused: bool) -> np.ndarray:
    with rgrad.fusion(fused):
        x = rgrad.tensor(VALUES, device="wgpu")
        out: np.ndarray = getattr(rgrad._core, second)(getattr(rgrad._core, first)(x)).cpu().numpy()
    return np.where(np.isnan(out), np.float32(np.nan), out).view("uint32")


@pytest.fixture
def deferred() -> Iterator[None]:
    """Results stay deferred however small they are."""
    before = rgrad._core._set_fusion_least(1)
    yield
    rgrad._core._set_fusion_least(before)


# All pairs together take longer than one test may.
PARTS = 20


@pytest.mark.usefixtures("deferred")
@pytest.mark.parametrize("part", range(PARTS))
def test_two_rows_in_one_shader_give_the_bits_of_two_shaders(part: int) -> None:
    names = unary()
    assert len(names) > 40
    mine = list(product(names, names))[part::PARTS]
    pairs = [("gelu", "erf"), *rotation.some(mine, 60 // PARTS, f"pairs of rows in one shader, {part}")]
    wrong = [pair for pair in pairs if (bits(*pair, fused=True) != bits(*pair, fused=False)).any()]
    assert wrong == []
