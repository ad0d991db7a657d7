"""Discrete Fourier transforms, as ``torch.fft`` has them.

They are computed on the CPU, in float32 and float64, by the crate ``rustfft``; other devices refuse them. Derivatives
of every order, tangents and batches are transforms themselves.
"""

from .._core import fft_fft as fft
from .._core import fft_fft2 as fft2
from .._core import fft_fftn as fftn
from .._core import fft_hfft as hfft
from .._core import fft_hfft2 as hfft2
from .._core import fft_hfftn as hfftn
from .._core import fft_ifft as ifft
from .._core import fft_ifft2 as ifft2
from .._core import fft_ifftn as ifftn
from .._core import fft_ihfft as ihfft
from .._core import fft_ihfft2 as ihfft2
from .._core import fft_ihfftn as ihfftn
from .._core import fft_irfft as irfft
from .._core import fft_irfft2 as irfft2
from .._core import fft_irfftn as irfftn
from .._core import fft_rfft as rfft
from .._core import fft_rfft2 as rfft2
from .._core import fft_rfftn as rfftn
from ._frequencies import fftfreq as fftfreq
from ._frequencies import fftshift as fftshift
from ._frequencies import ifftshift as ifftshift
from ._frequencies import rfftfreq as rfftfreq

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
