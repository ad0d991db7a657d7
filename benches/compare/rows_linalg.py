"""Rows of linear algebra: one small matrix, where the overhead is everything, ten thousand of them, and large ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

from harness import Row, Work, to_numpy
from rows_small import random

Call = Callable[[ModuleType, Any], Any]


def matrices(lib: ModuleType, *shape: int) -> Any:
    """Symmetric and positive-definite."""
    x = random(*shape)
    made = x @ x.swapaxes(-1, -2) / shape[-1]
    made[..., range(shape[-1]), range(shape[-1])] += 1.0
    return lib.tensor(made)


def forward(call: Call, *shape: int) -> Callable[[ModuleType], Work]:
    def work(lib: ModuleType) -> Work:
        x = matrices(lib, *shape)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    call(lib, x)

        return Work(run, lambda: to_numpy(call(lib, x)))

    return work


def both(call: Call, *shape: int) -> Callable[[ModuleType], Work]:
    def work(lib: ModuleType) -> Work:
        x = matrices(lib, *shape).requires_grad_()

        def run(n: int) -> None:
            for _ in repeat(None, n):
                x.grad = None
                call(lib, x).sum().backward()

        def result() -> list[Any]:
            run(1)
            return to_numpy(x.grad)

        return Work(run, result)

    return work


# What is compared must be unique: no signs of vectors.
CALLS: dict[str, Call] = {
    "lu_factor": lambda lib, x: lib.linalg.lu_factor(x)[0],
    "cholesky_solve": lambda lib, x: lib.cholesky_solve(x, x),
    "inv": lambda lib, x: lib.linalg.inv(x),
    "qr": lambda lib, x: lib.linalg.qr(x)[1] ** 2,
    "solve": lambda lib, x: lib.linalg.solve(x, x[..., :2]),
    "det": lambda lib, x: lib.linalg.det(x),
    "cholesky": lambda lib, x: lib.linalg.cholesky(x),
    "eigh": lambda lib, x: lib.linalg.eigh(x)[0],
    "svd": lambda lib, x: lib.linalg.svd(x)[1],
}
SMALL = ("lu_factor", "cholesky_solve", "inv", "qr")
MANY = ("inv", "solve", "det", "cholesky", "eigh", "svd")

ROWS: list[Row] = [
    *(Row(f"linalg_{name}", f"{name} of one 4x4 matrix", 1.0, forward(CALLS[name], 4, 4), rtol=1e-4) for name in SMALL),
    *(
        Row(f"linalg_{name}_grad", f"{name} of one 4x4 matrix, backward", 1.0, both(CALLS[name], 4, 4), rtol=1e-3)
        for name in SMALL
    ),
    *(
        Row(f"linalg_{name}_many", f"{name} of 10,000 4x4 matrices", 1.0, forward(CALLS[name], 10000, 4, 4), rtol=1e-3)
        for name in MANY
    ),
    *(
        Row(f"linalg_{name}_300", f"{name} of a 300x300 matrix", 1.0, forward(CALLS[name], 300, 300), rtol=1e-3)
        for name in ("cholesky", "solve", "inv")
    ),
    *(
        Row(f"linalg_{name}_512", f"{name} of a 512x512 matrix", 1.0, forward(CALLS[name], 512, 512), rtol=1e-3)
        for name in ("qr", "eigh", "svd")
    ),
]
