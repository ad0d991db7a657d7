"""Dropout: of elements, of channels, and those that keep mean and variance."""

import math
import warnings

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._docs import described

# The limit of selu on the negative side, with the sign changed (Klambauer et al. 2017).
_SATURATION = 1.7580993408473766

_TEXT = """
    Args:
        input: A tensor of {shape}.
        p: The probability.
        training: False makes this the identity.
        inplace: Write the result into ``input``.

    Returns:
        A tensor of the shape of ``input``; ``input`` itself if ``inplace``.

    Raises:
        {raises}ValueError: ``p`` is not in ``[0, 1]``.
"""


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@overridable("input", native=_core.dropout, takes=("input", "p", "training"))
@described(_TEXT, shape="any shape", raises="")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and multiply the others by ``1 / (1 - p)`` (Srivastava et al. 2014).

    Example:
        >>> dropped = F.dropout(rgrad.ones(1000), p=0.2)
        >>> dropped.unique()
        tensor([0.0000, 1.2500])
        >>> F.dropout(rgrad.ones(3), training=False)
        tensor([1., 1., 1.])
    """
    _check(p)
    if not inplace:
        return _core.dropout(input, p, training)
    return input.mul_(_core.dropout(_core.ones_like(input), p, training)) if training else input


def _features(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of whole slices behind the first two dimensions."""
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input: got {input.dim()}")
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    noise = _core.dropout(_core.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.mul_(noise) if inplace else input * noise


@overridable("input")
@described(
    _TEXT,
    shape="shape ``(N, C, L)`` or ``(C, L)``",
    raises="RuntimeError: ``input`` has another number of dimensions.\n    ",
)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels with probability ``p`` and multiply the others by ``1 / (1 - p)`` (Tompson et al. 2015).

    Example:
        >>> dropped = F.dropout1d(rgrad.ones(100, 20, 3))
        >>> bool((dropped == dropped[:, :, :1]).all())
        True
    """
    _check(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input: it takes (N, C, L) or (C, L)"
        )
    if ndim == 3:
        return _features(input, p, training, inplace)
    result = _features(input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


@overridable("input")
@described(
    _TEXT,
    shape="shape ``(N, C, H, W)``. With three dimensions the first two are still N and C; any other\n        "
    "number is warned of",
    raises="",
)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels with probability ``p`` and multiply the others by ``1 / (1 - p)`` (Tompson et al. 2015).

    Example:
        >>> dropped = F.dropout2d(rgrad.ones(10, 20, 2, 2))
        >>> bool((dropped == dropped[:, :, :1, :1]).all())
        True
    """
    _check(p)
    ndim = input.dim()
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired: the input is read as (N, C, L). Use dropout1d for that.",
            stacklevel=3,
        )
    elif ndim != 4:
        _warn_of_rank("dropout2d", ndim, "4-D (N, C, H, W)")
    return _features(input, p, training, inplace)


@overridable("input")
@described(
    _TEXT, shape="shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``; any other number of dimensions is warned of", raises=""
)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels with probability ``p`` and multiply the others by ``1 / (1 - p)`` (Tompson et al. 2015).

    Example:
        >>> dropped = F.dropout3d(rgrad.ones(10, 20, 2, 2, 2))
        >>> bool((dropped == dropped[:, :, :1, :1, :1]).all())
        True
    """
    _check(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_of_rank("dropout3d", ndim, "5-D (N, C, D, H, W) or 4-D (C, D, H, W)")
    if ndim != 4:
        return _features(input, p, training, inplace)
    result = _features(input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _warn_of_rank(name: str, ndim: int, expected: str) -> None:
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. Give it a {expected} input.",
        stacklevel=4,
    )


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """Dropout that sets elements to selu's limit, then scales and shifts all to keep mean and variance."""
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype}: dropout takes a float tensor"
        )
    if p == 1.0:
        zeros = _core.zeros(shape, dtype=input.dtype, device=input.device)
        return input.mul_(zeros) if inplace else input * zeros
    kept = _core.dropout(_core.ones(shape, dtype=input.dtype, device=input.device), p, True) != 0
    scale = 1.0 / math.sqrt((_SATURATION * _SATURATION * p + 1) * (1 - p))
    shift = _SATURATION * scale * p
    factor = kept.to(input.dtype) * scale
    offset = _core.where(kept, shift, shift - _SATURATION * scale).to(input.dtype)
    return input.mul_(factor).add_(offset) if inplace else input * factor + offset


@overridable("input")
@described(_TEXT, shape="any shape", raises="")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set each element to the negative limit of :func:`selu` with probability ``p`` (Klambauer et al. 2017).

    All elements are then scaled and shifted, so that mean 0 and variance 1 stay.

    Example:
        >>> F.alpha_dropout(rgrad.zeros(1000), training=True).unique()
        tensor([-0.7792,  0.7792])
    """
    _check(p)
    return _alpha(input, p, training, inplace, tuple(input.shape))


@overridable("input")
@described(_TEXT, shape="shape ``(N, C, *)``", raises="RuntimeError: ``input`` has less than two dimensions.\n    ")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Compute :func:`alpha_dropout` of whole channels.

    Example:
        >>> dropped = F.feature_alpha_dropout(rgrad.zeros(10, 20, 3), training=True)
        >>> bool((dropped == dropped[:, :, :1]).all())
        True
    """
    _check(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input: got {input.dim()}")
    return _alpha(input, p, training, inplace, (*input.shape[:2], *(1 for _ in input.shape[2:])))
