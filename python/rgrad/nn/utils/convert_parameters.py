"""All parameters of a model as one vector, and back."""

from collections.abc import Iterable
from typing import Any

from ... import _core
from ..._core import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector, differentiable."""
    return _core.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the values of a vector made by :func:`parameters_to_vector` (they share its memory then).

    Raises:
        TypeError: ``vec`` is no tensor. ValueError: it does not have as many elements as the parameters.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    params: list[Any] = list(parameters)
    needed = sum(p.numel() for p in params)
    if vec.dim() != 1 or vec.numel() != needed:
        raise ValueError(f"vector_to_parameters: got a vector of shape {tuple(vec.shape)}, expected ({needed},)")
    start = 0
    for param in params:
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
