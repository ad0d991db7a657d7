"""Errors of distributed programs, under PyTorch's names."""


class DistError(RuntimeError):
    """Processes could not do something together."""


class DistBackendError(DistError):
    """The transport has failed, or another process has."""


class DistNetworkError(DistError):
    """The network has failed. MPI does not tell it apart, so it is never raised here; programs catch it."""


class DistStoreError(DistError):
    """A store of addresses has failed. MPI has none, so it is never raised here; programs catch it."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty. MPI has none, so it is never raised here; programs catch it."""
