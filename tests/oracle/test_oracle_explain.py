"""What `explain` says of a gradient beside PyTorch's gradient, and the notes of anomaly mode beside its errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from rgrad.autograd.graph import explain  # noqa: E402

pytestmark = pytest.mark.oracle

Program = Callable[[ModuleType, Any], Any]


def no_grad_part(t: ModuleType, w: Any) -> Any:
    with t.no_grad():
        scale = w.abs().max()
    return (w / scale).sum()


def only_under_no_grad(t: ModuleType, w: Any) -> Any:
    with t.no_grad():
        scale = w * 2
    return (scale + t.ones(3, requires_grad=True)).sum()


def deep(t: ModuleType, w: Any) -> Any:
    for _ in range(15):
        w = t.sigmoid(w * 0.2)
    return w.sum()


PROGRAMS: dict[str, Program] = {
    "square": lambda t, w: (w * w).sum(),
    "two paths": lambda t, w: (w.exp() * w.sin()).mean() + w.sum(),
    "softmax": lambda t, w: t.softmax(w, 0)[0].log(),
    "detached factor": lambda t, w: (w * w.detach()).sum(),
    "detached": lambda t, w: (w.detach() * t.ones(3, requires_grad=True)).sum(),
    "no_grad part": no_grad_part,
    "only under no_grad": only_under_no_grad,
    "comparison": lambda t, w: ((w > 0) * t.ones(3, requires_grad=True)).sum(),
    "argmax": lambda t, w: (w.argmax() * t.ones(3, requires_grad=True)).sum(),
    "not used": lambda t, w: t.ones(3, requires_grad=True).sum(),
    "sqrt of zero": lambda t, w: (w * 0).sqrt().sum(),
    "log of zero": lambda t, w: (w * 0).log().sum(),
    "norm of zero": lambda t, w: ((w * 0) ** 2).sum().sqrt(),
    "reciprocal": lambda t, w: (1 / (w * 0 + 1e-38)).sum(),
    "relu": lambda t, w: (w - 100).relu().sum(),
    "clamp": lambda t, w: w.clamp(50, 60).sum(),
    "round": lambda t, w: w.round().sum(),
    "times zero": lambda t, w: (w * 0).sum(),
    "deep": deep,
    "growing": lambda t, w: (w * 1e4 * 1e4).sum(),
    "overflowing": lambda t, w: (w * 1e30 * 1e30).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_fits_pytorchs_gradient(name: str) -> None:
    program = PROGRAMS[name]
    values = [1.0, -2.0, 3.0]
    theirs = torch.tensor(values, requires_grad=True)
    (exact,) = torch.autograd.grad(program(torch, theirs), theirs, allow_unused=True)
    ours = rgrad.tensor(values, requires_grad=True)
    found = explain(program(rgrad, ours), ours)
    if exact is None:
        assert found.status in ("cut", "unused")
        assert found.gradient is None
        assert (found.status == "unused") == (name == "not used")
        return
    assert found.gradient is not None
    np.testing.assert_allclose(found.gradient.numpy(), exact.numpy(), rtol=1e-4, atol=0)
    if exact.isnan().any():
        assert found.status == "nan"
    elif exact.isinf().any():
        assert found.status == "overflow"
    elif not exact.any():
        assert found.status == "zero"
    else:
        assert found.status in ("ok", "vanishing", "exploding")
        assert found.norm == pytest.approx(float(exact.norm()), rel=1e-4)
        assert found.path[-1].to == "AccumulateGrad"
    assert (found.first is None) == (found.status == "ok")
    # The last edge of the path carries the gradient, if there is one path only.
    last = [e for e in found.edges if e.to == "AccumulateGrad"]
    if len(last) == 1:
        assert last[0].nan == int(exact.isnan().sum())
        assert last[0].inf == int(exact.isinf().sum())
        assert last[0].zero == int((exact == 0).sum())


def anomaly(t: ModuleType, program: Program) -> tuple[str, list[str]]:
    w = t.tensor([1.0, -2.0, 3.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with t.autograd.detect_anomaly():
            try:
                program(t, w).backward()
            except RuntimeError as error:
                return str(error), list(getattr(error, "__notes__", []))
    return "", []


@pytest.mark.parametrize("name", ["square", "softmax", "sqrt of zero", "norm of zero", "relu", "reciprocal"])
def test_anomaly_mode_says_the_same_and_adds_the_forward(name: str) -> None:
    theirs, _ = anomaly(torch, PROGRAMS[name])
    ours, notes = anomaly(rgrad, PROGRAMS[name])
    assert ours == theirs
    assert any(note.startswith("Forward: ") for note in notes) == bool(theirs)
