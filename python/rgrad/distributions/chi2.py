"""The chi-squared distribution."""

from __future__ import annotations

from .._core import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of a sum of squares of standard normal numbers.

    Args:
        df: The number of squares, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``df`` is not positive.

    Example:
        >>> rgrad.distributions.Chi2(2.0).log_prob(rgrad.tensor(2.0))
        tensor(-1.6931)
    """

    arg_constraints = {"df": constraints.positive}  # noqa: RUF012
    _state = Gamma._state

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The number of squares."""
        return self.concentration * 2
