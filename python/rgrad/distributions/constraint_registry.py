"""Transforms from unconstrained numbers to the values of a constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .constraints import Constraint
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

_Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Functions that make the transform of a constraint, by the constraint's class.

    Example:
        >>> registry = rgrad.distributions.constraint_registry.ConstraintRegistry()
        >>> constraints = rgrad.distributions.constraints
        >>> @registry.register(constraints.positive)
        ... def to_positive(constraint):
        ...     return rgrad.distributions.SoftplusTransform()
        >>> registry(constraints.positive)
        SoftplusTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], _Factory] = {}
        super().__init__()

    def register(self, constraint: Constraint | type[Constraint], factory: _Factory | None = None) -> Any:
        """Register the function of a class.

        Args:
            constraint: A class of constraints, or one of its objects.
            factory: A function of a constraint that gives a transform; without it a decorator is given.

        Returns:
            The function, or the decorator.

        Raises:
            TypeError: ``constraint`` is neither.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _greater_than(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _less_than(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and low == 0 and isinstance(high, (int, float)) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _of_parts(registry: ConstraintRegistry) -> dict[Any, _Factory]:
    """The functions of constraints that are made of others, with the transforms of these from a registry."""
    return {
        constraints.independent: lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
        constraints.cat: lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths),
        constraints.stack: lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim),
    }


_OF_BOTH: dict[Any, _Factory] = {
    constraints.real: lambda c: transforms.identity_transform,
    constraints.positive: lambda c: transforms.ExpTransform(),
    constraints.nonnegative: lambda c: transforms.ExpTransform(),
    constraints.greater_than: _greater_than,
    constraints.greater_than_eq: _greater_than,
    constraints.less_than: _less_than,
    constraints.interval: _interval,
    constraints.half_open_interval: _interval,
    constraints.corr_cholesky: lambda c: transforms.CorrCholeskyTransform(),
}
_BIJECTIVE: dict[Any, _Factory] = {constraints.simplex: lambda c: transforms.StickBreakingTransform()}
_ONTO: dict[Any, _Factory] = {
    constraints.simplex: lambda c: transforms.SoftmaxTransform(),
    constraints.lower_cholesky: lambda c: transforms.LowerCholeskyTransform(),
    constraints.positive_definite: lambda c: transforms.PositiveDefiniteTransform(),
    constraints.positive_semidefinite: lambda c: transforms.PositiveDefiniteTransform(),
}
for _registry, _own in ((biject_to, _BIJECTIVE), (transform_to, _ONTO)):
    for _constraint, _factory in {**_OF_BOTH, **_own, **_of_parts(_registry)}.items():
        _registry.register(_constraint, _factory)
