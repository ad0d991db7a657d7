"""NumPy's names `axis` and `keepdims` for `dim` and `keepdim`, wherever PyTorch accepts them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rgrad

SAMPLES: dict[str, dict[str, Any]] = {
    "gather": {"index": [[[0, 0, 0, 0]]]},
    "index_fill": {"index": [0], "value": 1.0},
    "index_fill_": {"index": [0], "value": 1.0},
    "index_select": {"index": [0]},
    "kthvalue": {"k": 1},
    "nanquantile": {"q": 0.5},
    "narrow": {"start": 0, "length": 1},
    "quantile": {"q": 0.5},
    "scatter": {"index": [[[0, 0, 0, 0]]], "value": 1.0},
    "select": {"index": 0},
    "topk": {"k": 1},
}


def answer(function: Any, args: list[Any], keywords: dict[str, Any]) -> str:
    """The shapes of a call's results, or that it was refused."""
    try:
        made = function(*args, **keywords)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return "refused"
    parts = made if isinstance(made, tuple) else (made,)
    return str([tuple(part.shape) if hasattr(part, "shape") else part for part in parts])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("more", [{}, {"keepdims": True}], ids=["axis", "axis and keepdims"])
@pytest.mark.parametrize("of", ["method", "function", "function of a list", "linalg"])
def test_every_function_takes_them_that_takes_them_in_pytorch(of: str, more: dict[str, bool]) -> None:
    places = {"method": (torch.Tensor, rgrad.Tensor), "linalg": (torch.linalg, rgrad.linalg)}.get(of, (torch, rgrad))
    names = [n for n in sorted(set(dir(places[0])) & set(dir(places[1]))) if not n.startswith("_")]
    accepted = 0
    for name in names:
        if isinstance(getattr(places[0], name), type) or not callable(getattr(places[0], name)):
            continue
        told = []
        for library, place in zip((torch, rgrad), places, strict=True):
            x = library.arange(24.0).reshape(2, 3, 4)
            given = {k: library.tensor(v) if isinstance(v, list) else v for k, v in SAMPLES.get(name, {}).items()}
            args = [[x, x]] if of == "function of a list" else [x]
            told.append(answer(getattr(place, name), args, {"axis": 1, **given, **more}))
        if told[0] != "refused":
            accepted += 1
            assert told[1] == told[0], name
    assert accepted >= {"method": 15, "function": 15, "function of a list": 0 if more else 1, "linalg": 2}[of]


@pytest.mark.parametrize("name", ["sum", "squeeze", "cumsum", "median", "frobenius_norm", "trapezoid"])
def test_both_names_at_once_are_refused(name: str) -> None:
    for library in (torch, rgrad):
        with pytest.raises(TypeError):
            getattr(library, name)(library.ones(2, 2), dim=0, axis=0)
