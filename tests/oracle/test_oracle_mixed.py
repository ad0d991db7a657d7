"""Tensors of PyTorch and of rgrad in one call: one error that names both libraries, whoever is asked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rgrad

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "torch.sin": lambda r, t: torch.sin(r),
    "rgrad.sin": lambda r, t: rgrad.sin(t),
    "r + t": lambda r, t: r + t,
    "t + r": lambda r, t: t + r,
    "r @ t": lambda r, t: r @ t,
    "t ** r": lambda r, t: t**r,
    "r == t": lambda r, t: r == t,
    "t == r": lambda r, t: t == r,
    "r < t": lambda r, t: r < t,
    "r += t": lambda r, t: r.add_(t),
    "r[0] = t": lambda r, t: r.__setitem__(0, t[0]),
    "t[0] = r": lambda r, t: t.__setitem__(0, r[0]),
    "t[r]": lambda r, t: t[r.long()],
    "torch.cat": lambda r, t: torch.cat([t, r]),
    "rgrad.cat": lambda r, t: rgrad.cat([r, t]),
    "torch.where": lambda r, t: torch.where(t > 0, r, t),
    "torch.nn.Linear": lambda r, t: torch.nn.Linear(4, 2)(r),
    "rgrad.nn.Linear": lambda r, t: rgrad.nn.Linear(4, 2)(t),
    "torch.nn.functional.relu": lambda r, t: torch.nn.functional.relu(r),
    "rgrad.nn.functional.relu": lambda r, t: rgrad.nn.functional.relu(t),
    "torch.nn.functional.softmax": lambda r, t: torch.nn.functional.softmax(r, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_names_both(name: str) -> None:
    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"(torch|rgrad) got a Tensor of (rgrad|torch): tensors of the two libraries do not mix"
        ) as e:
            CALLS[name](rgrad.ones(3, 4), torch.ones(3, 4))
        assert "from_numpy" in str(e.value)


def test_conversions_work() -> None:
    r = rgrad.from_numpy(torch.ones(3).numpy())
    assert torch.from_numpy((r + 1).numpy()).tolist() == [2, 2, 2]
