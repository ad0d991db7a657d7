"""Rows of what a training loop is made of beside the model: steps of optimizers, and batches of a loader."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy

SAMPLES, FEATURES, BATCH = 1797, 64, 32  # the digits


def optimizer(name: str, tensors: int, size: int, **options: Any) -> Callable[[ModuleType], Work]:
    """Steps of an optimizer over equal tensors, gradients given."""

    def make(lib: ModuleType) -> Work:
        rng = np.random.default_rng(0)
        params, grads = ([rng.standard_normal(size, np.float32) for _ in range(tensors)] for _ in range(2))

        def fresh() -> tuple[list[Any], Any]:
            own = [lib.nn.Parameter(lib.tensor(p)) for p in params]
            for p, g in zip(own, grads, strict=True):
                p.grad = lib.tensor(g)
            return own, getattr(lib.optim, name)(own, **options)

        timed, made = fresh()

        def run(n: int) -> None:
            for _ in repeat(None, n):
                made.step()
                timed[-1][0].item()

        def result() -> list[Any]:
            own, steps = fresh()
            for _ in range(3):
                steps.step()
            return to_numpy(own[0], own[-1])

        return Work(run, result)

    return make


def loader(workers: int, persistent: bool = False) -> Callable[[ModuleType], Work]:
    """Epochs over a dataset of single samples, which the loader joins to batches."""

    def make(lib: ModuleType) -> Work:
        rng = np.random.default_rng(0)
        x, y = lib.tensor(rng.random((SAMPLES, FEATURES), np.float32)), lib.tensor(rng.integers(0, 10, SAMPLES))

        class Digits(lib.utils.data.Dataset):  # type: ignore[misc,name-defined]
            def __len__(self) -> int:
                return SAMPLES

            def __getitem__(self, i: int) -> Any:
                return x[i], y[i]

        batches = lib.utils.data.DataLoader(
            Digits(), BATCH, num_workers=workers, persistent_workers=persistent and workers > 0
        )

        def run(n: int) -> None:
            for _ in repeat(None, n):
                for _ in batches:
                    pass

        def result() -> list[Any]:
            found = list(batches)
            return to_numpy(*found[0], *found[-1])

        return Work(run, result)

    return make


LARGE, SMALL = (10, 1_000_000), (200, 1_000)
PER_EPOCH = -(-SAMPLES // BATCH)
ROWS = [
    Row("sgd_10x1m", "SGD with momentum, 10 x 1M, step", 1.1, optimizer("SGD", *LARGE, lr=0.01, momentum=0.9)),
    Row("rmsprop_10x1m", "RMSprop, 10 x 1M, step", 1.1, optimizer("RMSprop", *LARGE)),
    Row("adam_10x1m", "Adam, 10 x 1M, step", 2.5, optimizer("Adam", *LARGE)),
    Row("adamw_10x1m", "AdamW, 10 x 1M, step", 2.5, optimizer("AdamW", *LARGE)),
    Row("sgd_200x1k", "SGD with momentum, 200 x 1000, step", 5, optimizer("SGD", *SMALL, lr=0.01, momentum=0.9)),
    Row("rmsprop_200x1k", "RMSprop, 200 x 1000, step", 5, optimizer("RMSprop", *SMALL)),
    Row("adam_200x1k", "Adam, 200 x 1000, step", 5, optimizer("Adam", *SMALL)),
    Row("adamw_200x1k", "AdamW, 200 x 1000, step", 5, optimizer("AdamW", *SMALL)),
    Row("loader", "DataLoader, digits, per batch", 2, loader(0), per=PER_EPOCH),
    Row("loader_2", "the same, two workers, started each epoch", 1.5, loader(2), per=PER_EPOCH),
    Row("loader_2_persistent", "the same, two workers that stay", 1.5, loader(2, persistent=True), per=PER_EPOCH),
]
