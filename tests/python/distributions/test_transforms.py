"""Transforms of distributions: inverses, determinants against numeric ones, shapes, caches, gradients, texts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rgrad
from rgrad import Tensor
from rgrad.distributions import constraints
from rgrad.distributions import transforms as T
from rgrad.distributions.utils import tril_matrix_to_vec

RNG = np.random.default_rng(0)


def real(*shape: int) -> Tensor:
    return rgrad.tensor(RNG.normal(size=shape))


def given(*values: Any) -> Tensor:
    return rgrad.tensor(values, dtype=rgrad.float64)


def number(value: float) -> Tensor:
    return rgrad.tensor(value, dtype=rgrad.float64)


class Case(NamedTuple):
    """A transform with inputs, and what takes the elements of an output that determine it."""

    make: Callable[[], T.Transform]
    x: Tensor
    flat: Callable[[Tensor], Tensor] = lambda y: y


def strictly_lower(y: Tensor) -> Tensor:
    return tril_matrix_to_vec(y, -1)


CASES = {
    "abs": Case(T.AbsTransform, given(0.5, -1.0)),
    "affine": Case(lambda: T.AffineTransform(1.0, -2.0), real(3)),
    "affine of zero": Case(lambda: T.AffineTransform(given(1.0, 2.0), given(0.5, 3.0)), real(4, 2)),
    "affine of one": Case(lambda: T.AffineTransform(1.0, given(0.5, -3.0), event_dim=1), real(4, 2)),
    "affine with one factor": Case(lambda: T.AffineTransform(1.0, number(3.0), 1), real(4, 2)),
    "affine of two": Case(lambda: T.AffineTransform(1.0, -2.0, event_dim=2), real(2, 3, 2)),
    "cat": Case(lambda: T.CatTransform([T.ExpTransform(), T.AffineTransform(0.0, 3.0)], 0, [1, 2]), real(3, 2)),
    "cat of vectors": Case(
        lambda: T.CatTransform([T.AffineTransform(0.0, 2.0, 1), T.AffineTransform(1.0, 3.0, 1)], -1, [1, 2]), real(2, 3)
    ),
    "stack": Case(lambda: T.StackTransform([T.ExpTransform(), T.TanhTransform()]), real(2, 3)),
    "stack of vectors": Case(
        lambda: T.StackTransform([T.AffineTransform(0.0, 2.0, 1), T.AffineTransform(1.0, 3.0, 1)]), real(2, 3)
    ),
    "identity": Case(lambda: T.identity_transform, real(3)),
    "compose": Case(
        lambda: T.ComposeTransform([T.AffineTransform(1.0, 0.3), T.ExpTransform(), T.PowerTransform(number(0.7))]),
        real(3),
    ),
    "compose of events": Case(
        lambda: T.ComposeTransform(
            [T.TanhTransform(), T.AffineTransform(1.0, 0.3, 1), T.ReshapeTransform((4,), (2, 2))]
        ),
        real(3, 4),
    ),
    "compose of simplices": Case(
        lambda: T.ComposeTransform([T.TanhTransform(), T.StickBreakingTransform()]), real(2, 3), lambda y: y[..., :-1]
    ),
    "corr_cholesky": Case(T.CorrCholeskyTransform, real(2, 6), strictly_lower),
    "corr_cholesky of two": Case(T.CorrCholeskyTransform, real(1), strictly_lower),
    "cdf": Case(lambda: T.CumulativeDistributionTransform(rgrad.distributions.Normal(number(0.5), 2.0)), real(3)),
    "exp": Case(T.ExpTransform, real(3)),
    "independent": Case(lambda: T.IndependentTransform(T.ExpTransform(), 2), real(2, 2, 3)),
    "inverse": Case(lambda: T.SigmoidTransform().inv, given(0.2, 0.9)),
    "inverse of composed": Case(
        lambda: T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)]).inv, given(2.0, 5.0)
    ),
    "lower_cholesky": Case(T.LowerCholeskyTransform, real(2, 3, 3).tril()),
    "positive_definite": Case(T.PositiveDefiniteTransform, real(2, 3, 3).tril()),
    "power": Case(lambda: T.PowerTransform(given(2.0, -0.5)), given([0.5, 1.0], [2.0, 3.0])),
    "reshape": Case(lambda: T.ReshapeTransform((2, 3), (6,)), real(4, 2, 3)),
    "sigmoid": Case(T.SigmoidTransform, real(3)),
    "softmax": Case(T.SoftmaxTransform, real(2, 3).log_softmax(-1)),
    "softplus": Case(T.SoftplusTransform, real(3)),
    "stick_breaking": Case(T.StickBreakingTransform, real(2, 4), lambda y: y[..., :-1]),
    "tanh": Case(T.TanhTransform, real(3)),
}  # fmt: skip
BIJECTIVE = [name for name, case in CASES.items() if case.make().bijective]


def test_all_transforms_are_here() -> None:
    def kinds(t: Any) -> set[type]:
        parts = [t.inv, *getattr(t, "parts", ()), *getattr(t, "transforms", ())]
        return {type(t)} | {type(p) for p in parts}

    found = set[type]().union(*(kinds(case.make()) for case in CASES.values()))
    listed = {getattr(T, name) for name in T.__all__ if isinstance(getattr(T, name), type)}
    assert listed - {T.Transform} <= found


@pytest.mark.parametrize("name", CASES)
def test_inverse(name: str) -> None:
    make, x, _ = CASES[name]
    t = make()
    y = t(x)
    assert t.codomain.check(y).all()
    assert t.domain.check(x).all()
    back = t.inv(y)
    assert y.shape == t.forward_shape(x.shape) == t.inv.inverse_shape(x.shape)
    assert back.shape == t.inverse_shape(y.shape) == t.inv.forward_shape(y.shape)
    np.testing.assert_allclose(t(back).numpy(), y.numpy(), rtol=1e-9, atol=1e-12)
    if t.bijective or "cholesky" in name or "definite" in name or name == "softmax":
        np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-9, atol=1e-12)
    assert t.inv.inv is t
    assert t.inv.bijective == t.bijective
    assert t.inv.domain.event_dim == t.codomain.event_dim
    assert t.inv.codomain.event_dim == t.domain.event_dim


@pytest.mark.parametrize("name", BIJECTIVE)
def test_determinant(name: str) -> None:
    """Central differences of each value's elements that determine it."""
    make, x, flat = CASES[name]
    t = make()
    y = t(x)
    dims = t.domain.event_dim
    batch = x.shape[: x.dim() - dims]
    made = t.log_abs_det_jacobian(x, y)
    if "affine of zero" not in name and "power" not in name:
        assert made.shape == batch
    values, n = x.reshape(*batch, -1), x[(0,) * len(batch)].numel()
    eps, columns = 1e-6, []
    for k in range(n):
        step = rgrad.zeros(n, dtype=rgrad.float64)
        step[k] = eps
        ends = [flat(t((values + sign * step).reshape(x.shape))) for sign in (1, -1)]
        columns.append(((ends[0] - ends[1]) / (2 * eps)).reshape(*batch, -1).numpy())
    numeric = np.linalg.slogdet(np.stack(columns, -1))[1]
    np.testing.assert_allclose(made.expand(batch).numpy(), numeric, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(t.inv.log_abs_det_jacobian(y, x).numpy(), -made.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    make, x, _ = CASES[name]
    t = make()
    x = x.clone().requires_grad_()
    inside: Callable[[Tensor], Tensor] = (lambda v: v.tril()) if "lower" in name or "definite" in name else lambda v: v
    if name == "reshape" or name == "identity":
        assert rgrad.autograd.gradcheck(t, x)
    else:
        assert rgrad.autograd.gradcheck(lambda v: t(inside(v)), x)
        assert rgrad.autograd.gradgradcheck(lambda v: t(inside(v)), x)
    if t.bijective and name not in ("reshape", "identity") and "affine" not in name and name != "stack of vectors":
        if name != "cat of vectors":
            assert rgrad.autograd.gradcheck(lambda v: t.log_abs_det_jacobian(v, t(v)), x)
            assert rgrad.autograd.gradgradcheck(lambda v: t.log_abs_det_jacobian(v, t(v)), x)


@pytest.mark.parametrize("name", ["affine of one", "power", "cdf"])
def test_gradients_of_parameters(name: str) -> None:
    make = {
        "affine of one": lambda a, b: T.AffineTransform(a, b, 1),
        "power": lambda a, b: T.PowerTransform(a * b),
        "cdf": lambda a, b: T.CumulativeDistributionTransform(rgrad.distributions.Normal(a, b)),
    }[name]
    x = given([0.4, 1.5], [2.0, 0.3])

    def f(a: Tensor, b: Tensor) -> Tensor:
        t = make(a, b)
        y = t(x)
        return y.sum() + t.log_abs_det_jacobian(x, y).sum() + t.inv(given([0.2, 0.5], [0.6, 0.9])).sum()

    a, b = given(0.4, 1.2).requires_grad_(), given(1.5, 0.8).requires_grad_()
    assert rgrad.autograd.gradcheck(f, (a, b))
    assert rgrad.autograd.gradgradcheck(f, (a, b))


@pytest.mark.parametrize("name", CASES)
def test_cache(name: str) -> None:
    make, x, _ = CASES[name]
    t = make()
    assert t.with_cache(0) is t
    cached = t.with_cache()
    assert type(cached) is type(t)
    assert cached._cache_size == 1
    assert cached.with_cache(1) is cached
    y = cached(x)
    if name == "identity" or isinstance(cached, (T.CatTransform, T.StackTransform)):
        return  # the parts are where it is, and each call gives them other slices
    assert cached.inv(y) is x
    assert cached(x) is y
    assert cached(x.clone()) is not y
    assert t(x) is not t(x)
    np.testing.assert_array_equal(t(x).numpy(), y.numpy())


@pytest.mark.parametrize("name", CASES)
def test_copies_and_equality(name: str) -> None:
    make, x, _ = CASES[name]
    t = make().with_cache()
    y = t(x)
    for made in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert repr(made) == repr(t)
        np.testing.assert_array_equal(made(x).numpy(), y.numpy())
        np.testing.assert_array_equal(made.inv(y.clone()).numpy(), t.inv(y.clone()).numpy())
    assert t == t
    assert t != 3
    # These have none of their own.
    by_identity = ("cdf", "corr", "independent", "reshape", "cat", "stack", "compose of events")
    assert (t == make().with_cache()) is not name.startswith(by_identity)
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)


def test_what_differs_is_not_equal() -> None:
    made = [
        T.ExpTransform(),
        T.TanhTransform(),
        T.PowerTransform(2.0),
        T.PowerTransform(3.0),
        T.AffineTransform(0.0, 1.0),
        T.AffineTransform(0.0, given(1.0, 2.0)),
        T.ExpTransform().inv,
        T.ComposeTransform([T.ExpTransform()]),
        T.SoftmaxTransform(),
    ]
    for i, a in enumerate(made):
        assert [a == b for b in made] == [i == k for k in range(len(made))]

    class Other(T.ExpTransform):
        pass

    assert Other() == T.ExpTransform()
    assert T.ExpTransform() == Other()


SIGNS = {
    "affine": -1, "inverse": 1, "exp": 1, "sigmoid": 1, "tanh": 1, "softplus": 1, "cdf": 1, "identity": 1,
    "compose": 1, "independent": 1, "inverse of composed": 1,
}  # fmt: skip


def test_signs() -> None:
    for name, sign in SIGNS.items():
        t = CASES[name].make()
        assert t.sign == t.inv.sign == sign
    assert CASES["power"].make().sign.tolist() == [1.0, -1.0]
    assert CASES["affine of one"].make().sign.tolist() == [1.0, -1.0]
    assert T.ComposeTransform([T.AffineTransform(0, -1), T.AffineTransform(0, -1), T.AffineTransform(0, -3)]).sign == -1
    assert T.AffineTransform(0, 0).sign == 0
    for t in (T.AbsTransform(), T.SoftmaxTransform()):
        with pytest.raises(NotImplementedError):
            _ = t.sign


def test_far_out() -> None:
    """Where a formula by itself would be infinite or nan."""
    x = given(-800.0, -40.0, 40.0, 800.0)
    sigmoid, tanh = T.SigmoidTransform(), T.TanhTransform()
    np.testing.assert_allclose(sigmoid.log_abs_det_jacobian(x, sigmoid(x)).numpy(), -x.abs().numpy(), rtol=1e-12)
    wanted = 2 * np.log(2) - 2 * x.abs().numpy()
    np.testing.assert_allclose(tanh.log_abs_det_jacobian(x, tanh(x)).numpy(), wanted, rtol=1e-12)
    y = T.StickBreakingTransform()(given([100.0, -100.0], [-800.0, 800.0]))
    assert T.StickBreakingTransform().inv(y).isfinite().all()
    factor = T.CorrCholeskyTransform()(given(30.0, -30.0, 30.0))
    assert constraints.corr_cholesky.check(factor)
    assert (T.CorrCholeskyTransform().inv(factor).isfinite()).all()


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "cache": (lambda: T.ExpTransform(cache_size=2), ValueError, "cache_size must be 0 or 1, got 2"),
    "reshape": (lambda: T.ReshapeTransform((2,), (3,)), ValueError, "different numbers of elements"),
    "reshape of others": (
        lambda: T.ReshapeTransform((2,), (1, 2)).forward_shape((4, 3)),
        ValueError,
        r"Shape mismatch: expected .*\[2\]\) but got \(3,\)",
    ),
    "few": (lambda: T.ReshapeTransform((2, 1), (2,)).forward_shape((2,)), ValueError, "Too few dimensions on input"),
    "few for independent": (
        lambda: T.IndependentTransform(T.ExpTransform(), 1)(rgrad.tensor(1.0)),
        ValueError,
        "Too few dimensions on input",
    ),
    "no triangle": (lambda: T.CorrCholeskyTransform().forward_shape((5,)), ValueError, "flattened lower-diagonal"),
    "not square": (lambda: T.CorrCholeskyTransform().inverse_shape((2, 3)), ValueError, "Input is not square"),
    "scalar": (lambda: T.StickBreakingTransform().forward_shape(()), ValueError, "Too few dimensions on input"),
    "parts": (lambda: T.CatTransform([T.ExpTransform(), 1]), AssertionError, "must be Transform"),  # type: ignore[list-item]
    "lengths": (lambda: T.CatTransform([T.ExpTransform()], lengths=[1, 2]), AssertionError, "must match"),
    "length": (lambda: T.CatTransform([T.ExpTransform()])(rgrad.ones(2)), AssertionError, "must equal"),
    "dim": (lambda: T.StackTransform([T.ExpTransform()], 1)(rgrad.ones(1)), AssertionError, "out of range"),
    "event_dim": (lambda: T.ReshapeTransform((2,), (2, 1)).event_dim, ValueError, "domain.event_dim or .codomain"),
    "determinant": (
        lambda: T.SoftmaxTransform().log_abs_det_jacobian(rgrad.ones(2), rgrad.ones(2)),
        NotImplementedError,
        "^$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        make()


def test_own_transforms() -> None:
    class Cube(T.Transform):
        domain = codomain = constraints.real
        bijective = True

        def _call(self, x: Tensor) -> Tensor:
            return x**3

        def _inverse(self, y: Tensor) -> Tensor:
            return y.sign() * y.abs() ** (1 / 3)

        def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
            return (3 * x * x).log()

    class Scaled(Cube):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

    assert type(Cube().with_cache()) is Cube
    with pytest.raises(NotImplementedError, match="with_cache is not implemented"):
        Scaled(2.0).with_cache()
    d = rgrad.distributions.TransformedDistribution(rgrad.distributions.Normal(0.0, 1.0), [Cube()])
    x = rgrad.linspace(-30, 30, 20001, dtype=rgrad.float64)
    density = d.log_prob(x[x != 0]).exp()
    inner = rgrad.distributions.Normal(0.0, 1.0)
    wanted = inner.cdf(x.new_tensor(3.0)) - inner.cdf(x.new_tensor(1.0))
    kept = (x[x != 0] >= 1) & (x[x != 0] <= 27)
    assert abs(rgrad.trapezoid(density[kept], x[x != 0][kept]) - wanted) < 1e-2


@pytest.mark.parametrize("name", ["affine of one", "corr_cholesky", "stick_breaking", "cat", "positive_definite"])
def test_under_vmap(name: str) -> None:
    make, x, _ = CASES[name]
    t = make()
    many = rgrad.stack([x, x + 0.1])
    wanted = rgrad.stack([t(v) for v in many])
    np.testing.assert_allclose(rgrad.func.vmap(t)(many).numpy(), wanted.numpy(), rtol=1e-12)
    back = rgrad.func.vmap(t.inv)(wanted)
    np.testing.assert_allclose(back.numpy(), rgrad.stack([t.inv(v) for v in wanted]).numpy(), rtol=1e-10)
