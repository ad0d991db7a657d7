"""What portable code asks of ``mtia``: there are no such devices."""

from typing import Any

from .._runtime.no_device import CONTEXT, Refused, answering

_WHERE = "rgrad has tensors on cpu, wgpu and meta"
_NOT_BUILT = Refused(AssertionError, "mtia.{name}: Torch not compiled with MTIA enabled: " + _WHERE)
_NO_DEVICE = Refused(RuntimeError, "Cannot execute mtia.{name}() without MTIA backend: " + _WHERE)
_ANSWERS: dict[str, Any] = {
    "class MTIAGraph": _NO_DEVICE,
    "class graph": _NO_DEVICE,
    "attach_out_of_memory_observer(observer)": _NO_DEVICE,
    "current_device()": _NO_DEVICE,
    "current_stream(device=None)": _NO_DEVICE,
    "default_stream(device=None)": _NO_DEVICE,
    "device(device)": CONTEXT,
    "device_count()": 0,
    "empty_cache()": _NO_DEVICE,
    "get_device_capability(device=None)": _NO_DEVICE,
    "get_device_properties(device=None)": _NO_DEVICE,
    "get_rng_state(device='mtia')": _NOT_BUILT,
    "get_rng_state_all()": [],
    "graph_pool_handle()": _NO_DEVICE,
    "init()": _NOT_BUILT,
    "initial_seed()": _NOT_BUILT,
    # So it is in PyTorch, whatever the machine has.
    "is_bf16_supported(including_emulation=True)": True,
    "is_available()": False,
    "is_initialized()": False,
    "manual_seed(seed)": None,
    "manual_seed_all(seed)": None,
    "max_memory_allocated(device=None)": 0,
    "memory_allocated(device=None)": 0,
    "memory_stats(device=None)": {},
    "record_memory_history(enabled='all', stacks='python', max_entries=0)": None,
    "reset_peak_memory_stats(device=None)": None,
    "seed()": None,
    "seed_all()": None,
    "set_device(device)": _NO_DEVICE,
    "set_rng_state(new_state, device='mtia')": None,
    "set_rng_state_all(new_states)": None,
    "set_stream(stream)": None,
    "snapshot()": _NO_DEVICE,
    "stream(stream)": _NO_DEVICE,
    "synchronize(device=None)": _NO_DEVICE,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS, ("memory",))
