"""Reductions that read pending programs, for the tests of both devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rgrad import Tensor


def program(x: Tensor, y: Tensor) -> Tensor:
    return (x * y + 0.5) * 2


REDUCTIONS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "sum": lambda t, d: t.sum(d),
    "mean": lambda t, d: t.mean(d),
    "prod": lambda t, d: t.prod(d) if isinstance(d, int) else t.prod(),
    "amax": lambda t, d: t.amax(d),
    "amin": lambda t, d: t.amin(d),
    "var": lambda t, d: t.var(d),
    "std": lambda t, d: t.std(d, correction=0),
    "logsumexp": lambda t, d: t.logsumexp(d),
    "norm": lambda t, d: t.norm(2, d),
    "norm 1": lambda t, d: t.norm(1, d),
    "norm inf": lambda t, d: t.norm(float("inf"), d),
    "norm 3": lambda t, d: t.norm(3, d),
    "nansum": lambda t, d: t.nansum(d),
}
