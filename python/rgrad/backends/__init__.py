"""What portable code asks of, and sets in, PyTorch's backends.

Queries say what there is here. Switches are kept, so that they read as they were written, and change nothing.
"""

from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import cusparselt as cusparselt
from . import kleidiai as kleidiai
from . import mha as mha
from . import miopen as miopen
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import nnpack as nnpack
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import quantized as quantized

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]
