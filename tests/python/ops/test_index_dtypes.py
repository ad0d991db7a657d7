"""Which dtypes of positions and masks each operation takes, and how it refuses others: PyTorch's answers, stored."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import rgrad
import rgrad.nn.functional as F

DTYPES = ("int64", "int32", "uint8", "bool", "int16", "int8", "float32")
LONG, BOTH, WHOLE = ("int64",), ("int64", "int32"), ("int64", "int32", "uint8", "int16", "int8")


class Row(NamedTuple):
    """An operation: the call, the dtypes that it takes, and the error of the others."""

    call: Callable[[SimpleNamespace], Any]
    takes: tuple[str, ...]
    error: type[Exception] = RuntimeError
    match: str = ""


def gradients(result: Any, *leaves: Any) -> tuple[Any, ...]:
    return tuple(rgrad.autograd.grad((result**2).sum(), leaves))


GATHER, SCATTER = (rf"{name}\(\): Expected dtype int32/int64 for index" for name in ("gather", "scatter"))
ADD, LONG_ONLY = "Expected dtype int32/int64 for index", "Expected a long tensor for index"
MASK = "only supports boolean masks, but got mask with dtype"

ROWS: dict[str, Row] = {
    "gather": Row(lambda a: a.x.gather(1, a.square), BOTH, match=GATHER),
    "gather, gradient": Row(lambda a: gradients(a.leaf.gather(1, a.square), a.leaf), BOTH, match=GATHER),
    "scatter": Row(lambda a: a.x.scatter(1, a.square, a.s), BOTH, match=SCATTER),
    "scatter a number": Row(lambda a: a.x.scatter(1, a.square, 5.0), BOTH, match=SCATTER),
    "scatter_": Row(lambda a: a.x.scatter_(1, a.square, a.s), BOTH, match=SCATTER),
    "scatter with add": Row(lambda a: a.x.scatter(1, a.square, a.s, reduce="add"), BOTH, match=SCATTER),
    "scatter with multiply": Row(lambda a: a.x.scatter(1, a.square, 2.0, reduce="multiply"), BOTH, match=SCATTER),
    "scatter, gradient": Row(
        lambda a: gradients(a.leaf.scatter(1, a.square, a.source), a.leaf, a.source), BOTH, match=SCATTER
    ),
    "scatter_add": Row(lambda a: a.x.scatter_add(1, a.square, a.s), BOTH, match=SCATTER),
    "scatter_add_": Row(lambda a: a.x.scatter_add_(1, a.square, a.s), BOTH, match=SCATTER),
    **{
        f"scatter_reduce {kind}": Row(
            lambda a, kind=kind: (
                a.x.scatter_reduce(1, a.square, a.s, kind),
                a.x.scatter_reduce_(1, a.square, a.s, kind),
            ),
            BOTH,
            match=SCATTER,
        )
        for kind in ("sum", "prod", "mean", "amax", "amin")
    },
    "scatter_reduce, gradient": Row(
        lambda a: gradients(a.leaf.scatter_reduce(1, a.square, a.source, "sum"), a.leaf, a.source), BOTH, match=SCATTER
    ),
    "take_along_dim": Row(
        lambda a: rgrad.take_along_dim(a.x, a.square, 1),
        LONG,
        match="dtype of indices should be Long",
    ),
    "take_along_dim of all": Row(lambda a: rgrad.take_along_dim(a.x, a.i), BOTH, match="dtype"),
    "index_select": Row(lambda a: a.x.index_select(1, a.i), BOTH, match="index_select.*Expected dtype int32 or int64"),
    "index_select, gradient": Row(
        lambda a: gradients(a.leaf.index_select(1, a.i), a.leaf), BOTH, match="Expected dtype int32 or int64 for index"
    ),
    "index_add": Row(lambda a: a.x.index_add(1, a.i, a.s, alpha=2), BOTH, match=ADD),
    "index_add_": Row(lambda a: a.x.index_add_(1, a.i, a.s), BOTH, match=ADD),
    "index_copy": Row(lambda a: a.x.index_copy(1, a.i, a.s), LONG, match=LONG_ONLY),
    "index_copy_": Row(lambda a: a.x.index_copy_(1, a.i, a.s), LONG, match=LONG_ONLY),
    "index_fill": Row(lambda a: a.x.index_fill(1, a.i, 5.0), LONG, IndexError, "Expected dtype int64 for index"),
    "index_fill_": Row(lambda a: a.x.index_fill_(1, a.i, 5.0), LONG, IndexError, "Expected dtype int64 for index"),
    **{
        f"index_reduce {kind}": Row(
            lambda a, kind=kind: [write(1, a.i, a.s, kind) for write in (a.x.index_reduce, a.x.index_reduce_)],
            BOTH,
            match=ADD,
        )
        for kind in ("prod", "mean", "amax", "amin")
    },
    "put": Row(lambda a: a.x.put(a.i, a.s[0]), LONG, match=LONG_ONLY),
    "put_": Row(lambda a: a.x.put_(a.i, a.s[0], accumulate=True), LONG, match=LONG_ONLY),
    "take": Row(lambda a: rgrad.take(a.x, a.square), LONG, match=LONG_ONLY),
    "masked_fill": Row(lambda a: (a.x.masked_fill(a.m, 5.0), a.x.masked_fill_(a.m, 5.0)), ("bool",), match=MASK),
    "masked_select": Row(lambda a: a.x.masked_select(a.m), ("bool",), match="masked_select: expected BoolTensor"),
    "masked_scatter": Row(
        lambda a: (a.x.masked_scatter(a.m, a.x + 9), a.x.masked_scatter_(a.m, a.x + 9)), ("bool",), match=MASK
    ),
    "where": Row(
        lambda a: (rgrad.where(a.m, a.x, -a.x), a.x.where(a.m, -a.x)),
        ("bool", "uint8"),
        match="where expected condition to be a boolean tensor",
    ),
    "embedding": Row(lambda a: F.embedding(a.i, a.x), BOTH, match="Expected tensor for argument #1 'indices'"),
    "embedding_bag": Row(
        lambda a: F.embedding_bag(a.i, a.x, rgrad.tensor([0])),
        (*WHOLE, "bool"),
        match="Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int",
    ),
    "embedding_bag of rows": Row(
        lambda a: F.embedding_bag(a.square, a.x, mode="sum"),
        BOTH,
        match="Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int",
    ),
    "one_hot": Row(lambda a: F.one_hot(a.i, 3), LONG, match="one_hot is only applicable to index tensor of type Long"),
    "unravel_index": Row(lambda a: rgrad.unravel_index(a.i, (2, 3)), WHOLE, TypeError, "integer dtype"),
    "index_select of nothing": Row(lambda a: a.x.index_select(1, a.i[:0]), BOTH, match="Expected dtype int32 or int64"),
    "scatter of nothing": Row(lambda a: a.x.scatter(1, a.i[:0, None], a.s[:0]), DTYPES),
    "gather of nothing": Row(lambda a: a.x.gather(1, a.i[:0, None]), DTYPES),
    "scatter_reduce of nothing": Row(lambda a: a.x.scatter_reduce(1, a.i[:0, None], a.s[:0], "amax"), DTYPES),
}


def arguments(dtype: str) -> SimpleNamespace:
    x = rgrad.arange(6.0).view(2, 3) + 1
    i = rgrad.tensor([0, 1]).to(getattr(rgrad, dtype))
    s = rgrad.arange(4.0).view(2, 2) * 10
    m = rgrad.tensor([[0, 1, 0], [1, 0, 1]]).to(getattr(rgrad, dtype))
    leaf, source = x.clone().requires_grad_(), s.clone().requires_grad_()
    return SimpleNamespace(x=x, i=i, square=i.expand(2, 2).contiguous(), s=s, m=m, leaf=leaf, source=source)


CASES = [(name, dtype) for name in ROWS for dtype in DTYPES]


def as_list(made: Any) -> Any:
    return [as_list(m) for m in made] if isinstance(made, (list, tuple)) else (str(made.dtype), made.tolist())


@pytest.mark.filterwarnings("ignore:.*uint8:UserWarning")
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_dtypes_of_positions(name: str, dtype: str) -> None:
    row = ROWS[name]
    given = arguments(dtype)
    if dtype not in row.takes:
        before = given.x.tolist()
        with pytest.raises(row.error, match=row.match):
            row.call(given)
        assert given.x.tolist() == before
        return
    assert as_list(row.call(given)) == as_list(row.call(arguments(row.takes[0])))
