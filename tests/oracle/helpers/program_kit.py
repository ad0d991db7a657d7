"""Small programs that run on rgrad and on torch and say what they saw; and the comparison of what they said."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import rgrad

Program = Callable[[Any, list[Any]], Any]


@dataclass
class Raised:
    """An error: the builtin class that a program would catch, and its text."""

    kind: str
    text: str


@dataclass
class Values:
    """A tensor."""

    dtype: str
    requires_grad: bool
    values: Any


def raised(error: Exception) -> Raised:
    builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins" or c.__name__ == "GradcheckError")
    return Raised(builtin.__name__, str(error))


def plain(value: Any) -> Any:
    if isinstance(value, (rgrad.Tensor, torch.Tensor)):
        array = np.array(value.detach().numpy())
        return Values(str(value.dtype).rsplit(".", 1)[-1], value.requires_grad, array)
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    return value


def attempt(f: Callable[[], Any]) -> Any:
    try:
        return plain(f())
    except Exception as error:
        return raised(error)


def observed(T: Any, program: Program) -> list[Any]:
    """What the program logged, what it returned or raised, and its warnings."""
    log: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = attempt(lambda: program(T, log))
    shown = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return [plain(log), result, shown]


def text_of(message: str) -> str:
    """A message without its library's name, blanks, addresses and places in torch's sources."""
    message = re.sub(r"\(Triggered internally at [^)]*\)", "", message)
    message = re.sub(r"0x[0-9a-f]+", "0x", message.replace("rgrad", "torch"))
    return re.sub(r"\s+", "", message)


def same(got: Any, want: Any, where: str = "") -> None:
    """What rgrad says is what torch says. Its messages begin with torch's; it may add to them."""
    if isinstance(want, Raised):
        assert isinstance(got, Raised), f"{where}: got {got}, torch raises {want}"
        assert got.kind == want.kind, f"{where}: got {got}, torch raises {want}"
        assert text_of(got.text).startswith(text_of(want.text).rstrip(".")), f"{where}:\n{got.text}\n{want.text}"
    elif isinstance(want, Values):
        assert isinstance(got, Values), f"{where}: got {got}, torch gives {want}"
        assert (got.dtype, got.requires_grad) == (want.dtype, want.requires_grad), where
        assert got.values.shape == want.values.shape, where
        np.testing.assert_allclose(got.values, want.values, rtol=1e-6 if want.dtype == "float32" else 1e-12, atol=1e-15)
    elif isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)), f"{where}: got {got}, torch gives {want}"
        assert len(got) == len(want), f"{where}: got {got}, torch gives {want}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            same(g, w, f"{where}[{i}]")
    elif isinstance(want, str):
        assert isinstance(got, str), f"{where}: got {got}, torch gives {want}"
        assert text_of(got).startswith(text_of(want).rstrip(".")), f"{where}:\n{got}\n{want}"
    else:
        assert got == want, f"{where}: got {got}, torch gives {want}"


def compare(program: Program) -> None:
    same(observed(rgrad, program), observed(torch, program), program.__name__)


def registry() -> tuple[dict[str, Program], Callable[[Program], Program]]:
    """An empty list of programs, and the decorator that adds one."""
    programs: dict[str, Program] = {}

    def add(program: Program) -> Program:
        programs[program.__name__] = program
        return program

    return programs, add


def submodule(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.{name}")


def leaf(T: Any, *values: float) -> Any:
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64, requires_grad=True)


def point(T: Any, *values: float) -> Any:
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64)


def function(T: Any, forward: Any, backward: Any, **more: Any) -> Any:
    methods = {"forward": forward, "backward": backward, **more}
    return type("Own", (T.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def cut(T: Any) -> Any:
    """A Function that gives no gradient back."""
    return function(T, lambda ctx, x: x * 1, lambda ctx, g: None)


def hooks(T: Any, pack: Any = lambda t: t, unpack: Any = lambda t: t) -> Any:
    return T.autograd.graph.saved_tensors_hooks(pack, unpack)
