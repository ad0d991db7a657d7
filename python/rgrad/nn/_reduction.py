"""The argument ``reduction`` of losses, and the two old arguments that it replaces."""

import warnings

from .._core import Tensor

_REDUCTIONS = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: bool | None, reduce: bool | None, stacklevel: int = 4) -> str:
    """The reduction that is asked for, with a warning if the old arguments ask for it.

    Raises:
        ValueError: There is no such reduction.
    """
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=stacklevel,
        )
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; expected one of {', '.join(_REDUCTIONS)}")
    return reduction


def reduced(value: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of all elements, or the elements themselves for ``"none"``."""
    if reduction == "mean":
        return value.mean()
    return value.sum() if reduction == "sum" else value
