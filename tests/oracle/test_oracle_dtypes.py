"""Promotion over all pairs of dtypes and kinds of operands, casts, Python numbers: values and dtypes beside torch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compare import both  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

# All that rgrad has.
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
METHODS = {
    "float32": "float",
    "float64": "double",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "byte",
    "bool": "bool",
}
KINDS = ("tensor", "0-d", "empty")
NUMBERS: tuple[Any, ...] = (True, 2, -3, 0.5, -2.0, 0, float("inf"), float("nan"), 2**40, 300)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^")


def operand(T: Any, kind: str, dtype: str) -> Any:
    values = {"tensor": [1, 3, 2], "0-d": 2, "empty": []}[kind]
    return T.tensor(values, dtype=T.float64).to(getattr(T, dtype))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(KINDS, KINDS)))
def test_two_tensors(operator: str, a: str, b: str) -> None:
    if {a, b} == {"tensor", "empty"}:
        return
    for d, e in itertools.product(DTYPES, DTYPES):
        both(lambda T, d=d, e=e: eval(f"x {operator} y", {"x": operand(T, a, d), "y": operand(T, b, e)}))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_and_number(operator: str, dtype: str) -> None:
    for number in NUMBERS:
        if dtype in ("uint8", "int8", "int16", "int32") and number in (2**40, -3, 300) and isinstance(number, int):
            continue  # torch wraps numbers that the dtype does not hold; rgrad refuses them
        if isinstance(number, float) and not np.isfinite(number) and operator in ("//", "%") and dtype != "float64":
            continue
        for kind in ("tensor", "0-d"):
            for order in ("x {} c", "c {} x"):
                both(lambda T, k=kind, o=order, c=number: eval(o.format(operator), {"x": operand(T, k, dtype), "c": c}))


@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^="])
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place_operators(operator: str, dtype: str) -> None:
    def run(T: Any, other: Any) -> Any:
        space = {"x": operand(T, "tensor", dtype), "y": other(T)}
        exec(f"z = x; x {operator} y; assert x is z", space)
        return space["x"], space["x"]._version

    for e in DTYPES:
        both(lambda T, e=e: run(T, lambda T, e=e: operand(T, "tensor", e)))
        both(lambda T, e=e: run(T, lambda T, e=e: operand(T, "0-d", e)))
    for number in (True, 2, 0.5):
        both(lambda T, c=number: run(T, lambda T, c=c: c))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source: str, target: str) -> None:
    values = {"bool": [0, 1], "uint8": [0, 1, 127, 255]}.get(source, [0, 1, -1, 100, -100, 127])
    floats = [0.5, -0.5, 1.9, -1.9] if source.startswith("float") and target != "uint8" else []
    array = np.array(values + floats).astype(source)
    if target == "uint8":
        array = array[array >= 0]
    both(lambda T: T.tensor(array).to(getattr(T, target)))
    both(lambda T: T.tensor(array).type(getattr(T, target)))
    both(lambda T: T.zeros(len(array), dtype=getattr(T, target)).copy_(T.tensor(array)))
    both(lambda T: getattr(T.tensor(array), METHODS[target])())


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_reductions_with_dtype(dtype: str | None) -> None:
    for source in DTYPES:
        for name in ("sum", "mean", "prod", "cumsum", "cumprod"):

            def run(T: Any, source: str = source, name: str = name) -> Any:
                kw = {"dtype": getattr(T, dtype)} if dtype else {}
                args = (0,) if name.startswith("cum") else ()
                return getattr(operand(T, "tensor", source), name)(*args, **kw)

            both(run, more=True)


def test_where_of_all_pairs() -> None:
    for d, e in itertools.product(DTYPES, DTYPES):
        for a, b in itertools.product(("tensor", "0-d"), repeat=2):
            both(
                lambda T, d=d, e=e, a=a, b=b: T.where(T.tensor([True, False, True]), operand(T, a, d), operand(T, b, e))
            )
        both(lambda T, d=d: T.where(T.tensor([True, False, True]), operand(T, "tensor", d), 0.5))
        both(lambda T, d=d: T.where(T.tensor([True, False, True]), 7, operand(T, "tensor", d)))


def test_cat_and_stack_of_all_pairs() -> None:
    for d, e in itertools.product(DTYPES, DTYPES):
        both(lambda T, d=d, e=e: T.cat([operand(T, "tensor", d), operand(T, "empty", e)]))
        both(lambda T, d=d, e=e: T.stack([operand(T, "tensor", d), operand(T, "tensor", e)]))


def test_ternary_of_all_pairs() -> None:
    for d, e in itertools.product(DTYPES, DTYPES):
        for name in ("addcmul", "addcdiv", "lerp"):
            both(
                lambda T, d=d, e=e, name=name: getattr(T, name)(
                    operand(T, "tensor", d), operand(T, "tensor", e), operand(T, "tensor", d)
                )
            )
        both(lambda T, d=d, e=e: T.clamp(operand(T, "tensor", d), operand(T, "0-d", e)))
        both(lambda T, d=d, e=e: T.add(operand(T, "tensor", d), operand(T, "tensor", e), alpha=2))
        both(lambda T, d=d, e=e: T.add(operand(T, "tensor", d), operand(T, "tensor", e), alpha=0.5))


def test_products_of_all_pairs() -> None:
    for d, e in itertools.product(DTYPES, DTYPES):
        for name in ("matmul", "dot", "outer"):
            both(lambda T, d=d, e=e, name=name: getattr(T, name)(operand(T, "tensor", d), operand(T, "tensor", e)))


def test_masked_fill_and_setitem_of_all_pairs() -> None:
    for d, e in itertools.product(DTYPES, DTYPES):

        def assign(T: Any, d: str = d, e: str = e) -> Any:
            x = operand(T, "tensor", d)
            x[1:] = operand(T, "0-d", e)
            return x

        both(assign)
        both(
            lambda T, d=d, e=e: operand(T, "tensor", d).masked_fill(T.tensor([True, False, True]), operand(T, "0-d", e))
        )


def test_default_dtype() -> None:
    def run(T: Any) -> Any:
        old = T.get_default_dtype()
        T.set_default_dtype(T.float64)
        try:
            return (
                T.tensor([1.5]),
                T.zeros(1),
                T.ones(1, dtype=T.int64) / 2,
                T.arange(2.0),
                T.tensor(1) * 1.5,
                T.tensor([1]),
            )
        finally:
            T.set_default_dtype(old)

    both(run)
    both(lambda T: T.set_default_dtype(T.int64))


def test_finfo_and_dtype_properties() -> None:
    for d in DTYPES:
        both(
            lambda T, d=d: (
                getattr(T, d).is_floating_point,
                getattr(T, d).itemsize,
                T.zeros(1, dtype=getattr(T, d)).element_size(),
            )
        )
    for d in ("float32", "float64"):
        both(lambda T, d=d: [getattr(T.finfo(getattr(T, d)), k) for k in ("eps", "max", "min", "tiny", "bits")])
    for d in DTYPES[2:-1]:
        both(lambda T, d=d: [getattr(T.iinfo(getattr(T, d)), k) for k in ("max", "min", "bits")])
