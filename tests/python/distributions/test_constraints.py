"""Constraints on values inside and outside, transforms to them, and what distributions share."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rgrad
from rgrad import Tensor
from rgrad.distributions import constraints as C
from rgrad.distributions import transforms as T
from rgrad.distributions.constraint_registry import ConstraintRegistry, biject_to, transform_to
from rgrad.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

NAN, INF = float("nan"), float("inf")
ID = [[1.0, 0.0], [0.0, 1.0]]
CORR = [[1.0, 0.0], [0.6, 0.8]]


class Case(NamedTuple):
    """A constraint with its text and values."""

    constraint: C.Constraint
    text: str
    inside: list[Any]
    outside: list[Any]


CASES = {
    "boolean": Case(C.boolean, "Boolean()", [0.0, 1.0], [0.5, -1.0, NAN]),
    "cat": Case(
        C.cat([C.positive, C.real], -1, [1, 2]), "Cat()", [[1.0, -1.0, 0.0]], [[-1.0, 0.0, 0.0], [1.0, NAN, 0.0]]
    ),
    "corr_cholesky": Case(
        C.corr_cholesky, "CorrCholesky()", [ID, CORR], [[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.6], [0.6, 0.8]]]
    ),
    "greater_than": Case(C.greater_than(1.0), "GreaterThan(lower_bound=1.0)", [1.5, INF], [1.0, -INF, NAN]),
    "greater_than_eq": Case(C.greater_than_eq(1), "GreaterThanEq(lower_bound=1)", [1.0, 2.0], [0.5, NAN]),
    "half_open_interval": Case(
        C.half_open_interval(0, 1), "HalfOpenInterval(lower_bound=0, upper_bound=1)", [0.0], [1.0, -0.1]
    ),
    "independent": Case(
        C.independent(C.positive, 1),
        "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)",
        [[1.0, 2.0]],
        [[1.0, 0.0]],
    ),
    "independent of none": Case(
        C.independent(C.simplex, 0), "IndependentConstraint(Simplex(), 0)", [[0.5, 0.5]], [[1.0, 1.0]]
    ),
    "integer_interval": Case(
        C.integer_interval(-1, 2), "IntegerInterval(lower_bound=-1, upper_bound=2)", [-1.0, 2.0], [3.0, 0.5, NAN]
    ),
    "interval": Case(C.interval(-1, 2.5), "Interval(lower_bound=-1, upper_bound=2.5)", [-1.0, 2.5], [2.6, NAN]),
    "less_than": Case(C.less_than(2), "LessThan(upper_bound=2)", [1.9, -INF], [2.0, NAN]),
    "lower_cholesky": Case(
        C.lower_cholesky,
        "LowerCholesky()",
        [[[1.0, 0.0], [-5.0, 2.0]]],
        [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]],
    ),
    "lower_triangular": Case(
        C.lower_triangular, "LowerTriangular()", [[[0.0, 0.0], [3.0, -1.0]]], [[[1.0, 1.0], [0.0, 1.0]]]
    ),
    "mixture": Case(
        C.MixtureSameFamilyConstraint(C.real_vector),
        "MixtureSameFamilyConstraint(IndependentConstraint(Real(), 1))",
        [[1.0, 2.0]],
        [[1.0, NAN]],
    ),
    "multinomial": Case(C.multinomial(3), "Multinomial()", [[1.0, 2.0], [0.0, 0.0]], [[3.0, 1.0], [-1.0, 1.0]]),
    "nonnegative": Case(C.nonnegative, "GreaterThanEq(lower_bound=0.0)", [0.0, 1.0], [-1.0, NAN]),
    "nonnegative_integer": Case(C.nonnegative_integer, "IntegerGreaterThan(lower_bound=0)", [0.0, 7.0], [-1.0, 0.5]),
    "one_hot": Case(C.one_hot, "OneHot()", [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
    "positive": Case(C.positive, "GreaterThan(lower_bound=0.0)", [1e-30], [0.0, NAN]),
    "positive_definite": Case(
        C.positive_definite,
        "PositiveDefinite()",
        [[[2.0, 1.0], [1.0, 2.0]]],
        [[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [2.0, 2.0]]],
    ),
    "positive_integer": Case(C.positive_integer, "IntegerGreaterThan(lower_bound=1)", [1.0], [0.0, 1.5]),
    "positive_semidefinite": Case(
        C.positive_semidefinite,
        "PositiveSemidefinite()",
        [[[0.0, 0.0], [0.0, 2.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[2.0, 0.0], [2.0, 2.0]]],
    ),
    "real": Case(C.real, "Real()", [0.0, INF], [NAN]),
    "real_vector": Case(C.real_vector, "IndependentConstraint(Real(), 1)", [[0.0, INF]], [[0.0, NAN]]),
    "simplex": Case(C.simplex, "Simplex()", [[0.25, 0.75]], [[0.5, 0.6], [-0.5, 1.5]]),
    "square": Case(C.square, "Square()", [ID], [[[1.0, 2.0, 3.0]]]),
    "stack": Case(C.stack([C.positive, C.real]), "Stack()", [[1.0, -1.0]], [[-1.0, 0.0], [1.0, NAN]]),
    "stack of vectors": Case(
        C.stack([C.simplex, C.real_vector]), "Stack()", [[[0.5, 0.5], [3.0, 4.0]]], [[[1.0, 1.0], [3.0, 4.0]]]
    ),
    "symmetric": Case(
        C.symmetric, "Symmetric()", [[[1.0, 2.0], [2.0, 5.0]]], [[[1.0, 2.0], [2.1, 5.0]], [[1.0, 2.0, 3.0]]]
    ),
    "unit_interval": Case(C.unit_interval, "Interval(lower_bound=0.0, upper_bound=1.0)", [0.0, 1.0], [1.1, NAN]),
}
WHOLE = ("cat", "stack", "stack of vectors")  # their checks are of the parts


def test_all_constraints_are_here() -> None:
    found = {type(case.constraint) for case in CASES.values()}
    listed = [getattr(C, name) for name in C.__all__ if name not in ("Constraint", "is_dependent")]
    kinds = {value if isinstance(value, type) else type(value) for value in listed}
    assert kinds - found == {C._Dependent, C._DependentProperty}


@pytest.mark.parametrize("name", CASES)
def test_inside_and_outside(name: str) -> None:
    constraint, text, inside, outside = CASES[name]
    assert repr(constraint) == text
    for values, wanted in ((inside, True), (outside, False)):
        for value in values:
            x = rgrad.tensor(value, dtype=rgrad.float64)
            made = constraint.check(x)
            assert made.dtype == rgrad.bool
            assert bool(made.all()) is wanted, value
            if name not in WHOLE:
                assert made.shape == x.shape[: x.dim() - constraint.event_dim]
                both = constraint.check(rgrad.stack([x, x]))
                assert both.tolist() == [made.tolist()] * 2
    again = pickle.loads(pickle.dumps(constraint))
    assert repr(again) == text
    assert again.event_dim == constraint.event_dim
    assert again.is_discrete == constraint.is_discrete


def test_what_is_discrete() -> None:
    found = {name for name, case in CASES.items() if case.constraint.is_discrete}
    assert found == {
        "boolean", "integer_interval", "multinomial", "nonnegative_integer", "one_hot", "positive_integer"
    }  # fmt: skip
    assert C.independent(C.boolean, 1).is_discrete
    assert C.MixtureSameFamilyConstraint(C.boolean).is_discrete
    assert C.cat([C.real, C.boolean]).is_discrete


def test_dependent() -> None:
    assert C.is_dependent(C.dependent)
    assert not C.is_dependent(C.real)
    for name in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match=f".{name} cannot be determined statically"):
            getattr(C.dependent, name)
    known = C.dependent(is_discrete=True)(event_dim=2)
    assert (known.is_discrete, known.event_dim) == (True, 2)
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        known.check(rgrad.ones(2))

    class Between:
        @C.dependent_property(is_discrete=False, event_dim=0)
        def support(self) -> C.Constraint:
            return C.interval(0, 2)

        @C.dependent_property
        def other(self) -> C.Constraint:
            return C.real

    assert C.is_dependent(Between.support)
    assert C.is_dependent(Between.other)
    assert Between.support.event_dim == 0
    assert repr(Between().support) == "Interval(lower_bound=0, upper_bound=2)"
    assert Between().other is C.real


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "few": (lambda: C.real_vector.check(rgrad.tensor(1.0)), ValueError),
    "few of a mixture": (lambda: C.MixtureSameFamilyConstraint(C.real_vector).check(rgrad.tensor(1.0)), IndexError),
    "no constraint": (lambda: C.independent(1, 1), AssertionError),  # type: ignore[arg-type]
    "negative": (lambda: C.independent(C.real, -1), AssertionError),
    "lengths": (lambda: C.cat([C.real], 0, [1, 2]), AssertionError),
    "dim": (lambda: C.stack([C.real], 2).check(rgrad.ones(1)), AssertionError),
    "own": (lambda: C.Constraint().check(rgrad.ones(1)), NotImplementedError),
    "kind": (lambda: transform_to.register(3, lambda c: T.ExpTransform()), TypeError),  # type: ignore[arg-type]
    "no transform": (lambda: transform_to(C.boolean), NotImplementedError),
    "no bijection": (lambda: biject_to(C.positive_definite), NotImplementedError),
    "text": (lambda: broadcast_all("a"), ValueError),
    "diagonal": (lambda: tril_matrix_to_vec(rgrad.ones(2, 2), 2), ValueError),
    "no triangle": (lambda: vec_to_tril_matrix(rgrad.ones(4)), ValueError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, kind = REFUSED[name]
    with pytest.raises(kind):
        make()


BOUND = rgrad.tensor([-1.0, 0.5, 3.0], dtype=rgrad.float64)
TRANSFORMED: dict[str, tuple[C.Constraint, bool, tuple[int, ...]]] = {
    "real": (C.real, True, (3,)),
    "real_vector": (C.real_vector, True, (2, 3)),
    "positive": (C.positive, True, (3,)),
    "nonnegative": (C.nonnegative, True, (3,)),
    "greater_than": (C.greater_than(BOUND), True, (3,)),
    "greater_than_eq": (C.greater_than_eq(2), True, (3,)),
    "less_than": (C.less_than(BOUND), True, (3,)),
    "unit_interval": (C.unit_interval, True, (3,)),
    "interval": (C.interval(BOUND, BOUND + 2), True, (3,)),
    "half_open_interval": (C.half_open_interval(-2, 1), True, (3,)),
    "independent": (C.independent(C.positive, 2), True, (4, 2, 3)),
    "simplex": (C.simplex, True, (2, 4)),
    "corr_cholesky": (C.corr_cholesky, True, (2, 3)),
    "cat": (C.cat([C.positive, C.unit_interval], 0, [1, 2]), True, (3, 2)),
    "stack": (C.stack([C.positive, C.real], 0), True, (2, 3)),
    "lower_cholesky": (C.lower_cholesky, False, (2, 3, 3)),
    "positive_definite": (C.positive_definite, False, (3, 3)),
    "positive_semidefinite": (C.positive_semidefinite, False, (3, 3)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_registries(name: str) -> None:
    constraint, has_bijection, shape = TRANSFORMED[name]
    x = rgrad.tensor(np.random.default_rng(1).normal(size=shape))
    for registry in (biject_to, transform_to):
        if registry is biject_to and not has_bijection:
            continue
        t = registry(constraint)
        y = t(x)
        assert constraint.check(y).all()
        np.testing.assert_allclose(t(t.inv(y)).numpy(), y.numpy(), rtol=1e-6)  # bounds have the default dtype
        assert t.bijective or registry is transform_to
        if t.bijective:
            np.testing.assert_allclose(t.inv(y).numpy(), x.numpy(), rtol=1e-6)
            assert t.log_abs_det_jacobian(x, y).shape == x.shape[: x.dim() - t.domain.event_dim]


def test_own_registry() -> None:
    class Even(C.Constraint):
        pass

    registry = ConstraintRegistry()

    @registry.register(Even)
    def of_even(constraint: Even) -> T.Transform:
        return T.AffineTransform(0, 2)

    assert registry(Even()) == of_even(Even())
    registry.register(C.positive, lambda c: T.SoftplusTransform())
    assert registry(C.greater_than(3)) == T.SoftplusTransform()
    assert transform_to(C.positive) == T.ComposeTransform([T.ExpTransform(), T.AffineTransform(0.0, 1)])
    with pytest.raises(NotImplementedError, match="Cannot transform _LessThan constraints"):
        registry(C.less_than(1))


def test_broadcast_all() -> None:
    a, b, c = broadcast_all(1, rgrad.zeros(2, 1, dtype=rgrad.float64), rgrad.ones(3, dtype=rgrad.float64))
    assert [x.shape for x in (a, b, c)] == [(2, 3)] * 3
    assert a.dtype == rgrad.float64
    assert broadcast_all(1, True)[0].dtype == rgrad.float32

    class Like:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return [rgrad.ones(2)] * 2

    assert len(broadcast_all(Like(), rgrad.ones(2))) == 2


def test_probabilities_and_logits() -> None:
    p = rgrad.tensor([[0.2, 0.8], [0.5, 0.5]], dtype=rgrad.float64)
    for is_binary in (False, True):
        np.testing.assert_allclose(logits_to_probs(probs_to_logits(p, is_binary), is_binary).numpy(), p.numpy())
        made = probs_to_logits(rgrad.tensor([0.0, 1.0]), is_binary)
        assert made.isfinite().all()
    eps = rgrad.finfo(rgrad.float32).eps
    assert clamp_probs(rgrad.tensor([0.0, 0.3, 1.0])).tolist() == pytest.approx([eps, 0.3, 1 - eps], rel=1e-7)
    assert rgrad.autograd.gradgradcheck(lambda x: probs_to_logits(x, True), p.requires_grad_())


@pytest.mark.parametrize("diag", [-2, -1, 0, 1, 2])
def test_triangles(diag: int) -> None:
    n = 4
    m = rgrad.arange(2.0 * n * n, dtype=rgrad.float64).reshape(2, n, n) + 1
    vector = tril_matrix_to_vec(m, diag)
    rows, columns = np.tril_indices(n, diag)
    np.testing.assert_array_equal(vector.numpy(), m.numpy()[:, rows, columns])
    np.testing.assert_array_equal(vec_to_tril_matrix(vector, diag).numpy(), np.tril(m.numpy(), diag))
    vector.requires_grad_()
    assert rgrad.autograd.gradcheck(lambda v: vec_to_tril_matrix(v, diag).exp(), vector)
    assert rgrad.autograd.gradcheck(lambda v: tril_matrix_to_vec(v, diag), m.requires_grad_())


def test_lazy_properties() -> None:
    calls = []

    class Made:
        @lazy_property
        def value(self) -> Tensor:
            """It is made once."""
            calls.append(1)
            return rgrad.ones(1, requires_grad=True) * 2

    made = Made()
    with rgrad.no_grad():
        first = made.value
    assert first.requires_grad
    assert made.value is first
    assert len(calls) == 1
    assert isinstance(Made.value, property)
    assert isinstance(Made.value, lazy_property)
    assert Made.__dict__["value"].__doc__ == "It is made once."
