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
    "addmm beta": lambda T, x, n: x if x.dtype == T.bool else T.addmm(x[:2], x.view(2, 2), x.view(2, 2), beta=n),
    "addmm alpha": lambda T, x, n: x if x.dtype == T.bool else T.addmm(x[:2], x.view(2, 2), x.view(2, 2), alpha=n),
    "index_add": lambda T, x, n: x if x.dtype == T.bool else x.index_add(0, T.tensor([1]), x[:1], alpha=n),
    "full out": lambda T, x, n: T.full((2,), n, out=x[:2].clone()),
    "rsub by position": lambda T, x, n: x if x.dtype == T.bool or not isinstance(n, int) else T.rsub(x, 3, n),
    "nan_to_num": lambda T, x, n: T.nan_to_num(x, nan=float(n)),
    "nan_to_num_": lambda T, x, n: x.nan_to_num_(),
}


def numbers(dtype: str) -> list[Any]:
    found: list[Any] = [-1000, -2, 0, 3, 1.9, -1.5, 300.5, 1e20, float("nan"), float("inf"), True]
    if dtype != "bool":
        info = torch.iinfo(getattr(torch, dtype))
        found += [info.max, info.max + 1, info.min, info.min - 1, -info.max - 2, 2 * info.max + 1, float(info.max)]
    # What torch makes of a float that is just too large for int64 is undefined.
    found = [n for n in found if isinstance(n, float) or -(2**63) <= n < 2**64]
    # Factors of subtraction PyTorch negates before it checks them, so that the largest integer counts as 1.
    return [n for n in found if not (dtype == "int64" and (n == 2.0**63 or n == 2**64 - 1))]


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


FLOAT_CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{
        k: CALLS[k]
        for k in ("x * n", "x ** n", "x > n", "where", "masked_fill", "fill_", "full", "setitem", "nan_to_num")
    },
    **{
        k: CALLS[k]
        for k in ("add alpha", "sub alpha", "addcmul", "clamp min", "clamp both", "clamp_", "threshold", "addmm beta")
    },
    "nan_to_num of infinities": lambda T, x, n: T.nan_to_num(x / 0, posinf=n),
    "leaky_relu": lambda T, x, n: T.nn.functional.leaky_relu(x, n),
    "hardshrink": lambda T, x, n: T.nn.functional.hardshrink(x, n),
    "linspace": lambda T, x, n: T.linspace(0, n, 3, dtype=x.dtype),
    "scatter": lambda T, x, n: x.scatter(0, T.tensor([0]), n),
    "tensor": lambda T, x, n: T.tensor([n], dtype=x.dtype),
}


FLOAT_CALLS |= {
    k: CALLS[k] for k in ("clamp max", "hardtanh", "full_like", "rsub alpha", "add_ alpha", "pow_", "x + n", "add_")
}


@pytest.mark.parametrize("name", FLOAT_CALLS)
def test_numbers_beyond_floats(name: str) -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for number in (1e39, -1e39, 3e38, 65504, 65520.0, 1e10, float("inf"), float("nan"), 0.5):
            if dtype.endswith("16") and name in ("tensor", "addmm beta"):
                continue
            made = []
            for T in (rgrad, torch):
                x = T.tensor([0, 1, 3, 100]).to(getattr(T, dtype))
                try:
                    made.append([float(f"{v:.5g}") for v in FLOAT_CALLS[name](T, x, number).reshape(-1).tolist()])
                except RuntimeError as e:
                    made.append(str(e).split(" without overflow")[0])
            assert str(made[0]) == str(made[1]), (dtype, number)


SPANS = [
    (s, e, d) for s in (0, 1, -2, 0.5, -1.5) for e in (0, 3, 5.5, -4, 300, 2.7) for d in (1, 2, 0.5, -1, -0.5, 1.5, 2.9)
]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float64"])
def test_ranges_of_integers_between_fractions(dtype: str) -> None:
    for start, end, step in SPANS:
        for call in (
            lambda T, d: T.arange(start, end, step, dtype=d),  # noqa: B023
            lambda T, d: T.linspace(start, end, 5, dtype=d),  # noqa: B023
            lambda T, d: T.logspace(abs(start), min(abs(end), 5), 4, base=2, dtype=d),  # noqa: B023
        ):
            made: list[Any] = []
            for T in (rgrad, torch):
                try:
                    made.append([float(f"{v:.7g}") for v in call(T, getattr(T, dtype)).tolist()])
                except (RuntimeError, ValueError) as e:
                    made.append((isinstance(e, ValueError), str(e)[:20]))
            assert made[0] == made[1], (start, end, step)


def test_limits_of_hardtanh_and_others() -> None:
    for call in (
        lambda T: T.nn.functional.hardtanh(T.ones(2, dtype=T.uint8), -2, 5),
        lambda T: T.nn.functional.hardtanh(T.ones(2, dtype=T.bool)),
        lambda T: T.nn.functional.softshrink(T.ones(2), -1.0),
        lambda T: T.addcdiv(*[T.ones(2, dtype=T.int64)] * 3),
    ):
        made = []
        for T in (rgrad, torch):
            try:
                made.append(str(call(T).tolist()))
            except RuntimeError as e:
                made.append(str(e)[:40])
        assert made[0] == made[1]


def test_a_target_that_is_an_operand_is_not_resized() -> None:
    for T in (rgrad, torch):
        x = T.ones(2, 3)
        for call in (
            lambda: T.add(x, T.ones(4, 1, 1), out=x),  # noqa: B023
            lambda: T.pow(x, T.ones(4, 1, 1), out=x),  # noqa: B023
        ):
            with pytest.raises(
                RuntimeError, match=r"output with shape \[2, 3\] doesn't match the broadcast shape \[4, 2, 3\]"
            ):
                call()
        assert x.tolist() == [[1.0] * 3] * 2
