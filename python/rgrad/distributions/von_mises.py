"""The distribution of von Mises."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..special import i0e, i1e
from . import constraints
from ._parametric import Parametric
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Parametric):
    """The distribution of angles that are near to one of them.

    Args:
        loc: The mean angle in radians: a tensor or a number.
        concentration: How near, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``concentration`` is not positive, or a parameter is nan.

    Note:
        Angles are given from ``-pi`` to ``pi``, and taken modulo ``2 * pi``. The variance is the circular one.

    Example:
        >>> rgrad.distributions.VonMises(0.0, 1.0).log_prob(rgrad.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}  # noqa: RUF012
    support = constraints.real
    _state = ("loc", "concentration")

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        # i0e is the Bessel function over exp(concentration), which overflows: cos - 1 has no cancellation as -2 sin^2.
        away = 2 * (0.5 * (value - self.loc)).sin().pow(2)
        return -self.concentration * away - math.log(2 * math.pi) - i0e(self.concentration).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values, which have no gradients, by rejection (Best and Fisher, 1979).

        Args:
            sample_shape: How many.

        Returns:
            Shape ``sample_shape + batch_shape``.
        """
        with no_grad():
            # In single precision a small concentration leaves nothing to accept.
            kappa = self.concentration.double().expand(self._extended_shape(sample_shape)).flatten()
            made = _core.empty(kappa.shape, dtype=kappa.dtype, device=kappa.device)
            open_ = _core.arange(kappa.shape[0], device=kappa.device)
            while open_.numel():
                accepted, angle = _propose(kappa[open_])
                made[open_[accepted]] = angle[accepted]
                open_ = open_[~accepted]
            angles = made.reshape(self._extended_shape(sample_shape)) + self.loc.double()
            return ((angles + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _propose(kappa: Tensor) -> tuple[Tensor, Tensor]:
    """Angles from a wrapped Cauchy distribution, and which of them are accepted."""
    tau = 1 + (1 + 4 * kappa * kappa).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
    # For a small concentration the difference above has no digits left.
    r = _core.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
    u1, u2, u3 = _core.rand(3, *kappa.shape, dtype=kappa.dtype, device=kappa.device).unbind()
    z = (math.pi * u1).cos()
    cosine = (1 + r * z) / (r + z)
    c = kappa * (r - cosine)
    accepted = (c * (2 - c) > u2) | ((c / u2).log() + 1 - c >= 0)
    return accepted, (u3 - 0.5).sign() * cosine.clamp(-1, 1).acos()
