"""Expressions over a library `T` that creates, converts and asks tensors; some are refused.

Their outcomes on PyTorch are stored in tests/data/expressions.json (tests/oracle/make_expressions.py writes it).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

EXPRESSIONS = r"""
T.tensor([1, 2])
T.tensor([1, 2.5])
T.tensor([True, 2])
T.tensor([True, 2.5])
T.tensor([[]])
T.tensor([[], []])
T.tensor(())
T.tensor(range(3))
T.tensor([(1, 2), [3, 4]])
T.tensor(np.float32(1.5))
T.tensor(np.int32(3))
T.tensor(np.int8(3))
T.tensor(np.int16(-3))
T.tensor(np.array([1, 2], dtype=np.int32))
T.tensor([np.float64(1.5), 2])
T.tensor([np.float32(1.5), 2])
T.tensor(np.bool_(True))
T.tensor([T.tensor(1), T.tensor(2)])
T.tensor([T.tensor(1.5), 2])
T.tensor([np.array([1.0, 2.0]), np.array([3.0, 4.0])].__class__([[1.0, 2.0], [3.0, 4.0]]))
T.tensor(1, dtype=T.float64)
T.tensor([1.9, -1.9], dtype=T.int64)
T.tensor([0, 1, 2], dtype=T.bool)
T.tensor([1.5], device="cpu")
T.tensor([1.5], device=T.device("cpu"))
T.tensor([1.5], device="nowhere")
T.tensor(b"ab")
T.tensor({})
T.tensor({1: 2})
T.tensor([None])
T.tensor(np.zeros((2, 0)))
T.as_tensor([1, 2])
T.as_tensor(np.array([1.0, 2.0]))
T.as_tensor(3.5)
T.as_tensor([1], dtype=T.float32)
T.zeros(2, 3)
T.zeros((2, 3))
T.zeros([2, 3])
T.zeros(())
T.zeros(0)
T.zeros(2, dtype=T.int32)
T.zeros(T.Size([2]))
T.zeros(2, (3))
T.zeros((2,), 3)
T.zeros("a")
T.zeros()
T.zeros(True)
T.zeros(np.int64(2))
T.zeros(T.tensor(2))
T.ones(2, dtype=T.bool)
T.ones(2, requires_grad=True)
T.full((2, 2), 3)
T.full((2,), 3.5)
T.full((2,), True)
T.full((), 1)
T.full((2,), 3.5, dtype=T.int64)
T.full((2,), T.tensor(3))
T.full(2, 3)
T.empty(2, 3).shape
T.empty((0, 2))
T.eye(2)
T.eye(2, 3)
T.eye(3, 2, dtype=T.int64)
T.eye(0)
T.arange(5)
T.arange(5.0)
T.arange(2, 5)
T.arange(2, 5.5)
T.arange(5, 2, -1)
T.arange(0, 1, 0.1)
T.arange(0, 1, 0.3, dtype=T.float64)
T.arange(0, -1, -0.25)
T.arange(0)
T.arange(3, 3)
T.arange(0, 5, 2, dtype=T.int32)
T.arange(0, 3, dtype=T.uint8)
T.arange(-2, 3, dtype=T.int8)
T.arange(-2, 3, dtype=T.int16)
T.tensor([1.5, -2.5]).char()
T.tensor([70000, -2]).short()
T.tensor([200, -200]).to(T.int8)
T.tensor([1]).char().type().partition(".")[2]
T.tensor([1]).short().type().partition(".")[2]
T.tensor([1]).type("torch.ShortTensor")
T.arange(1, 0, 1)
T.arange(0.1, 0.7, 0.2)
T.arange(T.tensor(3))
T.arange(end=3)
T.arange(True)
T.linspace(0, 1, 5)
T.linspace(0, 1, 1)
T.linspace(0, 1, 0)
T.linspace(1, 0, 3)
T.linspace(0, 10, 4, dtype=T.int64)
T.linspace(-1, 1, 9, dtype=T.float64)
T.zeros_like(T.ones(2, 3).t())
T.ones_like(T.arange(3))
T.full_like(T.arange(3), 2.5)
T.full_like(T.ones(3), 2)
T.empty_like(T.ones(2, 3).t()).stride()
T.zeros_like(T.ones(3), dtype=T.int64)
T.zeros_like(T.ones(1).expand(3))
T.rand_like(T.ones(2, 3).t()).stride()
T.ones(2, dtype=T.float64).new_zeros(3)
T.ones(2, dtype=T.int32).new_ones(2, 2)
T.ones(2).new_full((2,), 3)
T.ones(2).new_tensor([1, 2])
T.ones(2, dtype=T.int64).new_tensor([1.5])
T.ones(2, dtype=T.float64).new_empty(2, 3).shape
T.ones(2).new_zeros((2,), dtype=T.int64)
T.rand(3).shape
T.rand(2, 3, dtype=T.float64).dtype
T.rand(0)
T.rand(2, dtype=T.int64)
T.randn((2, 3)).shape
T.randint(5, (3,)).dtype
T.randint(2, 5, (3,), dtype=T.float32).dtype
T.randint(5, 2, (3,))
T.randint(0, (3,))
T.randperm(5).sort()[0]
T.randperm(5, dtype=T.int32).dtype
T.randperm(0)
T.from_numpy(np.arange(3))
T.from_numpy(np.arange(6.0).reshape(2, 3).T)
T.from_numpy(np.float32(1.0))
T.from_numpy(np.zeros(()))
T.from_numpy(np.array([True]))
T.tensor([1.5]).item()
T.tensor(3).item()
T.tensor(True).item()
T.tensor([[1, 2]]).tolist()
T.tensor(1.5).tolist()
T.tensor([]).tolist()
T.zeros(2, 0).tolist()
int(T.tensor(3.7))
int(T.tensor(-3.7))
float(T.tensor(3))
bool(T.tensor(0.0))
bool(T.tensor([0]))
bool(T.tensor([]))
complex(T.tensor(1.5))
[1, 2, 3][T.tensor(1)]
len(T.zeros(3, 2))
[x.tolist() for x in T.arange(4).reshape(2, 2)]
3 in T.arange(5)
T.tensor(2) in T.arange(2)
list(T.zeros(2).shape)
T.zeros(2, 3).shape[1]
T.zeros(2, 3).shape.numel()
tuple(T.zeros(2, 3).size())
T.zeros(2, 3).size(-1)
T.zeros(2, 3).stride(0)
T.zeros(2, 3).nelement()
T.numel(T.zeros(2, 3))
T.is_tensor(T.zeros(1))
T.is_tensor(1)
isinstance(T.zeros(2).shape, tuple)
T.Size([1, 2]) + T.Size([3])
T.Size([1, 2])[1:]
T.Size([1, 2]) == (1, 2)
T.zeros(2).dtype == T.float32
T.float32 == T.float
T.int64 is T.long
hash(T.float32) == hash(T.float)
np.asarray(T.tensor([1, 2])).dtype.name
np.array(T.ones(2), dtype="float64").dtype.name
np.add(T.ones(2).numpy(), 1).tolist()
np.sin(T.zeros(2)).tolist()
type(np.ones(2) * T.ones(2, dtype=T.float64)).__name__
(T.ones(2, dtype=T.float64) * np.ones(2)).tolist()
(T.ones(2) * np.float32(2)).dtype
(T.ones(2) * np.float64(2)).dtype
(T.ones(2, dtype=T.int64) * np.int64(2)).dtype
(T.ones(2, dtype=T.int64) + np.float64(0.5)).dtype
T.tensor([3, 1, 2]).sort(descending=True)
T.tensor([3, 1, 2]).argsort()
T.tensor([1.0, float("nan"), 0.5]).sort()
T.tensor([1.0, float("nan"), 0.5]).topk(2)
T.tensor([1.0, float("nan")]).max(0)
T.tensor([2, 2, 1]).argmax()
T.tensor([2, 2, 1]).max(0)
T.tensor([True, False]).sum()
T.tensor([1, 2, 3]).prod()
T.tensor([[1, 2], [3, 4]]).max(1).values
T.tensor([[1, 2], [3, 4]]).max(dim=1, keepdim=True).indices
T.ones(2, 2).sum(dim=[0, 1])
T.ones(2, 2).sum(())
T.ones(2, 2).mean(())
T.ones(2, 2).sum(dim=None)
T.ones(2, 2).sum(0, True)
T.ones(2, 2).sum(axis=0)
T.ones(2, 2).sum(0, keepdims=True)
T.ones(2, 2).var(0, unbiased=False)
T.ones(2, 2).var(0, correction=0)
T.ones(1).var()
T.ones(2, 2).std(0, keepdim=True)
T.ones(2, 2).norm(1)
T.ones(2, 2).norm("fro")
T.ones(2, 2).norm(dim=0)
T.ones(2, 2).all(0)
T.ones(2, 2).any((0, 1))
T.arange(6).view(2, 3).sum(1).dtype
T.arange(6).reshape((2, 3)).t().contiguous().stride()
T.arange(4.0).view(2, 2).T.reshape(-1)
T.clamp(T.arange(3), 0.5)
T.clamp(T.arange(3), min=1, max=0)
T.clamp(T.arange(3))
T.arange(3).clamp(min=T.tensor(1))
T.div(T.tensor([7, -7]), 2, rounding_mode="floor")
T.div(T.tensor([7, -7]), 2, rounding_mode="up")
T.add(T.ones(2), 2, alpha=3)
T.add(T.ones(2, dtype=T.int64), 2, alpha=0.5)
T.where(T.tensor([True, False]))
T.where(T.tensor([True, False]), 1, 2)
T.where(T.tensor([True, False]), T.ones(2), 0)
T.nonzero(T.tensor([[1, 0], [0, 2]])).tolist()
T.einsum("ij,j", T.ones(2, 3), T.ones(3))
T.einsum("i j -> j i", T.ones(2, 3)).shape
T.einsum("ij->k", T.ones(2, 3))
T.einsum([T.ones(2)], "i")
T.cat((T.ones(1), T.zeros(2)), dim=0)
T.cat(T.ones(2, 3))
T.stack((T.ones(1), T.zeros(1)), dim=-1)
T.broadcast_to(T.ones(3), (2, 3))
T.broadcast_shapes((2, 1), (3,))
T.result_type(T.ones(1, dtype=T.int64), 1.5)
T.nn.functional.one_hot(T.tensor([0, 2]))
""".strip().split("\n")


def describe(value: Any) -> Any:
    """What is stored of a value: for tensors dtype, shape, the strides that matter, flag and elements."""
    if hasattr(value, "requires_grad"):
        shape = tuple(value.shape)
        strides = () if 0 in shape else tuple(s for n, s in zip(shape, value.stride(), strict=True) if n != 1)
        return f"{str(value.dtype).rsplit('.', 1)[-1]} {shape} {strides} {value.requires_grad} {value.tolist()!r}"
    if isinstance(value, (tuple, list)):
        return [describe(v) for v in value]
    if type(value).__name__ == "dtype":
        return str(value).rsplit(".", 1)[-1]
    return repr(value)


def outcome(f: Callable[[], Any]) -> Any:
    """The description of what f() gives, or the builtin type of its error. Warnings are not its business."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return describe(f())
    except Exception as error:
        kinds = (NotImplementedError, IndexError, OverflowError, TypeError, ValueError, RuntimeError)
        return next((k.__name__ for k in kinds if isinstance(error, k)), type(error).__name__)
