"""Numbers beyond an integer dtype beside torch: operands wrap around, parameters and values are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64"]
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + n": lambda T, x, n: x + n,
    "n - x": lambda T, x, n: n - x,
    "x * n": lambda T, x, n: x * n,
    "x // n": lambda T, x, n: x // n if n else x,
    "x % n": lambda T, x, n: x % n if n else x,
    "n % x": lambda T, x, n: n % (x + 1) if n != -1 else x,
    "x & n": lambda T, x, n: x & n,
    "x > n": lambda T, x, n: x > n,
    "x == n": lambda T, x, n: x == n,
    "n ** x": lambda T, x, n: T.pow(n, x),
    "add_": lambda T, x, n: x.add_(n),
    "x ** n": lambda T, x, n: x**n,
    "pow_": lambda T, x, n: x.pow_(n),
    "add alpha": lambda T, x, n: T.add(x, x, alpha=n),
    "sub alpha": lambda T, x, n: x.sub(x, alpha=n),
    "rsub alpha": lambda T, x, n: T.rsub(x, x, alpha=n),
    "add_ alpha": lambda T, x, n: x.add_(x, alpha=n),
    "addcmul": lambda T, x, n: T.addcmul(x, x, x, value=n),
    "clamp min": lambda T, x, n: x.clamp(min=n),
    "clamp max": lambda T, x, n: T.clamp(x, max=n),
    "clamp both": lambda T, x, n: T.clamp(x, 0, n),
    "clamp_": lambda T, x, n: x.clamp_(min=n),
    "clamp_min": lambda T, x, n: T.clamp_min(x, n),
    "hardtanh": lambda T, x, n: T.nn.functional.hardtanh(x, 0, n) if n >= 0 else x,
    "threshold": lambda T, x, n: T.nn.functional.threshold(x, 2, n),
    "where": lambda T, x, n: T.where(x > 2, x, n),
    "masked_fill": lambda T, x, n: x.masked_fill(x > 2, n),
    "fill_": lambda T, x, n: x.fill_(n),
    "full": lambda T, x, n: T.full((2,), n, dtype=x.dtype),
    "full_like": lambda T, x, n: T.full_like(x, n),
    "setitem": lambda T, x, n: (x.__setitem__(0, n), x)[1],
    "nan_to_num": lambda T, x, n: T.nan_to_num(x, nan=float(n)),
    "nan_to_num_": lambda T, x, n: x.nan_to_num_(),
}


def numbers(dtype: str) -> list[Any]:
    found: list[Any] = [-1000, -2, 0, 3, 1.9, -1.5, 300.5, 1e20, float("nan"), float("inf"), True]
    if dtype != "bool":
        info = torch.iinfo(getattr(torch, dtype))
        found += [info.max, info.max + 1, info.min, info.min - 1, -info.max - 2, 2 * info.max + 1, float(info.max)]
    # What torch makes of a float that is just too large for int64 is undefined.
    found = [n for n in found if isinstance(n, float) or -(2**63) <= n < 2**63]
    return [n for n in found if not (dtype == "int64" and n == 2.0**63)]


def outcome(T: Any, name: str, dtype: str, number: Any) -> Any:
    x = T.tensor([0, 1, 3, 100]).to(getattr(T, dtype))
    try:
        r = CALLS[name](T, x, number)
    except Exception as e:
        text = str(e).split("\n")[0]
        # torch's hardtanh looks at floats as int64 first.
        return "without overflow" in text and (name == "hardtanh" or text.split(" without overflow")[0])
    values = [float(f"{v:.5g}") if isinstance(v, float) else v for v in r.tolist()]
    return (str(r.dtype).split(".")[-1], str(values))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beyond_the_range(name: str, dtype: str) -> None:
    for number in numbers(dtype):
        assert outcome(rgrad, name, dtype, number) == outcome(torch, name, dtype, number), number
