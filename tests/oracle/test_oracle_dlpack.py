"""DLPack between rgrad and PyTorch: the same memory from both sides, the same answers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16",
    "float16", "float32", "float64", "complex32", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_both_ways(dtype: str) -> None:
    for there, here in ((rgrad, torch), (torch, rgrad)):
        x: Any = there.arange(6).reshape(2, 3).to(getattr(there, dtype)).t()
        y: Any = here.from_dlpack(x)
        assert y.dtype == getattr(here, dtype)
        assert y.data_ptr() == x.data_ptr()
        assert y.stride() == x.stride()
        x[1, 1] = 0
        assert y.tolist() == x.tolist()
        y[0, 0] = 1
        assert y.tolist() == x.tolist()
        again = there.from_dlpack(here.from_dlpack(x, copy=True))
        assert again.data_ptr() != x.data_ptr()
        assert again.tolist() == x.tolist()


CALLS = [
    lambda T: T.ones(2, requires_grad=True).__dlpack__(),
    lambda T: T.ones(2).__dlpack__(stream=3),
    lambda T: T.ones(2).__dlpack__(stream="a"),
    lambda T: T.ones(2, device="meta").__dlpack_device__(),
    lambda T: T.from_dlpack(T.utils.dlpack.to_dlpack(T.ones(2)), copy=True),
    lambda T: T.from_dlpack(T.utils.dlpack.to_dlpack(T.ones(2)), device="cpu"),
    lambda T: [T.from_dlpack(c) for c in [T.utils.dlpack.to_dlpack(T.ones(2))] * 2],
]


@pytest.mark.parametrize("call", CALLS)
def test_refusals_are_of_the_same_type(call: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        call(torch)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        call(rgrad)
    assert issubclass(ours.type, theirs.type)
    assert str(ours.value)[:30] == str(theirs.value)[:30]


def test_names_and_numbers() -> None:
    import torch.utils.dlpack as its

    import rgrad.utils.dlpack as own

    assert {d.name: d.value for d in own.DLDeviceType} == {d.name: d.value for d in its.DLDeviceType}
    assert tuple(rgrad.ones(2).__dlpack_device__()) == tuple(torch.ones(2).__dlpack_device__())
