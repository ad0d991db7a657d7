"""The base of distributions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._core import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]

_NO_SHAPE = Size()


class Distribution:
    """A distribution of random values, with parameters that may be batches.

    Args:
        batch_shape: The shape of the parameters.
        event_shape: The shape of a value.
        validate_args: Check parameters and values; by default what :meth:`set_default_validate_args` says.

    Attributes:
        has_rsample: Whether samples have gradients with respect to the parameters.
        has_enumerate_support: Whether :meth:`enumerate_support` gives all values.

    Raises:
        ValueError: A parameter violates its constraint.

    Example:
        >>> rgrad.distributions.Normal(rgrad.zeros(3), 1.0).sample((2,)).shape
        rgrad.Size([2, 3])
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args = __debug__

    if TYPE_CHECKING:
        # Attributes in some subclasses, properties in others.
        arg_constraints: Any
        support: Any
    else:

        @property
        def arg_constraints(self) -> dict[str, constraints.Constraint]:
            """The constraints of parameters by their names."""
            raise NotImplementedError

        @property
        def support(self) -> constraints.Constraint | None:
            """The constraint of values."""
            raise NotImplementedError

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked.

        Args:
            value: True or False.

        Raises:
            ValueError: ``value`` is neither.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = _NO_SHAPE,
        event_shape: Size = _NO_SHAPE,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # it is made of another parameter
            value = getattr(self, name)
            if not constraints.all_inside(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError where a value has not the shape of this distribution's, or lies outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.shape) - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for have, want in zip(reversed(value.shape), reversed(expected), strict=False):
            if have != want and 1 not in (have, want):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        assert support is not None
        if not constraints.all_inside(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _extended_shape(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Size:
        """The shape of so many samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """What an ``expand`` of ``cls`` fills: a new object, or the one that a subclass has made."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Give the distribution with parameters expanded to another batch shape, without copies or checks.

        Args:
            batch_shape: The shape.
            _instance: The object to fill, from a subclass.

        Returns:
            A distribution.

        Raises:
            NotImplementedError: A subclass has not said how.
        """
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a value."""
        return self._event_shape

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

    def sample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        """Draw values, which have no gradients.

        Args:
            sample_shape: How many.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        """Draw values with gradients with respect to the parameters.

        Args:
            sample_shape: How many.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.

        Raises:
            NotImplementedError: The distribution has none.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draw values: PyTorch's older name of ``sample((n,))``.

        Args:
            n: How many.

        Returns:
            Shape ``(n,) + batch_shape + event_shape``.
        """
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample(Size((n,)))

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

    def __repr__(self) -> str:
        found = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        parts = (f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in found.items())
        return f"{self.__class__.__name__}({', '.join(parts)})"
