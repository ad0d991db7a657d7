"""Reductions, scans, sorting and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..fx._record import Value
from ._graph import Graph, converts


def axes_of(g: Graph, x: Value, dim: Any) -> list[int]:
    """Dimensions as a list without negative numbers; all of them for None and an empty list."""
    count = max(len(x.shape), 1)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(len(x.shape)))
    given = [dim] if isinstance(dim, int) else list(dim)
    return [d % count for d in given]


def reduce(g: Graph, kind: str, x: Any, axes: Sequence[int], keepdim: bool) -> str:
    """A reduction of ONNX along some axes."""
    if not axes:
        return g.name(x)
    return g.op(kind, x, g.ints(axes), keepdims=int(keepdim))


def _reduction(kind: str) -> Any:
    def converter(g: Graph, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
        return reduce(g, kind, g.cast(input, g.result.dtype), axes_of(g, input, dim), keepdim)

    return converter


converts("sum")(_reduction("ReduceSum"))
converts("mean")(_reduction("ReduceMean"))
converts("prod")(_reduction("ReduceProd"))
converts("logsumexp")(_reduction("ReduceLogSumExp"))
converts("amax")(_reduction("ReduceMax"))
converts("amin")(_reduction("ReduceMin"))


def _extreme(kind: str, positions: str, of_two: str) -> Any:
    def converter(g: Graph, input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, Value) else other
        if other is not None:
            dtype = g.result.dtype
            return g.op(of_two, g.cast(input, dtype), g.cast(other, dtype))
        if dim is None:
            return reduce(g, kind, input, axes_of(g, input, None), False)
        axes = axes_of(g, input, dim)
        if not input.shape:
            return g.name(input), g.number(0, _core.int64)
        where = g.op(positions, input, axis=axes[0], keepdims=int(keepdim))
        return reduce(g, kind, input, axes, keepdim), where

    return converter


converts("max")(_extreme("ReduceMax", "ArgMax", "Max"))
converts("min")(_extreme("ReduceMin", "ArgMin", "Min"))


def _position(kind: str) -> Any:
    def converter(g: Graph, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            if keepdim:
                g.refuse("keepdim without dim")
            flat = g.op("Reshape", input, g.ints([-1]))
            return g.op(kind, flat, axis=0, keepdims=0)
        return g.op(kind, input, axis=axes_of(g, input, dim)[0], keepdims=int(keepdim))

    return converter


converts("argmax")(_position("ArgMax"))
converts("argmin")(_position("ArgMin"))


def _truth(kind: str) -> Any:
    def converter(g: Graph, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        numbers = g.cast(g.cast(input, _core.bool), _core.int32)
        return g.cast(reduce(g, kind, numbers, axes_of(g, input, dim), keepdim), g.result.dtype)

    return converter


converts("any")(_truth("ReduceMax"))
converts("all")(_truth("ReduceMin"))


@converts("count_nonzero")
def count_nonzero(g: Graph, input: Any, dim: Any = None) -> str:
    return reduce(g, "ReduceSum", g.cast(g.cast(input, _core.bool), _core.int64), axes_of(g, input, dim), False)


def _count(g: Graph, x: Value, axes: Sequence[int], dtype: Any, less: float = 0) -> str:
    """How many elements are reduced, minus a number, as a constant or computed."""
    sizes = [g.dims(x)[a] for a in axes]
    if None not in sizes:
        return g.number(max(math.prod(s for s in sizes if s is not None) - less, 0), dtype)
    total = g.size(g.size_of(x, axes[0]))
    for a in axes[1:]:
        total = g.op("Mul", total, g.size(g.size_of(x, a)))
    return g.op("Sub", g.cast(g.op("Squeeze", total, g.ints([0])), dtype), g.number(less, dtype))


def _moments(g: Graph, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> tuple[str, str]:
    """Variance and mean."""
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    less = correction if correction is not None else 0 if unbiased is False else 1
    axes = axes_of(g, input, dim)
    mean = reduce(g, "ReduceMean", input, axes, True)
    apart = g.op("Sub", input, mean)
    total = reduce(g, "ReduceSum", g.op("Mul", apart, apart), axes, keepdim)
    found = g.op("Div", total, _count(g, input, axes, input.dtype, less))
    return str(found), mean if keepdim or not axes else g.op("Squeeze", mean, g.ints(axes))


@converts("var")
def var(
    g: Graph, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> str:
    return _moments(g, input, dim, unbiased, keepdim, correction)[0]


@converts("std")
def std(
    g: Graph, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> str:
    return g.op("Sqrt", _moments(g, input, dim, unbiased, keepdim, correction)[0])


@converts("var_mean")
def var_mean(
    g: Graph, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[str, str]:
    return _moments(g, input, dim, unbiased, keepdim, correction)


@converts("std_mean")
def std_mean(
    g: Graph, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[str, str]:
    found, mean = _moments(g, input, dim, unbiased, keepdim, correction)
    return g.op("Sqrt", found), mean


@converts("norm", "vector_norm", "linalg_vector_norm", "linalg_norm")
def norm(g: Graph, input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
    axes = axes_of(g, input, dim)
    own = g.cast(input, g.result.dtype)
    if p in (2, "fro", None):
        return reduce(g, "ReduceL2", own, axes, keepdim)
    if p == 1:
        return reduce(g, "ReduceL1", own, axes, keepdim)
    size = g.op("Abs", own)
    if p in (math.inf, -math.inf):
        return reduce(g, "ReduceMax" if p > 0 else "ReduceMin", size, axes, keepdim)
    if not isinstance(p, (int, float)) or p == 0:
        g.refuse(f"p={p!r}")
    total = reduce(g, "ReduceSum", g.op("Pow", size, g.number(p, g.result.dtype)), axes, keepdim)
    return g.op("Pow", total, g.number(1 / p, g.result.dtype))


@converts("cumsum")
def cumsum(g: Graph, input: Any, dim: int, *, dtype: Any = None) -> str:
    own = g.cast(input, g.result.dtype)
    return g.op("CumSum", own, g.number(axes_of(g, input, dim)[0], _core.int64))


@converts("softmax")
def softmax(g: Graph, input: Any, dim: int, dtype: Any = None, **kwargs: Any) -> str:
    return g.op("Softmax", g.cast(input, g.result.dtype), axis=axes_of(g, input, dim)[0])


@converts("log_softmax")
def log_softmax(g: Graph, input: Any, dim: int, dtype: Any = None, **kwargs: Any) -> str:
    return g.op("LogSoftmax", g.cast(input, g.result.dtype), axis=axes_of(g, input, dim)[0])


@converts("topk")
def topk(g: Graph, input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    axis = axes_of(g, input, dim)[0]
    return g.several(2, "TopK", input, g.size(k), axis=axis, largest=int(largest), sorted=int(sorted))


@converts("sort", "msort")
def sort(g: Graph, input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    axis = axes_of(g, input, dim)[0]
    many = g.size(g.size_of(input, axis))
    return g.several(2, "TopK", input, many, axis=axis, largest=int(descending), sorted=1)


@converts("argsort")
def argsort(g: Graph, input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    return sort(g, input, dim, descending)[1]


# ------------------------------------------------------------------------------------------------ products


@converts("matmul", "mm", "bmm", "mv", "dot", "inner", "__rmatmul__")
def matmul(g: Graph, input: Any, other: Any) -> str:
    if g.call is not None and g.call.name == "__rmatmul__":
        input, other = other, input
    if g.call is not None and g.call.name == "inner" and len(other.shape) > 1:
        g.refuse("inner of matrices")
    return g.op("MatMul", g.cast(input, g.result.dtype), g.cast(other, g.result.dtype))


@converts("addmm", "addmv")
def addmm(g: Graph, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    if len(mat2.shape) == 2:
        return g.op("Gemm", mat1, mat2, input, alpha=float(alpha), beta=float(beta))
    return baddbmm(g, input, mat1, mat2, beta=beta, alpha=alpha)


@converts("baddbmm")
def baddbmm(g: Graph, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    found = g.op("MatMul", batch1, batch2)
    if alpha != 1:
        found = g.op("Mul", found, g.number(alpha, g.result.dtype))
    if beta == 0:
        return str(found)
    own = g.name(input) if beta == 1 else g.op("Mul", input, g.number(beta, g.result.dtype))
    return g.op("Add", own, found)


@converts("linear")
def linear(g: Graph, input: Any, weight: Any, bias: Any = None) -> str:
    dims = len(input.shape)
    if dims == 2 and bias is not None and len(weight.shape) == 2:
        return g.op("Gemm", input, weight, bias, transB=1)
    turned = g.op("Transpose", weight, perm=[1, 0]) if len(weight.shape) == 2 else g.name(weight)
    found = g.op("MatMul", input, turned)
    return found if bias is None else g.op("Add", found, bias)


@converts("outer", "ger")
def outer(g: Graph, input: Any, vec2: Any) -> str:
    return g.op("Mul", g.op("Unsqueeze", input, g.ints([1])), g.op("Unsqueeze", vec2, g.ints([0])))


@converts("einsum")
def einsum(g: Graph, equation: str, *operands: Any) -> str:
    own = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    if not isinstance(equation, str):
        g.refuse("an equation of numbers")
    return g.op("Einsum", *own, equation=equation.replace(" ", ""))


@converts("tensordot")
def tensordot(g: Graph, a: Any, b: Any, dims: Any = 2, out: None = None) -> str:
    left, right = len(a.shape), len(b.shape)
    if isinstance(dims, int):
        ours, theirs = list(range(left - dims, left)), list(range(dims))
    else:
        ours, theirs = (
            [d % n for d in ([ds] if isinstance(ds, int) else ds)] for ds, n in zip(dims, (left, right), strict=True)
        )
    letters = "abcdefghijklmnopqrstuvwxyz"
    first = list(letters[:left])
    second = list(letters[left : left + right])
    for x, y in zip(ours, theirs, strict=True):
        second[y] = first[x]
    kept = [c for k, c in enumerate(first) if k not in ours] + [c for k, c in enumerate(second) if k not in theirs]
    return g.op("Einsum", a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")
