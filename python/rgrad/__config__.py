"""How rgrad was built, as texts."""

import os

from . import _core

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A text about the build: the version and the instruction set of this processor that kernels use.

    PyTorch names its compilers and libraries here. rgrad has none of these, and names none.
    """
    return (
        f"rgrad built with:\n  - rgrad {_core.__version__}\n  - CPU capability usage: {_core._get_cpu_capability()}\n"
    )


def parallel_info() -> str:
    """A text about threads: how many compute, and how many processors the process may use."""
    return f"rgrad:\n\tget_num_threads() : {_core.get_num_threads()}\n\tprocessors : {os.cpu_count()}\n"
