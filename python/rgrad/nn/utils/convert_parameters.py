"""All parameters of a model as one vector, and back."""

from collections.abc import Iterable
from typing import Any

from ... import _core
from ..._core import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Join all parameters into one vector; this is differentiable.

    Args:
        parameters: The tensors.

    Returns:
        A tensor of one dimension.

    Example:
        >>> nn.utils.parameters_to_vector([rgrad.ones(2), rgrad.zeros(1, 2)])
        tensor([1., 1., 0., 0.])
    """
    return _core.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the values of a vector, whose memory they share then.

    Args:
        vec: A vector as :func:`parameters_to_vector` makes it.
        parameters: The tensors that get its parts.

    Raises:
        TypeError: ``vec`` is no tensor.
        ValueError: It does not have as many elements as the parameters.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(rgrad.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.bias
        Parameter containing:
        tensor([3.], requires_grad=True)
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
