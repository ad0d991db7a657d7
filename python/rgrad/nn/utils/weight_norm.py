"""Weight normalization as a hook: length and direction of a weight are parameters of their own."""

import warnings
from typing import Any

from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from ._norms import norm_except_dim, weight_of

__all__ = ["remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: computes the weight ``<name>`` from ``<name>_g`` and ``<name>_v`` before each call."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight from its length and direction."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> "WeightNorm":
        """Put the hook on a module.

        Raises:
            RuntimeError: The weight has one.
            ValueError: The weight is not initialized.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight: Any = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a weight by its length (``<name>_g``) and direction (``<name>_v``) (Salimans and Kingma 2016).

    Deprecated: :func:`rgrad.nn.utils.parametrizations.weight_norm` does the same with a parametrization.

    Args:
        module: The module.
        name: The weight's name.
        dim: The dimension whose indices have lengths of their own; None for one length.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> sorted(dict(layer.named_parameters()))
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`weight_norm`.

    Args:
        module: The module.
        name: The name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: The weight has no such norm.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> hook = nn.utils.weight_norm.__globals__["WeightNorm"].apply(layer, "weight", 0)
        >>> sorted(dict(nn.utils.remove_weight_norm(layer).named_parameters()))
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
