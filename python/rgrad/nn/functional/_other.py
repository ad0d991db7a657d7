"""Functions that are neither activations nor losses."""

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable


@overridable("input")
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the norm along a dimension: ``x / max(norm(x, p, dim), eps)``.

    Args:
        input: A tensor of any shape.
        p: The order of the norm.
        dim: The dimension that the norm is taken along.
        eps: The smallest divisor.
        out: The tensor that the result is written to.

    Returns:
        A tensor of the shape of ``input``.

    Example:
        >>> F.normalize(rgrad.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    # The norm of 16-bit floats can be too large for them, and ``eps`` too small.
    wide = input.float() if input.dtype in (_core.float16, _core.bfloat16) else input
    norm = wide.norm(p, dim, keepdim=True).clamp(min=eps).expand_as(wide)
    return (wide / norm).to(input.dtype) if out is None else _core.div(wide, norm, out=out)


@overridable("tensor")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Turn class indices into rows with a 1 at the index and 0 elsewhere.

    Args:
        tensor: int64 indices of shape ``(*)``.
        num_classes: The length of a row; -1 takes one more than the largest index.

    Returns:
        An int64 tensor of shape ``(*, num_classes)``.

    Raises:
        RuntimeError: The dtype is not int64, an index is out of range, or there is no index to infer ``num_classes``
            from.

    Example:
        >>> F.one_hot(rgrad.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if tensor.dtype != _core.int64:
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor (int64), but got {tensor.dtype}"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return _core.zeros(*tensor.shape, num_classes, dtype=_core.int64, device=tensor.device)
    if int(tensor.min()) < 0:
        raise RuntimeError(f"Class values must be non-negative, but got {int(tensor.min())}.")
    top = int(tensor.max())
    if num_classes == -1:
        num_classes = top + 1
    elif num_classes < 1:
        raise RuntimeError(f"num_classes should be positive, but got {num_classes}")
    elif top >= num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes: got {top}, num_classes is {num_classes}.")
    return (tensor.unsqueeze(-1) == _core.arange(num_classes, device=tensor.device)).to(_core.int64)
