"""Distributions of truth values and of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from .._runtime.missing import missing
from ..autograd.grad_mode import enable_grad
from . import constraints
from .distribution import Distribution, broadcast_all


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _kept(probs: Tensor) -> Tensor:
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class _OfProbabilities(Distribution):
    """A distribution that has ``probs`` or ``logits``; the other one is made when it is first read, and kept."""

    _param: Tensor

    def _other(self, name: str) -> Tensor:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name not in ("probs", "logits") or "_param" not in self.__dict__:
            return missing(self, name)
        with enable_grad():
            made = self.__dict__[name] = self._other(name)
        return made


class Bernoulli(_OfProbabilities):
    """The distribution of 1 with a probability, and 0 otherwise.

    Args:
        probs: The probability of 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or a probability is outside of 0 to 1.

    Example:
        >>> rgrad.distributions.Bernoulli(0.25).log_prob(rgrad.tensor(0.0))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        _one_of(probs, logits)
        name = "logits" if probs is None else "probs"
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[name] = self._param = value
        super().__init__(value.shape, validate_args=validate_args)

    def _other(self, name: str) -> Tensor:
        if name == "probs":
            return self._param.sigmoid()
        p = _kept(self._param)
        return p.log() - (-p).log1p()

    @property
    def mean(self) -> Tensor:
        made: Tensor = self.probs
        return made

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self._param.dtype)
        return _core.where(self.probs == 0.5, _core.full_like(mode, math.nan), mode)

    @property
    def variance(self) -> Tensor:
        made: Tensor = self.probs * (1 - self.probs)
        return made

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _core.bernoulli(self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, v = broadcast_all(self.logits, value)
        return -_core.binary_cross_entropy_with_logits(logits, v, reduction="none")

    def entropy(self) -> Tensor:
        return _core.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _core.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values


class Categorical(_OfProbabilities):
    """The distribution of class numbers.

    Args:
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Example:
        >>> rgrad.distributions.Categorical(rgrad.tensor([1.0, 3.0])).log_prob(rgrad.tensor(1))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        _one_of(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.__dict__["probs"] = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.__dict__["logits"] = logits - logits.logsumexp(-1, keepdim=True)
        self._param: Tensor = self.__dict__["logits" if probs is None else "probs"]
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def _other(self, name: str) -> Tensor:
        return self._param.softmax(-1) if name == "probs" else _kept(self._param).log()

    @property
    def support(self) -> constraints.Constraint:
        """The class numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return _core.full(self.batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        made: Tensor = self.probs.argmax(-1)
        return made

    @property
    def variance(self) -> Tensor:
        return self.mean

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        made = _core.multinomial(rows, math.prod(sample_shape), True).mT
        return made.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        at, logits = _core.broadcast_tensors(value.to(_core.int64).unsqueeze(-1), self.logits)
        made: Tensor = logits.gather(-1, at[..., :1]).squeeze(-1)
        return made

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self._param.dtype).min)
        made: Tensor = -(logits * self.probs).sum(-1)
        return made

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _core.arange(self._num_events, device=self._param.device)
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values
