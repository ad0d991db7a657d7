"""Special functions, as ``torch.special`` has them.

Values are computed in float64 and rounded once; each function has derivatives of every order, but for those whose
documentation says that one operand has none, and for orthogonal polynomials.
"""

from .. import _core
from .._core import digamma as digamma
from .._core import erf as erf
from .._core import erfc as erfc
from .._core import erfinv as erfinv
from .._core import exp2 as exp2
from .._core import expit as expit
from .._core import expm1 as expm1
from .._core import i0 as i0
from .._core import log1p as log1p
from .._core import log_softmax as log_softmax
from .._core import logit as logit
from .._core import logsumexp as logsumexp
from .._core import round as round
from .._core import softmax as softmax
from .._core import xlogy as xlogy
from ._gamma import mvlgamma as _mvlgamma
from ._gamma import polygamma as polygamma
from ._simple import sinc as sinc

airy_ai = _core.special_airy_ai
bessel_j0 = _core.special_bessel_j0
bessel_j1 = _core.special_bessel_j1
bessel_y0 = _core.special_bessel_y0
bessel_y1 = _core.special_bessel_y1
chebyshev_polynomial_t = _core.special_chebyshev_polynomial_t
chebyshev_polynomial_u = _core.special_chebyshev_polynomial_u
chebyshev_polynomial_v = _core.special_chebyshev_polynomial_v
chebyshev_polynomial_w = _core.special_chebyshev_polynomial_w
entr = _core.special_entr
erfcx = _core.special_erfcx
gammainc = _core.igamma
gammaincc = _core.igammac
gammaln = _core.lgamma
hermite_polynomial_h = _core.special_hermite_polynomial_h
hermite_polynomial_he = _core.special_hermite_polynomial_he
i0e = _core.special_i0e
i1 = _core.special_i1
i1e = _core.special_i1e
laguerre_polynomial_l = _core.special_laguerre_polynomial_l
legendre_polynomial_p = _core.special_legendre_polynomial_p
log_ndtr = _core.special_log_ndtr
modified_bessel_i0 = i0
modified_bessel_k0 = _core.special_modified_bessel_k0
modified_bessel_k1 = _core.special_modified_bessel_k1
multigammaln = _mvlgamma
ndtr = _core.special_ndtr
ndtri = _core.special_ndtri
psi = digamma
scaled_modified_bessel_k0 = _core.special_scaled_modified_bessel_k0
scaled_modified_bessel_k1 = _core.special_scaled_modified_bessel_k1
shifted_chebyshev_polynomial_t = _core.special_shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u = _core.special_shifted_chebyshev_polynomial_u
shifted_chebyshev_polynomial_v = _core.special_shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w = _core.special_shifted_chebyshev_polynomial_w
spherical_bessel_j0 = _core.special_spherical_bessel_j0
xlog1py = _core.special_xlog1py
zeta = _core.special_zeta
modified_bessel_i1 = i1

__all__ = sorted(name for name in globals() if not name.startswith("_"))  # noqa: PLE0605
