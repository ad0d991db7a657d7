"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from ..autograd.grad_mode import no_grad
from . import constraints
from ._parametric import OfProbabilities
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(OfProbabilities):
    """The distribution of the number of failures before the first success.

    Args:
        probs: The probability of success, more than 0 and at most 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or a probability is not in its range.

    Note:
        ``Tensor.geometric_`` counts the success, too: its numbers begin at 1.

    Example:
        >>> rgrad.distributions.Geometric(0.5).log_prob(rgrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.nonnegative_integer
    _state = OfProbabilities._state

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not constraints.all_inside(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        made: Tensor = 1 / self.probs - 1
        return made

    @property
    def mode(self) -> Tensor:
        return _core.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.mean / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            made = _core.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            return (made.clamp(min=finfo(made.dtype).tiny).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        # No failure of what never fails: 0 times log(0).
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + probs.log()

    def entropy(self) -> Tensor:
        made: Tensor = _core.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
        return made
