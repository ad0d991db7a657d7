"""What libraries ask of PyTorch's tracing of tensors. Here `fx` traces functions, and no mode does."""


def get_proxy_mode() -> None:
    """The mode that traces tensors now: always None.

    Example:
        >>> import rgrad.fx.experimental.proxy_tensor as proxy_tensor
        >>> proxy_tensor.get_proxy_mode() is None
        True
    """
