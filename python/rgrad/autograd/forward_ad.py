"""Forward mode: tensors that carry a tangent, and operations that compute those of their results."""

from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._transforms.tangents import check_dual
from .grad_mode import _Mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

# The level that is entered, 0 or -1 for none: there is one at a time.
_current_level = -1


def _check_level(level: int | None, function: str) -> None:
    if level is not None and level > max(_current_level, 0):
        raise RuntimeError(f"Invalid level given to {function}: {level}, where level {_current_level} is entered")


def _is_fwd_grad_enabled() -> bool:
    if _core.is_inference_mode_enabled():
        return False
    now: bool = _core._set_tangents_enabled(True)
    _core._set_tangents_enabled(now)
    return now


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` gives."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin forward mode, until :func:`exit_dual_level`; gives the number of the level.

    Raises:
        RuntimeError: it has begun already. Derivatives of higher order are those of nested :func:`rgrad.func.jvp`.
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
    """End forward mode: all tangents are gone.

    Raises:
        RuntimeError: ``level`` is not the one that was entered last.
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
    """A view of ``tensor`` with a tangent; what is computed from it has tangents too.

    Args:
        tensor: floating point; its history stays.
        tangent: of the same shape, dtype and device.
        level: the level that is entered.

    Raises:
        RuntimeError: no level is entered, ``tensor`` has a tangent already, or the tangent does not fit.
        ValueError: one of them is not floating point.
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
    return _core._make_dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor, a view without tangent, and its tangent, None if it has none.

    Args:
        level: the level that is entered.

    Raises:
        RuntimeError: ``level`` is higher than that.
    """
    if (_current_level if level is None else level) < 0 or _current_level < 0:
        return UnpackedDualTensor(tensor, None)
    _check_level(level, "_fw_primal")
    return UnpackedDualTensor(_core._primal(tensor), _core._tangent(tensor))


class dual_level(_Mode):
    """Forward mode inside the block, or inside the decorated function; the block is given the level's number.

    Tangents are gone at the end. One block may not be inside another.
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
