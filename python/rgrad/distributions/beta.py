"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..special import gammaln
from . import constraints
from ._parametric import Parametric
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(Parametric, ExponentialFamily):
    """The beta distribution.

    Args:
        concentration1: The exponent of the value plus 1, more than 0: a tensor or a number.
        concentration0: The exponent of 1 minus the value plus 1, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.Beta(2.0, 1.0).log_prob(rgrad.tensor(0.5))
        tensor(0.)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}  # noqa: RUF012
    support = constraints.unit_interval
    has_rsample = True
    _state = ("_dirichlet",)

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        weights = _core.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(weights, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of the value plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of 1 minus the value plus 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(_core.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return gammaln(x) + gammaln(y) - gammaln(x + y)
