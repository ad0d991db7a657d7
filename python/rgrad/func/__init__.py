"""Function transforms: derivatives and batches of functions, nested in any order."""

from .batch import vmap as vmap
from .debug import debug_unwrap as debug_unwrap
from .forward import jvp as jvp
from .forward import linearize as linearize
from .jacobian import hessian as hessian
from .jacobian import jacfwd as jacfwd
from .jacobian import jacrev as jacrev
from .modules import functional_call as functional_call
from .modules import stack_module_state as stack_module_state
from .reverse import grad as grad
from .reverse import grad_and_value as grad_and_value
from .reverse import vjp as vjp

__all__ = [
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
