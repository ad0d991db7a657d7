"""Linear algebra, as ``torch.linalg`` has it.

Factorisations and decompositions are computed on the host, whatever device a tensor is on; they have derivatives of
every order, in reverse and forward mode. They take float32, float64, complex64 and complex128.
"""

from .._core import matmul as matmul
from ._determinants import det as det
from ._determinants import slogdet as slogdet
from ._factor import cholesky as cholesky
from ._factor import cholesky_ex as cholesky_ex
from ._factor import lu as lu
from ._factor import lu_factor as lu_factor
from ._factor import lu_factor_ex as lu_factor_ex
from ._factor import lu_solve as lu_solve
from ._factor import qr as qr
from ._general import eig as eig
from ._general import eigvals as eigvals
from ._general import ldl_factor as ldl_factor
from ._general import ldl_factor_ex as ldl_factor_ex
from ._general import ldl_solve as ldl_solve
from ._host import LinAlgError as LinAlgError
from ._norms import cond as cond
from ._norms import matrix_norm as matrix_norm
from ._norms import norm as norm
from ._norms import vector_norm as vector_norm
from ._products import cross as cross
from ._products import diagonal as diagonal
from ._products import householder_product as householder_product
from ._products import matrix_exp as matrix_exp
from ._products import matrix_power as matrix_power
from ._products import multi_dot as multi_dot
from ._products import tensorinv as tensorinv
from ._products import tensorsolve as tensorsolve
from ._products import vander as vander
from ._products import vecdot as vecdot
from ._solve import inv as inv
from ._solve import solve as solve
from ._solve import solve_triangular as solve_triangular
from ._spectrum import eigh as eigh
from ._spectrum import eigvalsh as eigvalsh
from ._spectrum import lstsq as lstsq
from ._spectrum import matrix_rank as matrix_rank
from ._spectrum import pinv as pinv
from ._spectrum import svd as svd
from ._spectrum import svdvals as svdvals
from ._with_info import inv_ex as inv_ex
from ._with_info import solve_ex as solve_ex

__all__ = sorted(name for name in globals() if not name.startswith("_"))  # noqa: PLE0605
