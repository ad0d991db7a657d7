"""Modules whose parameters, gradients and states of optimizers lie in shards on several processes."""

from .._refused import Refused
from ._fully_shard import fully_shard
from ._module import FSDPModule, UnshardHandle, register_fsdp_forward_method
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy


class FullyShardedDataParallel(Refused):
    """PyTorch's older class for parameters in shards: it is refused, and no module is one.

    Raises:
        NotImplementedError: Always.
    """

    instead = "use distributed.fsdp.fully_shard"


__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
