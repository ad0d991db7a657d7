"""PyTorch's ``_foreach_*``: one operation on each tensor of a list. Optimizers of other libraries call them.

Each takes a list or tuple of tensors. The others are as long, or one number or one tensor for all. Functions whose name
ends in ``_`` write to the tensors and return the list that they were given; the others return a tuple. A list that is
longer or shorter, or empty, is a RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .foreach_names import BINARY, TERNARY, UNARY

# The bound that a number is, and the function of two tensors.
_BOUNDS = {
    "maximum": ("min", "maximum"),
    "clamp_min": ("min", "maximum"),
    "minimum": ("max", "minimum"),
    "clamp_max": ("max", "minimum"),
}


def _checked(name: str, tensors: Any) -> Sequence[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        kind = type(tensors).__name__
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {kind}")
    if not tensors:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    return tensors


def _beside(name: str, count: int, other: Any) -> Iterator[Any]:
    """What stands beside each tensor."""
    if not isinstance(other, (list, tuple)):
        return iter([other] * count)
    if len(other) != count:
        raise RuntimeError(f"{name}: Tensor lists must have the same number of tensors, got {count} and {len(other)}")
    return iter(other)


def _binary(name: str, tensor: Tensor, other: Any, **options: Any) -> Tensor:
    if name in _BOUNDS:
        bound, function = _BOUNDS[name]
        if isinstance(other, Tensor):
            found: Tensor = getattr(_core, function)(tensor, other)
            return found
        return tensor.clamp(**{bound: other})
    result: Tensor = getattr(_core, name)(tensor, other, **options)
    return result


def _both(name: str, one: Callable[..., Tensor]) -> None:
    """Define a function and the one that writes in place, from what makes the results."""
    plain, inplace = f"_foreach_{name}", f"_foreach_{name}_"

    def function(self: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        return tuple(one(plain, self, *args, **kwargs))

    def writing(self: Any, *args: Any, **kwargs: Any) -> Any:
        # All are computed first, so that an error leaves every tensor as it was.
        results = tuple(one(inplace, self, *args, **kwargs))
        for tensor, result in zip(self, results, strict=True):
            if result.shape != tensor.shape:
                raise RuntimeError(
                    f"{inplace}: output with shape {list(tensor.shape)} doesn't match the broadcast shape "
                    f"{list(result.shape)}"
                )
        for tensor, result in zip(self, results, strict=True):
            tensor.copy_(result)
        return self

    for made, called in ((function, plain), (writing, inplace)):
        made.__name__ = made.__qualname__ = called
        made.__doc__ = f"``{name}`` of each tensor of a list."
        globals()[called] = made


def _define_unary(name: str) -> None:
    def one(full: str, tensors: Any) -> Any:
        return (getattr(_core, name)(tensor) for tensor in _checked(full, tensors))

    _both(name, one)


def _define_binary(name: str) -> None:
    def one(full: str, tensors: Any, other: Any, **options: Any) -> Any:
        if name == "pow" and not isinstance(tensors, (list, tuple)):
            return (_core.pow(tensors, exponent) for exponent in _checked(full, other))
        count = len(_checked(full, tensors))
        beside = _beside(full, count, other)
        return (_binary(name, tensor, at, **options) for tensor, at in zip(tensors, beside, strict=True))

    _both(name, one)


def _define_ternary(name: str) -> None:
    def one(full: str, tensors: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
        count = len(_checked(full, tensors))
        if isinstance(value, Tensor):
            value = value.tolist()
        three = (_beside(full, count, given) for given in (tensor1, tensor2, value))
        return (getattr(_core, name)(a, b, c, value=v) for a, b, c, v in zip(tensors, *three, strict=True))

    _both(name, one)


def _lerp(full: str, tensors: Any, tensors1: Any, weight: Any) -> Any:
    count = len(_checked(full, tensors))
    ends, weights = _beside(full, count, tensors1), _beside(full, count, weight)
    return (_core.lerp(a, b, w) for a, b, w in zip(tensors, ends, weights, strict=True))


for _name in UNARY:
    _define_unary(_name)
for _name in BINARY:
    _define_binary(_name)
for _name in TERNARY:
    _define_ternary(_name)
_both("lerp", _lerp)


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write the elements of each tensor of ``src``; ``non_blocking`` has no effect."""
    beside = _beside("_foreach_copy_", len(_checked("_foreach_copy_", self)), src)
    for tensor, source in zip(self, beside, strict=True):
        tensor.copy_(source)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Write zeros to each tensor."""
    for tensor in _checked("_foreach_zero_", self):
        tensor.zero_()
    return self


def _foreach_clone(self: Any) -> tuple[Tensor, ...]:
    """A copy of each tensor."""
    return tuple(tensor.clone() for tensor in _checked("_foreach_clone", self))


def _foreach_norm(self: Any, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of all elements of each tensor: scalars."""
    given = _checked("_foreach_norm", self)
    return tuple(_core.norm(tensor if dtype is None else tensor.to(dtype), ord) for tensor in given)


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor: scalars."""
    return tuple(tensor.max() for tensor in _checked("_foreach_max", self))
