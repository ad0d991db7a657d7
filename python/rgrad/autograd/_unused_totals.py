"""Totals that are still there when the program ends, though no backward pass has used their graphs."""

import atexit
import sys

from .. import _core
from .._core import Tensor


def _at_exit() -> None:
    """Reports them as those that are dropped before (``src/autograd/diagnostics/unused_total.rs``).

    Only variables of the script are looked at: what a function has held is dropped by now.
    """
    if hasattr(sys, "last_type"):
        # The script has ended with an exception, perhaps between a step's forward and its backward.
        return
    for value in list(vars(sys.modules["__main__"]).values()):
        if type(value) is Tensor and not value.is_leaf and value.grad_fn is not None:
            _core._unused_total(value.grad_fn)


atexit.register(_at_exit)
