"""The GPU backend: which device it uses, and what it holds there.

Tensors live on the device ``"wgpu"``: ``x.to("wgpu")``. The device is one of the package ``wgpu`` (wgpu-py), which is
imported on first use: its shared default device, or the one given to `set_device`. rgrad drives it by the C interface
of the library that wgpu-py has loaded, after comparing every struct, constant and signature that it uses with that
library's own header.
"""

from __future__ import annotations

import os
import threading
import warnings
from importlib import import_module
from typing import Any

from .. import _core
from . import _adapters, _interface

__all__ = [
    "chosen",
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

# With these a user tells wgpu-py which adapter to take.
_WGPU_PY = ("WGPU_BACKEND_TYPE", "WGPUPY_WGPU_ADAPTER_NAME")

_lock = threading.RLock()
_current: Any = None
# Why the current device is the one it is, in a few words.
_reason = ""
_warned = False
_checked = False


def _import() -> Any:
    """The package ``wgpu``, of a version that fits; the first call compares the C interfaces."""
    global _checked
    _core._wgpu_check_process()
    try:
        wgpu = import_module("wgpu")
        native = import_module("wgpu.backends.wgpu_native")
    except ImportError as e:
        raise _core.OperationError(
            f'the device "wgpu" needs the package wgpu, which could not be imported ({e}). '
            f'Install it: pip install "wgpu{_interface.supported()}"'
        ) from e
    if not _checked:
        _interface.check_version(wgpu.__version__)
        found = ".".join(map(str, native.lib_version_info))
        _interface.check_interface(_core._wgpu_description(), native.ffi, native.lib, wgpu.__version__, found)
        _checked = True
    return wgpu


def _found() -> list[Any]:
    return list(_import().gpu.enumerate_adapters_sync())


def _no_adapter(reason: object) -> Exception:
    return _core.OperationError(
        "wgpu found no adapter: looked for drivers of Vulkan, Metal, Direct3D 12 and OpenGL"
        f"{f' ({reason})' if reason else ''}. Install the driver of your GPU; without a GPU, Mesa's software driver "
        "(Debian and Ubuntu: apt install mesa-vulkan-drivers), or stay on the CPU"
    )


def _open(adapter: Any) -> Any:
    """A device of an adapter, with the adapter's own limits and all features that shaders can use."""
    return adapter.request_device_sync(
        label="rgrad",
        required_features=sorted(_adapters.features(adapter)),
        required_limits=_adapters.limits(adapter),
    )


def _install(device: Any, reason: str) -> None:
    global _current, _reason, _warned
    native = import_module("wgpu.backends.wgpu_native")
    ffi, lib = native.ffi, native.lib

    def address(pointer: Any) -> int:
        return int(ffi.cast("uintptr_t", pointer))

    handle, queue = device._internal, device.queue._internal
    if handle is None or queue is None:
        raise _core.ArgumentValueError("set_device: the device has been destroyed; request a new one")
    addresses = {name: address(ffi.addressof(lib, name)) for name in _core._wgpu_description()["functions"]}
    info = device.adapter.info
    _core._wgpu_install(
        device,
        addresses,
        address(handle),
        address(queue),
        dict(device.limits),
        sorted(device.features),
        _adapters.describe(info),
        _adapters.is_opengl(info),
    )
    _current, _reason = device, reason
    if _adapters.is_software(info) and not _warned:
        _warned = True
        warnings.warn(
            f"rgrad.wgpu computes in software: {chosen()}. It is right and slow; .cpu() is faster",
            UserWarning,
            stacklevel=2,
        )


def _install_default() -> None:
    """Takes wgpu-py's shared default device into use, unless a device is in use already."""
    with _lock:
        if _core._wgpu_installed():
            return
        wgpu = _import()
        shared = import_module("wgpu.utils.device")
        if shared.helper._the_device is not None:
            _install(shared.get_default_device(), "wgpu-py's default device, which was open already")
            return
        adapter, reason = _default_adapter(wgpu, dict(shared.helper._adapter_kwargs))
        shared.preconfigure_default_device(
            "rgrad", preferred_features=_adapters.features(adapter), required_limits=_adapters.limits(adapter)
        )
        if not shared.helper._adapter_kwargs:
            shared.preconfigure_default_device("rgrad", adapter=adapter)
        _install(shared.get_default_device(), _adapters.opened(reason))


def _default_adapter(wgpu: Any, wishes: dict[str, Any]) -> tuple[Any, str]:
    """The adapter of wgpu-py's default device, and why: what others or the environment ask for, else the best."""
    if wishes.get("adapter") is not None:
        return wishes["adapter"], "another package has given it to wgpu-py"
    asked = [f"{key}={value!r}" for key, value in wishes.items()]
    asked += [f"{name}={os.environ[name]}" for name in _WGPU_PY if os.environ.get(name)]
    try:
        if asked:
            # wgpu-py will find the same one for its default device.
            adapter = wgpu.gpu.request_adapter_sync(**wishes)
            found = None if adapter is None else (adapter, f"what wgpu-py finds for {', '.join(asked)}")
        else:
            found = _adapters.best(_found())
    except Exception as e:
        raise _no_adapter(e) from e
    if found is None:
        raise _no_adapter(None)
    return found


def is_available() -> bool:
    """Whether tensors can be on the device ``"wgpu"``: the package is there and finds an adapter. Never raises."""
    try:
        if _core._wgpu_installed():
            _core._wgpu_counts()  # raises in a forked child and for a lost device
            return True
        return _adapters.best(_found()) is not None
    except Exception:
        return False


def devices() -> list[Any]:
    """The adapters that wgpu-py finds, as ``wgpu.GPUAdapter``; give one to `set_device`.

    Raises:
        RuntimeError: The package ``wgpu`` is missing or of a version that was not tested.
    """
    return _found()


def current_device() -> Any:
    """The ``wgpu.GPUDevice`` that new tensors go to; the default device comes into use if none is yet.

    Raises:
        RuntimeError: There is none; the message says what was looked for.
    """
    _install_default()
    return _current


def chosen() -> str:
    """Which adapter is in use and why, in one line; the default device comes into use if none is yet.

    Without a choice of yours the best adapter is taken: a GPU before software, then Vulkan, Metal or Direct3D 12 before
    OpenGL. The first device that computes in software is also told in a warning.

    Returns:
        Such as ``"NVIDIA H200 (Vulkan): the best of 2 adapters found; the others: llvmpipe (software, Vulkan)"``.

    Raises:
        RuntimeError: There is none; the message says what was looked for.
    """
    _install_default()
    return f"{_adapters.describe(_current.adapter.info)}: {_reason}"


def set_device(device: Any) -> None:
    """Chooses where new tensors go. Tensors of the device before stay usable among themselves.

    Args:
        device: A ``wgpu.GPUAdapter`` (see `devices`), on which a device is opened with all its limits and the features
            that shaders can use (with ``RGRAD_WGPU_LIMITS=least`` in the environment: with what every adapter has); or
            a ``wgpu.GPUDevice`` of your own.

    Raises:
        TypeError: It is neither.
        ValueError: The device has been destroyed.
        RuntimeError: The package ``wgpu`` is missing or of a version that was not tested.
    """
    wgpu = _import()
    with _lock:
        reason = "given to set_device()"
        if isinstance(device, wgpu.GPUAdapter):
            device, reason = _open(device), _adapters.opened(reason)
        if not isinstance(device, wgpu.GPUDevice):
            raise _core.ArgumentTypeError(
                f"set_device(): expected a wgpu.GPUAdapter or a wgpu.GPUDevice, got {type(device).__name__}. "
                "rgrad.wgpu.devices() lists the adapters"
            )
        _install(device, reason)


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
