"""Parametrizations: weight and spectral norm, and orthogonal matrices."""

from typing import Any

from ... import _core
from ..._core import Tensor
from ..._runtime.info import finfo
from ...autograd.grad_mode import no_grad
from ..functional import normalize
from ..modules.module import Module
from . import _orthogonal
from ._norms import as_matrix, norm_except_dim, output_dim, power_method, weight_of
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight from its length (``original0``) and direction (``original1``) (Salimans and Kingma 2016).

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
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        # States of the older hook.
        keys = [f"{prefix}{name}{end}" for end in ("_g", "_v")]
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                for key, n in zip(("_u", "_v"), matrix.shape, strict=True):
                    start = _core.randn(n, dtype=weight.dtype, device=weight.device)
                    self.register_buffer(key, normalize(start, dim=0, eps=eps))
            power_method(matrix, self._u, self._v, 15, eps, u_first=True)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_method(matrix, self._u, self._v, self.n_power_iterations, self.eps, u_first=True)
        # The next call moves the vectors while the graph of this one still has them.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by an estimate of its largest singular value (Miyato et al. 2018).

    In training the estimate moves with each time the weight is read.

    Args:
        module: The module.
        name: The weight's name.
        n_power_iterations: Steps of the power method.
        eps: The least norm that is divided by.
        dim: The dimension of the outputs; None for that of the module's class.

    Returns:
        The module.

    Raises:
        ValueError: There is no such tensor, or ``n_power_iterations`` is not positive.
        IndexError: ``dim`` is out of range.

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2))
        >>> sorted(dict(layer.named_parameters()))
        ['bias', 'parametrizations.weight.original']
    """
    weight = _tensor_of(module, name)
    where = output_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, where, eps))


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        is_wide = x.size(-2) < x.size(-1)
        if is_wide:
            x = x.mT
        rows, columns = x.shape[-2:]
        if self.orthogonal_map == "householder":
            lower = x.tril(-1)
            q = _orthogonal.householder_product(lower, 2.0 / (1.0 + (lower * lower).sum(-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).to(_core.int64).to(x.dtype).unsqueeze(-2)
        else:
            x = x.tril()
            if rows != columns:
                x = _core.cat([x, _core.zeros(*x.shape[:-1], rows - columns, dtype=x.dtype, device=x.device)], -1)
            skew = x - x.mT
            q = _orthogonal.matrix_exp(skew) if self.orthogonal_map == "matrix_exp" else _orthogonal.cayley(skew)
            q = q[..., :columns]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if is_wide else q

    @no_grad()
    def right_inverse(self, value: Tensor) -> Tensor:
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}."
            )
        q = value
        is_wide = q.size(-2) < q.size(-1)
        if is_wide:
            q = q.mT
        rows, columns = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflections, tau = _orthogonal.geqrf(q)
            signs = reflections.diagonal(dim1=-2, dim2=-1)
            signs.sign_()
            # A reflection by nothing is the identity, not its negative.
            signs.mul_(_core.where(tau == 0.0, -1.0, 1.0).to(signs.dtype))
            return reflections.mT if is_wide else reflections
        if rows != columns:
            filling = _core.randn(*q.shape[:-1], rows - columns, dtype=q.dtype, device=q.device)
            q = _orthogonal.orthogonal_of(_core.cat([q, filling], -1))
        else:
            eye = _core.eye(columns, dtype=q.dtype, device=q.device)
            is_orthogonal = _core.allclose(q.mT @ q, eye.expand(q.shape), atol=10.0 * rows * finfo(q.dtype).eps)
            q = q.clone() if is_orthogonal else _orthogonal.orthogonal_of(q)
        self.base = q
        start = _core.zeros_like(value)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Make a matrix, or each of a batch, orthogonal; with orthonormal columns or rows if it is not square.

    Args:
        module: The module.
        name: The matrix's name.
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``; None is the first for square matrices, the
            last for others.
        use_trivialization: Keep the present matrix as a base, from which the map starts (Lezcano-Casado 2019). The
            weight can then be assigned for every map.

    Returns:
        The module.

    Raises:
        ValueError: There is no such tensor, it is no matrix, or the map is unknown.

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> rgrad.allclose(layer.weight @ layer.weight.T, rgrad.eye(3), atol=1e-5)
        True
    """
    weight = _tensor_of(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)
