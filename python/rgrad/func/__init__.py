"""Transforms of functions: derivatives and batches, nested in any order.

The files of this package have the transforms that need backward passes; ``vmap``, ``jvp`` and ``jacfwd`` are in
``rgrad._transforms``. Derivatives of what was recorded are in ``rgrad.autograd``.
"""

from .._transforms.forward import jacfwd as jacfwd
from .._transforms.forward import jvp as jvp
from .._transforms.vmap import vmap as vmap
from .debug import debug_unwrap as debug_unwrap
from .functionalize import functionalize as functionalize
from .jacobian import hessian as hessian
from .jacobian import jacrev as jacrev
from .linearize import linearize as linearize
from .modules import functional_call as functional_call
from .modules import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from .modules import stack_module_state as stack_module_state
from .reverse import grad as grad
from .reverse import grad_and_value as grad_and_value
from .reverse import vjp as vjp

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
