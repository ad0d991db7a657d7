"""What the parametrizations and the older hooks of norms compute."""

from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ..functional import normalize


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The Euclidean norms over all dimensions but one, with sizes 1 for these; of everything for -1 and None."""
    if dim is None or dim == -1:
        return v.norm(2)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.norm(2, others, keepdim=True) if others else v.abs()


def weight_of(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """``g v / |v|`` (Salimans and Kingma 2016)."""
    return v * (g / norm_except_dim(v, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix with a row for each index of a dimension."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.flatten(1) if weight.dim() > 1 else weight.reshape(-1, 1)


@no_grad()
def power_method(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float, u_first: bool) -> None:
    """Move two vectors towards the first singular vectors of a matrix, in place."""

    def move_u() -> None:
        u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))

    def move_v() -> None:
        v.copy_(normalize(matrix.t().mv(u), dim=0, eps=eps))

    for _ in range(steps):
        for move in (move_u, move_v) if u_first else (move_v, move_u):
            move()


def output_dim(module: Any) -> int:
    """The dimension of a weight that has an index for each output."""
    return 1 if type(module).__name__.startswith(("ConvTranspose", "ParametrizedConvTranspose")) else 0
