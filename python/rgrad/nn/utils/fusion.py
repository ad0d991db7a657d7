"""A layer and the batch norm after it as one layer, for inference."""

import copy
from typing import Any, TypeVar

from ... import _core
from ..._core import Tensor
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

M = TypeVar("M", bound=Module)


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A copy of a convolution that computes what the batch norm after it would give.

    Args:
        conv: A convolution in eval mode.
        bn: A batch norm in eval mode, with running statistics.
        transpose: Whether the convolution is a transposed one.

    Returns:
        A convolution.

    Raises:
        AssertionError: A module is in training mode, or there are no statistics.

    Example:
        >>> bn = nn.BatchNorm1d(2).eval()
        >>> fused = nn.utils.fuse_conv_bn_eval(nn.Linear(3, 2).eval(), bn)
        >>> fused.weight.shape
        rgrad.Size([2, 3])
    """
    _check(conv, bn)
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    made: M = fused
    return made


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that is a convolution and a batch norm.

    Args:
        conv_w: The convolution's weight.
        conv_b: Its bias.
        bn_rm: The running mean.
        bn_rv: The running variance.
        bn_eps: What is added to the variance.
        bn_w: The batch norm's weight.
        bn_b: Its bias.
        transpose: Whether outputs are dimension 1 of the weight.

    Returns:
        The weight and the bias.

    Example:
        >>> zeros, ones = rgrad.zeros(2), rgrad.ones(2)
        >>> w, b = nn.utils.fuse_conv_bn_weights(rgrad.ones(2, 1, 1), None, zeros, 3 * ones, 1.0, None, None)
        >>> w.flatten().tolist()
        [0.5, 0.5]
    """
    bias = _core.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = _core.rsqrt(bn_rv + bn_eps)
    weight = _core.ones_like(bn_rm) if bn_w is None else bn_w
    shift = _core.zeros_like(bn_rm) if bn_b is None else bn_b
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.dim() - 2)
    fused_w = (conv_w * (weight * scale).reshape(shape)).to(conv_w.dtype)
    fused_b = ((bias - bn_rm) * scale * weight + shift).to(conv_w.dtype if conv_b is None else conv_b.dtype)
    return Parameter(fused_w, conv_w.requires_grad), Parameter(fused_b, bias.requires_grad)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A copy of a linear layer that computes what the batch norm after it would give.

    Args:
        linear: A linear layer in eval mode.
        bn: A batch norm in eval mode, with running statistics.

    Returns:
        A linear layer.

    Raises:
        AssertionError: A module is in training mode, there are no statistics, or the features do not fit.

    Example:
        >>> fused = nn.utils.fuse_linear_bn_eval(nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval())
        >>> fused.weight.shape
        rgrad.Size([2, 3])
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused: Any = copy.deepcopy(linear)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    _check(linear, bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    made: M = fused
    return made


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that is a linear layer and a batch norm.

    Args:
        linear_w: The layer's weight.
        linear_b: Its bias.
        bn_rm: The running mean.
        bn_rv: The running variance.
        bn_eps: What is added to the variance.
        bn_w: The batch norm's weight.
        bn_b: Its bias.

    Returns:
        The weight and the bias.

    Example:
        >>> zeros, ones = rgrad.zeros(2), rgrad.ones(2)
        >>> w, b = nn.utils.fuse_linear_bn_weights(rgrad.ones(2, 1), None, zeros, 3 * ones, 1.0, ones, zeros)
        >>> w.flatten().tolist()
        [0.5, 0.5]
    """
    bias = _core.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * _core.rsqrt(bn_rv + bn_eps)
    fused_w = linear_w * scale.unsqueeze(-1).to(linear_w.dtype)
    fused_b = ((bias - bn_rm) * scale + bn_b).to(linear_w.dtype if linear_b is None else linear_b.dtype)
    return Parameter(fused_w, linear_w.requires_grad), Parameter(fused_b, bias.requires_grad)
