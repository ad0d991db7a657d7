"""Calls of modules with other parameters."""

import warnings
from typing import Any

from ...func import functional_call as _functional_call
from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """As :func:`rgrad.func.functional_call`, which replaces it.

    Args:
        module: The module.
        parameters_and_buffers: Tensors by their names.
        args: Positional arguments.
        kwargs: Arguments by name.
        tie_weights: What the module knows by several names is replaced at all of them.
        strict: Raise unless the names are those of all parameters and buffers.

    Returns:
        What the module gives.

    Example:
        >>> nn.utils.stateless.functional_call.__name__
        'functional_call'
    """
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0. Please use rgrad.func.functional_call instead which is a drop-in "
        "replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
