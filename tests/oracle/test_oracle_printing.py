"""Options of printing beside torch's, on tensors of many kinds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

OPTIONS: list[dict[str, Any]] = [
    {"profile": "default"},
    {"profile": "short"},
    {"profile": "full"},
    {"precision": 0},
    {"precision": 8},
    {"threshold": 5},
    {"threshold": 0},
    {"threshold": float("inf")},
    {"threshold": 5, "edgeitems": 0},
    {"threshold": 3, "edgeitems": 1},
    {"linewidth": 20},
    {"linewidth": 1},
    {"linewidth": 200},
    {"sci_mode": True},
    {"sci_mode": False},
    {"sci_mode": True, "precision": 2, "linewidth": 40},
    {"profile": "short", "precision": 6},
    {"profile": "full", "linewidth": 50},
    {"edgeitems": 5, "threshold": 10, "linewidth": 60},
]
SHAPES = [(), (1,), (7,), (30,), (3, 4), (2, 3, 4), (1, 1, 1), (12, 12), (0,), (0, 3), (5, 1, 9), (2, 2, 2, 2), (1500,)]


def values(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    r = np.random.RandomState(zlib.crc32(repr(shape).encode()))
    normal, share = np.asarray(r.randn(*shape)), np.asarray(r.rand(*shape))
    yield normal
    yield np.asarray(normal * 10.0 ** r.randint(-8, 9, size=shape))
    yield np.asarray(r.randint(-1000, 1000, size=shape), dtype=np.float64)
    yield np.where(share < 0.2, np.nan, np.where(share < 0.4, np.inf, np.where(share < 0.5, -np.inf, normal)))
    yield np.asarray(r.randint(-5, 100_000, size=shape), dtype=np.int64)
    yield np.asarray(share > 0.5)
    yield np.asarray(normal, dtype=np.float16)
    yield np.asarray(r.randint(0, 255, size=shape), dtype=np.uint8)
    yield np.asarray(normal * 1e-6, dtype=np.float32)
    yield np.asarray(normal + 1j * share)
    yield np.asarray(normal - 1e6j * r.randint(-3, 3, size=shape), dtype=np.complex64)
    special = np.stack([np.where(share < 0.5, np.nan, normal), np.where(share < 0.7, -np.inf, -0.0)], -1)
    yield np.asarray(special.view(np.complex128)[..., 0])


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    for T in (torch, rgrad):
        T.set_printoptions(profile="default")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    for T in (torch, rgrad):
        T.set_printoptions(**options)
    for array in values(shape):
        for requires_grad in {False, array.dtype.kind == "f"}:
            theirs, mine = (T.from_numpy(array.copy()).requires_grad_(requires_grad) for T in (torch, rgrad))
            assert repr(mine).replace("rgrad.", "torch.") == repr(theirs)


def test_an_option_stays_until_it_is_set_and_sci_mode_does_not() -> None:
    steps: list[dict[str, Any]] = [
        {"precision": 2},
        {"sci_mode": True},
        {"linewidth": 30},
        {"edgeitems": 1},
        {"threshold": 4},
        {"profile": "short", "sci_mode": False},
        {"precision": 7, "profile": "full"},
        {},
    ]
    array = np.linspace(0.001, 1000.0, 23)
    for options in steps:
        for T in (torch, rgrad):
            T.set_printoptions(**options)
        assert rgrad._tensor_str.get_printoptions() == torch._tensor_str.get_printoptions()
        assert repr(rgrad.from_numpy(array)).replace("rgrad.", "torch.") == repr(torch.from_numpy(array))


def test_the_block() -> None:
    array = np.linspace(0.001, 1000.0, 23)
    with torch._tensor_str.printoptions(precision=1), rgrad._tensor_str.printoptions(precision=1):
        assert repr(rgrad.from_numpy(array)).replace("rgrad.", "torch.") == repr(torch.from_numpy(array))
    assert rgrad._tensor_str.get_printoptions() == torch._tensor_str.get_printoptions()
