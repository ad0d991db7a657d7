"""Numbers beyond a dtype: as operands of integers they wrap around, as parameters and values they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad

INTEGERS = [rgrad.uint8, rgrad.int8, rgrad.int16, rgrad.int32]
REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "clamp": lambda x, n: x.clamp(0, n),
    "clamp_": lambda x, n: x.clamp_(min=n),
    "pow": lambda x, n: x ** abs(n),
    "alpha": lambda x, n: x.add(x, alpha=n),
    "addcmul": lambda x, n: rgrad.addcmul(x, x, x, value=n),
    "fill_": lambda x, n: x.fill_(n),
    "full": lambda x, n: rgrad.full((2,), n, dtype=x.dtype),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "setitem": lambda x, n: x.__setitem__(0, n),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_parameters_and_values_must_fit(name: str, dtype: Any, device: Any) -> None:
    info = rgrad.iinfo(dtype)
    x = rgrad.tensor([0, 1], device=device).to(dtype)
    lowest = info.min if info.min < 0 else -info.max
    for number in (info.max + 1, lowest - 1):
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            REFUSED[name](x, number)
        assert x.to(rgrad.int64).tolist() == [0, 1]
    REFUSED[name](x, info.max)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_operands_wrap_around(dtype: Any, device: Any) -> None:
    info = rgrad.iinfo(dtype)
    x = rgrad.tensor([0, 1], device=device).to(dtype)
    span = info.max - info.min + 1
    assert (x + span).to(rgrad.int64).tolist() == [0, 1]
    assert (x * (span + 3)).to(rgrad.int64).tolist() == [0, 3]
    assert (x == span).tolist() == [True, False]
    x += span + 1
    assert x.to(rgrad.int64).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [*INTEGERS, rgrad.int64, rgrad.bool], ids=str)
def test_integers_have_no_nan_to_replace(dtype: Any, device: Any) -> None:
    x = rgrad.tensor([0, 1], device=device).to(dtype)
    y = rgrad.nan_to_num(x, nan=1000.0)
    assert y is not x
    assert y.dtype == dtype
    assert y.tolist() == x.tolist()
    assert x.nan_to_num_() is x
    out = rgrad.zeros(2, dtype=dtype, device=device)
    assert rgrad.nan_to_num(x, out=out) is out
    assert out.tolist() == x.tolist()


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in ("addcmul", "setitem")])
@pytest.mark.parametrize("dtype", [rgrad.float16, rgrad.bfloat16], ids=str)
def test_floats_of_16_bits_do_not_become_infinite(name: str, dtype: Any, device: Any) -> None:
    x = rgrad.tensor([0.0, 1.0], device=device).to(dtype)
    for number in (rgrad.finfo(dtype).max * 1.01, 1e39):
        with pytest.raises(RuntimeError, match="cannot be converted to type c10::(Half|BFloat16)"):
            REFUSED[name](x, number)
        assert x.tolist() == [0.0, 1.0]
    REFUSED[name](x, rgrad.finfo(dtype).max)
    REFUSED[name](x, float("inf"))


@pytest.mark.parametrize("dtype", [rgrad.float16, rgrad.bfloat16], ids=str)
def test_where_and_assignment_make_tensors_of_numbers(dtype: Any, device: Any) -> None:
    x = rgrad.tensor([0.0, 1.0, 2.0], device=device).to(dtype)
    assert rgrad.where(x > 0, x, -1e39).tolist() == [-float("inf"), 1.0, 2.0]
    x[0] = 1e39
    x[x == 1] = -1e39
    assert x.tolist() == [float("inf"), -float("inf"), 2.0]
