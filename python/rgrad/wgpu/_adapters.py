"""Which adapter is used where nobody has chosen one, and with which features and limits its devices are opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The kinds of adapter, best first, as wgpu-py names them. A GPU behind OpenGL may be of no known kind.
_KINDS = ("discretegpu", "integratedgpu", "unknown", "cpu")

# Used by shaders where the adapter has them.
FEATURES = frozenset({"shader-f16", "subgroup", "timestamp-query", "immediates", "shader-int64", "shader-f64"})

# Set to "least", devices are opened as every adapter has them.
LIMITS = "RGRAD_WGPU_LIMITS"

# What WebGPU promises of every adapter, of the limits that computing depends on.
_LEAST = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 256 << 20,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16 << 10,
    "max-compute-workgroups-per-dimension": 65535,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-storage-buffer-binding-size": 128 << 20,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 64 << 10,
    "max-uniform-buffers-per-shader-stage": 12,
    "min-storage-buffer-offset-alignment": 256,
    "min-uniform-buffer-offset-alignment": 256,
}


def least() -> bool:
    """Whether devices are opened with what every adapter has, instead of all that theirs has."""
    wish = os.environ.get(LIMITS, "")
    if wish not in ("", "least"):
        raise _core.ArgumentValueError(f'{LIMITS}={wish}: expected "least", or nothing for the limits of the adapter')
    return wish == "least"


def opened(reason: str) -> str:
    """Why a device is in use that was opened here, with the way in which it was."""
    return f"{reason}; opened with the least that WebGPU promises ({LIMITS}=least)" if least() else reason


def features(adapter: Any) -> set[str]:
    """Those of an adapter's features with which its devices are opened."""
    return set() if least() else set(FEATURES & adapter.features)


def limits(adapter: Any) -> dict[str, int]:
    """The limits with which an adapter's devices are opened."""
    own = dict(adapter.limits)
    return {**own, **{name: value for name, value in _LEAST.items() if name in own}} if least() else own


def is_software(info: Mapping[str, Any]) -> bool:
    """Whether an adapter computes on the CPU."""
    return str(info.get("adapter_type", "")).lower() == "cpu"


def is_opengl(info: Mapping[str, Any]) -> bool:
    """Whether an adapter is driven by OpenGL."""
    return str(info.get("backend_type", "")).lower().startswith("opengl")


def describe(info: Mapping[str, Any]) -> str:
    """An adapter in a few words: its own name, whether it is software, and the interface behind it."""
    own = str(info.get("device") or info.get("description") or "unnamed adapter")
    kind = "software, " if is_software(info) else ""
    return f"{own} ({kind}{info.get('backend_type', 'unknown backend')})"


def _order(adapter: Any) -> tuple[bool, bool, int]:
    info = adapter.info
    kind = str(info.get("adapter_type", "")).lower()
    return is_software(info), is_opengl(info), _KINDS.index(kind) if kind in _KINDS else _KINDS.index("unknown")


def _computes(adapter: Any) -> bool:
    """Old OpenGL has no compute shaders."""
    return bool(adapter.limits.get("max-compute-invocations-per-workgroup", 1))


def best(adapters: Sequence[Any]) -> tuple[Any, str] | None:
    """The best of the adapters and why it is; None if none can compute."""
    able = sorted((a for a in adapters if _computes(a)), key=_order)
    if not able:
        return None
    others = [describe(a.info) for a in able[1:]]
    if not others:
        return able[0], "the only adapter found"
    return able[0], f"the best of {len(able)} adapters found; the others: {', '.join(others)}"
