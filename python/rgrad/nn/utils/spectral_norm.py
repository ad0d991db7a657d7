"""Spectral normalization as a hook: a weight divided by its largest singular value."""

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ..functional import normalize
from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from ._norms import as_matrix, output_dim, power_method

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: computes the weight ``<name>`` from ``<name>_orig`` before each call.

    Raises:
        ValueError: ``n_power_iterations`` is not positive.
    """

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by the estimate of its largest singular value; the vectors move before that."""
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_method(matrix, u, v, self.n_power_iterations, self.eps, u_first=False)
            # The next call moves the vectors while the graph of this one still has them.
            u, v = u.clone(), v.clone()
        made: Tensor = weight / u.dot(matrix.mv(v))
        return made

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> "SpectralNorm":
        """Put the hook on a module.

        Raises:
            RuntimeError: The weight has one.
            ValueError: The weight is None or not initialized.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            rows, columns = as_matrix(weight, dim).shape
            u, v = (
                normalize(_core.randn(n, dtype=weight.dtype, device=weight.device), dim=0, eps=eps)
                for n in (rows, columns)
            )
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # Until the first call; no parameter, since that would be one more.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by an estimate of its largest singular value before each call (Miyato et al. 2018).

    :func:`rgrad.nn.utils.parametrizations.spectral_norm` does the same with a parametrization.

    Args:
        module: The module.
        name: The weight's name.
        n_power_iterations: Steps of the power method in each call in training.
        eps: The least norm that is divided by.
        dim: The dimension of the outputs; None for that of the module's class.

    Returns:
        The module.

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(2, 2))
        >>> sorted(dict(layer.named_parameters()))
        ['bias', 'weight_orig']
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`spectral_norm`.

    Args:
        module: The module.
        name: The name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: The weight has no such norm.

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(2, 2))
        >>> sorted(dict(nn.utils.remove_spectral_norm(layer).named_parameters()))
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
