"""The options that makers of tensors share, good and bad: what is accepted in PyTorch is, and what is refused is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rgrad

pytestmark = pytest.mark.oracle

MAKERS: dict[str, Callable[..., Any]] = {
    **{
        name: lambda T, _name=name, **k: getattr(T, _name)(2, 3, **k)
        for name in ("empty", "zeros", "ones", "rand", "randn")
    },
    **{
        name: lambda T, _name=name, **k: getattr(T, _name)(T.ones(2), **k)
        for name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like")
    },
    **{
        name: lambda T, _name=name, **k: getattr(T.ones(2), _name)(2, **k)
        for name in ("new_empty", "new_zeros", "new_ones")
    },
    **{
        f"{name}_window": lambda T, _name=name, **k: getattr(T, f"{_name}_window")(4, **k)
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")
    },
    "arange": lambda T, **k: T.arange(3, **k),
    "asarray": lambda T, **k: T.asarray([1.0], **k),
    "as_tensor": lambda T, **k: T.as_tensor([1.0], **k),
    "empty_strided": lambda T, **k: T.empty_strided((2,), (1,), **k),
    "eye": lambda T, **k: T.eye(2, **k),
    "fftfreq": lambda T, **k: T.fft.fftfreq(4, **k),
    "frombuffer": lambda T, **k: T.frombuffer(bytearray(16), **{"dtype": T.float32, **k}),
    "full": lambda T, **k: T.full((2,), 1.0, **k),
    "full_like": lambda T, **k: T.full_like(T.ones(2), 1.0, **k),
    "linspace": lambda T, **k: T.linspace(0, 1, 3, **k),
    "logspace": lambda T, **k: T.logspace(0, 1, 3, **k),
    "new_empty_strided": lambda T, **k: T.ones(2).new_empty_strided((2,), (1,), **k),
    "new_full": lambda T, **k: T.ones(2).new_full((2,), 1.0, **k),
    "new_tensor": lambda T, **k: T.ones(2).new_tensor([1.0], **k),
    "normal": lambda T, **k: T.normal(0.0, 1.0, (2,), **k),
    "randint": lambda T, **k: T.randint(3, (2,), **k),
    "randint_like": lambda T, **k: T.randint_like(T.ones(2), 3, **k),
    "randperm": lambda T, **k: T.randperm(3, **k),
    "range": lambda T, **k: T.range(1, 3, **k),
    "rfftfreq": lambda T, **k: T.fft.rfftfreq(4, **k),
    "scalar_tensor": lambda T, **k: T.scalar_tensor(1.0, **k),
    "tensor": lambda T, **k: T.tensor([1.0], **k),
    "to": lambda T, **k: T.ones(2).to(**k),
    "tril_indices": lambda T, **k: T.tril_indices(2, 2, **k),
    "triu_indices": lambda T, **k: T.triu_indices(2, 2, **k),
    "type": lambda T, **k: T.ones(2).type(T.float64, **k),
    "vector_norm": lambda T, **k: T.linalg.vector_norm(T.ones(2), **k),
}
VALUES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "copy": {"'x'": lambda T: "x", "1": lambda T: 1},
    "device": {
        "1.5": lambda T: 1.5,
        "'x'": lambda T: "x",
        "'cpu'": lambda T: "cpu",
        "'cpu:0'": lambda T: "cpu:0",
        "a list": lambda T: [],
        "a dtype": lambda T: T.float32,
    },
    "dtype": {
        "text": lambda T: "float32",
        "1": lambda T: 1,
        "float": lambda T: float,
        "NumPy's": lambda T: np.float32,
        "a layout": lambda T: T.strided,
    },
    "layout": {
        "'x'": lambda T: "x",
        "1": lambda T: 1,
        "strided": lambda T: T.strided,
        "a dtype": lambda T: T.float32,
    },
    "memory_format": {"'x'": lambda T: "x", "1": lambda T: 1, "contiguous": lambda T: T.contiguous_format},
    "non_blocking": {"'x'": lambda T: "x", "1": lambda T: 1},
    "pin_memory": {
        "'x'": lambda T: "x",
        "1": lambda T: 1,
        "a tensor": lambda T: T.tensor(False),
        "False": lambda T: False,
    },
    "requires_grad": {"'x'": lambda T: "x", "1": lambda T: 1, "0.0": lambda T: 0.0, "None": lambda T: None},
    "unknown": {"1": lambda T: 1},
}
# The names of the cases in which rgrad accepts more, or refuses with another error of the same class.
DIFFERENT = {
    # PyTorch refuses float64 positions where its kernel runs.
    "tril_indices dtype=float",
    "triu_indices dtype=float",
    # PyTorch has signatures that lack an option of the others.
    "new_tensor layout=strided",
    "new_tensor pin_memory=False",
    "range pin_memory=False",
    # None is False for every maker here.
    "asarray requires_grad=None",
    "frombuffer requires_grad=None",
    "new_tensor requires_grad=None",
    "range requires_grad=None",
}
CASES = {
    f"{maker} {option}={shown}": (maker, option, shown)
    for maker in MAKERS
    for option in VALUES
    for shown in VALUES[option]
}


def outcome(T: Any, maker: str, option: str, shown: str) -> str:
    try:
        made = MAKERS[maker](T, **{option: VALUES[option][shown](T)})
    except Exception as e:
        return next(t.__name__ for t in type(e).__mro__ if t.__module__ == "builtins")
    return f"{made.dtype} {made.requires_grad} {made.device}".replace("rgrad", "torch")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("maker", MAKERS)
def test_options_are_accepted_and_refused_as_in_pytorch(maker: str) -> None:
    wrong = {}
    for name, case in CASES.items():
        if case[0] == maker and name not in DIFFERENT:
            ours, theirs = outcome(rgrad, *case), outcome(torch, *case)
            if ours != theirs:
                wrong[name] = theirs, ours
    assert not wrong
