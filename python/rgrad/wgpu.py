"""The GPU backend: which device it uses, and what it holds there.

Tensors live on the device ``"wgpu"``: ``x.to("wgpu")``. The device is one of the package ``wgpu`` (wgpu-py), which is
imported on first use: its shared default device, or the one given to `set_device`. rgrad drives it by the C interface
of the library that wgpu-py has loaded, after comparing every struct, constant and signature that it uses with that
library's own header.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import rgrad
from rgrad import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "current_device",
    "devices",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]

# The tested minor versions of wgpu-py: from the first up to, not including, the second.
_SUPPORTED = ((0, 32), (0, 33))
# Used by shaders where the adapter has them.
_FEATURES = ("shader-f16", "subgroup", "timestamp-query", "immediates", "shader-int64", "shader-f64")

_lock = threading.RLock()
_current: Any = None
_checked = False


def _range() -> str:
    return f">={'.'.join(map(str, _SUPPORTED[0]))},<{'.'.join(map(str, _SUPPORTED[1]))}"


def _check_version(version: str) -> None:
    parts = tuple(int(p) if p.isdigit() else 0 for p in version.split(".")[:2])
    if not _SUPPORTED[0] <= parts < _SUPPORTED[1]:
        age = "old" if parts < _SUPPORTED[0] else "new"
        raise rgrad.OperationError(
            f"wgpu {version} is too {age} for rgrad {rgrad.__version__}, which was tested with wgpu{_range()}. "
            f'Install one of those: pip install "wgpu{_range()}"'
        )


def _mismatches(description: Mapping[str, Any], ffi: Any, lib: Any) -> list[str]:
    """Where the loaded library's header differs from the interface that the core was compiled for."""
    cffi = import_module("cffi")
    wrong = []
    for name, (size, fields) in description["structs"].items():
        try:
            ctype = ffi.typeof(name)
            theirs = [(field, f.offset, f.type.cname) for field, f in ctype.fields]
            their_size = ffi.sizeof(ctype)
        except (cffi.CDefError, cffi.FFIError, TypeError, AttributeError):
            wrong.append(f"struct {name}: not in the library's header")
            continue
        if their_size != size:
            wrong.append(f"struct {name}: {their_size} bytes, expected {size}")
        for field, ours in zip(theirs, map(tuple, fields), strict=False):
            if field != ours:
                wrong.append(f"struct {name}: field (name, offset, type) is {field}, expected {ours}")
        if len(theirs) != len(fields):
            wrong.append(f"struct {name}: {len(theirs)} fields, expected {len(fields)}")
    for name, expected in description["constants"].items():
        got = getattr(lib, name, None)
        if got != expected:
            wrong.append(f"constant {name}: {'not there' if got is None else got}, expected {expected}")
    for name, expected in description["functions"].items():
        try:
            got = ffi.typeof(ffi.addressof(lib, name)).cname
        except AttributeError:
            got = "not there"
        if got != expected:
            wrong.append(f"function {name}: {got}, expected {expected}")
    return wrong


def _check_interface(description: Mapping[str, Any], ffi: Any, lib: Any, version: str, native: str) -> None:
    wrong = _mismatches(description, ffi, lib)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise rgrad.OperationError(
            f"the C interface of wgpu {version} (wgpu-native {native}) is not the one that rgrad {rgrad.__version__} "
            f"was compiled for (wgpu-native {description['version']}): {'; '.join(wrong[:3])}{more}. "
            f'Install a tested version: pip install "wgpu{_range()}"'
        )


def _import() -> Any:
    """The package ``wgpu``, of a version that fits; the first call compares the C interfaces."""
    global _checked
    _core._wgpu_check_process()
    try:
        wgpu = import_module("wgpu")
        native = import_module("wgpu.backends.wgpu_native")
    except ImportError as e:
        raise rgrad.OperationError(
            f'the device "wgpu" needs the package wgpu, which could not be imported ({e}). '
            f'Install it: pip install "wgpu{_range()}"'
        ) from e
    if not _checked:
        _check_version(wgpu.__version__)
        found = ".".join(map(str, native.lib_version_info))
        _check_interface(_core._wgpu_description(), native.ffi, native.lib, wgpu.__version__, found)
        _checked = True
    return wgpu


def _adapters() -> list[Any]:
    return list(_import().gpu.enumerate_adapters_sync())


def _no_adapter(reason: object) -> Exception:
    return rgrad.OperationError(
        "wgpu found no adapter: looked for drivers of Vulkan, Metal, Direct3D 12 and OpenGL"
        f"{f' ({reason})' if reason else ''}. Install the driver of your GPU; without a GPU, Mesa's software driver "
        "(Debian and Ubuntu: apt install mesa-vulkan-drivers), or stay on the CPU"
    )


def _wanted(adapter: Any) -> set[str]:
    return {f for f in _FEATURES if f in adapter.features}


def _open(adapter: Any) -> Any:
    """A device of an adapter, with the adapter's own limits and all features that shaders can use."""
    return adapter.request_device_sync(
        label="rgrad", required_features=sorted(_wanted(adapter)), required_limits=dict(adapter.limits)
    )


def _is_software(info: Mapping[str, Any]) -> bool:
    return str(info.get("adapter_type", "")).lower() == "cpu"


def _name(info: Mapping[str, Any]) -> str:
    name = str(info.get("device") or info.get("description") or "unnamed adapter")
    kind = "software, " if _is_software(info) else ""
    return f"{name} ({kind}{info.get('backend_type', 'unknown backend')})"


def _install(device: Any) -> None:
    global _current
    native = import_module("wgpu.backends.wgpu_native")
    ffi, lib = native.ffi, native.lib

    def address(pointer: Any) -> int:
        return int(ffi.cast("uintptr_t", pointer))

    handle, queue = device._internal, device.queue._internal
    if handle is None or queue is None:
        raise rgrad.ArgumentValueError("set_device: the device has been destroyed; request a new one")
    addresses = {name: address(ffi.addressof(lib, name)) for name in _core._wgpu_description()["functions"]}
    info = device.adapter.info
    _core._wgpu_install(
        device,
        addresses,
        address(handle),
        address(queue),
        dict(device.limits),
        sorted(device.features),
        _name(info),
    )
    _current = device


def _install_default() -> None:
    """Takes wgpu-py's shared default device into use, unless a device is in use already."""
    with _lock:
        if _core._wgpu_installed():
            return
        wgpu = _import()
        shared = import_module("wgpu.utils.device")
        if shared.helper._the_device is None:
            # What other packages have asked for stands; wgpu-py will find the same adapter by it.
            wishes = dict(shared.helper._adapter_kwargs)
            adapter = wishes.pop("adapter", None)
            if adapter is None:
                if not wishes:
                    wishes = {"power_preference": "high-performance"}
                    shared.preconfigure_default_device("rgrad", **wishes)
                try:
                    adapter = wgpu.gpu.request_adapter_sync(**wishes)
                except Exception as e:
                    raise _no_adapter(e) from e
            if adapter is None:
                raise _no_adapter(None)
            shared.preconfigure_default_device(
                "rgrad", preferred_features=set(_FEATURES), required_limits=dict(adapter.limits)
            )
        _install(shared.get_default_device())


def is_available() -> bool:
    """Whether tensors can be on the device ``"wgpu"``: the package is there and finds an adapter. Never raises."""
    try:
        if _core._wgpu_installed():
            _core._wgpu_counts()  # raises in a forked child and for a lost device
            return True
        return bool(_adapters())
    except Exception:
        return False


def devices() -> list[Any]:
    """The adapters that wgpu-py finds, as ``wgpu.GPUAdapter``; give one to `set_device`.

    Raises:
        RuntimeError: The package ``wgpu`` is missing or of a version that was not tested.
    """
    return _adapters()


def current_device() -> Any:
    """The ``wgpu.GPUDevice`` that new tensors go to; the default device comes into use if none is yet.

    Raises:
        RuntimeError: There is none; the message says what was looked for.
    """
    _install_default()
    return _current


def set_device(device: Any) -> None:
    """Chooses where new tensors go. Tensors of the device before stay usable among themselves.

    Args:
        device: A ``wgpu.GPUAdapter`` (see `devices`), on which a device is opened with all its limits and the features
            that shaders can use; or a ``wgpu.GPUDevice`` of your own.

    Raises:
        TypeError: It is neither.
        ValueError: The device has been destroyed.
        RuntimeError: The package ``wgpu`` is missing or of a version that was not tested.
    """
    wgpu = _import()
    with _lock:
        if isinstance(device, wgpu.GPUAdapter):
            device = _open(device)
        if not isinstance(device, wgpu.GPUDevice):
            raise rgrad.ArgumentTypeError(
                f"set_device(): expected a wgpu.GPUAdapter or a wgpu.GPUDevice, got {type(device).__name__}. "
                "rgrad.wgpu.devices() lists the adapters"
            )
        _install(device)


def synchronize() -> None:
    """Waits until everything that was asked of the device has run. Does nothing while no device is in use.

    Raises:
        IndexError: An operation found an index out of range.
        RuntimeError: The device is lost, or has not finished in time (RGRAD_WGPU_TIMEOUT seconds, default 120).
    """
    if _core._wgpu_installed():
        _core._wgpu_synchronize()


def memory_allocated() -> int:
    """Bytes that tensors hold on the device, as it allocates them."""
    held, _, _ = _core._wgpu_memory()
    return held


def max_memory_allocated() -> int:
    """The most that `memory_allocated` has been, in bytes, since the start or `reset_peak_memory_stats`."""
    _, peak, _ = _core._wgpu_memory()
    return peak


def reset_peak_memory_stats() -> None:
    """Starts `max_memory_allocated` anew, from what tensors hold now."""
    _core._wgpu_reset_peak()


def empty_cache() -> None:
    """Gives memory that lies idle for reuse back to the device."""
    _core._wgpu_empty_cache()
