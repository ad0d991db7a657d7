"""PyTorch's wrapper for several CUDA devices. There are none here, so it calls the module that it wraps."""

from collections.abc import Sequence
from typing import Any

from .modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Calls the wrapped module, which PyTorch does too where there is no CUDA device.

    Names in state dicts begin with ``module.``.

    Args:
        module: The module.
        device_ids: Accepted; has no effect.
        output_device: Accepted; has no effect.
        dim: Accepted; has no effect.

    Shape:
        As the module.

    Example:
        >>> net = nn.DataParallel(nn.Linear(2, 1))
        >>> list(net.state_dict())
        ['module.weight', 'module.bias']
        >>> net(rgrad.ones(3, 2)).shape
        rgrad.Size([3, 1])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)
