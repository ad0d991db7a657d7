"""What portable code asks of ``cuda``. There are no CUDA devices here, so queries say so and switches have no effect.

The memory functions count what the tensors of rgrad hold: on the device that is named, by default on the one on which
tensors are made by default (:func:`rgrad.set_default_device`). So code that measures its memory measures it here too.
"""

import warnings
from collections import OrderedDict
from typing import Any

from .. import _core, wgpu
from .. import memory as _memory
from .._core import OutOfMemoryError as OutOfMemoryError
from .._core import Tensor
from .._runtime.no_device import CONTEXT, NO_CUDA, Refused, answering, refuse
from . import amp as amp
from . import nvtx as nvtx
from ._streams import CUDAGraph as CUDAGraph
from ._streams import Event as Event
from ._streams import Stream as Stream
from ._streams import StreamContext as StreamContext
from ._streams import current_stream as current_stream
from ._streams import default_stream as default_stream
from ._streams import graph as graph
from ._streams import is_current_stream_capturing as is_current_stream_capturing
from ._streams import make_graphed_callables as make_graphed_callables
from ._streams import set_stream as set_stream
from ._streams import stream as stream
from ._types import BFloat16Tensor as BFloat16Tensor
from ._types import BoolTensor as BoolTensor
from ._types import ByteTensor as ByteTensor
from ._types import CharTensor as CharTensor
from ._types import DoubleTensor as DoubleTensor
from ._types import FloatTensor as FloatTensor
from ._types import HalfTensor as HalfTensor
from ._types import IntTensor as IntTensor
from ._types import LongTensor as LongTensor
from ._types import ShortTensor as ShortTensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CUDAGraph",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "clock_rate",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graph",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "power_draw",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
    "temperature",
    "utilization",
]

_STORAGES = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"
_NO_ALLOCATOR = Refused(
    OSError, "cuda.{name}: there is no CUDA allocator; memory of rgrad is set by rgrad.set_memory_limit"
)
_ANSWERS: dict[str, Any] = {
    **{f"class {kind}Storage": NO_CUDA for kind in _STORAGES.split()},
    "class CUDAPluggableAllocator": _NO_ALLOCATOR,
    "class ExternalStream": NO_CUDA,
    "class GreenContext": NO_CUDA,
    "class MemPool": NO_CUDA,
    "class cudaStatus": None,
    "caching_allocator_alloc(size, device=None, stream=None)": NO_CUDA,
    "caching_allocator_delete(mem_ptr)": None,
    "caching_allocator_disabled()": CONTEXT,
    "caching_allocator_enable(value=True)": None,
    "change_current_allocator(allocator)": _NO_ALLOCATOR,
    "check_error(res)": None,
    "current_solver_handle()": NO_CUDA,
    "device_memory_used(device=None)": NO_CUDA,
    "get_stream_from_external(data_ptr, device=None)": NO_CUDA,
    "graph_pool_handle()": (0, 1),
    "host_memory_stats()": OrderedDict(),
    "host_memory_stats_as_nested_dict()": {},
    "memory_snapshot(mempool_id=None, include_traces=True)": [],
    "reset_accumulated_host_memory_stats()": None,
    "reset_accumulated_memory_stats(device=None)": None,
    "reset_peak_host_memory_stats()": None,
    "use_mem_pool(pool, device=None)": CONTEXT,
}
_MODULES = (
    "comm",
    "graphs",
    "green_contexts",
    "memory",
    "nccl",
    "profiler",
    "random",
    "sparse",
    "streams",
    "tunable",
)
__getattr__, __dir__ = answering(__name__, _ANSWERS, _MODULES)


class CudaError(RuntimeError):
    """An error that a CUDA driver reports.

    Args:
        code: The driver's number.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"cuda error ({code})")


class DeferredCudaCallError(Exception):
    """An error of a call that waited for the first use of a CUDA device."""


#: The generators of all CUDA devices.
default_generators: tuple[Any, ...] = ()
has_half = False
has_magma = False


def is_available() -> bool:
    """Always False."""
    return False


def is_initialized() -> bool:
    """Always False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Always False."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def init() -> None:
    """Refuse: there is nothing to initialise.

    Raises:
        RuntimeError: Always.
    """
    refuse("init")


_initialized = False
_lazy_init = init


def current_device() -> int:
    """Refuse: there is no current device.

    Raises:
        RuntimeError: Always.
    """
    refuse("current_device")


def set_device(device: Any) -> None:
    """Do nothing for a negative index, and refuse any other device.

    Raises:
        RuntimeError: The index is not negative.
        ValueError: It is no CUDA device.
    """
    index = device
    if not isinstance(device, int):
        given = _core.device(device)
        if given.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {given}")
        index = given.index
    if index is None or index >= 0:
        refuse("set_device")


def get_device_name(device: Any = None) -> str:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_device_name")


def get_device_properties(device: Any = None) -> Any:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_device_properties")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_device_capability")


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Refuse: there is no generator; see :func:`rgrad.get_rng_state`.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_rng_state")


def initial_seed() -> int:
    """Refuse: there is no generator; see :func:`rgrad.initial_seed`.

    Raises:
        RuntimeError: Always.
    """
    refuse("initial_seed")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("mem_get_info")


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Refuse: there are no devices.

    Raises:
        RuntimeError: Always.
    """
    refuse("can_device_access_peer")


def utilization(device: Any = None) -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("utilization")


def temperature(device: Any = None) -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("temperature")


def power_draw(device: Any = None) -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("power_draw")


def clock_rate(device: Any = None) -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("clock_rate")


def memory_usage(device: Any = None) -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("memory_usage")


def cudart() -> Any:
    """Refuse: there is no CUDA runtime.

    Raises:
        RuntimeError: Always.
    """
    refuse("cudart")


def current_blas_handle() -> Any:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("current_blas_handle")


def get_sync_debug_mode() -> int:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_sync_debug_mode")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("set_sync_debug_mode")


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("get_per_process_memory_fraction")


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    refuse("set_per_process_memory_fraction")


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Do nothing: there is no generator whose state could change."""


def get_arch_list() -> list[str]:
    """The kinds of CUDA devices that rgrad was compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """How rgrad was compiled for CUDA devices: not at all, so an empty text."""
    return ""


def is_tf32_supported() -> bool:
    """Always False."""
    return False


def get_allocator_backend() -> str:
    """Always ``"native"``."""
    return "native"


def list_gpu_processes(device: Any = None) -> str:
    """Say that no process uses a CUDA device."""
    return "no processes are running"


class device_of:
    """A context that would change the current device to that of a tensor. It has no effect.

    Args:
        obj: A tensor.
    """

    def __init__(self, obj: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class device:
    """A context that would change the current device. It has no effect.

    Args:
        device: A device or an index.
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def manual_seed_all(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def seed() -> None:
    """Do nothing; :func:`rgrad.seed` seeds every device."""


def seed_all() -> None:
    """Do nothing; :func:`rgrad.seed` seeds every device."""


def get_rng_state_all() -> list[Tensor]:
    """Give the states of the generators of all CUDA devices: an empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Do nothing for an empty list.

    Raises:
        RuntimeError: There are states.
    """
    if list(new_states):
        refuse("set_rng_state_all")


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done all work that was given to it; without a GPU in use there is nothing to wait for."""
    wgpu.synchronize()


def ipc_collect() -> None:
    """Do nothing."""


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold now on the device (by default on the default device)."""
    return _memory.allocated(device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held at a time since :func:`reset_peak_memory_stats`."""
    return _memory.peak(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let :func:`max_memory_allocated` begin anew with the bytes that are held now."""
    _memory.reset_peak(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Do what :func:`reset_peak_memory_stats` does, under its old name."""
    _memory.reset_peak(device)


def memory_reserved(device: Any = None) -> int:
    """The bytes that tensors hold now and those that are kept for the next ones."""
    return _memory.reserved(device)


def max_memory_reserved(device: Any = None) -> int:
    """The larger one of :func:`max_memory_allocated` and :func:`memory_reserved`."""
    return _memory.max_memory_reserved(device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """The bytes held and reserved, now and at most, under PyTorch's keys."""
    return _memory.memory_stats(device)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """What is alive on the device, by the lines that allocated it, as a table (:func:`rgrad.memory.report`)."""
    return _memory.memory_summary(device, abbreviated)


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the system, on all devices."""
    _core.empty_cache()
    wgpu.empty_cache()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """What :func:`memory_stats` says, as dicts in dicts."""
    made: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        inner = made
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return made


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`rgrad.cuda.{old}` has been renamed to `rgrad.cuda.{new}`", FutureWarning, stacklevel=3)


def memory_cached(device: Any = None) -> int:
    """The old name of :func:`memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of :func:`max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """An old name of :func:`reset_peak_memory_stats`."""
    _renamed("reset_max_memory_cached", "reset_peak_memory_stats")
    _memory.reset_peak(device)
