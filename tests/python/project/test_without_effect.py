"""docs/without-effect.md lists what is accepted without effect, and nothing else."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

import rgrad
from loading import load

TABLE = load("scripts/without_effect.py")
ROWS = TABLE.rows()


def test_the_page_is_current() -> None:
    assert TABLE.PAGE.read_text(encoding="utf-8") == TABLE.page(), "run python scripts/without_effect.py"


def value_of(called: str) -> Any:
    return functools.reduce(getattr, called.split(".")[1:], rgrad)


@pytest.mark.parametrize("called", [called for called in ROWS if " " not in called])
def test_what_is_listed_is_there(called: str) -> None:
    value = value_of(called)
    assert callable(value)
    names = {name for name in ROWS[called] if not name.startswith("the call")}
    if called not in TABLE.OTHERS or called.startswith("rgrad.optim."):
        accepted = set(inspect.signature(value).parameters)
        assert names <= accepted or accepted & {"options", "kwargs"}


def test_those_that_programs_give_most_are_listed() -> None:
    for called, name in {
        "rgrad.utils.data.DataLoader": "pin_memory",
        "rgrad.Tensor.to": "non_blocking",
        "rgrad.nn.utils.clip_grad_norm_": "foreach",
        "rgrad.nn.LinearCrossEntropyOptions": "acc_policy",
    }.items():
        assert name in ROWS[called]
    for called in ("compile", "autograd.profiler.emit_nvtx", "serialization.set_crc32_options", "jit.script"):
        assert ROWS[f"rgrad.{called}"][0].startswith("the call")


def test_every_optimizers_implementations_are_listed() -> None:
    for name in rgrad.optim.__all__:
        value = getattr(rgrad.optim, name)
        if inspect.isclass(value) and value is not rgrad.optim.Optimizer:
            taken = set(inspect.signature(value).parameters) & {"foreach", "fused", "capturable"}
            assert taken == set(ROWS.get(f"rgrad.optim.{name}", [])), name


def stepped(kind: Any, **options: Any) -> list[float]:
    p = rgrad.nn.Parameter(rgrad.tensor([1.0, -2.0]))
    optimizer = kind([p], **options)
    for _ in range(3):
        optimizer.zero_grad()
        (p**2).sum().backward()
        optimizer.step()
    found: list[float] = p.tolist()
    return found


@pytest.mark.parametrize(
    ("called", "name"),
    [(called, name) for called in ROWS if called.startswith("rgrad.optim.") for name in ROWS[called]],
)
def test_options_of_optimizers_change_nothing(called: str, name: str) -> None:
    kind = value_of(called)
    assert stepped(kind, **{name: True}) == stepped(kind, **{name: False}) == stepped(kind)


def test_native_calls_take_what_is_listed() -> None:
    x = rgrad.arange(3.0)
    assert rgrad.equal(rgrad.zeros(3).copy_(x, non_blocking=True), x)
    assert rgrad.equal(x.to("cpu", non_blocking=True), x)
    assert rgrad.equal(x.type(rgrad.float32, non_blocking=True), x)
    for make in (rgrad.empty, rgrad.zeros, rgrad.ones, rgrad.rand, rgrad.randn, rgrad.arange):
        assert make(2, pin_memory=True).shape == (2,)
    assert rgrad.full((2,), 1.0, pin_memory=True).tolist() == [1.0, 1.0]

    def f(x: Any) -> Any:
        return x

    assert rgrad.jit.script(f) is f


@pytest.mark.parametrize(
    ("doc", "names"),
    [
        ("Do it.\n\nArgs:\n    a: Has no effect.\n    b: Counts.\n", ["a"]),
        ("Do it.\n\nArgs:\n    a: Accepted for PyTorch's sake; it\n        has no effect.\n", ["a"]),
        ("Do it. ``a`` and ``b`` are accepted for PyTorch's sake and change nothing.", ["a", "b"]),
        ("Accepted for PyTorch's sake: there is one.", ["the call: there is one"]),
        ("Do it. It has no effect.", ["the call"]),
        ("Do it.\n\nArgs:\n    a: For rows; else there is no effect.\n", []),
        ("Remove it; doing so again changes nothing.", []),
    ],
)
def test_what_a_docstring_tells(doc: str, names: list[str]) -> None:
    assert TABLE.told(doc) == names
