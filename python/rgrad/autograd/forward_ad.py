"""Forward mode: tensors that carry a tangent, and operations that compute those of their results."""

from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._transforms.tangents import check_dual, fitting
from .grad_mode import _Mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

# The level that is entered, 0 or -1 for none: there is one at a time.
_current_level = -1


def _check_level(level: int | None, function: str) -> None:
    if level is not None and level > max(_current_level, 0):
        raise RuntimeError(f"Invalid level given to {function}: {level}, where level {_current_level} is entered")


def _is_fwd_grad_enabled() -> bool:
    return _core._tangents_enabled()


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` gives.

    Attributes:
        primal: The value, without a tangent.
        tangent: The tangent, or None.

    Example:
        >>> rgrad.autograd.forward_ad.unpack_dual(rgrad.ones(2)).tangent is None
        True
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin forward mode, until :func:`exit_dual_level`.

    Returns:
        The number of the level.

    Raises:
        RuntimeError: A level is entered already. Derivatives of higher order are those of nested
            :func:`rgrad.func.jvp`.

    Example:
        >>> from rgrad.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> dual = forward_ad.make_dual(rgrad.tensor(3.0), rgrad.tensor(1.0))
        >>> forward_ad.unpack_dual(dual * dual).tangent
        tensor(6.)
        >>> forward_ad.exit_dual_level(level=level)
    """
    global _current_level
    if _current_level >= 0:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: a dual level is entered already. Nest "
            "rgrad.func.jvp for derivatives of higher order."
        )
    _core._enter_dual()
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode; all tangents are dropped.

    Args:
        level: The number that :func:`enter_dual_level` gave.

    Raises:
        RuntimeError: No level is entered, or ``level`` is another one.

    Example:
        >>> from rgrad.autograd import forward_ad
        >>> _ = forward_ad.enter_dual_level()
        >>> dual = forward_ad.make_dual(rgrad.tensor(3.0), rgrad.tensor(1.0))
        >>> forward_ad.exit_dual_level()
        >>> forward_ad.unpack_dual(dual).tangent is None
        True
    """
    global _current_level
    if level is not None and level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if _current_level < 0:
        raise RuntimeError("Trying to exit a forward AD level, but none was entered: call enter_dual_level() first.")
    left, _current_level = _current_level, -1
    _core._exit_dual(left)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Give a view of ``tensor`` with a tangent; what is computed from it has tangents, too.

    Args:
        tensor: A floating point or complex tensor; its history stays.
        tangent: A tensor of the same shape, dtype and device; that of a complex tensor may be real.
        level: The level that is entered.

    Returns:
        The dual tensor.

    Raises:
        RuntimeError: No level is entered, ``tensor`` has a tangent already, or the tangent does not fit.
        TypeError: One of them is no tensor.
        ValueError: One of them is neither floating point nor complex.

    Example:
        >>> from rgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 0.0]))
        ...     forward_ad.unpack_dual(x.square()).tangent
        tensor([2., 0.])
    """
    if (_current_level if level is None else level) < 0 or _current_level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    _check_level(level, "_make_dual")
    check_dual(tensor, tangent)
    if _core._tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported. Unpack it first."
        )
    return _core._make_dual(tensor, fitting(tensor, tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Take a dual tensor apart.

    Args:
        tensor: Any tensor.
        level: The level that is entered.

    Returns:
        Its value, a view without tangent, and its tangent, None if it has none.

    Raises:
        RuntimeError: ``level`` is higher than the level that is entered.

    Example:
        >>> from rgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(rgrad.tensor(2.0), rgrad.tensor(1.0))
        ...     primal, tangent = forward_ad.unpack_dual(x.exp())
        >>> primal, tangent
        (tensor(7.3891), tensor(7.3891))
    """
    if (_current_level if level is None else level) < 0 or _current_level < 0:
        return UnpackedDualTensor(tensor, None)
    _check_level(level, "_fw_primal")
    return UnpackedDualTensor(_core._primal(tensor), _core._tangent(tensor))


class dual_level(_Mode):
    """A block, or a decorated function, in which forward mode is on; the block is given the level's number.

    Tangents are dropped at the end. One block may not be inside another.

    Example:
        >>> from rgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(rgrad.tensor(0.0), rgrad.tensor(1.0))
        ...     print(forward_ad.unpack_dual(x.sin()).tangent)
        tensor(1.)
    """

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled(_Mode):
    """Whether tangents are computed: at once when called, and until the end of the block in a ``with``."""

    def __init__(self, mode: bool) -> None:
        self.prev: bool = _core._set_tangents_enabled(mode)
        self.mode = mode

    def __enter__(self) -> None:
        _core._set_tangents_enabled(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _core._set_tangents_enabled(self.prev)

    def clone(self) -> "_set_fwd_grad_enabled":
        """A new context manager with the same mode."""
        return type(self)(self.mode)
