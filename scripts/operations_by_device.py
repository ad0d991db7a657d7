"""Write docs/operations-by-device.md: which operation runs for which dtype on which device.

    python scripts/operations_by_device.py            # writes the page
    python scripts/operations_by_device.py --check    # exits with 1 and says what is different on the page

Nothing is kept by hand: every row of the test suite's table of operations (tests/python/op_table.py), and what the
list below adds to it, is run for every dtype on both devices. An entry is there if the operation ran without an error;
whether its values are right is what the suite tests. Needs an adapter with 64-bit floats and integers, such as Mesa's
software adapter.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operations-by-device.md"
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")

HEAD = """\
# Operations by device and dtype

Written by `scripts/operations_by_device.py`, which runs every operation of the test suite's table; do not edit. A dtype
is listed where an input of it is accepted. What the CPU refuses, PyTorch refuses too, for the most part; what only wgpu
refuses is not implemented there yet, and the error says so. float64 on wgpu needs an adapter that has it; see
[devices.md](devices.md).

| operation | cpu | wgpu |
|---|---|---|
"""

Call = Callable[[Any, Any], Any]


def _more(rgrad: Any) -> dict[str, Call]:
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
    if str(ROOT / "tests" / "python") not in sys.path:
        sys.path.insert(0, str(ROOT / "tests" / "python"))
    import rgrad

    kit: Any = import_module("op_kit")
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

    for op in import_module("op_table").OPS:
        samples = op.all_samples()
        sample = next((s for s in samples if all(a.base.size for a in s.args)), samples[0])

        def call(device: str, dtype: str, op: Any = op, sample: Any = sample) -> None:
            op.call(rgrad, *kit.views(sample, kit.leaves(rgrad, sample, dtype)), **sample.params)

        table[op.name] = tries(call)
    for name, action in _more(rgrad).items():

        def again(device: str, dtype: str, action: Call = action) -> None:
            x = rgrad.tensor(np.array([0, 1, 1, 1]).astype(dtype))
            action(x, device)

        table[name] = tries(again)
    for name, (here, there) in sorted(table.items()):
        yield name, here, there


def cell(dtypes: list[str]) -> str:
    return "all" if len(dtypes) == len(DTYPES) else " ".join(dtypes) or "none"


def page() -> str:
    """The text of docs/operations-by-device.md."""
    rows = [f"| `{name}` | {cell(here)} | {cell(there)} |\n" for name, here, there in lines()]
    return HEAD + "".join(rows)


def differences(dtypes: Sequence[str] = DTYPES) -> list[str]:
    """What the page says otherwise than the operations do, of some of the dtypes."""
    text = PAGE.read_text(encoding="utf-8")
    if not text.startswith(HEAD):
        return ["the page's beginning"]
    listed = dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", text[len(HEAD) :], flags=re.MULTILINE))
    found = []
    for name, *devices in lines(dtypes):
        written = listed.pop(name, None)
        cells = ["none", "none"] if written is None else written.split(" | ")
        for device, cell_text, now in zip(("cpu", "wgpu"), cells, devices, strict=True):
            told = DTYPES if cell_text == "all" else cell_text.split()
            if written is None or [d for d in dtypes if d in told] != [d for d in dtypes if d in now]:
                found.append(
                    f"{name} on {device}: the page has {written and cell_text}, of {list(dtypes)} it takes {now}"
                )
    return found + [f"{name}: on the page only" for name in listed]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the page instead of writing it")
    args = parser.parse_args()
    import warnings

    warnings.simplefilter("ignore")
    if not args.check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    found = differences()
    if found:
        print(*found, sep="\n", file=sys.stderr)
        print(
            f"{PAGE.relative_to(ROOT)} is not up to date: run python scripts/operations_by_device.py", file=sys.stderr
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
