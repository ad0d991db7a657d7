"""How many multiplications with an addition a computation takes.

Counted are products of matrices, convolutions, attention and recurrence; pointwise operations, reductions and
normalisation are not. A fused multiply-add counts once; FLOP counters say twice as many.
"""

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._core import Tensor
from ..overrides import TorchFunctionMode, redispatch_function

Count = Callable[[tuple[Any, ...], dict[str, Any], Any], int]


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs[name]


def _product(place: int, name: str) -> Count:
    """Products of matrices: each element of the result sums over the last dimension of this argument."""

    def count(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
        inner = _argument(args, kwargs, place, name)
        return int(out.numel() * (inner.shape[-1] if inner.ndim else 1))

    return count


def _addbmm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    batch = _argument(args, kwargs, 1, "batch1")
    return int(out.numel() * batch.shape[-1] * batch.shape[0])


def _convolution(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    weight = _argument(args, kwargs, 1, "weight")
    return int(out.numel() * math.prod(weight.shape[1:]))


def _transposed_convolution(args: tuple[Any, ...], kwargs: dict[str, Any], _out: Any) -> int:
    weight = _argument(args, kwargs, 1, "weight")
    return int(_argument(args, kwargs, 0, "input").numel() * math.prod(weight.shape[1:]))


def _attention(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    query, key = _argument(args, kwargs, 0, "query"), _argument(args, kwargs, 1, "key")
    rows = out.numel() // max(1, out.shape[-1])
    return int(rows * key.shape[-2] * (query.shape[-1] + out.shape[-1]))


def _recurrence(args: tuple[Any, ...], kwargs: dict[str, Any], _out: Any) -> int:
    data = _argument(args, kwargs, 0, "input")
    lists = [a for a in (*args, *kwargs.values()) if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor)]
    rows = math.prod(data.shape[:-1])
    return int(rows * sum(w.numel() for w in lists[-1] if w.ndim == 2))


def _cell(args: tuple[Any, ...], kwargs: dict[str, Any], _out: Any) -> int:
    data = _argument(args, kwargs, 0, "input")
    weights = _argument(args, kwargs, 2, "w_ih"), _argument(args, kwargs, 3, "w_hh")
    return int(math.prod(data.shape[:-1]) * sum(w.numel() for w in weights))


def _einsum(args: tuple[Any, ...], _kwargs: dict[str, Any], out: Any) -> int:
    """Operands are contracted from left to right, each label when nothing after needs it."""
    equation, *operands = args
    if not isinstance(equation, str):
        return 0
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = list(operands[0])
    terms, _, result = equation.replace(" ", "").partition("->")
    words = [_labels(word, t.ndim) for word, t in zip(terms.split(","), operands, strict=True)]
    if "->" in equation:
        wanted = set(_labels(result, out.ndim))
    else:
        together = [label for word in words for label in word]
        wanted = {label for label in together if together.count(label) == 1 or isinstance(label, int)}
    sizes: dict[Any, int] = {}
    for word, t in zip(words, operands, strict=True):
        for label, n in zip(word, t.shape, strict=True):
            sizes[label] = max(n, sizes.get(label, 0))
    total = 0
    left = set(words[0])
    for i, word in enumerate(words[1:], 1):
        total += math.prod(sizes[label] for label in left | set(word))
        left = (left | set(word)) & wanted.union(*words[i + 1 :])
    return total


def _labels(word: str, ndim: int) -> list[Any]:
    """A label for each dimension: its letter, and for those of an ellipsis their number from the right."""
    before, dots, after = word.partition("...")
    hidden = ndim - len(before) - len(after)
    return [*before, *(range(hidden, 0, -1) if dots else ()), *after]


def _tensordot(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    a, b = _argument(args, kwargs, 0, "a"), _argument(args, kwargs, 1, "b")
    # Both operands have the contracted dimensions, the result none of them.
    return math.isqrt(a.numel() * b.numel() * out.numel())


COUNTS: dict[str, Count] = {
    "linear": _product(0, "input"),
    "matmul": _product(0, "input"),
    "mm": _product(0, "input"),
    "bmm": _product(0, "input"),
    "mv": _product(0, "input"),
    "dot": _product(0, "input"),
    "vdot": _product(0, "input"),
    "inner": _product(0, "input"),
    "addmm": _product(1, "mat1"),
    "addmv": _product(1, "mat"),
    "baddbmm": _product(1, "batch1"),
    "addbmm": _addbmm,
    "__rmatmul__": _product(1, "other"),
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "conv_transpose1d": _transposed_convolution,
    "conv_transpose2d": _transposed_convolution,
    "conv_transpose3d": _transposed_convolution,
    "scaled_dot_product_attention": _attention,
    "lstm": _recurrence,
    "gru": _recurrence,
    "rnn_tanh": _recurrence,
    "rnn_relu": _recurrence,
    "lstm_cell": _cell,
    "gru_cell": _cell,
    "rnn_tanh_cell": _cell,
    "rnn_relu_cell": _cell,
    "einsum": _einsum,
    "tensordot": _tensordot,
}
COUNTS["__matmul__"] = COUNTS["matmul"]


class CountMultiplyAdds(TorchFunctionMode):
    """A block in which ``count(n)`` is called for every function that takes multiply-adds, inside of others, too."""

    def __init__(self, count: Callable[[int], None]) -> None:
        super().__init__()
        self._count = count

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        own = kwargs or {}
        counted = COUNTS.get(getattr(func, "__name__", ""))
        if counted is None and isinstance(func, FunctionType):
            # Made of others: those are counted.
            with self:
                return redispatch_function(func, types, args, own)
        out = func(*args, **own)
        if counted is not None:
            self._count(counted(args, own, out))
        return out
