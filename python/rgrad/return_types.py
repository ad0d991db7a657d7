"""What functions with several results return: tuples whose fields have names."""

from typing import Any, NamedTuple, TypeVar

from ._core import Tensor

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "qr",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]


C = TypeVar("C")


def _shown(cls: type[C]) -> type[C]:
    """Have the fields shown as PyTorch shows them, one on each line."""

    def __repr__(self: NamedTuple) -> str:
        fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"rgrad.return_types.{type(self).__name__}(\n{fields})"

    tuples: Any = cls
    tuples.__repr__ = __repr__
    return cls


@_shown
class max(NamedTuple):
    """The largest values along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class min(NamedTuple):
    """The smallest values along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class median(NamedTuple):
    """The medians along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class nanmedian(NamedTuple):
    """The medians of what is not nan along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class mode(NamedTuple):
    """The most frequent values along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class cummax(NamedTuple):
    """The largest values so far along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class cummin(NamedTuple):
    """The smallest values so far along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class kthvalue(NamedTuple):
    """The k-th smallest values along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class sort(NamedTuple):
    """Sorted values and where they came from."""

    values: Tensor
    indices: Tensor


@_shown
class topk(NamedTuple):
    """The k largest or smallest values along a dimension and where they stand."""

    values: Tensor
    indices: Tensor


@_shown
class aminmax(NamedTuple):
    """The smallest and the largest values."""

    min: Tensor
    max: Tensor


@_shown
class linalg_cholesky_ex(NamedTuple):
    """Cholesky factors, and which matrices have none."""

    L: Tensor
    info: Tensor


@_shown
class linalg_eig(NamedTuple):
    """The eigenvalues of general matrices and their vectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@_shown
class linalg_eigh(NamedTuple):
    """The eigenvalues of symmetric matrices and their vectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@_shown
class linalg_inv_ex(NamedTuple):
    """Inverses, and which matrices have none."""

    inverse: Tensor
    info: Tensor


@_shown
class linalg_ldl_factor(NamedTuple):
    """The factors of symmetric matrices in one matrix, and the rows that were exchanged."""

    LD: Tensor
    pivots: Tensor


@_shown
class linalg_ldl_factor_ex(NamedTuple):
    """The factors of symmetric matrices in one matrix, the rows that were exchanged, and which are singular."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@_shown
class linalg_lstsq(NamedTuple):
    """The solution of a least squares problem."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@_shown
class linalg_lu(NamedTuple):
    """A permutation and two triangular factors."""

    P: Tensor
    L: Tensor
    U: Tensor


@_shown
class linalg_lu_factor(NamedTuple):
    """Both triangular factors in one matrix, and the rows that were swapped."""

    LU: Tensor
    pivots: Tensor


@_shown
class linalg_lu_factor_ex(NamedTuple):
    """Both triangular factors, the rows that were swapped, and which matrices are singular."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@_shown
class linalg_qr(NamedTuple):
    """Orthonormal columns and an upper triangular factor."""

    Q: Tensor
    R: Tensor


@_shown
class linalg_slogdet(NamedTuple):
    """The signs of determinants and the logarithms of their magnitudes."""

    sign: Tensor
    logabsdet: Tensor


@_shown
class linalg_solve_ex(NamedTuple):
    """Solutions, and which matrices are singular."""

    result: Tensor
    info: Tensor


@_shown
class linalg_svd(NamedTuple):
    """Singular values and both sets of vectors."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@_shown
class lu_unpack(NamedTuple):
    """A permutation and two triangular factors."""

    P: Tensor
    L: Tensor
    U: Tensor


@_shown
class qr(NamedTuple):
    """Orthonormal columns and an upper triangular factor."""

    Q: Tensor
    R: Tensor


@_shown
class slogdet(NamedTuple):
    """The signs of determinants and the logarithms of their magnitudes."""

    sign: Tensor
    logabsdet: Tensor


@_shown
class svd(NamedTuple):
    """Singular values and both sets of vectors, in columns."""

    U: Tensor
    S: Tensor
    V: Tensor


@_shown
class geqrf(NamedTuple):
    """The reflections of a QR factorisation and their factors."""

    a: Tensor
    tau: Tensor


@_shown
class triangular_solve(NamedTuple):
    """The solution of a triangular system and its matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@_shown
class frexp(NamedTuple):
    """Floats as fractions times powers of 2."""

    mantissa: Tensor
    exponent: Tensor


@_shown
class histogram(NamedTuple):
    """Counts, and the ends of the bins."""

    hist: Tensor
    bin_edges: Tensor


@_shown
class histogramdd(NamedTuple):
    """Counts, and the ends of the bins along each coordinate."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]
