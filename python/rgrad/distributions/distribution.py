"""The base of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import _core
from .._core import Size, Tensor
from .constraints import Constraint, all_inside

__all__ = ["Distribution"]


class Distribution:
    """A distribution of random values, with parameters that may be batches.

    Args:
        batch_shape: The shape of the parameters.
        event_shape: The shape of a value.
        validate_args: Check parameters and values; by default what :meth:`set_default_validate_args` says.

    Attributes:
        batch_shape: The shape of the parameters.
        event_shape: The shape of a value.
        has_rsample: Whether samples have gradients with respect to the parameters.

    Raises:
        ValueError: A parameter violates its constraint.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked.

        Args:
            value: True or False.

        Raises:
            ValueError: ``value`` is neither.
        """
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            if name not in self.__dict__:
                continue  # it is made of another parameter
            value = getattr(self, name)
            if not all_inside(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.shape) - len(self.event_shape)
        if value.shape[start:] != self.event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self.event_shape}."
            )
        expected = self.batch_shape + self.event_shape
        for have, want in zip(reversed(value.shape), reversed(expected), strict=False):
            if have != want and 1 not in (have, want):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        support = self.support
        if support is not None and not all_inside(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self.batch_shape, *self.event_shape))

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values, which have no gradients.

        Args:
            sample_shape: How many.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.
        """
        from ..autograd.grad_mode import no_grad

        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values with gradients with respect to the parameters.

        Args:
            sample_shape: How many.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.

        Raises:
            NotImplementedError: The distribution has none.
        """
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability or density of values.

        Args:
            value: Values.

        Returns:
            A tensor without the dimensions of a value.

        Raises:
            ValueError: A value is outside of the support.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of what is not larger than values.

        Args:
            value: Values.

        Returns:
            A tensor of probabilities.
        """
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the inverse of :meth:`cdf`.

        Args:
            value: Probabilities.

        Returns:
            A tensor of values.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Compute the entropy.

        Returns:
            Shape ``batch_shape``.
        """
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Compute the exponential of the entropy.

        Returns:
            Shape ``batch_shape``.
        """
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Give all values of a discrete distribution.

        Args:
            expand: Repeat them for each of the batch.

        Returns:
            The values along the first dimension.

        Raises:
            NotImplementedError: There are too many.
        """
        raise NotImplementedError

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Distribution:
        """Give the distribution with parameters expanded to another shape.

        Args:
            batch_shape: The shape.

        Returns:
            A new distribution.
        """
        made = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                own = len(value.shape) - len(self.batch_shape)
                value = value.expand(*batch_shape, *value.shape[len(value.shape) - own :]) if own >= 0 else value
            setattr(made, name, value)
        made.batch_shape = Size(batch_shape)
        return made

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name in names
            for value in [getattr(self, name)]
        )
        return f"{type(self).__name__}({', '.join(parts)})"


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Parameters as tensors of one shape; numbers have the dtype of the first tensor, or the default one without any.

    Raises:
        ValueError: A parameter is neither a number nor a tensor.
    """
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    kind = _core.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    made = [v if isinstance(v, Tensor) else _core.tensor(v, dtype=kind, device=device) for v in values]
    return tuple(_core.broadcast_tensors(*made))
