"""Collectives between CUDA devices, which there are not; :mod:`rgrad.distributed` has those of processes."""

from .._runtime.no_device import NO_CUDA, answering

_ANSWERS = {
    "all_gather(inputs, outputs, streams=None, comms=None)": NO_CUDA,
    "all_reduce(inputs, outputs=None, op=0, streams=None, comms=None)": NO_CUDA,
    "broadcast(inputs, root=0, streams=None, comms=None)": NO_CUDA,
    "init_rank(num_ranks, uid, rank)": NO_CUDA,
    "is_available(tensors)": False,
    "reduce(inputs, output=None, root=0, op=0, streams=None, comms=None, *, outputs=None)": NO_CUDA,
    "reduce_scatter(inputs, outputs, op=0, streams=None, comms=None)": NO_CUDA,
    "unique_id()": NO_CUDA,
    "version()": NO_CUDA,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)
