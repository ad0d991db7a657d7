"""Special functions, as ``torch.special`` has them.

Values are computed in float64 and rounded once; each function has derivatives of every order, but for those whose
documentation says that one operand has none.
"""

from .._core import erf as erf
from .._core import erfc as erfc
from .._core import exp2 as exp2
from .._core import expit as expit
from .._core import expm1 as expm1
from .._core import log1p as log1p
from .._core import log_softmax as log_softmax
from .._core import logit as logit
from .._core import logsumexp as logsumexp
from .._core import round as round
from .._core import softmax as softmax
from .._core import xlogy as xlogy
from ._bessel import i0 as i0
from ._bessel import i0e as i0e
from ._bessel import i1 as i1
from ._bessel import i1e as i1e
from ._bessel_second import bessel_j0 as bessel_j0
from ._bessel_second import bessel_j1 as bessel_j1
from ._bessel_second import bessel_y0 as bessel_y0
from ._bessel_second import bessel_y1 as bessel_y1
from ._bessel_second import modified_bessel_k0 as modified_bessel_k0
from ._bessel_second import modified_bessel_k1 as modified_bessel_k1
from ._bessel_second import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from ._bessel_second import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from ._gamma import digamma as digamma
from ._gamma import lgamma as _lgamma
from ._gamma import mvlgamma as _mvlgamma
from ._gamma import polygamma as polygamma
from ._gamma import zeta as zeta
from ._incomplete import gammainc as gammainc
from ._incomplete import gammaincc as gammaincc
from ._normal import erfcx as erfcx
from ._normal import erfinv as erfinv
from ._normal import log_ndtr as log_ndtr
from ._normal import ndtr as ndtr
from ._normal import ndtri as ndtri
from ._polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from ._polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from ._polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from ._polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from ._polynomials import hermite_polynomial_h as hermite_polynomial_h
from ._polynomials import hermite_polynomial_he as hermite_polynomial_he
from ._polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from ._polynomials import legendre_polynomial_p as legendre_polynomial_p
from ._polynomials import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from ._polynomials import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from ._polynomials import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from ._polynomials import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from ._simple import entr as entr
from ._simple import sinc as sinc
from ._simple import xlog1py as xlog1py

gammaln = _lgamma
modified_bessel_i0 = i0
modified_bessel_i1 = i1
multigammaln = _mvlgamma
psi = digamma

__all__ = sorted(name for name in globals() if not name.startswith("_"))  # noqa: PLE0605
