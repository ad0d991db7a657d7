"""int8 and int16 beside torch: what wraps around, what is refused, and what turns into another dtype."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compare import both  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

# `x` is a vector with both ends of its range, `y` one without 0, `m` a matrix, `i` small positions, `c` shift counts.
EXPRESSIONS = """
x + x
x * x * x
x - y
-x
x.abs()
x.sign()
x.sgn()
x.square()
x ** 2
x ** 3
x ** y.abs()
x ** -1
y ** -2
2 ** y.abs()
x ** 0.5
x.pow(T.tensor(3))
x // y
x // 3
3 // y
-x // -1
x % y
x % -7
x.fmod(y)
x.fmod(5)
x / y
T.div(x, y, rounding_mode="trunc")
T.div(x, y, rounding_mode="floor")
x.div(-1, rounding_mode="trunc")
x << c
x >> c
x << 1
x >> 1
1 << i
~x
x & y
x | 3
x ^ y
x & True
x == y
x < 5
x <= -1
x != 100
x > 1.5
x.clamp(-3, 5)
x.clamp(min=y)
x.clamp(-0.5, 2.5)
T.maximum(x, y)
T.fmin(x, y)
T.where(x > 0, x, y)
T.where(x > 0, x, 7)
T.where(x, x, y)
x.floor()
x.ceil()
x.round()
x.trunc()
x.frac()
x.exp()
x.reciprocal()
x.sqrt()
x.isnan()
x.isfinite()
x.logical_not()
x.logical_xor(y)
x.relu()
T.nn.functional.hardtanh(x, -2, 3)
T.nn.functional.leaky_relu(x)
T.nn.functional.threshold(x, 2, 9)
x.sum()
x.sum(dtype=T.int8)
x.sum(dtype=T.int16)
m.sum(0)
m.sum(1, keepdim=True)
m.prod()
m.prod(1)
m.prod(1, dtype=x.dtype)
x.mean()
x.mean(dtype=T.float32)
x.var()
x.norm()
T.logsumexp(x, 0)
x.max()
x.min()
m.max(1)
m.min(0)
m.amax(0)
m.amin((0, 1))
m.aminmax()
m.argmax()
m.argmin(1)
m.all()
m.any(1)
m.count_nonzero(0)
m.nonzero().tolist()
m.cumsum(1)
m.cumprod(0)
m.cumsum(0, dtype=x.dtype)
m.cummax(1)
m.cummin(0)
m.softmax(0)
m.sort(1)
m.sort(0, descending=True)
x.argsort()
x.argsort(descending=True, stable=True)
m.topk(2)
m.topk(2, largest=False, dim=0)
x.kthvalue(2)
m.median()
m.median(0)
m.mode(1)
x.unique()
x.unique(return_counts=True)
T.unique_consecutive(x)
x.quantile(0.5)
i.bincount()
x.diff()
x.flip(0)
x.roll(2)
m @ m.T
m @ x[:4]
x @ x
m.mm(m.T)
T.stack([m, m]) @ m.T
T.einsum("ij,kj->ik", m, m)
T.outer(x, y)
T.addmm(m @ m.T, m, m.T, beta=2, alpha=3)
T.addcmul(x, x, y, value=2)
T.addcdiv(x, x, y)
T.add(x, y, alpha=3)
T.add(x, y, alpha=0.5)
T.lerp(x, y, 0.5)
m.tril()
m.triu(1)
m.diagonal()
m.trace()
T.diag(x)
x[i]
x[i.long()]
x[x > 0]
m[:, 1]
x[m]
x.index_select(0, i)
x.index_select(0, i.int())
x.gather(0, i)
x.gather(0, i.long())
x.take(i)
x.repeat_interleave(i)
x.repeat_interleave(2)
T.nn.functional.one_hot(i)
T.nn.functional.one_hot(i.long())
T.nn.functional.cross_entropy(T.ones(5, 5), i)
x.index_add(0, i.long(), y)
x.index_add(0, i.long(), y, alpha=2)
x.clone().index_put_((i.long(),), y, accumulate=True)
x.scatter(0, i.long(), y)
x.scatter_add(0, i.long(), y)
x.masked_fill(x > 0, 9)
x.masked_fill(x > 0, 300)
x.masked_select(x > 0)
T.cat([x, y.long()])
T.cat([x, T.tensor([1], dtype=T.uint8)])
T.stack([x, y])
x.clone().fill_(3)
x.clone().add_(1.5)
x.clone().add_(y.long())
x.clone().copy_(T.tensor([1.5, -2.5, 300.0, 4.0, 5.0]))
x.new_zeros(2)
x.new_tensor([1.5, 2])
x.new_full((2,), 7)
T.full((2,), 3, dtype=x.dtype)
T.zeros_like(x)
T.full_like(x, -5)
T.arange(-3, 4, 2, dtype=x.dtype)
T.linspace(-3, 4, 5, dtype=x.dtype)
T.logspace(0, 2, 3, dtype=x.dtype)
T.eye(2, dtype=x.dtype)
T.tensor([1, -2], dtype=x.dtype)
T.tensor([1.9, -1.9], dtype=x.dtype)
T.tensor(100000, dtype=x.dtype)
T.tensor([True], dtype=x.dtype)
T.tensor(x.numpy())
T.from_numpy(x.numpy()).dtype == x.dtype
T.as_tensor(x.numpy()[0])
T.tensor([np.int16(3), 2])
x.numpy().dtype
x.numpy().tolist()
x.tolist()
x[0].item()
int(x[1])
float(x[1])
bool(x[0])
[1, 2, 3][i[0]]
x.to(T.float32)
x.to(T.float64)
x.to(T.int64)
x.to(T.int32)
x.to(T.int16)
x.to(T.int8)
x.to(T.uint8)
x.to(T.bool)
x.char()
x.short()
x.byte()
x.type_as(y)
x.is_signed()
x.element_size()
x.dtype.itemsize
x.dtype.is_signed
x.nbytes
x.numel()
x.requires_grad_()
T.can_cast(x.dtype, T.uint8)
T.result_type(x, 300)
T.promote_types(x.dtype, T.uint8)
T.iinfo(x.dtype).max
T.iinfo(x.dtype).min
T.iinfo(x.dtype).bits
T.finfo(x.dtype)
T.randint(-3, 3, (4,), dtype=x.dtype).dtype
T.randint(-300, 40000, (4,), dtype=x.dtype)
T.randperm(5, dtype=x.dtype).sort().values
T.randperm(40000, dtype=x.dtype)
T.rand(2, dtype=x.dtype)
T.randn(2, dtype=x.dtype)
x.clone().random_(0, 1)
x.clone().bernoulli_(1.0)
x.clone().uniform_()
T.equal(x, x.clone())
T.allclose(x, x)
repr(x).replace("torch.", "").replace("rgrad.", "")
pickle.loads(pickle.dumps(x))
T.set_default_dtype(x.dtype)
""".strip().splitlines()


def space(T: Any, dtype: str) -> dict[str, Any]:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return {
        "T": T,
        "np": np,
        "pickle": pickle,
        "x": T.tensor(np.array([low, high, 0, -1, 100], dtype)),
        "y": T.tensor(np.array([3, -7, high, low, -1], dtype)),
        "m": T.tensor(np.array([[1, -2, 3, high], [low, 5, 5, -9], [0, 7, -9, 2]], dtype)),
        "i": T.tensor(np.array([2, 0, 1, 3, 2], dtype)),
        "c": T.tensor(np.array([1, 7, 8, -1, high], dtype)),
    }


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_narrow_integers(expression: str, dtype: str) -> None:
    both(lambda T: eval(expression, space(T, dtype)), more=True)
