"""Points to take derivatives at, and how results are compared, on the device that a test runs on."""

from __future__ import annotations

from typing import Any

import numpy as np

import rgrad
from devices import real


def point(*values: float) -> Any:
    return rgrad.tensor(values, dtype=real())


def close(got: Any, want: Any, rel: float = 1e-4) -> None:
    have = np.asarray(got.tolist() if isinstance(got, rgrad.Tensor) else got)
    need = np.asarray(want.tolist() if isinstance(want, rgrad.Tensor) else want)
    assert have.shape == need.shape
    np.testing.assert_allclose(have, need, rtol=rel, atol=rel * max(1.0, float(np.abs(need).max(initial=0.0))))
