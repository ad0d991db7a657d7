"""Switches for how ``nn.Module`` converts its parameters (``to``, ``double``, ...)."""

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module assigns new parameters in place of writing to ``param.data``. Off by default."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether converting a module assigns new parameters."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module exchanges parameters by :func:`rgrad.utils.swap_tensors`. Off by default."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether converting a module exchanges parameters."""
    return _swap
