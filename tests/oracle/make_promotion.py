"""Writes tests/data/promotion.json: result dtypes (or error types) of PyTorch for all pairs of operands.

Run it with an interpreter that has torch: python tests/oracle/make_promotion.py
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
# Of these the tables of dtypes are stored, not those of operations.
MORE = ("complex32", "complex64", "complex128", "uint16", "uint32", "uint64")
NUMBERS: dict[str, Any] = {"bool": True, "int": 1, "float": 1.0}
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "atan2",
    "maximum",
    "minimum",
    "hypot",
    "logaddexp",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
]
ONLY_TENSORS = {"atan2", "maximum", "minimum", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor"}
INPLACE = ["add_", "sub_", "mul_", "div_", "pow_", "remainder_", "copy_", "eq_", "logical_and_", "bitwise_and_"]
UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "relu",
    "abs",
    "neg",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "reciprocal",
    "square",
    "erf",
    "erfc",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "bitwise_not",
    "sum",
    "mean",
    "prod",
    "var",
    "std",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "all",
    "any",
    "norm",
]
EXPRESSIONS = [
    "x.cumsum(0)",
    "x.cumprod(0)",
    "x.sum(0)",
    "x.mean(0)",
    "x.max(0)",
    "x.min(0)",
    "x.all(0)",
    "x.any(0)",
    "x.softmax(0)",
    "x.log_softmax(0)",
    "x.logsumexp(0)",
    "x.sort()",
    "x.topk(1)",
    "x@x",
    "x.tril()",
    "x.clamp(0,1)",
    "x.clamp(0.5)",
    "x.lerp(x,0.5)",
    "T.addcmul(x,x,x)",
    "T.addcdiv(x,x,x)",
    "T.where(x>0,x,1)",
    "T.where(x>0,x,1.5)",
    "T.where(x>0,1,2)",
    "x+True",
    "x+1",
    "x+1.0",
    "1-x",
    "2**x",
    "x**2",
    "x**0.5",
    "-x",
    "~x",
    "abs(x)",
    "x/2",
    "x//2",
    "x%2",
    "2/x",
    "1.5*x",
    "x&x",
    "x&1",
    "x|True",
    "x^1",
    "x==1",
    "x<0.5",
    "T.cat([x,T.ones(2,2)])",
    "T.cat([x,T.ones(2,2,dtype=T.int64)])",
    "T.stack([x,x])",
    "T.outer(x[0],x[0])",
    "T.dot(x[0],x[0])",
    "T.addmm(x,x,x)",
    "x.masked_fill(x>0,1)",
    "x.masked_fill(x>0,1.5)",
    "x.fill_(1.5)",
    "x.diagonal()",
    "x.gather(0,T.zeros(1,1,dtype=T.int64))",
    "T.full_like(x,1.5)",
    "T.zeros_like(x)",
    "T.rand_like(x)",
]


def outcome(f: Callable[[], Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = f()
    except Exception as error:
        kinds = (NotImplementedError, IndexError, TypeError, ValueError, RuntimeError)
        return next(k.__name__ for k in kinds if isinstance(error, k))
    outs = out if isinstance(out, tuple) else (out,)
    return ",".join(str(o.dtype).removeprefix("torch.") for o in outs)


def promoted(f: Callable[[], Any]) -> str:
    """The name of a dtype, or the type of the error."""
    try:
        return str(f()).removeprefix("torch.")
    except RuntimeError:
        return "RuntimeError"


def operand(key: str) -> Any:
    kind, name = key.split(":")
    if kind == "number":
        return NUMBERS[name]
    return torch.ones(2 if kind == "tensor" else (), dtype=getattr(torch, name))


def main() -> None:
    tensors = [f"{kind}:{d}" for kind in ("tensor", "0-d") for d in DTYPES]
    numbers = [f"number:{n}" for n in NUMBERS]
    binary: dict[str, dict[str, str]] = {}
    for name in BINARY:
        right = tensors if name in ONLY_TENSORS else tensors + numbers
        binary[name] = {
            f"{a} {b}": outcome(lambda a=a, b=b, name=name: getattr(torch, name)(operand(a), operand(b)))
            for a in tensors
            for b in right
        }
    inplace = {
        name: {
            f"{a} {b}": outcome(lambda a=a, b=b, name=name: getattr(operand(a), name)(operand(b)))
            for a in tensors[: len(DTYPES)]
            for b in tensors[: len(DTYPES)] + ([] if name in ("copy_", "logical_and_") else numbers)
        }
        for name in INPLACE
    }
    expressions = [f"T.{name}(x)" for name in UNARY] + EXPRESSIONS
    unary = {
        e: {
            d: outcome(lambda e=e, d=d: eval(e, {"T": torch, "x": torch.ones(2, 2, dtype=getattr(torch, d))}))
            for d in DTYPES
        }
        for e in expressions
    }
    dtypes = [(a, b) for a in DTYPES + MORE for b in DTYPES + MORE]
    numbers_with_complex: dict[str, Any] = {**NUMBERS, "complex": 1j}
    data = {
        "torch": torch.__version__,
        "types": {
            f"{a} {b}": promoted(lambda a=a, b=b: torch.promote_types(getattr(torch, a), getattr(torch, b)))
            for a, b in dtypes
        },
        "with_numbers": {
            f"{kind}:{d} {n}": promoted(lambda kind=kind, d=d, v=v: torch.result_type(operand(f"{kind}:{d}"), v))
            for kind in ("tensor", "0-d")
            for d in DTYPES + MORE
            for n, v in numbers_with_complex.items()
        },
        "with_0-d": {
            f"{a} {b}": promoted(lambda a=a, b=b: torch.result_type(operand(f"tensor:{a}"), operand(f"0-d:{b}")))
            for a, b in dtypes
        },
        "can_cast": {f"{a} {b}": torch.can_cast(getattr(torch, a), getattr(torch, b)) for a, b in dtypes},
        "binary": binary,
        "inplace": inplace,
        "unary": unary,
    }
    path = Path(__file__).parent.parent / "data" / "promotion.json"
    path.write_text(json.dumps(data, indent=0) + "\n")


if __name__ == "__main__":
    main()
