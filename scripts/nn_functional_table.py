"""Write docs/nn-functional.md: what there is of `nn.functional`, and for which dtypes and derivatives it works.

    python scripts/nn_functional_table.py            # writes the page
    python scripts/nn_functional_table.py --check    # exits with 1 if the page is not up to date

Nothing is kept by hand: each function is called (tests/python/helpers/nn_functional_calls.py has a call of each), for
every float dtype on both devices, and compared with its result in float64 on the CPU; its derivatives are compared with
numeric ones. Needs an adapter with 64-bit floats, such as Mesa's software adapter.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from kept import ROOT, line, main

PAGE = ROOT / "docs" / "nn-functional.md"
sys.path.insert(0, str(ROOT / "tests" / "python" / "helpers"))

HEAD = """\
# nn.functional: dtypes and derivatives

Written by `scripts/nn_functional_table.py`, which calls every function; do not edit. A dtype stands here if the result
is that of float64 on the CPU but for rounding. Derivatives are compared with numeric ones, in float64 on the CPU:
*gradient* by `gradcheck`, *forward* by its forward mode, *second* by `gradgradcheck`. *Batched*: `vmap` gives what a
loop gives. Functions that draw numbers are compared with the same dtype on the CPU. Where `-` stands under derivatives,
the result is not differentiable by its nature. `gaussian_nll_loss` looks at values before it computes, which `vmap`
refuses, as PyTorch's does.

"""
DTYPES = ("float16", "bfloat16", "float32", "float64")
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}
# Functions that draw numbers: other ones for each dtype, the same on every device.
DRAWS = {"gumbel_softmax"}
COLUMNS = ("function", "cpu", "wgpu", "gradient", "forward", "second", "batched")

Row = tuple[str, ...]


def calls() -> Any:
    """The module with a call of each function."""
    return import_module("nn_functional_calls")


def first(made: Any) -> Any:
    """The result that is compared."""
    return made[0] if isinstance(made, tuple) else made


def result(name: str, dtype: Any, device: str) -> Any:
    """The elements of a call's result as float64."""
    import rgrad
    from rgrad.nn import functional

    kit = calls()
    rgrad.manual_seed(0)
    made = first(kit.CALLS[name](functional, kit.Maker(rgrad, dtype, device)))
    return made.detach().cpu().double().numpy()


def takes_floats(name: str) -> bool:
    """Whether a function has tensors of floats among its arguments."""
    import rgrad
    from rgrad.nn import functional

    kit = calls()
    maker = kit.Maker(rgrad, rgrad.float64, "cpu")
    kit.CALLS[name](functional, maker)
    return bool(maker.is_asked_for_floats)


def dtypes_of(name: str, device: str, dtypes: Sequence[str] = DTYPES) -> list[str]:
    """Those of the dtypes for which a function gives on a device what it gives in float64 on the CPU."""
    import numpy as np

    import rgrad

    if not takes_floats(name):
        return []
    wanted = result(name, rgrad.float64, "cpu")
    good = []
    for dtype in dtypes:
        if name in DRAWS:
            wanted = result(name, getattr(rgrad, dtype), "cpu")
        try:
            got = result(name, getattr(rgrad, dtype), device)
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        if got.shape == wanted.shape and np.allclose(got, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]):
            good.append(dtype)
    return good


def told(dtypes: Sequence[str]) -> str:
    """Dtypes as a cell of the page."""
    return "all floats" if tuple(dtypes) == DTYPES else " ".join(dtypes) or "-"


def listed(cell: str) -> list[str]:
    """The dtypes that a cell of the page tells."""
    return list(DTYPES) if cell == "all floats" else [d for d in DTYPES if d in cell.split()]


def derivatives_of(name: str) -> Row:
    """Whether the gradient, forward mode, the second derivative and a batch are right."""
    import rgrad
    from rgrad.autograd import gradcheck, gradgradcheck
    from rgrad.nn import functional

    kit = calls()
    maker = kit.Maker(rgrad, rgrad.float64, "cpu")
    rgrad.manual_seed(0)
    probe = first(kit.CALLS[name](functional, maker))
    inputs = tuple(x.detach().clone().requires_grad_() for x in maker.made)
    if not inputs or not probe.is_floating_point():
        return ("-", "-", "-", "-")

    def f(*given: Any) -> Any:
        rgrad.manual_seed(0)
        return first(kit.CALLS[name](functional, kit.Maker(rgrad, rgrad.float64, "cpu", list(given))))

    def passes(check: Any, **options: Any) -> str:
        try:
            return "yes" if check(f, inputs, **options) else "no"
        except (RuntimeError, NotImplementedError) as error:
            print(f"{name}: {check.__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            return "no"

    def batched(_: Any, given: tuple[Any, ...]) -> bool:
        plain = [x.detach() for x in given]
        stacked = [rgrad.stack([x, x * 0.9]) for x in plain]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = rgrad.func.vmap(f, randomness="same")(*stacked)
        return rgrad.allclose(got, rgrad.stack([f(*plain), f(*(x * 0.9 for x in plain))]))

    return (
        passes(gradcheck),
        passes(gradcheck, check_forward_ad=True, check_backward_ad=False),
        passes(gradgradcheck),
        passes(batched),
    )


def names() -> list[str]:
    """The public functions of the module."""
    from rgrad.nn import functional

    return sorted(functional.__all__)


def row(name: str, devices: Sequence[str] = ("cpu", "wgpu")) -> Row:
    """What the page says of a function, with a column for each of the devices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtypes = (told(dtypes_of(name, device)) if takes_floats(name) else "int64" for device in devices)
        return (f"`{name}`", *dtypes, *derivatives_of(name))


def page() -> str:
    """The text of docs/nn-functional.md."""
    return HEAD + line(COLUMNS) + line(("---",) * len(COLUMNS)) + "".join(line(row(name)) for name in names())


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, page))
