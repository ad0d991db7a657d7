"""Expressions over a library `T` that make, print, convert and ask complex tensors; many are refused.

Their outcomes on PyTorch are stored in tests/data/complex_expressions.json, which
tests/oracle/make_complex_expressions.py writes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

EXPRESSIONS = r"""
T.tensor([1+2j, 3-4j])
T.tensor([1.5+2.25j, 3-4j])
T.tensor([1+2j, 3-4j], dtype=T.complex128)
T.tensor([1+2j, 3-4j], dtype=T.complex32)
T.tensor(1+2j)
T.tensor(1+2j).item()
T.tensor([[1+2j, 1e10-3j],[1e-8j, 5]])
T.tensor([1e10+1e-3j, 3])
T.tensor([complex(float("nan"),float("inf")), complex(-float("inf"), 0), 0])
T.tensor([complex(float("nan"),float("nan"))])
T.tensor([1+2j, -0.0-0j, complex(0.0,-0.0)])
T.tensor([], dtype=T.complex64)
T.zeros(2,0, dtype=T.cfloat)
T.zeros(3, dtype=T.cfloat, requires_grad=True)
T.arange(3000).to(T.cfloat)
T.arange(3000).to(T.cdouble).reshape(30,100) * (1+0.5j)
f"{T.tensor(1+2j)}"
f"{T.tensor(1+2j):.2f}"
f"{T.tensor([1+2j]):}"
f"{T.tensor([1+2j]):.2f}"
T.nn.Parameter(T.tensor([1+2j]))
T.nn.Parameter(T.tensor(1+2j))
T.tensor([1+2j], requires_grad=True) * 2
complex(T.tensor(1+2j))
complex(T.tensor([1+2j]))
complex(T.tensor([1+2j, 3]))
complex(T.tensor(2.5))
complex(T.tensor(True))
float(T.tensor(1+2j))
float(T.tensor(1+0j))
int(T.tensor(1+2j))
int(T.tensor(1+0j))
bool(T.tensor(1j))
bool(T.tensor(0j))
bool(T.tensor([1j,2]))
T.tensor([1+2j, 3]).tolist()
T.tensor([[1+2j], [3]], dtype=T.complex32).tolist()
T.tensor(1+2j).tolist()
(1+2j) in T.tensor([1+2j, 3])
3 in T.tensor([1+2j, 3])
4 in T.tensor([1+2j, 3])
T.tensor([1+2j,3]) == T.tensor([1+2j,4])
T.tensor([1+2j,3]) != 3
T.tensor([1+2j,3]) == 1+2j
T.tensor([1,3]) == 1+2j
T.tensor([1+2j,3]) < 1
T.tensor([1+2j,3]) <= T.tensor(1.)
T.tensor([1+2j,3]) > 1j
T.tensor([1.,3]) >= 1j
T.lt(T.tensor([1j]), 1)
T.tensor([1j]).lt_(1)
T.tensor([1j]).eq_(1j)
T.sign(T.tensor([1j]))
T.floor(T.tensor([1j]))
T.ceil(T.tensor([1j]))
T.trunc(T.tensor([1j]))
T.round(T.tensor([1j]))
T.frac(T.tensor([1j]))
T.fmax(T.tensor([1j]), T.tensor([1j]))
T.clamp(T.tensor([1j]), 0, 1)
T.clamp(T.tensor([1j]), min=T.tensor(0.))
T.clamp_min(T.tensor([1j]), 0)
T.clamp_max(T.tensor([1j]), 0)
T.tensor([1.]).clamp(1j)
T.floor_divide(T.tensor([1j]), 2)
T.tensor([1j]) // 2
T.tensor([1j]) % 2
T.remainder(T.tensor([1j]), 2)
T.fmod(T.tensor([1j]), 2)
T.div(T.tensor([1j]), 2, rounding_mode='floor')
T.div(T.tensor([1j]), 2, rounding_mode='trunc')
T.relu(T.tensor([1j]))
T.sigmoid(T.tensor([1j]))
T.nn.functional.tanh(T.tensor([1j]))
T.nn.functional.pad(T.tensor([1j]), (1,1))
T.nn.functional.pad(T.tensor([1j]), (1,1), value=2j)
T.nn.functional.dropout(T.tensor([3j, 4]), 0.0)
T.nn.functional.one_hot(T.tensor([3j, 4]))
T.bitwise_not(T.tensor([1j]))
~T.tensor([1j])
T.tensor([1j]) & 1
T.tensor([1j]) << 1
T.atan2(T.tensor([1j]), T.tensor([1j]))
T.hypot(T.tensor([1j]), T.tensor([1j]))
T.copysign(T.tensor([1j]), T.tensor([1j]))
T.heaviside(T.tensor([1j]), T.tensor([1j]))
T.nextafter(T.tensor([1j]), T.tensor([1j]))
T.gcd(T.tensor([1j]), T.tensor([1j]))
T.signbit(T.tensor([1j]))
T.isposinf(T.tensor([1j]))
T.isneginf(T.tensor([1j]))
T.isnan(T.tensor([1j, complex(0, float("nan"))]))
T.isinf(T.tensor([1j, complex(0, float("inf"))]))
T.isfinite(T.tensor([1j, complex(0, float("inf"))]))
T.erf(T.tensor([1j]))
T.lgamma(T.tensor([1j]))
T.digamma(T.tensor([1j]))
T.xlogy(T.tensor([1j]), T.tensor([1j]))
T.exp2(T.tensor([1j]))
T.rad2deg(T.tensor([1j]))
T.deg2rad(T.tensor([1j]))
T.square(T.tensor([1+1j]))
T.positive(T.tensor([1+1j]))
T.neg(T.tensor([1+1j]))
+T.tensor([1j])
T.abs(T.tensor([3+4j]))
T.tensor([3+4j]).abs_()
T.angle(T.tensor([3+4j, -1]))
T.sgn(T.tensor([3+4j, 0]))
T.tensor([1+2j]).dtype
T.tensor([1+2j, 3.0, 2, True])
T.tensor([1+2j], dtype=T.float32)
T.tensor([1+0j], dtype=T.float32)
T.tensor([1+2j], dtype=T.int64)
T.tensor([1+0j], dtype=T.bool)
T.tensor(1+2j, dtype=T.float32)
T.tensor(np.array([1+2j]))
T.tensor(np.array([1+2j], dtype=np.complex64))
T.tensor(np.complex64(1+2j))
T.tensor([np.complex64(1+2j)])
T.tensor([T.tensor(1+2j), 3])
T.as_tensor([1+2j])
T.as_tensor(np.array([1+2j]))
T.asarray(1+2j)
T.asarray([1+2j])
T.zeros(2, dtype=T.complex64)
T.zeros(2, dtype=complex)
T.ones(2, dtype=T.complex128)
T.empty(2, dtype=T.complex64).shape
T.full((2,), 1+2j)
T.full((2,), 1+2j, dtype=T.float32)
T.full((2,), 1+2j, dtype=T.int64)
T.full((2,), 1, dtype=T.complex64)
T.full((), 1+2j)
T.full_like(T.zeros(2), 1+2j)
T.full_like(T.zeros(2, dtype=T.cfloat), 1+2j)
T.zeros(2).new_full((2,), 1+2j)
T.zeros(2, dtype=T.cfloat).new_full((2,), 1+2j)
T.zeros(2, dtype=T.cfloat).new_tensor([1])
T.zeros(2).new_tensor([1j])
T.zeros(2, dtype=T.cfloat).new_ones(2)
T.zeros_like(T.zeros(2, dtype=T.cfloat))
T.ones_like(T.zeros(2), dtype=T.cfloat)
T.eye(2, dtype=T.cfloat)
T.arange(3, dtype=T.cfloat)
T.arange(3j)
T.arange(0, 3j)
T.linspace(0, 1, 3, dtype=T.cfloat)
T.linspace(0, 1j, 3)
T.linspace(0, 1+1j, 5)
T.linspace(0, 1+1j, 5, dtype=T.float32)
T.linspace(0j, 1+1j, 5, dtype=T.complex128)
T.logspace(0, 1j, 3)
T.logspace(0, 1+1j, 5, base=2)
T.logspace(0, 1, 3, dtype=T.cfloat)
T.scalar_tensor(1+2j)
T.scalar_tensor(1+2j, dtype=T.cfloat)
T.complex(T.tensor([1.]), T.tensor([2.]))
T.complex(T.tensor([1.]), T.tensor([2.], dtype=T.float64))
T.complex(T.tensor([1]), T.tensor([2]))
T.complex(T.tensor([1.], dtype=T.float16), T.tensor([2.], dtype=T.float16))
T.polar(T.tensor([1.]), T.tensor([2.]))
T.polar(T.tensor([1.]), T.tensor([2]))
T.rand_like(T.zeros(3, dtype=T.cfloat)).dtype
T.randn_like(T.zeros(3, dtype=T.cdouble)).dtype
T.randint(3, (2,), dtype=T.cfloat).dtype
T.randint_like(T.zeros(3, dtype=T.cfloat), 3).dtype
T.zeros(3, dtype=T.cfloat).normal_().dtype
T.zeros(3, dtype=T.cfloat).normal_(1+2j)
T.normal(T.zeros(3, dtype=T.cfloat), 1.0).dtype
T.normal(T.zeros(3, dtype=T.cfloat), T.ones(3)).dtype
T.normal(T.zeros(3), T.ones(3, dtype=T.cfloat)).dtype
T.normal(0., T.ones(3, dtype=T.cfloat)).dtype
T.zeros(3, dtype=T.cfloat).random_()
T.zeros(3, dtype=T.cfloat).random_(5)
T.zeros(3, dtype=T.cfloat).exponential_()
T.zeros(3, dtype=T.cfloat).cauchy_()
T.zeros(3, dtype=T.cfloat).log_normal_()
T.zeros(3, dtype=T.cfloat).geometric_(0.5)
T.zeros(3, dtype=T.cfloat).bernoulli_()
T.bernoulli(T.zeros(3, dtype=T.cfloat))
T.poisson(T.zeros(3, dtype=T.cfloat))
T.multinomial(T.ones(3, dtype=T.cfloat), 2)
T.randperm(3, dtype=T.cfloat)
T.zeros(2, dtype=T.cfloat).fill_(1+2j)
T.zeros(2).fill_(1+2j)
T.zeros(2, dtype=T.int64).fill_(1+2j)
T.zeros(2).fill_(1+0j)
T.zeros(2, dtype=T.bool).fill_(1j)
T.zeros(2).fill_(T.tensor(1+2j))
T.zeros(2).imag
T.real(T.tensor([1+2j]))
T.imag(T.tensor([1+2j]))
T.real(T.tensor([1.]))
T.imag(T.tensor([1.]))
T.is_complex(T.tensor([1.])), T.is_complex(T.tensor([1j])), T.tensor([1j]).is_complex()
T.isreal(T.tensor([1j, 1, 2+0j]))
T.isreal(T.tensor([1., 2]))
T.tensor([1j]).isreal()
T.is_conj(T.tensor([1j])), T.is_neg(T.tensor([1j]))
T.resolve_conj(T.tensor([1j])), T.resolve_neg(T.tensor([1j]))
T.conj(T.tensor([1+2j]))
T.conj_physical(T.tensor([1+2j]))
T.adjoint(T.tensor([[1+2j, 3]]))
T.tensor([[1+2j, 3]]).mH
T.tensor([[1+2j, 3]]).H
T.tensor([[1+2j, 3]]).mT
T.tensor([1+2j, 3]).H
T.tensor([1+2j, 3]).adjoint()
T.tensor([[[1+2j, 3]]]).H
T.positive(T.tensor([True]))
T.where(T.tensor([True, False]), 1j, 2.)
T.where(T.tensor([True, False]), T.tensor([1., 2.]), 2j)
T.where(T.tensor([True, False]), T.tensor([1., 2.], dtype=T.float64), 2j)
T.where(T.tensor([True, False]), T.tensor([1, 2]), 2j)
T.where(T.tensor([True, False]), T.tensor([1j, 2.]), T.tensor([1., 2.]))
T.tensor([1j, 2]).masked_fill(T.tensor([True, False]), 3+4j)
T.tensor([1., 2]).masked_fill(T.tensor([True, False]), 3+4j)
T.tensor([1j, 2])[T.tensor([0, 0])]
T.tensor([1j, 2]).gather(0, T.tensor([0, 0]))
T.tensor([1j, 2]).take(T.tensor([0, 0]))
T.tensor([1j, 2]).masked_select(T.tensor([True, False]))
T.argwhere(T.tensor([1j, 0]))
T.tensor([[1j, 0]]).tril()
T.tensor([[1j, 0]]).triu()
T.diag(T.tensor([1j, 2]))
T.roll(T.tensor([1j, 2]), 1)
T.flip(T.tensor([1j, 2]), [0])
T.tensor([1j]).add(1, alpha=2j)
T.tensor([1.]).add(1, alpha=2j)
T.tensor([1.]).add(T.tensor([2]), alpha=2j)
T.tensor([1.]).add_(1j)
T.tensor([1.]).mul_(T.tensor([1j]))
T.add(T.tensor([1.]), 1j, out=T.empty(1))
T.tensor([1]).add_(1j)
T.tensor([1., 2]) + 1j
T.tensor([1, 2]) * 1j
T.tensor([1, 2], dtype=T.float64) * 1j
T.tensor([1, 2], dtype=T.float16) * 1j
T.tensor([1, 2], dtype=T.bfloat16) * 1j
1j / T.tensor([1., 2])
T.tensor([1., 2]) ** 1j
2 ** T.tensor([1j])
1j - T.tensor([1., 2])
T.tensor([1j]).type()
T.tensor([1j]).type(T.float32)
T.tensor([1.]).type(T.cfloat)
T.tensor([1.]).type('torch.ComplexFloatTensor')
T.tensor([1.]).cfloat(), T.tensor([1.]).cdouble(), T.tensor([1.]).chalf()
T.tensor([1j]).to(T.cdouble)
T.tensor([1j]).float()
T.tensor([1j]).int()
T.tensor([1j, 0]).bool()
T.tensor([1j]).to(T.float64)
T.tensor([1j]).double().dtype
T.tensor([1j]).half()
T.tensor([1j], dtype=T.cdouble).element_size(), T.tensor([1j], dtype=T.chalf).element_size(), T.tensor([1j]).nbytes
T.finfo(T.complex64)
T.finfo(T.complex128)
T.finfo(T.complex32)
T.iinfo(T.complex64)
T.int32.to_complex(), T.bool.to_complex()
T.bfloat16.to_complex()
T.chalf, T.cfloat, T.cdouble
T.result_type(T.tensor([1.]), 1j)
T.result_type(T.tensor(1.), 1j)
T.result_type(T.tensor(1., dtype=T.float64), 1j)
T.result_type(T.tensor([1]), 1j)
T.result_type(T.tensor([1], dtype=T.float16), 1j)
T.result_type(T.tensor([1], dtype=T.bfloat16), 1j)
T.result_type(1j, 2)
T.result_type(T.tensor([1.]), T.tensor(1j, dtype=T.cdouble))
T.zeros(2, dtype=T.cfloat).view(T.float32)
T.zeros(2, dtype=T.cfloat).view(T.int64)
T.zeros(2, 2, dtype=T.float32).view(T.cfloat)
T.zeros(2, 3, dtype=T.float32).view(T.cfloat)
T.tensor([1.0, 2.0]).view(T.int32)
T.tensor([1.0, 2.0]).view(T.uint8)
T.tensor([1, 2], dtype=T.uint8).view(T.int16)
T.tensor([1, 2, 3], dtype=T.uint8).view(T.int16)
T.tensor(1.0).view(T.int32)
T.tensor(1.0).view(T.uint8)
T.tensor(1.0).view(T.float64)
T.zeros(4, 4).t().view(T.float64)
T.zeros(4, 4).t().view(T.uint8)
T.zeros(4, 4)[:, 1:3].view(T.float64)
T.zeros(4, 5)[:, :4].view(T.float64)
T.zeros(5)[1:].view(T.float64)
T.zeros(6)[2:].view(T.float64)
T.zeros(4, requires_grad=True).view(T.int32)
T.zeros(4, requires_grad=True).view(T.float64).requires_grad
(T.zeros(4, requires_grad=True)*2).view(T.float16)
(T.zeros(4, requires_grad=True)*2).view(T.int32).requires_grad
T.zeros(4).view(T.float32)
T.zeros(4, dtype=T.bool).view(T.uint8)
T.tensor([1,0,2], dtype=T.uint8).view(T.bool)
T.zeros(4).view(dtype=T.int32)
T.zeros(0).view(T.int64)
T.zeros(0).view(T.int8)
T.zeros(2, 0).view(T.float64)
T.zeros(4).view("a")
T.zeros(4).view(float)
T.zeros(4, dtype=T.cfloat).view(T.cdouble)
T.zeros(2).expand(3, 2).view(T.float64)
T.zeros(2,1).expand(2, 2).view(T.float64)
T.zeros(3,1).expand(3, 2).view(T.float16)
T.tensor([1+2j], requires_grad=True).view(T.float32)
T.zeros(2, dtype=T.cfloat).view_as(T.zeros(1,2))
T.tensor([1+2j]).numpy()
T.tensor([1+2j], dtype=T.cdouble).numpy()
T.tensor([1+2j], dtype=T.chalf).numpy()
T.from_numpy(np.array([1+2j]))
T.from_numpy(np.array([1+2j], dtype=np.complex64))
np.asarray(T.tensor([1+2j]))
np.complex128(1j) * T.tensor([1.])
T.testing.assert_close(T.tensor([1+2j]), T.tensor([1+2j]))
T.testing.assert_close(T.tensor([1+2j]), T.tensor([1+2.1j]))
T.testing.assert_close(T.tensor([1+2j]), T.tensor([1+2j], dtype=T.cdouble))
T.testing.assert_close(1+2j, 1+2j)
T.testing.assert_close(1+2j, 1+3j)
T.testing.assert_close(T.tensor([complex(float("nan"), 1)]), T.tensor([complex(float("nan"), 1)]), equal_nan=True)
T.equal(T.tensor([1+2j]), T.tensor([1+2j]))
T.equal(T.tensor([1+2j]), T.tensor([1+2j], dtype=T.cdouble))
T.tensor([1+2j]).copy_(T.tensor([1.]))
T.tensor([1.]).copy_(T.tensor([1j]))
T.tensor([1], dtype=T.int32).copy_(T.tensor([1j]))
T.tensor([1+2j], dtype=T.chalf) + 1
T.tensor([1+2j], dtype=T.chalf) * T.tensor([1+2j], dtype=T.chalf)
T.tensor([1+2j], dtype=T.chalf) - 1j
-T.tensor([1+2j], dtype=T.chalf)
T.tensor([1+2j], dtype=T.chalf).conj()
T.tensor([1+2j], dtype=T.chalf).conj_physical()
T.tensor([1+2j], dtype=T.chalf).abs()
T.tensor([1+2j], dtype=T.chalf).sgn()
T.tensor([1+2j], dtype=T.chalf) == 1
T.tensor([1+2j], dtype=T.chalf) != T.tensor([1+2j], dtype=T.chalf)
T.tensor([1+2j], dtype=T.chalf).isnan()
T.tensor([1+2j], dtype=T.chalf).isfinite()
T.tensor([1+2j], dtype=T.chalf).isinf()
T.tensor([1+2j], dtype=T.chalf).real, T.tensor([1+2j], dtype=T.chalf).imag
T.view_as_real(T.tensor([1+2j], dtype=T.chalf))
T.view_as_complex(T.tensor([1., 2], dtype=T.float16))
T.tensor([1+2j], dtype=T.chalf).to(T.cfloat)
T.tensor([1+2j], dtype=T.chalf).to(T.float32)
T.tensor([1+2j], dtype=T.chalf).clone()
T.tensor([1+2j], dtype=T.chalf).fill_(3j)
T.tensor([1+2j], dtype=T.chalf).zero_()
T.zeros(2, dtype=T.chalf)
T.ones(2, dtype=T.chalf)
T.full((2,), 1j, dtype=T.chalf)
T.tensor([1+2j, 2], dtype=T.chalf)[T.tensor([1])]
T.tensor([1+2j, 2], dtype=T.chalf)[T.tensor([True, False])]
T.tensor([1+2j, 2], dtype=T.chalf).index_select(0, T.tensor([1]))
T.tensor([1+2j, 2], dtype=T.chalf).roll(1)
T.tensor([1+2j, 2], dtype=T.chalf).repeat(2)
T.tensor([1+2j, 2], dtype=T.chalf).masked_fill(T.tensor([True, False]), 1j)
T.where(T.tensor([True, False]), T.tensor([1+2j, 2], dtype=T.chalf), T.tensor([1+2j, 3], dtype=T.chalf))
T.tensor([1+2j, 0], dtype=T.chalf).bool()
T.tensor([1+2j], dtype=T.chalf).item()
T.randn(2, dtype=T.chalf).dtype
T.tensor([1.], dtype=T.float16) + T.tensor([1j], dtype=T.chalf)
T.tensor([1.], dtype=T.float32) + T.tensor([1j], dtype=T.chalf)
T.tensor([1.], dtype=T.float64) * T.tensor([1j])
T.tensor([1]) * T.tensor([1j], dtype=T.chalf)
T.zeros_like(T.tensor([1+2j], dtype=T.chalf)), T.empty_like(T.tensor([1+2j], dtype=T.chalf)).dtype
T.tensor([1j]).is_floating_point()
T.tensor(1j).__index__()
[1,2,3][T.tensor(1j)]
T.zeros(3)[T.tensor([1j])]
T.tensor([1j]).requires_grad_()
T.tensor([1j], requires_grad=True).dtype
T.nn.Parameter(T.tensor([1j])).dtype
T.view_as_real(T.tensor([1.]))
T.view_as_complex(T.tensor([1.]))
T.view_as_complex(T.tensor([1., 2., 3.]))
T.view_as_complex(T.tensor([[1., 2.]]).expand(3, 2)).shape
T.view_as_complex(T.zeros(2, 3).t())
T.view_as_complex(T.tensor(1.))
T.view_as_complex(T.tensor([1, 2]))
T.view_as_real(T.tensor(1+2j))
T.empty(2, dtype=T.cfloat, device='meta')
T.nn.functional.glu(T.tensor([1j, 2]))
T.nn.functional.kl_div(T.tensor([1j]), T.tensor([0j]))
""".strip().split("\n")

_KINDS = (NotImplementedError, IndexError, OverflowError, TypeError, ValueError, RuntimeError)


def _described(value: Any) -> str:
    text = repr(value)
    return f"{text} {value.dtype} {tuple(value.shape)}" if hasattr(value, "requires_grad") else text


def worded_outcome(f: Callable[[], Any], library: str) -> str:
    """The text of what f() gives, or the builtin type of its error and the first line of its message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = _described(f())
    except Exception as error:
        kind = next((k.__name__ for k in _KINDS if isinstance(error, k)), type(error).__name__)
        text = f"{kind}: {str(error).strip()}".split("\n")[0]
    return text.replace(f"{library}.", "T.").replace("torch.", "T.")


def agrees(mine: str, theirs: str) -> bool:
    """Whether an outcome is PyTorch's; a message may say more."""
    kind, colon, words = theirs.partition(": ")
    if colon and kind in {k.__name__ for k in _KINDS}:
        return mine.startswith(f"{kind}: {words.rstrip('.')}")
    return mine == theirs
