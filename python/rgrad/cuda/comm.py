"""Copies between CUDA devices, which there are not."""

from .._runtime.no_device import NO_CUDA, answering

_ANSWERS = {
    "broadcast(tensor, devices=None, *, out=None)": NO_CUDA,
    "broadcast_coalesced(tensors, devices, buffer_size=10485760)": NO_CUDA,
    "gather(tensors, dim=0, destination=None, *, out=None)": NO_CUDA,
    "reduce_add(inputs, destination=None)": NO_CUDA,
    "reduce_add_coalesced(inputs, destination=None, buffer_size=10485760)": NO_CUDA,
    "scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None)": NO_CUDA,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)
