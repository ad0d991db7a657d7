"""Neural networks: modules, the functions behind them, initial values, and helpers over parameters.

``modules`` has a file for each family of layers. Optimizers are in ``rgrad.optim``.
"""

from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["Buffer", "Parameter", "functional", "grad", "init", "modules", "parameter", "utils"]
__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
