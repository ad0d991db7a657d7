"""Cases of bad input: shapes and dimensions. Each runs on any library that speaks PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HUGE = 2**62


class Inputs:
    """Tensors of every kind, and a record of what they held."""

    def __init__(self, T: Any) -> None:
        self.x = T.arange(6.0).reshape(2, 3)
        self.y = T.arange(4.0)
        self.i = T.arange(4)
        self.m = T.tensor([True, False, True])
        self.s = T.tensor(5.0)
        self.e = T.zeros(0, 3)
        self.g = T.arange(3.0).requires_grad_()

    def state(self) -> list[Any]:
        tensors = (self.x, self.y, self.i, self.m, self.s, self.e, self.g)
        return [(t.tolist(), tuple(t.shape), t.stride(), t.dtype, t._version, t.requires_grad) for t in tensors]


# (what is done, error type, a pattern of the message; all lower case)
Case = tuple[str, Callable[[Any, Inputs], Any], type[Exception] | tuple[type[Exception], ...], str]

SHAPES: list[Case] = [
    (
        "add",
        lambda T, n: n.x + n.y,
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(4\).*dimension 1",
    ),
    ("add_", lambda T, n: n.x.add_(n.y), RuntimeError, r"must match|broadcast"),
    (
        "in-place grows",
        lambda T, n: n.s.add_(n.y),
        RuntimeError,
        r"output with shape \[\] doesn't match the broadcast shape \[4\]",
    ),
    ("copy_", lambda T, n: n.x.copy_(n.y), RuntimeError, r"must match|expand|broadcast"),
    ("mm", lambda T, n: T.mm(n.x, n.x), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
    ("mm rank", lambda T, n: T.mm(n.x, n.y), RuntimeError, r"mat2 must be a matrix|2-?d"),
    ("matmul", lambda T, n: n.x @ n.x, RuntimeError, r"cannot be multiplied \(2x3 and 2x3\)"),
    ("matmul vector", lambda T, n: n.x @ n.y, RuntimeError, r"size mismatch, got.*3.*4|cannot be multiplied|size"),
    ("matmul 0-d", lambda T, n: n.x @ n.s, RuntimeError, r"both arguments to matmul need to be at least 1d"),
    ("bmm", lambda T, n: T.bmm(n.x[None], n.x[None]), RuntimeError, r"size|shape"),
    ("dot", lambda T, n: T.dot(n.y, n.y[:2]), RuntimeError, r"inconsistent tensor size|same.*size|number of elements"),
    ("dot rank", lambda T, n: T.dot(n.x, n.x), RuntimeError, r"1d tensors expected|1-?d"),
    ("outer rank", lambda T, n: T.outer(n.x, n.y), RuntimeError, r"outer.*1-?d"),
    ("addmm", lambda T, n: T.addmm(n.y, n.x, n.x.t()), RuntimeError, r"expand|size|shape"),
    (
        "einsum",
        lambda T, n: T.einsum("ij,jk->ik", n.x, n.x),
        RuntimeError,
        r"einsum\(\).*(does not|operands).*(broadcast|size)",
    ),
    ("einsum rank", lambda T, n: T.einsum("ij->i", n.y), RuntimeError, r"einsum\(\).*dimensions|subscripts"),
    ("einsum letters", lambda T, n: T.einsum("i->k", n.y), RuntimeError, r"einsum\(\).*output subscript k"),
    ("einsum count", lambda T, n: T.einsum("i,j->ij", n.y), RuntimeError, r"einsum\(\).*(more|fewer) operands"),
    (
        "cat",
        lambda T, n: T.cat([n.x, n.x.t()]),
        RuntimeError,
        r"sizes of tensors must match except in dimension 0. expected size 3 but got size 2",
    ),
    (
        "cat rank",
        lambda T, n: T.cat([n.x, n.y]),
        RuntimeError,
        r"tensors must have same number of dimensions: got 2 and 1",
    ),
    ("cat scalar", lambda T, n: T.cat([n.s, n.s]), RuntimeError, r"zero-dimensional tensor .*cannot be concatenated"),
    ("cat nothing", lambda T, n: T.cat([]), (RuntimeError, ValueError), r"non-empty list of tensors"),
    (
        "stack",
        lambda T, n: T.stack([n.x, n.y]),
        RuntimeError,
        r"stack expects each tensor to be equal size, but got \[2, 3\].* and \[4\]",
    ),
    ("stack nothing", lambda T, n: T.stack([]), RuntimeError, r"stack expects a non-empty"),
    ("view", lambda T, n: n.x.view(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
    ("view two -1", lambda T, n: n.x.view(-1, -1), RuntimeError, r"only one dimension can be inferred"),
    ("view negative", lambda T, n: n.x.view(-2, 3), RuntimeError, r"invalid shape dimension -2"),
    ("view strides", lambda T, n: n.x.t().view(6), RuntimeError, r"view size is not compatible.*reshape"),
    ("view of empty", lambda T, n: n.e.view(-1, 0), RuntimeError, r"cannot reshape tensor of 0 elements.*-1|ambiguous"),
    ("reshape", lambda T, n: n.x.reshape(5), RuntimeError, r"shape '\[5\]' is invalid for input of size 6"),
    (
        "expand",
        lambda T, n: n.x.expand(2, 4),
        RuntimeError,
        r"expanded size of the tensor \(4\) must match the existing size \(3\)",
    ),
    (
        "expand fewer",
        lambda T, n: n.x.expand(3),
        RuntimeError,
        r"number of sizes provided \(1\) must be greater or equal",
    ),
    ("permute", lambda T, n: n.x.permute(0), RuntimeError, r"number of dimensions|permute"),
    ("permute twice", lambda T, n: n.x.permute(0, 0), RuntimeError, r"duplicate dims|repeated dim"),
    ("t", lambda T, n: T.t(n.x[None]), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3d"),
    ("mT", lambda T, n: n.y.mT, RuntimeError, r"mt.*only supported on matrices"),
    (
        "narrow",
        lambda T, n: n.y.narrow(0, 3, 2),
        RuntimeError,
        r"start \(3\) \+ length \(2\) exceeds dimension size \(4\)",
    ),
    ("narrow negative", lambda T, n: n.y.narrow(0, 0, -1), RuntimeError, r"length must be non-negative"),
    (
        "split",
        lambda T, n: n.y.split([1, 2]),
        RuntimeError,
        r"split_with_sizes expects split_sizes to sum exactly to 4",
    ),
    ("split negative", lambda T, n: n.y.split(-1), RuntimeError, r"split.*non-negative|negative"),
    ("split zero", lambda T, n: n.y.split(0), RuntimeError, r"split_size can only be 0 if dimension size is 0|split"),
    ("chunk", lambda T, n: n.y.chunk(0), RuntimeError, r"chunk expects `chunks` to be greater than 0, got: 0"),
    ("unflatten", lambda T, n: n.y.unflatten(0, (3, 2)), RuntimeError, r"unflatten.*\[3, 2\].*4"),
    (
        "unfold",
        lambda T, n: n.y.unfold(0, 5, 1),
        RuntimeError,
        r"maximum size for tensor at dimension 0 is 4 but size is 5",
    ),
    ("unfold step", lambda T, n: n.y.unfold(0, 2, 0), RuntimeError, r"step is 0 but must be > 0"),
    ("as_strided", lambda T, n: n.y.as_strided((3,), (2,)), RuntimeError, r"out of bounds for storage"),
    (
        "as_strided lengths",
        lambda T, n: n.y.as_strided((2,), (1, 1)),
        RuntimeError,
        r"mismatch in length of strides and shape",
    ),
    ("as_strided offset", lambda T, n: n.y.as_strided((1,), (1,), -1), RuntimeError, r"storage[ _]offset"),
    ("diagonal", lambda T, n: n.x.diagonal(0, 1, 1), RuntimeError, r"diagonal dimensions cannot be identical 1, 1"),
    ("repeat", lambda T, n: n.x.repeat(2), RuntimeError, r"number of dimensions of repeat dims can not be smaller"),
    ("repeat negative", lambda T, n: n.x.repeat(2, -1), RuntimeError, r"negative|repeat"),
    ("flip twice", lambda T, n: n.x.flip(0, 0), RuntimeError, r"dim 0 appears multiple times"),
    ("roll", lambda T, n: n.x.roll((1, 2), (0,)), RuntimeError, r"shifts and dimensions must align"),
    ("sum twice", lambda T, n: n.x.sum((0, 0)), RuntimeError, r"dim 0 appears multiple times"),
    ("topk", lambda T, n: n.y.topk(5), RuntimeError, r"selected index k out of range|out of range"),
    ("tril", lambda T, n: T.tril(n.y), RuntimeError, r"tril.*at least 2 dimensions"),
    (
        "gather rank",
        lambda T, n: n.x.gather(0, n.i),
        RuntimeError,
        r"index tensor must have the same number of dimensions as input",
    ),
    (
        "gather size",
        lambda T, n: n.x.gather(0, T.zeros(1, 4, dtype=T.int64)),
        RuntimeError,
        r"size does not match|smaller|expected index",
    ),
    ("scatter size", lambda T, n: n.y.scatter(0, n.i, n.y[:2]), RuntimeError, r"index.*src|expected index"),
    ("masked_fill", lambda T, n: n.y.masked_fill(n.m, 0), RuntimeError, r"must match the size|broadcast"),
    ("masked_fill_ value", lambda T, n: n.y.masked_fill(n.y > 0, n.y), RuntimeError, r"0-dimensional value tensor"),
    ("setitem", lambda T, n: n.x.__setitem__(0, n.y), RuntimeError, r"must match|shape mismatch"),
    (
        "mask of other size",
        lambda T, n: n.y[n.m],
        IndexError,
        r"shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[4\] at index 0",
    ),
    (
        "mask value",
        lambda T, n: n.g.detach()[n.m].__class__ and n.x.__setitem__((0, n.m), n.y),
        RuntimeError,
        r"shape mismatch",
    ),
    (
        "cross_entropy",
        lambda T, n: T.nn.functional.cross_entropy(n.x, n.i),
        ValueError,
        r"expected input batch_size \(2\) to match target batch_size \(4\)",
    ),
    ("linear", lambda T, n: T.nn.functional.linear(n.x, n.x[:, :2]), RuntimeError, r"cannot be multiplied|size|shape"),
    (
        "bce",
        lambda T, n: T.nn.functional.binary_cross_entropy_with_logits(n.x, n.y),
        ValueError,
        r"target size .*must be the same as input size",
    ),
]

DIMS: list[Case] = [
    (name, f, IndexError, r"dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)")
    for name, f in [
        ("sum", lambda T, n: n.x.sum(2)),
        ("softmax", lambda T, n: n.x.softmax(2)),
        ("cumsum", lambda T, n: n.x.cumsum(2)),
        ("max", lambda T, n: n.x.max(2)),
        ("argmax", lambda T, n: n.x.argmax(2)),
        ("transpose", lambda T, n: n.x.transpose(0, 2)),
        ("permute", lambda T, n: n.x.permute(0, 2)),
        ("select", lambda T, n: n.x.select(2, 0)),
        ("narrow", lambda T, n: n.x.narrow(2, 0, 1)),
        ("cat", lambda T, n: T.cat([n.x, n.x], 2)),
        ("flip", lambda T, n: n.x.flip(2)),
        ("roll", lambda T, n: n.x.roll(1, 2)),
        ("sort", lambda T, n: n.x.sort(2)),
        ("topk", lambda T, n: n.x.topk(1, 2)),
        ("gather", lambda T, n: n.x.gather(2, T.zeros(1, 1, dtype=T.int64))),
        ("index_select", lambda T, n: n.x.index_select(2, n.i)),
        ("unbind", lambda T, n: n.x.unbind(2)),
        ("split", lambda T, n: n.x.split(1, 2)),
        ("squeeze", lambda T, n: n.x.squeeze(2)),
        ("logsumexp", lambda T, n: n.x.logsumexp(2)),
        ("var", lambda T, n: n.x.var(2)),
        ("prod", lambda T, n: n.x.prod(2)),
        ("all", lambda T, n: n.x.all(2)),
        ("movedim", lambda T, n: n.x.movedim(0, 2)),
        ("size", lambda T, n: n.x.size(2)),
        ("flatten", lambda T, n: n.x.flatten(2)),
    ]
] + [
    ("unsqueeze", lambda T, n: n.x.unsqueeze(4), IndexError, r"expected to be in range of \[-3, 2\], but got 4"),
    ("stack", lambda T, n: T.stack([n.x], -4), IndexError, r"expected to be in range of \[-3, 2\], but got -4"),
    ("huge dim", lambda T, n: n.x.sum(HUGE), IndexError, r"dimension out of range.*4611686018427387904"),
    ("0-d", lambda T, n: n.s.sum(1), IndexError, r"expected to be in range of \[-1, 0\], but got 1"),
    ("max of nothing", lambda T, n: n.e.max(), RuntimeError, r"max\(\).*(non-zero size|numel\(\) == 0|specify)"),
    ("max of empty dim", lambda T, n: n.e.max(0), IndexError, r"max\(\).*dim 0.*non-zero size"),
    (
        "argmax of nothing",
        lambda T, n: n.e.argmax(),
        (IndexError, RuntimeError),
        r"argmax.*(non-zero size|numel\(\) == 0)",
    ),
    (
        "amax of nothing",
        lambda T, n: n.e.amax(),
        (IndexError, RuntimeError),
        r"amax\(\).*(non-zero size|specify|numel)",
    ),
]
