"""Invertible functions with known determinants of their derivatives: the base, and the inverse of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .._core import Size, Tensor
from . import constraints


class Transform:
    """A function of values that can be inverted.

    A subclass defines ``_call``, ``_inverse`` or both, and with ``bijective = True`` also
    :meth:`log_abs_det_jacobian`.

    Args:
        cache_size: 1 to keep the last pair of input and output, so that inverting an output gives its input itself.

    Attributes:
        domain: The constraint of inputs.
        codomain: The constraint of outputs.
        bijective: Whether each output has one input.
        sign: 1 for an increasing function of numbers, -1 for a decreasing one: a number or a tensor.

    Raises:
        ValueError: ``cache_size`` is neither 0 nor 1.

    Example:
        >>> exp = rgrad.distributions.ExpTransform()
        >>> exp.inv(exp(rgrad.tensor(2.0)))
        tensor(2.)
    """

    # Each may be an attribute or a property in a subclass.
    bijective: Any = False
    domain: Any
    codomain: Any

    # What the constructor of this class, or of the nearest base that names it, takes before `cache_size`.
    _arguments: ClassVar[tuple[str, ...]] = ()

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        if cache_size:
            self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_inv"] = None
        if "_cached_x_y" in state:
            state["_cached_x_y"] = (None, None)
        return state

    if TYPE_CHECKING:
        event_dim: Any
        sign: Any
    else:

        @property
        def event_dim(self) -> int:
            """How many dimensions a value has, before and after."""
            if self.domain.event_dim == self.codomain.event_dim:
                return self.domain.event_dim
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

        @property
        def sign(self) -> int | Tensor:
            """1 for an increasing function of numbers, -1 for a decreasing one."""
            raise NotImplementedError

    @property
    def inv(self) -> Transform:
        """The inverse, whose own inverse is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Give this transform with another size of the cache.

        Args:
            cache_size: 0 or 1.

        Returns:
            A transform; this one if it has that size.

        Raises:
            NotImplementedError: A subclass has a constructor of its own and no such method.
        """
        if self._cache_size == cache_size:
            return self
        owner: type[Any] = next(cls for cls in type(self).__mro__ if "_arguments" in vars(cls))
        if owner is not Transform:
            made: Transform = owner(*(getattr(self, name) for name in owner._arguments), cache_size=cache_size)
            return made
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other or self._is_equal(other)

    # As in PyTorch: equal ones may hold tensors.
    __hash__ = None  # type: ignore[assignment]

    def _is_equal(self, other: object) -> bool:
        """Whether another transform is the same function, as far as this one can tell."""
        return False

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old  # type: ignore[no-any-return]
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old  # type: ignore[no-any-return]
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute the logarithm of the absolute determinant of the derivative.

        Args:
            x: Inputs.
            y: Their outputs.

        Returns:
            A tensor without the dimensions of a value.

        Raises:
            NotImplementedError: The transform has none.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """Tell the shape of the output.

        Args:
            shape: The shape of an input.

        Returns:
            A shape; that of the input by default.
        """
        return shape  # type: ignore[return-value]

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """Tell the shape of the input.

        Args:
            shape: The shape of an output.

        Returns:
            A shape; that of the output by default.
        """
        return shape  # type: ignore[return-value]


class _InverseTransform(Transform):
    """The inverse of a transform, which does the work and has the cache."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._inv.codomain  # type: ignore[no-any-return]

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return self._inv.domain  # type: ignore[no-any-return]

    @property
    def bijective(self) -> bool:
        return self._inv.bijective  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def _is_equal(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.forward_shape(shape)


class _Same(Transform):
    """A transform without parameters, which is equal to all of its class; that is the first one with a public name."""

    _kind: ClassVar[type[Transform]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "_kind") and not cls.__name__.startswith("_"):
            cls._kind = cls

    def _is_equal(self, other: object) -> bool:
        return isinstance(other, self._kind)


def _need_dims(shape: Sequence[int], dims: int) -> None:
    """Raise ValueError for shapes with fewer dimensions."""
    if len(shape) < dims:
        raise ValueError(f"Too few dimensions on input: expected at least {dims}, got the shape {tuple(shape)}")
