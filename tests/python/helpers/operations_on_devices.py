"""Which operations run for which dtypes on which device, found by running them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import op_kit as kit
import rgrad
from op_table import OPS

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")

Call = Callable[[Any, Any], Any]


def _more() -> dict[str, Call]:
    """Operations without a row in the suite's table: name to call(x, device), x 4 elements of the dtype."""
    functional = rgrad.nn.functional
    return {
        "uniform_": lambda x, d: x.uniform_(),
        "normal_": lambda x, d: x.normal_(),
        "exponential_": lambda x, d: x.exponential_(),
        "bernoulli_": lambda x, d: x.bernoulli_(0.5),
        "random_": lambda x, d: x.random_(0, 2),
        "fill_": lambda x, d: x.fill_(1),
        "zero_": lambda x, d: x.zero_(),
        "copy_": lambda x, d: x.copy_(x.clone()),
        "to (another device)": lambda x, d: x.to("cpu" if d == "wgpu" else "wgpu"),
        "item": lambda x, d: x[0].item(),
        "arange": lambda x, d: rgrad.arange(3, dtype=x.dtype, device=d),
        "linspace": lambda x, d: rgrad.linspace(0, 1, 3, dtype=x.dtype, device=d),
        "eye": lambda x, d: rgrad.eye(3, dtype=x.dtype, device=d),
        "rand": lambda x, d: rgrad.rand(3, dtype=x.dtype, device=d),
        "randint": lambda x, d: rgrad.randint(0, 2, (3,), dtype=x.dtype, device=d),
        "randperm": lambda x, d: rgrad.randperm(3, dtype=x.dtype, device=d),
        "bernoulli": lambda x, d: rgrad.bernoulli(x),
        "multinomial": lambda x, d: rgrad.multinomial(x, 2),
        "nonzero": lambda x, d: rgrad.nonzero(x),
        "dropout": lambda x, d: functional.dropout(x, 0.5),
        "cross_entropy": lambda x, d: functional.cross_entropy(x, rgrad.tensor(1, device=d)),
        "nll_loss": lambda x, d: functional.nll_loss(x, rgrad.tensor(1, device=d)),
        "mse_loss": lambda x, d: functional.mse_loss(x, x),
        "l1_loss": lambda x, d: functional.l1_loss(x, x),
        "smooth_l1_loss": lambda x, d: functional.smooth_l1_loss(x, x),
        "binary_cross_entropy": lambda x, d: functional.binary_cross_entropy(x, x),
        "one_hot": lambda x, d: functional.one_hot(x),
    }


def accepted(run: Callable[[str], Any], dtypes: Sequence[str]) -> list[str]:
    """Those of the dtypes for which `run` raises no error."""
    found = []
    for dtype in dtypes:
        try:
            run(dtype)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as e:
            # A divisor that is zero was refused, not the dtype.
            if "ZeroDivisionError" not in str(e):
                continue
        found.append(dtype)
    return found


def lines(dtypes: Sequence[str] = DTYPES) -> Iterator[tuple[str, list[str], list[str]]]:
    """(operation, those of the dtypes that run on the CPU, those that run on wgpu) for every operation, by name."""
    table: dict[str, list[list[str]]] = {}

    def tries(call: Callable[[str, str], Any]) -> list[list[str]]:
        out = []
        for device in ("cpu", "wgpu"):
            with rgrad.device(device):
                out.append(accepted(partial(finished, call, device), dtypes))
        return out

    def finished(call: Callable[[str, str], Any], device: str, dtype: str) -> None:
        call(device, dtype)
        if device == "wgpu":
            # What a shader refuses is raised here.
            rgrad.wgpu.synchronize()

    for op in OPS:
        samples = op.all_samples()
        sample = next((s for s in samples if all(a.base.size for a in s.args)), samples[0])

        def call(device: str, dtype: str, op: Any = op, sample: Any = sample) -> None:
            op.call(rgrad, *kit.views(sample, kit.leaves(rgrad, sample, dtype)), **sample.params)

        table[op.name] = tries(call)
    for name, action in _more().items():

        def again(device: str, dtype: str, action: Call = action) -> None:
            x = rgrad.tensor(np.array([0, 1, 1, 1]).astype(dtype))
            action(x, device)

        table[name] = tries(again)
    for name, (here, there) in sorted(table.items()):
        yield name, here, there
