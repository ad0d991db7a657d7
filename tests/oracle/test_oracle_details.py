"""Details of calls, of saved files and of saved tensors, beside PyTorch."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import rgrad

LIBRARIES = (rgrad, torch)


def outcome(call: Callable[[ModuleType], Any], lib: ModuleType) -> Any:
    """What a call returns, or the builtin class of its exception."""
    try:
        return plain(call(lib))
    except Exception as error:
        return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return (tuple(value.shape), value.tolist()) if hasattr(value, "tolist") else value


SHAPES = [(), (1,), (3,), (1, 1, 2), (2, 1, 3), (2, 4, 3)]
ARGUMENTS = [
    (),
    (0,),
    (1,),
    (0, 1),
    (1, 1),
    (0, 1, 2),
    (-1, 0),
    ((0, 1),),
    ([0, 1], 1),
    ((0,), 1),
    (1.5, 1),
    (True, 1),
    (3, 4),
]


@pytest.mark.parametrize("name", ["squeeze", "squeeze_", "hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integers_that_are_given_one_by_one(name: str, shape: tuple[int, ...]) -> None:
    for arguments in ARGUMENTS:

        def call(lib: ModuleType, arguments: tuple[Any, ...] = arguments) -> Any:
            x = lib.tensor(np.arange(np.prod(shape), dtype=np.float64).reshape(shape))
            return getattr(x, name)(*arguments)

        ours, theirs = (outcome(call, lib) for lib in LIBRARIES)
        assert ours == theirs, arguments


@pytest.mark.parametrize("name", ["squeeze", "hsplit"])
def test_functions_take_no_integers_one_by_one(name: str) -> None:
    for lib in LIBRARIES:
        with pytest.raises(TypeError):
            getattr(lib, name)(lib.zeros(1, 1, 2), 0, 1)


def through_file(lib: ModuleType, value: Any) -> Any:
    file = io.BytesIO()
    lib.save(value, file)
    file.seek(0)
    return lib.load(file)


def random_views(lib: ModuleType, seed: int) -> list[Any]:
    """Views of one memory, and other tensors between them; some occur twice."""
    rng = np.random.default_rng(seed)
    x = lib.arange(24.0)
    made = [x] if rng.random() < 0.7 else []
    ways: list[Callable[[], Any]] = [
        lambda: x.view(4, 6),
        lambda: x[3:17],
        lambda: x.view(4, 6).t(),
        lambda: x.view(2, 3, 4)[:, 1:, ::2],
        lambda: x[5],
        lambda: x[::3],
        lambda: x[2:3].expand(5),
        lambda: x[7:7],
        lambda: x.clone(),
        lambda: lib.arange(3),
        lambda: lib.nn.Parameter(x.view(6, 4)[1]),
        lambda: made[int(rng.integers(len(made)))] if made else x,
    ]
    made.extend(ways[int(rng.integers(len(ways)))]() for _ in range(6))
    return made


@pytest.mark.parametrize("seed", range(40))
def test_files_keep_what_shares_memory_and_what_is_one_object(seed: int) -> None:
    seen = []
    for lib in LIBRARIES:
        loaded = through_file(lib, random_views(lib, seed))
        found: list[Any] = [[a is b for b in loaded] for a in loaded]
        found.append([(type(t).__name__, tuple(t.shape), t.tolist(), t.requires_grad, t.is_leaf) for t in loaded])
        with lib.no_grad():
            for i, t in enumerate(loaded):
                # What was written to one tensor is seen in those that share its memory.
                if t.dtype == lib.float32 and t.numel() and 0 not in t.stride():
                    t.fill_(100.0 + i)
                    found.append([u.tolist() for u in loaded])
        seen.append(found)
    assert seen[0] == seen[1]


WRITES: dict[str, Callable[[Any], Any]] = {"detach": lambda a: a.detach_(), "write": lambda a: a.mul_(2)}
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda a, w: a * w,
    "div": lambda a, w: w / a,
    "matmul": lambda a, w: a @ w,
    "where": lambda a, w: a.atan2(w),
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("saves_both", [True, False])
def test_saved_tensors_that_no_gradient_reads_are_checked(
    product: str, write: str, wanted: int, saves_both: bool
) -> None:
    seen = []
    for lib in LIBRARIES:
        x = lib.full((2, 2), 0.5, dtype=lib.float64, requires_grad=True)
        w = lib.full((2, 2), 1.5, dtype=lib.float64, requires_grad=saves_both)
        a = x * 1
        y = PRODUCTS[product](a, w).sum()
        WRITES[write](a)
        try:
            inputs = [x, w] if saves_both else [x]
            g = lib.autograd.grad(y, inputs[min(wanted, len(inputs) - 1)])
            seen.append(plain(g))
        except RuntimeError as error:
            seen.append(
                next(word for word in ("detached in-place", "modified by an inplace operation") if word in str(error))
            )
    assert seen[0] == seen[1]
