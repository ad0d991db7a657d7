"""Checkpointing, hook handles, trees of tensors, data loading, timing, counts of operations, and TensorBoard."""

from typing import TYPE_CHECKING

from .._runtime.lazy import lazily

if TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import benchmark as benchmark
    from . import checkpoint as checkpoint
    from . import collect_env as collect_env
    from . import cpp_extension as cpp_extension
    from . import data as data
    from . import dlpack as dlpack
    from . import flop_counter as flop_counter
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import tensorboard as tensorboard
    from ._swap import swap_tensors as swap_tensors

__getattr__, __dir__ = lazily(
    __name__,
    (
        "_pytree",
        "benchmark",
        "checkpoint",
        "collect_env",
        "cpp_extension",
        "data",
        "dlpack",
        "flop_counter",
        "hooks",
        "model_zoo",
        "tensorboard",
    ),
    {"swap_tensors": "_swap"},
)

__all__ = [
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "swap_tensors",
    "tensorboard",
]
