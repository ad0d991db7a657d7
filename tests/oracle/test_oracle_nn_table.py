"""A module of every class of nn beside PyTorch's: values, gradients, states both ways, printing, constructors."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from loading import load  # noqa: E402
from nn_module_calls import CASES, NOT_CALLED, made, results  # noqa: E402

# Gradients that differ on purpose (docs/differences.md). test_oracle_norms.py compares them with differences.
OTHER_GRADIENTS = {"CrossMapLRN2d"}


def array(t: Any) -> np.ndarray:
    return np.array(t.detach().numpy())


def state(T: Any, module: Any) -> dict[str, Any]:
    """A state dict of the other library as one of this."""
    return {k: T.tensor(array(v)) for k, v in module.state_dict().items()}


def run(T: Any, module: Any, inputs: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outs = results(module(*inputs))
    total = sum((o * T.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).reshape(o.shape)).sum() for o in outs)
    leaves = [x for x in (*inputs, *module.parameters()) if x.requires_grad]
    grads = T.autograd.grad(total, leaves, allow_unused=True) if leaves else []
    return [array(o) for o in outs], [np.zeros(1) if g is None else array(g) for g in grads]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_a_module_computes_what_pytorch_computes(name: str, kind: str) -> None:
    (ours, a), (theirs, b) = made(rgrad, name, kind), made(torch, name, kind)
    if name.startswith("Lazy"):
        # Shapes come with the first call.
        ours(*a), theirs(*b)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    shapes = [[(tuple(v.shape), str(v.dtype)[6:]) for v in m.state_dict().values()] for m in (ours, theirs)]
    assert shapes[0] == shapes[1]
    ours.load_state_dict(state(rgrad, theirs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = copy.deepcopy(theirs)
    again.load_state_dict(state(torch, ours))
    got, wanted = run(rgrad, ours, a), run(torch, again, b)
    tolerance = (1e-6, 1e-7) if kind == "float64" else (2e-4, 2e-5)
    if name in OTHER_GRADIENTS:
        got, wanted = (got[0], []), (wanted[0], [])
    for mine, other in zip((*got[0], *got[1]), (*wanted[0], *wanted[1]), strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance[0], atol=tolerance[1])
    # Buffers were written alike, too.
    for key, value in ours.state_dict().items():
        np.testing.assert_allclose(array(value), array(again.state_dict()[key]), rtol=tolerance[0], atol=tolerance[1])


@pytest.mark.parametrize("name", sorted({*CASES, *NOT_CALLED} - {"UninitializedBuffer"}))
def test_a_constructor_has_pytorchs_parameters(name: str) -> None:
    def parameters(T: Any) -> list[Any]:
        signature = inspect.signature(getattr(T.nn, name).__init__)
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        listed = [
            (p.name, p.kind.name, re.sub(r" at 0x\w+", "", repr(p.default)))
            for p in signature.parameters.values()
            if p.kind not in kinds
        ]
        return listed

    ours, theirs = parameters(rgrad), parameters(torch)
    if [p for p in theirs if p[0] != "self"]:
        assert [p[0] for p in ours] == [p[0] for p in theirs]
        assert [p[2] for p in ours] == [p[2] for p in theirs]


@pytest.mark.parametrize("name", CASES)
def test_a_constructor_refuses_as_pytorch(name: str) -> None:
    def refused(T: Any, *args: Any, **kwargs: Any) -> type | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                getattr(T.nn, name)(*args, **kwargs)
            except Exception as error:
                return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return None

    # PyTorch's RNN takes any arguments, and stumbles over the fourth of these.
    many = (1,) * (20 if name != "RNN" else 3)
    for args, kwargs in (((), {}), ((), {"no_such_option": 1}), (many, {})):
        assert refused(rgrad, *args, **kwargs) == refused(torch, *args, **kwargs), (args, kwargs)


def test_every_module_is_called() -> None:
    classes = {n for n in rgrad.nn.__all__ if isinstance(getattr(rgrad.nn, n), type)}
    assert classes == {*CASES, *NOT_CALLED}


def test_the_pages_names_are_pytorchs() -> None:
    table = load("scripts/nn_and_optim_table.py")
    assert table.names() == table.torch_names()
