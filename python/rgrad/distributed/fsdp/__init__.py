"""Modules in parts on many devices; none can be made."""

from .._refused import Refused


class FullyShardedDataParallel(Refused):
    """A module whose parameters lie in parts on many devices: it is refused, and no module is one.

    Raises:
        NotImplementedError: Always.
    """

    instead = "use the module itself, or DistributedDataParallel"


__all__ = ["FullyShardedDataParallel"]
