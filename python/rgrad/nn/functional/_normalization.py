"""Normalisation by mean and variance."""

from collections.abc import Sequence

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable


@overridable("input")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Subtract the mean and divide by the deviation over the last dimensions (Ba et al. 2016).

    Args:
        input: A float tensor of shape ``(*, *normalized_shape)``.
        normalized_shape: The sizes of the dimensions that are normalised together.
        weight: Factors of this shape.
        bias: Summands of this shape.
        eps: Added to the variance.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: The shapes do not match.

    Example:
        >>> F.layer_norm(rgrad.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """
    return _core.layer_norm(input, normalized_shape, weight, bias, eps)


@overridable("input")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean of squares over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: A float tensor of shape ``(*, *normalized_shape)``.
        normalized_shape: The sizes of the dimensions that are normalised together.
        weight: Factors of this shape.
        eps: Added to the mean of squares; None takes the epsilon of the dtype.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: The shapes do not match.

    Example:
        >>> F.rms_norm(rgrad.tensor([[1.0, 7.0]]), (2,))
        tensor([[0.2000, 1.4000]])
    """
    return _core.rms_norm(input, normalized_shape, weight, eps)


def _check_more_than_one(size: Sequence[int], count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _product(sizes: Sequence[int]) -> int:
    out = 1
    for n in sizes:
        out *= n
    return out


# PyTorch's name, which programs with norms of their own call.
def _verify_batch_size(size: Sequence[int]) -> None:
    _check_more_than_one(size, size[0] * _product(size[2:]))


@overridable("input")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Subtract the mean and divide by the deviation over each group of channels (Wu and He 2018).

    Args:
        input: A float tensor of shape ``(N, C, *)``.
        num_groups: How many groups the channels form.
        weight: A factor for each channel.
        bias: A summand for each channel.
        eps: Added to the variance.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: The channels cannot be divided into so many groups, or the shapes do not match.
        ValueError: There is one element in all.

    Example:
        >>> F.group_norm(rgrad.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    _check_more_than_one(
        [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]],
        (shape[0] * shape[1] // num_groups) * _product(shape[2:]),
    )
    return _core.group_norm(input, num_groups, weight, bias, eps)


def _check_running(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


@overridable("input")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Subtract the mean and divide by the deviation of each channel (Ioffe and Szegedy 2015).

    Args:
        input: A float tensor of shape ``(N, C, *)``.
        running_mean: The running means, one for each channel. In training they are written.
        running_var: The running variances. In training they are written, with the unbiased variance of the input.
        weight: A factor for each channel.
        bias: A summand for each channel.
        training: Whether the statistics are those of ``input``; else the running ones are used.
        momentum: How much the statistics of ``input`` count for the running ones.
        eps: Added to the variance.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The input has less than two dimensions.
        RuntimeError: A tensor does not have an element for each channel, or there are no running statistics outside of
            training.
        ValueError: A channel has one element in training, ``eps`` is not positive in training, or one of the running
            statistics is missing.

    Example:
        >>> F.batch_norm(rgrad.tensor([[1.0, 0.0], [3.0, 8.0]]), None, None, training=True)
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
    """
    if training:
        shape = input.shape
        if not shape:
            raise IndexError("batch_norm: tuple index out of range: expected an input of shape (N, C, *), got []")
        _verify_batch_size(shape)
        _check_running(running_mean, running_var)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return _core.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@overridable("input")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Subtract the mean and divide by the deviation of each channel of each element of the batch (Ulyanov et al. 2016).

    Args:
        input: A float tensor of shape ``(N, C, *)``.
        running_mean: The running means, one for each channel. They are written if ``use_input_stats``.
        running_var: The running variances. They are written if ``use_input_stats``.
        weight: A factor for each channel.
        bias: A summand for each channel.
        use_input_stats: Whether the statistics are those of ``input``; else the running ones are used.
        momentum: How much the statistics of ``input`` count for the running ones.
        eps: Added to the variance.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: A tensor does not have an element for each channel, or there are no statistics to use.
        ValueError: A channel has one element and ``use_input_stats``, or one of the running statistics is missing.

    Example:
        >>> F.instance_norm(rgrad.tensor([[[1.0, 3.0], [0.0, 8.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    _check_running(running_mean, running_var)
    if use_input_stats:
        shape = input.shape
        if _product(shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    return _core.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)
