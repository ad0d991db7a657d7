"""What portable code asks of ``xpu``: Intel's GPUs are reached through the device "wgpu" here."""

from collections import OrderedDict
from typing import Any

from .._runtime.no_device import CONTEXT, Refused, answering

_WHERE = "rgrad has tensors on cpu, wgpu and meta, and reaches Intel's GPUs as the device wgpu"
_NO_XPU = Refused(AssertionError, "xpu.{name}: Torch not compiled with XPU enabled: " + _WHERE)
_NO_BASE = Refused(RuntimeError, "xpu.{name}: Tried to instantiate dummy base class {name}: " + _WHERE)
_NO_SENSOR = Refused(ImportError, "xpu.{name}: pyzes is required, and an XPU: " + _WHERE)
_NO_ALLOCATOR = Refused(OSError, "xpu.{name}: there is no allocator of an XPU: " + _WHERE)
_ANSWERS: dict[str, Any] = {
    "class Event": _NO_BASE,
    "class MemPool": _NO_BASE,
    "class Stream": _NO_BASE,
    "class StreamContext": CONTEXT,
    "class XPUGraph": _NO_BASE,
    "class XPUPluggableAllocator": _NO_ALLOCATOR,
    "class graph": _NO_BASE,
    "can_device_access_peer(device, peer)": _NO_XPU,
    "change_current_allocator(allocator)": _NO_ALLOCATOR,
    "clock_rate(device=None)": _NO_SENSOR,
    "current_device()": _NO_XPU,
    "current_stream(device=None)": _NO_XPU,
    "device(device)": CONTEXT,
    "device_memory_used(device=None)": _NO_SENSOR,
    "device_of(obj)": CONTEXT,
    "get_arch_list()": [],
    "get_device_capability(device=None)": _NO_XPU,
    "get_device_name(device=None)": _NO_XPU,
    "get_device_properties(device=None)": _NO_XPU,
    "get_gencode_flags()": "",
    "get_per_process_memory_fraction(device=None)": _NO_XPU,
    "get_rng_state(device='xpu')": _NO_XPU,
    "get_rng_state_all()": [],
    "get_stream_from_external(data_ptr, device=None)": _NO_XPU,
    "graph_pool_handle()": _NO_BASE,
    "init()": _NO_XPU,
    "initial_seed()": _NO_XPU,
    "is_bf16_supported(including_emulation=True)": False,
    "is_current_stream_capturing()": _NO_BASE,
    "is_tf32_supported()": False,
    "make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None)": _NO_BASE,
    "max_memory_allocated(device=None)": 0,
    "max_memory_reserved(device=None)": 0,
    "mem_get_info(device=None)": _NO_XPU,
    "memory_allocated(device=None)": 0,
    "memory_reserved(device=None)": 0,
    "memory_snapshot(mempool_id=None)": [],
    "memory_stats(device=None)": OrderedDict(),
    "memory_stats_as_nested_dict(device=None)": {},
    "memory_usage(device=None)": _NO_SENSOR,
    "power_draw(device=None)": _NO_SENSOR,
    "reset_accumulated_memory_stats(device=None)": None,
    "reset_peak_memory_stats(device=None)": None,
    "seed()": None,
    "seed_all()": None,
    "set_device(device)": _NO_XPU,
    "set_per_process_memory_fraction(fraction, device=None)": _NO_XPU,
    "set_rng_state(new_state, device='xpu')": None,
    "set_rng_state_all(new_states)": None,
    "set_stream(stream)": None,
    "stream(stream)": CONTEXT,
    "synchronize(device=None)": _NO_XPU,
    "temperature(device=None)": _NO_SENSOR,
    "use_mem_pool(pool, device=None)": CONTEXT,
    "utilization(device=None)": _NO_SENSOR,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS, ("memory", "random", "streams"))

#: The generators of all XPU devices.
default_generators: tuple[Any, ...] = ()


def is_available() -> bool:
    """Always False; see :mod:`rgrad.wgpu`."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def is_initialized() -> bool:
    """Always False."""
    return False


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def manual_seed_all(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def empty_cache() -> None:
    """Do nothing; see :func:`rgrad.wgpu.empty_cache`."""
