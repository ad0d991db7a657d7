"""Lazy conjugates and negatives: views of the same memory whose elements are computed when they are read."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad.testing import assert_close

VALUES = [[1 + 2j, 3 - 1j], [0 + 1j, 2 + 0j]]


def example(**keywords: Any) -> rgrad.Tensor:
    return rgrad.tensor(VALUES, dtype=rgrad.complex128, **keywords)


def conjugate() -> np.ndarray:
    return np.conj(np.array(VALUES))


def values(t: rgrad.Tensor) -> np.ndarray:
    return t.detach().numpy(force=True)


def test_conj_is_a_view() -> None:
    x = example()
    y = x.conj()
    assert (y.is_conj(), y.is_neg(), x.is_conj()) == (True, False, False)
    assert y.data_ptr() == x.data_ptr()
    assert y._is_view()
    assert y._base is x
    assert y.stride() == x.stride()
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert not y.conj().is_conj()
    assert rgrad.is_conj(rgrad.conj(x))
    assert rgrad.real(x.real) is not None
    assert y.tolist() == conjugate().tolist()
    assert repr(y) == repr(rgrad.tensor(conjugate()))


@pytest.mark.parametrize("name", ["mH", "H"])
def test_adjoints_are_views(name: str) -> None:
    x = example()
    y = getattr(x, name)
    assert y.is_conj()
    assert y.data_ptr() == x.data_ptr()
    np.testing.assert_array_equal(values(y), conjugate().T)
    assert x.adjoint().is_conj()


def test_parts_of_a_conjugate() -> None:
    x = example()
    y = x.conj()
    assert not y.real.is_neg()
    assert y.imag.is_neg()
    assert y.imag.data_ptr() == x.imag.data_ptr()
    np.testing.assert_array_equal(values(y.imag), conjugate().imag)
    y.imag.add_(1)
    np.testing.assert_array_equal(values(x), np.array(VALUES) - 1j)
    y.real = 4.0
    np.testing.assert_array_equal(values(x.real), np.full((2, 2), 4.0))


READERS: dict[str, Callable[[Any], Any]] = {
    "product": lambda t: t * t,
    "matmul": lambda t: t @ t,
    "sum": lambda t: t.sum(0),
    "exp": lambda t: t.exp(),
    "cat": lambda t: rgrad.cat([t, t]),
    "index": lambda t: t[[1, 0]],
    "where": lambda t: rgrad.where(rgrad.tensor([True, False]), t, 1 + 1j),
    "clone": lambda t: t.clone(),
    "copy": lambda t: rgrad.zeros(2, 2, dtype=rgrad.complex128).copy_(t),
    "fft": lambda t: rgrad.fft.fft(t),
    "einsum": lambda t: rgrad.einsum("ij,kj->ik", t, t),
    "to": lambda t: t.to(rgrad.complex64),
    "vdot": lambda t: rgrad.vdot(t[0], t[1]),
    "tensor": lambda t: rgrad.tensor(t),
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("bits", ["conj", "neg", "both"])
def test_operations_read_computed_elements(name: str, bits: str) -> None:
    x = example()
    lazy = {"conj": x.conj(), "neg": x._neg_view(), "both": x.conj()._neg_view()}[bits]
    plain = {"conj": x.conj_physical(), "neg": x.neg(), "both": x.conj_physical().neg()}[bits]
    assert_close(READERS[name](lazy), READERS[name](plain), rtol=0, atol=0)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "t": lambda t: t.t(),
    "select": lambda t: t[1],
    "slice": lambda t: t[:, 1:],
    "reshape": lambda t: t.reshape(-1),
    "expand": lambda t: t[0].expand(3, 2),
    "diagonal": lambda t: t.diagonal(),
    "as_strided": lambda t: t.as_strided((2,), (2,), 1),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "contiguous": lambda t: t.contiguous(),
    "unbind": lambda t: t.unbind(1)[1],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_a_conjugate_are_conjugates(name: str) -> None:
    x = example()
    y = VIEWS[name](x.conj())
    assert y.is_conj()
    np.testing.assert_array_equal(values(y), np.conj(values(VIEWS[name](x))))


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda t, o: t.mul_(2j),
    "add_": lambda t, o: t.add_(o),
    "copy_": lambda t, o: t.copy_(o),
    "fill_": lambda t, o: t.fill_(1 + 3j),
    "zero_": lambda t, o: t.zero_(),
    "part": lambda t, o: t[0].mul_(1j),
    "setitem": lambda t, o: t.__setitem__((slice(None), 1), o[:, 0]),
    "index_put_": lambda t, o: t.index_put_((rgrad.tensor([0]),), o[:1]),
    "masked_fill_": lambda t, o: t.masked_fill_(rgrad.tensor([[True, False], [False, True]]), 5j),
    "out": lambda t, o: rgrad.mul(o, 2j, out=t),
    "out of matmul": lambda t, o: rgrad.matmul(o, o, out=t),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_go_through_to_the_memory(name: str) -> None:
    """What is written to a lazy conjugate is what is read from it, and its base has the conjugate."""
    x, other = example(), rgrad.tensor([[2 - 1j, 1j], [1 + 1j, 3 + 2j]], dtype=rgrad.complex128)
    y, plain = x.conj(), example().conj_physical()
    before = x._version
    WRITES[name](y, other)
    WRITES[name](plain, other)
    assert y.is_conj()
    assert x._version == before + 1
    np.testing.assert_array_equal(values(y), values(plain))
    np.testing.assert_array_equal(values(x), np.conj(values(plain)))


def test_writes_to_itself() -> None:
    x = example()
    x.copy_(x.conj())
    np.testing.assert_array_equal(values(x), conjugate())
    y = example()
    y.conj().add_(y)
    np.testing.assert_array_equal(values(y), 2 * np.array(VALUES).real)


def test_writes_to_the_base_are_seen() -> None:
    x = example()
    y = x.conj()
    x[0, 0] = 5 + 5j
    assert y[0, 0].item() == 5 - 5j


def large() -> Any:
    g = np.random.default_rng(0)
    return g.standard_normal((300, 300)) + 1j * g.standard_normal((300, 300))


def test_large_tensors_with_pending_results() -> None:
    given = large()
    x = rgrad.tensor(given)
    y = (x * 2).conj()
    z = y + x
    y.mul_(3)
    np.testing.assert_allclose(values(z), 2 * given.conj() + given)
    np.testing.assert_allclose(values(y), 6 * given.conj())
    np.testing.assert_allclose(values(y._base), 6 * given)


def gradients(function: Callable[[Any], Any], order: int = 2) -> list[np.ndarray]:
    """Gradients of both orders."""
    x = example(requires_grad=True)
    made = [function(x)]
    for _ in range(order):
        weight = made[-1].detach().abs() + 1
        made.append(rgrad.autograd.grad((made[-1] * weight * (1 + 2j)).abs().sum(), x, create_graph=True)[0])
    return [values(m) for m in made]


FUNCTIONS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "square": lambda x, conj: conj(x) * conj(x) * x,
    "matmul": lambda x, conj: conj(x) @ x @ conj(x),
    "imaginary part": lambda x, conj: conj(x * x).imag * x,
    "real part": lambda x, conj: conj(x * x).real * x,
    "view": lambda x, conj: conj(x)[0] * x,
    "write": lambda x, conj: conj(x * x).mul_(x) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_computed_conjugates(name: str) -> None:
    function = FUNCTIONS[name]
    for lazy, computed in zip(
        gradients(lambda x: function(x, rgrad.conj)),
        gradients(lambda x: function(x, rgrad.conj_physical)),
        strict=True,
    ):
        np.testing.assert_allclose(lazy, computed, rtol=1e-12)


def test_a_recorded_write_through_a_conjugate() -> None:
    """The base's gradient goes through the conjugation of what was written."""
    x = example(requires_grad=True)
    base = x * 1
    base.conj().mul_(2 + 1j)
    assert base.grad_fn is not None
    assert base.grad_fn.name() == "CopySlices"
    base.backward(rgrad.ones_like(base))
    # The base is now x times the conjugate of the factor.
    np.testing.assert_allclose(values(x.grad), np.full((2, 2), 2 + 1j))


def test_nodes_have_pytorchs_names() -> None:
    x = example(requires_grad=True)
    assert x.conj().grad_fn.name() == "ConjBackward0"
    assert x._neg_view().grad_fn.name() == "NegViewBackward0"
    assert x.conj().imag.grad_fn.name() == "SelectBackward0"


def test_a_changed_conjugate_is_noticed() -> None:
    x = example(requires_grad=True)
    base = x * 1
    square = base.conj().square()
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().abs().backward()


def test_transforms() -> None:
    x = example()
    for f in (lambda a: a.conj() * a, lambda a: a.conj().imag * 2):
        assert_close(rgrad.func.vmap(f)(x), rgrad.stack([f(a) for a in x]))
        assert_close(rgrad.func.vmap(lambda a: a * 2)(x.conj()), x.conj() * 2)
        value, tangent = rgrad.func.jvp(f, (x,), (x * 1j,))
        other, numeric = f(x), (f(x + 1e-6j * x) - f(x - 1e-6j * x)) / 2e-6
        assert_close(value, other)
        assert_close(tangent, numeric, rtol=1e-6, atol=1e-6)
    assert rgrad.func.vmap(lambda a: a.conj())(x).is_conj()
    conjugated = rgrad.func.grad(lambda a: (a.conj() * a * a).abs().sum())(x)
    assert_close(conjugated, rgrad.func.grad(lambda a: (a.conj_physical() * a * a).abs().sum())(x))


def test_resolve() -> None:
    x = example()
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    y = x.conj()
    assert y.resolve_neg() is y
    assert not y.resolve_conj().is_conj()
    both = x.conj()._neg_view()
    assert (both.resolve_conj().is_conj(), both.resolve_conj().is_neg()) == (False, False)
    np.testing.assert_array_equal(values(both), -conjugate())
    assert rgrad.tensor([1, -2])._neg_view().tolist() == [-1, 2]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "view_as_real": (rgrad.view_as_real, "view_as_real doesn't work on unresolved conjugated tensors"),
    "numpy": (lambda t: t.numpy(), "Can't call numpy.. on Tensor that has conjugate bit set. Use tensor.resolve_conj"),
    "asarray": (np.asarray, "conjugate bit set"),
    "numpy of a negative": (lambda t: t.imag.numpy(), "negative bit set. Use tensor.resolve_neg"),
    "view": (lambda t: t.view(rgrad.float64), "not supported for conjugate view tensors"),
    "view of a negative": (lambda t: t.imag.view(rgrad.int64), "not supported for tensors with negative bit set"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_looks_at_memory_is_refused(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(RuntimeError, match=words):
        function(example().conj())


@pytest.mark.parametrize(("name", "word"), [("conj", "conjugate"), ("_neg_view", "negative")])
def test_dlpack_is_refused(name: str, word: str) -> None:
    with pytest.raises(BufferError, match=f"Can't export tensors with the {word} bit set"):
        getattr(example(), name)().__dlpack__()


@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.int32])
def test_negatives_on_every_device(device: str, dtype: rgrad.dtype) -> None:
    x = rgrad.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype).to(device)
    y = x._neg_view().t()
    assert (y * 2).tolist() == [[-2, -8], [-4, -10], [-6, -12]]
    y[0] = 7
    y.add_(1)
    assert x.tolist() == [[-8, 1, 2], [-8, 4, 5]]
    assert y.is_neg()


def test_truth_values_have_no_negative() -> None:
    with pytest.raises(NotImplementedError, match="neg_cpu"):
        rgrad.tensor([True])._neg_view().tolist()


def lazy_ones() -> list[rgrad.Tensor]:
    x = example()
    return [x, x.conj(), x.conj().t()[1:], x.conj().imag, x.conj()._neg_view()]


def bits(t: rgrad.Tensor) -> tuple[bool, bool]:
    return t.is_conj(), t.is_neg()


@pytest.mark.parametrize("place", range(5))
def test_pickles_and_copies(place: int) -> None:
    x = lazy_ones()[place]
    there = pickle.loads(pickle.dumps(x))
    assert bits(there) == bits(x)
    np.testing.assert_array_equal(values(there), values(x))
    deep = copy.deepcopy(x)
    # As in PyTorch, a deep copy is computed.
    assert bits(deep) == (False, False)
    np.testing.assert_array_equal(values(deep), values(x))
    assert bits(copy.copy(x)) == bits(x)


def test_files_keep_what_is_lazy(tmp_path: Path) -> None:
    given = lazy_ones()
    rgrad.save(given, tmp_path / "lazy.rgrad")
    there = rgrad.load(tmp_path / "lazy.rgrad")
    for a, b in zip(given, there, strict=True):
        assert bits(a) == bits(b)
        np.testing.assert_array_equal(values(a), values(b))
    there[0][0, 0] = 9 + 9j
    assert there[1][0, 0].item() == 9 - 9j


def test_shared_memory_keeps_what_is_lazy() -> None:
    x = example()
    y = x.conj().share_memory_()
    assert y.is_conj()
    assert y.is_shared()
    np.testing.assert_array_equal(values(y), conjugate())


def test_a_tensor_takes_the_memory_of_a_conjugate() -> None:
    x, y = example(), example()
    x.data = y.conj()
    assert x.is_conj()
    assert x.data_ptr() == y.data_ptr()
    z = example()
    z.set_(y.conj())
    assert not z.is_conj()
    assert z.tolist() == y.tolist()


def test_gradients_may_be_lazy() -> None:
    x = example(requires_grad=True)
    (x.conj() * 2j).sum().abs().backward()
    assert x.grad.is_conj()
    first = values(x.grad)
    (x.conj() * 2j).sum().abs().backward()
    np.testing.assert_allclose(values(x.grad), 2 * first)
    y = example(requires_grad=True)
    optimizer = rgrad.optim.Adam([y], lr=0.1)
    (y.conj() * 2j).sum().abs().backward()
    optimizer.step()
    assert not np.array_equal(values(y), np.array(VALUES))
