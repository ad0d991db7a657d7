"""What functions with several results return: tuples whose fields have names."""

from __future__ import annotations

from collections import namedtuple

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eigh",
    "linalg_inv_ex",
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


class _Fields:
    """Shows the fields as PyTorch does, one on each line."""

    __slots__ = ()

    def __repr__(self) -> str:
        fields = ",\n".join(f"{name}={getattr(self, name)!r}" for name in self._fields)  # type: ignore[attr-defined]
        return f"rgrad.return_types.{type(self).__name__}(\n{fields})"


class max(_Fields, namedtuple("max", ("values", "indices"))):
    """The largest values along a dimension and where they stand."""

    __slots__ = ()


class min(_Fields, namedtuple("min", ("values", "indices"))):
    """The smallest values along a dimension and where they stand."""

    __slots__ = ()


class median(_Fields, namedtuple("median", ("values", "indices"))):
    """The medians along a dimension and where they stand."""

    __slots__ = ()


class nanmedian(_Fields, namedtuple("nanmedian", ("values", "indices"))):
    """The medians of what is not nan along a dimension and where they stand."""

    __slots__ = ()


class mode(_Fields, namedtuple("mode", ("values", "indices"))):
    """The most frequent values along a dimension and where they stand."""

    __slots__ = ()


class cummax(_Fields, namedtuple("cummax", ("values", "indices"))):
    """The largest values so far along a dimension and where they stand."""

    __slots__ = ()


class cummin(_Fields, namedtuple("cummin", ("values", "indices"))):
    """The smallest values so far along a dimension and where they stand."""

    __slots__ = ()


class kthvalue(_Fields, namedtuple("kthvalue", ("values", "indices"))):
    """The k-th smallest values along a dimension and where they stand."""

    __slots__ = ()


class sort(_Fields, namedtuple("sort", ("values", "indices"))):
    """Sorted values and where they came from."""

    __slots__ = ()


class topk(_Fields, namedtuple("topk", ("values", "indices"))):
    """The k largest or smallest values along a dimension and where they stand."""

    __slots__ = ()


class aminmax(_Fields, namedtuple("aminmax", ("min", "max"))):
    """The smallest and the largest values."""

    __slots__ = ()


class linalg_cholesky_ex(_Fields, namedtuple("linalg_cholesky_ex", ("L", "info"))):
    """Cholesky factors, and which matrices have none."""

    __slots__ = ()


class linalg_eigh(_Fields, namedtuple("linalg_eigh", ("eigenvalues", "eigenvectors"))):
    """The eigenvalues of symmetric matrices and their vectors."""

    __slots__ = ()


class linalg_inv_ex(_Fields, namedtuple("linalg_inv_ex", ("inverse", "info"))):
    """Inverses, and which matrices have none."""

    __slots__ = ()


class linalg_lstsq(_Fields, namedtuple("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))):
    """The solution of a least squares problem."""

    __slots__ = ()


class linalg_lu(_Fields, namedtuple("linalg_lu", ("P", "L", "U"))):
    """A permutation and two triangular factors."""

    __slots__ = ()


class linalg_lu_factor(_Fields, namedtuple("linalg_lu_factor", ("LU", "pivots"))):
    """Both triangular factors in one matrix, and the rows that were swapped."""

    __slots__ = ()


class linalg_lu_factor_ex(_Fields, namedtuple("linalg_lu_factor_ex", ("LU", "pivots", "info"))):
    """Both triangular factors, the rows that were swapped, and which matrices are singular."""

    __slots__ = ()


class linalg_qr(_Fields, namedtuple("linalg_qr", ("Q", "R"))):
    """Orthonormal columns and an upper triangular factor."""

    __slots__ = ()


class linalg_slogdet(_Fields, namedtuple("linalg_slogdet", ("sign", "logabsdet"))):
    """The signs of determinants and the logarithms of their magnitudes."""

    __slots__ = ()


class linalg_solve_ex(_Fields, namedtuple("linalg_solve_ex", ("result", "info"))):
    """Solutions, and which matrices are singular."""

    __slots__ = ()


class linalg_svd(_Fields, namedtuple("linalg_svd", ("U", "S", "Vh"))):
    """Singular values and both sets of vectors."""

    __slots__ = ()


class lu_unpack(_Fields, namedtuple("lu_unpack", ("P", "L", "U"))):
    """A permutation and two triangular factors."""

    __slots__ = ()


class qr(_Fields, namedtuple("qr", ("Q", "R"))):
    """Orthonormal columns and an upper triangular factor."""

    __slots__ = ()


class slogdet(_Fields, namedtuple("slogdet", ("sign", "logabsdet"))):
    """The signs of determinants and the logarithms of their magnitudes."""

    __slots__ = ()


class svd(_Fields, namedtuple("svd", ("U", "S", "V"))):
    """Singular values and both sets of vectors, in columns."""

    __slots__ = ()


class triangular_solve(_Fields, namedtuple("triangular_solve", ("solution", "cloned_coefficient"))):
    """The solution of a triangular system and its matrix."""

    __slots__ = ()


class frexp(_Fields, namedtuple("frexp", ("mantissa", "exponent"))):
    """Floats as fractions times powers of 2."""

    __slots__ = ()


class histogram(_Fields, namedtuple("histogram", ("hist", "bin_edges"))):
    """Counts, and the ends of the bins."""

    __slots__ = ()


class histogramdd(_Fields, namedtuple("histogramdd", ("hist", "bin_edges"))):
    """Counts, and the ends of the bins along each coordinate."""

    __slots__ = ()
