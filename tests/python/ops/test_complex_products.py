"""Products of matrices and convolutions of complex numbers: values beside NumPy's, derivatives, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from complex_pairs import conjugate_gradient, derivatives_hold, numbers

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = {
    "mm": (rgrad.mm, np.matmul, [numbers(2, 3), numbers(3, 4)]),
    "mm transposed": (lambda x, y: x.T @ y.T, lambda a, b: a.T @ b.T, [numbers(3, 2), numbers(4, 3)]),
    "adjoint": (lambda x, y: x.mH @ y, lambda a, b: a.conj().T @ b, [numbers(3, 2), numbers(3, 4)]),
    "mv": (rgrad.mv, np.matmul, [numbers(2, 3), numbers(3)]),
    "bmm": (rgrad.bmm, np.matmul, [numbers(2, 2, 3), numbers(2, 3, 2)]),
    "matmul": (rgrad.matmul, np.matmul, [numbers(2, 1, 2, 3), numbers(2, 3, 2)]),
    "vector": (rgrad.matmul, np.matmul, [numbers(3), numbers(2, 3, 2)]),
    "dot": (rgrad.dot, np.dot, [numbers(4), numbers(4, seed=1)]),
    "vdot": (rgrad.vdot, np.vdot, [numbers(4), numbers(4, seed=1)]),
    "inner": (rgrad.inner, np.inner, [numbers(2, 3), numbers(4, 3)]),
    "outer": (rgrad.outer, np.outer, [numbers(2), numbers(3)]),
    "kron": (rgrad.kron, np.kron, [numbers(2, 2), numbers(1, 3)]),
    "addmm": (
        lambda c, x, y: rgrad.addmm(c, x, y, beta=0.5 - 1j, alpha=2j),
        lambda c, a, b: (0.5 - 1j) * c + 2j * (a @ b),
        [numbers(2), numbers(3, 2), numbers(2, 2)],
    ),
    "addmv": (
        lambda c, x, y: rgrad.addmv(c, x, y, alpha=1 + 1j),
        lambda c, a, b: c + (1 + 1j) * (a @ b),
        [numbers(3), numbers(3, 2), numbers(2)],
    ),
    "addr": (
        lambda c, x, y: rgrad.addr(c, x, y, beta=2j),
        lambda c, a, b: 2j * c + np.outer(a, b),
        [numbers(2, 3), numbers(2), numbers(3)],
    ),
    "baddbmm": (
        lambda c, x, y: rgrad.baddbmm(c, x, y, beta=1j),
        lambda c, a, b: 1j * c + a @ b,
        [numbers(2, 2, 2), numbers(2, 2, 3), numbers(2, 3, 2)],
    ),
    "addbmm": (rgrad.addbmm, lambda c, a, b: c + (a @ b).sum(0), [numbers(2, 2), numbers(2, 2, 3), numbers(2, 3, 2)]),
    "einsum": (
        lambda x, y: rgrad.einsum("bij,bkj->ik", x, y),
        lambda a, b: np.einsum("bij,bkj->ik", a, b),
        [numbers(2, 2, 3), numbers(2, 4, 3)],
    ),
    "tensordot": (
        lambda x, y: rgrad.tensordot(x, y, ([0, 2], [1, 0])),
        lambda a, b: np.tensordot(a, b, ([0, 2], [1, 0])),
        [numbers(2, 2, 3), numbers(3, 2, 2)],
    ),
    "multi_dot": (
        lambda x, y, z: rgrad.linalg.multi_dot([x, y, z]),
        lambda a, b, c: a @ b @ c,
        [numbers(2, 3), numbers(3, 2), numbers(2, 2)],
    ),
    "linear": (F.linear, lambda a, w, b: a @ w.T + b, [numbers(2, 3), numbers(4, 3), numbers(4)]),
    "bilinear": (
        F.bilinear,
        lambda a, b, w: np.einsum("ni,oij,nj->no", a, w, b),
        [numbers(2, 2), numbers(2, 3), numbers(2, 2, 3)],
    ),
    "matrix_power": (lambda x: rgrad.matrix_power(x, 3), lambda a: a @ a @ a, [numbers(2, 2)]),
    "cross": (rgrad.linalg.cross, np.cross, [numbers(2, 3), numbers(2, 3, seed=1)]),
    "vecdot": (rgrad.linalg.vecdot, lambda a, b: (a.conj() * b).sum(-1), [numbers(2, 3), numbers(2, 3, seed=1)]),
}


def values_hold(name: str) -> None:
    ours, theirs, given = CASES[name]
    for kind, tolerance in (("complex128", 1e-12), ("complex64", 1e-5)):
        made = ours(*(rgrad.tensor(a.astype(kind)) for a in given))
        wanted = theirs(*given)
        assert str(made.dtype) == f"rgrad.{kind}"
        assert tuple(made.shape) == wanted.shape
        np.testing.assert_allclose(made.numpy(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    values_hold(name)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    function, _, given = CASES[name]
    derivatives_hold(function, given)
    conjugate_gradient(function, given)


@pytest.mark.parametrize("shape", [(1, 300, 70), (300, 1, 70), (3, 65, 129), (5, 7, 1), (64, 33, 100), (130, 140, 300)])
def test_sizes(shape: tuple[int, int, int]) -> None:
    """Every algorithm, for factors in either order of their memory."""
    m, n, k = shape
    a, b = numbers(m, k), numbers(k, n, seed=1)
    for kind, tolerance in (("complex128", 1e-11), ("complex64", 1e-4)):
        lefts = [rgrad.tensor(a.astype(kind)), rgrad.tensor(np.ascontiguousarray(a.T).astype(kind)).T]
        rights = [rgrad.tensor(b.astype(kind)), rgrad.tensor(np.ascontiguousarray(b.T).astype(kind)).T]
        for x in lefts:
            for y in rights:
                np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=tolerance, atol=tolerance * k**0.5)


def convolved(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A convolution over one dimension, of one group."""
    n = a.shape[2] - w.shape[2] + 1
    windows = np.stack([a[:, :, i : i + w.shape[2]] for i in range(n)], 2)
    return np.asarray(np.einsum("ncik,ock->noi", windows, w))


def test_a_convolution_is_the_sum_of_products() -> None:
    a, w, b = numbers(2, 3, 6), numbers(4, 3, 2), numbers(4)
    made = F.conv1d(rgrad.tensor(a), rgrad.tensor(w), rgrad.tensor(b))
    np.testing.assert_allclose(made.numpy(), convolved(a, w) + b[:, None], rtol=1e-12)
    transposed = F.conv_transpose1d(rgrad.tensor(numbers(2, 4, 5)), rgrad.tensor(w))
    # The adjoint of the convolution without conjugates.
    left = (transposed.numpy() * a).sum()
    right = (numbers(2, 4, 5) * convolved(a, w)).sum()
    np.testing.assert_allclose(left, right, rtol=1e-12)


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "conv1d": (
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
        [numbers(1, 2, 5), numbers(2, 2, 3), numbers(2)],
    ),
    "groups": (lambda x, w, b: F.conv1d(x, w, b, groups=2), [numbers(1, 4, 4), numbers(2, 2, 2), numbers(2)]),
    "same": (lambda x, w: F.conv1d(x, w, padding="same", dilation=2), [numbers(1, 2, 5), numbers(1, 2, 2)]),
    "conv2d": (lambda x, w: F.conv2d(x, w, dilation=2), [numbers(1, 1, 4, 4), numbers(2, 1, 2, 2)]),
    "conv3d": (F.conv3d, [numbers(1, 1, 2, 3, 2), numbers(1, 1, 2, 2, 1)]),
    "unbatched": (F.conv1d, [numbers(2, 4), numbers(3, 2, 2)]),
    "transposed": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, output_padding=1),
        [numbers(1, 2, 3), numbers(2, 2, 2), numbers(2)],
    ),
    "transposed in groups": (
        lambda x, w: F.conv_transpose2d(x, w, groups=2),
        [numbers(1, 2, 2, 2), numbers(2, 2, 2, 2)],
    ),
    "unfold": (lambda x: F.unfold(x, (2, 2)), [numbers(1, 1, 3, 3)]),
    "fold": (lambda x: F.fold(x, (3, 3), (2, 2)), [numbers(1, 4, 4)]),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_derivatives_of_convolutions(name: str) -> None:
    function, given = CONVOLUTIONS[name]
    derivatives_hold(function, given)
    conjugate_gradient(function, given)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_are_those_of_real_and_imaginary_parts(groups: int) -> None:
    x, w = rgrad.tensor(numbers(2, 4, 5, 5)), rgrad.tensor(numbers(6, 4 // groups, 3, 3))
    made = F.conv2d(x, w, padding=1, groups=groups)

    def real(a: Any, b: Any) -> np.ndarray:
        return np.asarray(F.conv2d(a.contiguous(), b.contiguous(), padding=1, groups=groups).numpy())

    wanted = real(x.real, w.real) - real(x.imag, w.imag) + 1j * (real(x.real, w.imag) + real(x.imag, w.real))
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-12, atol=1e-12)


def matrix(kind: str, *shape: int) -> Any:
    return (
        rgrad.tensor(numbers(*shape)).to(getattr(rgrad, kind))
        if kind != "float64"
        else rgrad.ones(shape, dtype=rgrad.float64)
    )


MIXED: dict[str, tuple[Callable[[], Any], str]] = {
    "mm": (
        lambda: rgrad.mm(matrix("complex128", 2, 2), matrix("float64", 2, 2)),
        "expected m1 and m2 to have the same dtype",
    ),
    "of two sizes": (
        lambda: rgrad.mm(matrix("complex128", 2, 2), matrix("complex64", 2, 2)),
        "expected m1 and m2 to have",
    ),
    "bmm": (
        lambda: rgrad.bmm(matrix("complex128", 1, 2, 2), matrix("float64", 1, 2, 2)),
        "expected scalar type ComplexDouble",
    ),
    "mv": (lambda: rgrad.mv(matrix("float64", 2, 2), matrix("complex128", 2)), "same dtype"),
    "dot": (
        lambda: rgrad.dot(matrix("float64", 2), matrix("complex128", 2)),
        "expected both vectors to have same dtype",
    ),
    "vdot": (
        lambda: rgrad.vdot(matrix("complex128", 2), matrix("float64", 2)),
        "expected both vectors to have same dtype",
    ),
    "tensordot": (lambda: rgrad.tensordot(matrix("complex128", 2, 2), matrix("float64", 2, 2), 1), "same dtype"),
    "addmm": (
        lambda: rgrad.addmm(matrix("float64", 2, 2), matrix("complex128", 2, 2), matrix("complex128", 2, 2)),
        "same dtype",
    ),
    "factor": (
        lambda: rgrad.addmm(*(matrix("float64", 2, 2) for _ in range(3)), alpha=2j),
        "cannot be converted",
    ),
    "conv": (lambda: F.conv1d(matrix("complex128", 1, 2, 3), matrix("float64", 1, 2, 2)), "should be the same"),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes_are_refused(name: str) -> None:
    function, words = MIXED[name]
    with pytest.raises(RuntimeError, match=words):
        function()
