"""In which dtypes parameters in shards are used and reduced, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_HOME = "rgrad.distributed.fsdp"


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module whose parameters lie in shards. Shards keep the dtype that they have.

    Args:
        param_dtype: That of parameters while they are used, and in which they are gathered; by default their own.
        reduce_dtype: That in which gradients are reduced, and summed without reduction; by default that of gradients.
        output_dtype: That of floating point outputs of the module; by default that which they have.
        cast_forward_inputs: Whether floating point inputs of the module are cast to ``param_dtype``.
    """

    __module__ = _HOME
    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards lie on the device of the mesh."""

    __module__ = _HOME


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the states of optimizers lie on the CPU; parameters are used on the mesh's device.

    Args:
        pin_memory: Accepted; has no effect.
    """

    __module__ = _HOME
    pin_memory: bool = True
