"""Every argument that PyTorch's Python layer takes, ours takes too: same name, same kind, same default."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rgrad.testing  # noqa: E402

PLACES = {
    "nn": (rgrad.nn, torch.nn),
    "nn.functional": (rgrad.nn.functional, torch.nn.functional),
    "nn.init": (rgrad.nn.init, torch.nn.init),
    "nn.utils": (rgrad.nn.utils, torch.nn.utils),
    "optim": (rgrad.optim, torch.optim),
    "optim.lr_scheduler": (rgrad.optim.lr_scheduler, torch.optim.lr_scheduler),
    "utils.data": (rgrad.utils.data, torch.utils.data),
    "autograd": (rgrad.autograd, torch.autograd),
    "autograd.functional": (rgrad.autograd.functional, torch.autograd.functional),
    "testing": (rgrad.testing, torch.testing),
    "": (rgrad, torch),
}

# Ours without PyTorch's: nothing in a file is trusted, so there is no pickle module to choose, and no zip format.
LEFT_OUT = {
    "save": {"pickle_module", "pickle_protocol", "_use_new_zipfile_serialization", "_disable_byteorder_record"},
    "load": {"pickle_module", "weights_only", "mmap", "pickle_load_args"},
    "make_tensor": {"device", "exclude_zero", "memory_format"},
}

# Methods that users call; constructors are compared for every class.
METHODS = {
    "Module": [
        name for name, value in vars(torch.nn.Module).items() if not name.startswith("_") and inspect.isfunction(value)
    ],
    "Optimizer": ["add_param_group", "zero_grad", "step", "state_dict", "load_state_dict"],
    "StepLR": ["step", "get_last_lr", "state_dict", "load_state_dict"],
}

# Methods of Module for devices, formats and tools that do not exist here.
NO_METHODS = {
    "bfloat16", "buffers_", "compile", "cuda", "half", "ipu", "mtia", "register_backward_hook", "set_submodule",
    "share_memory", "to_empty", "xpu",
}  # fmt: skip


def parameters(f: Any) -> list[inspect.Parameter] | None:
    try:
        found = list(inspect.signature(f).parameters.values())
    except (ValueError, TypeError):
        return None
    return [p for p in found if p.name not in ("self", "cls")]


def pairs() -> list[Any]:
    cases = []
    for place, (ours, theirs) in PLACES.items():
        for name in dir(ours):
            mine, other = getattr(ours, name, None), getattr(theirs, name, None)
            written = getattr(mine, "__module__", "") or ""
            if name.startswith("_") or not callable(mine) or not callable(other) or not written.startswith("rgrad"):
                continue
            if written in ("rgrad", "rgrad._core", "rgrad._size"):
                continue
            if not (inspect.isclass(mine) or inspect.isfunction(mine)):
                continue
            cases.append(pytest.param(mine, other, id=f"{place}.{name}"))
            for method in METHODS.get(name, ()):
                if method not in NO_METHODS:
                    one, two = getattr(mine, method, None), getattr(other, method)
                    cases.append(pytest.param(one, two, id=f"{place}.{name}.{method}"))
    return cases


@pytest.mark.parametrize(("ours", "theirs"), pairs())
def test_arguments(ours: Any, theirs: Any) -> None:
    assert ours is not None, "missing"
    want, got = parameters(theirs), parameters(ours)
    if want is None or got is None:
        pytest.skip("no signature to compare")
    skip = LEFT_OUT.get(getattr(ours, "__name__", ""), set())
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    mine = {p.name: p for p in got}
    takes_all = any(p.kind in variadic for p in got)
    places = [p.name for p in got if p.kind not in variadic]
    position = 0
    for p in want:
        if p.kind in variadic or p.name in skip or p.name.startswith("_"):
            continue
        if p.name not in mine:
            assert takes_all, f"{p.name} is missing"
            continue
        ours_p = mine[p.name]
        if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            assert ours_p.kind is p.kind, f"{p.name} cannot be given by position"
            assert places.index(p.name) >= position, f"{p.name} is in another place"
            position = places.index(p.name)
        if isinstance(p.default, (bool, int, float, str, tuple, type(None))) or p.default is inspect.Parameter.empty:
            assert ours_p.default == p.default, f"default of {p.name}"


def test_there_is_something_to_compare() -> None:
    assert len(pairs()) > 100
