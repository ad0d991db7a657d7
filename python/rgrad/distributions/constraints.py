"""What parameters and values of a distribution must satisfy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core, linalg
from .._core import Tensor
from .._runtime.info import finfo

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values.

    Attributes:
        is_discrete: Whether the values are isolated points.
        event_dim: How many of the last dimensions make one value.

    Example:
        >>> rgrad.distributions.constraints.positive.check(rgrad.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Tell which values lie inside.

        Args:
            value: Values.

        Returns:
            A bool tensor without the dimensions of a value.

        Raises:
            NotImplementedError: A subclass has not said it.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other values; what is known of it without them can be given."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return bool(self._known("is_discrete"))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return int(self._known("event_dim"))

    def _known(self, name: str) -> Any:
        found = getattr(self, f"_{name}")
        if found is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return found

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: object) -> bool:
    """Tell whether a constraint depends on other values.

    Args:
        constraint: A constraint.

    Returns:
        True for ``dependent`` and for a ``dependent_property`` read from its class.

    Example:
        >>> rgrad.distributions.constraints.is_dependent(rgrad.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of objects that is a dependent constraint of their class."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Over(Constraint):
    """What holds for values of another constraint; those among the last dimensions are taken together."""

    def __init__(self, base_constraint: Constraint) -> None:
        assert isinstance(base_constraint, Constraint)
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @staticmethod
    def _together(inside: Tensor, dims: int) -> Tensor:
        return inside.reshape((*inside.shape[: max(dims, 0)], -1)).all(-1)


class _IndependentConstraint(_Over):
    """A constraint of each of several values that count as one."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        assert isinstance(reinterpreted_batch_ndims, int)
        assert reinterpreted_batch_ndims >= 0
        super().__init__(base_constraint)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        if inside.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return self._together(inside, inside.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_Over):
    """The constraint of a mixture's values: each must be one of every component.

    Args:
        base_constraint: That of the components, of which there is a dimension of them before those of a value.

    Example:
        >>> constraints = rgrad.distributions.constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(rgrad.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """Tell which values lie inside.

        Args:
            value: Values, without a dimension of components.

        Returns:
            A bool tensor without the dimensions of a value.

        Raises:
            IndexError: ``value`` has fewer dimensions than one value.
        """
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return self._together(inside, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Bounded(Constraint):
    """Numbers with bounds, which the text shows."""

    def __repr__(self) -> str:
        bounds = (f"{name}={vars(self)[name]}" for name in ("lower_bound", "upper_bound") if name in vars(self))
        return f"{self.__class__.__name__[1:]}({', '.join(bounds)})"


class _From(_Bounded):
    def __init__(self, lower_bound: float | Tensor) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _UpTo(_Bounded):
    def __init__(self, upper_bound: float | Tensor) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    def __init__(self, lower_bound: float | Tensor, upper_bound: float | Tensor) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()


class _Boolean(Constraint):
    """The values 0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros and one 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _IntegerInterval(_Between):
    """Whole numbers from a lower bound to an upper one, which belong to it."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerLessThan(_UpTo):
    """Whole numbers up to a bound, which belongs to them."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_From):
    """Whole numbers from a bound, which belongs to them."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers and both infinities, but not nan."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_From):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_From):
    """Numbers from a bound, which belongs to them."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_UpTo):
    """Numbers below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers from a lower bound to an upper one, which both belong to them."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers from a lower bound, which belongs to them, to an upper one, which does not."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers with the sum 1, up to 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative numbers whose sum is not above a bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: float | Tensor) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def check(self, value: Tensor) -> Tensor:
        # A row's length has rounding errors in proportion to the number of its elements; ten times that is let pass.
        most = 10 * finfo(value.dtype).eps * value.size(-1)
        off = (value.detach().square().sum(-1).sqrt() - 1).abs()
        return super().check(value) & (off <= most).all(-1)


class _Square(Constraint):
    """Matrices with as many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return _core.full(value.shape[:-2], is_square, dtype=_core.bool, device=value.device)


class _Symmetric(_Square):
    """Square matrices that are their own transpose, up to 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _core.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _SymmetricAnd(_Symmetric):
    """Symmetric matrices with another property, which is only looked at when all of them are symmetric."""

    def _more(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not all_inside(symmetric):
            return symmetric
        return self._more(value) & symmetric


class _PositiveSemidefinite(_SymmetricAnd):
    """Symmetric matrices without negative eigenvalues."""

    def _more(self, value: Tensor) -> Tensor:
        return linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_SymmetricAnd):
    """Symmetric matrices that have a Cholesky factor."""

    def _more(self, value: Tensor) -> Tensor:
        return linalg.cholesky_ex(value).info.eq(0)


class _Parts(Constraint):
    """Constraints of the parts of a tensor along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        assert all(isinstance(c, Constraint) for c in cseq)
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)


class _Cat(_Parts):
    """Constraints of slices along a dimension, each of its length (1 by default)."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq)

    def check(self, value: Tensor) -> Tensor:
        assert -value.dim() <= self.dim < value.dim()
        starts = itertools.accumulate(self.lengths, initial=0)
        parts = [value.narrow(self.dim, start, n) for start, n in zip(starts, self.lengths, strict=False)]
        return _core.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Parts):
    """Constraints of the elements along a dimension."""

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        assert -value.dim() <= self.dim < value.dim()
        parts = value.unbind(self.dim)
        return _core.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=False)], self.dim)


def all_inside(inside: Tensor) -> bool:
    """Whether a check found nothing outside; unknown inside of ``vmap``."""
    return bool(_core._level_of(inside)) or bool(inside.all())


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
