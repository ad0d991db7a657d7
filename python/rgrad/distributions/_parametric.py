"""Distributions whose state is tensors and other distributions, each with the dimensions of the batch first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._core import Size, Tensor
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class Parametric(Distribution):
    """A distribution that is expanded by expanding what ``_state`` names.

    The class that has a ``_state`` of its own is the one whose ``__init__`` an object must have to be made anew.
    """

    _state: ClassVar[tuple[str, ...]] = ()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Give the distribution with parameters expanded to another batch shape, without copies or checks.

        Args:
            batch_shape: The shape.
            _instance: The object to fill, from a subclass.

        Returns:
            A distribution.
        """
        owner = next(cls for cls in type(self).__mro__ if "_state" in cls.__dict__)
        new = self._get_checked_instance(owner, _instance)
        shape, dims = Size(batch_shape), len(self.batch_shape)
        made: dict[int, Any] = {}  # one tensor under two names stays one

        def expanded(value: Any) -> Any:
            if isinstance(value, Distribution):
                return value.expand((*shape, *value.batch_shape[dims:]))
            return value.expand((*shape, *value.shape[dims:])) if hasattr(value, "expand") else value

        for name in owner._state:  # type: ignore[attr-defined]
            if name in self.__dict__:
                value = self.__dict__[name]
                if id(value) not in made:
                    made[id(value)] = expanded(value)
                new.__dict__[name] = made[id(value)]
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _check(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _constant(self, number: float, like: Tensor) -> Tensor:
        """One number for each of the batch."""
        return like.new_full(self._extended_shape(), number)


class OfProbabilities(Parametric):
    """A distribution that has ``probs`` or ``logits``; the other one is made when it is first read, and kept."""

    _state: ClassVar[tuple[str, ...]] = ("probs", "logits", "_param")
    _is_binary = True
    _param: Tensor

    def _set_odds(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keep the one that is given, broadcast with other parameters, which are returned in its dtype."""
        name, given = one_of(probs, logits)
        *made, value = broadcast_all(*others, given)
        self.__dict__[name] = self._param = value
        return tuple(other.type_as(value) for other in made)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


class OfCategorical(Distribution):
    """A distribution over a categorical one, whose probabilities are its own."""

    _categorical: OfProbabilities

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        made: Tensor = self._categorical.probs
        return made

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities of the classes."""
        made: Tensor = self._categorical.logits
        return made

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)


def one_of(probs: Any, logits: Any) -> tuple[str, Any]:
    """The one of two parameters that is given, with its name.

    Raises:
        ValueError: Both or neither are given.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


def enumerated(values: Tensor, batch_shape: Size, expand: bool) -> Tensor:
    """Values along the first dimension, which are those of each distribution of a batch."""
    own = values.shape[1:]
    values = values.reshape(-1, *[1] * len(batch_shape), *own)
    return values.expand(-1, *batch_shape, *own) if expand else values


def expand_transformed(d: Distribution, new: Any, batch_shape: Sequence[int], *names: str) -> Any:
    """``new`` with parameters of a transformed distribution, expanded; its ``expand`` does the rest."""
    for name in names:
        setattr(new, name, getattr(d, name).expand(batch_shape))
    return new
