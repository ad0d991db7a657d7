"""Marks for the profilers of CUDA devices, which there are not; :mod:`rgrad.profiler` profiles."""

from .._runtime.no_device import CONTEXT, NO_CUDA, answering

__getattr__, __dir__ = answering(__name__, {"start()": NO_CUDA, "stop()": NO_CUDA, "profile()": CONTEXT})
