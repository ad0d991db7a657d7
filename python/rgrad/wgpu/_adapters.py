"""Which adapter is used where nobody has chosen one: a GPU before software, and OpenGL last among equals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The kinds of adapter, best first, as wgpu-py names them. A GPU behind OpenGL may be of no known kind.
_KINDS = ("discretegpu", "integratedgpu", "unknown", "cpu")


def is_software(info: Mapping[str, Any]) -> bool:
    """Whether an adapter computes on the CPU."""
    return str(info.get("adapter_type", "")).lower() == "cpu"


def describe(info: Mapping[str, Any]) -> str:
    """An adapter in a few words: its own name, whether it is software, and the interface behind it."""
    own = str(info.get("device") or info.get("description") or "unnamed adapter")
    kind = "software, " if is_software(info) else ""
    return f"{own} ({kind}{info.get('backend_type', 'unknown backend')})"


def _order(adapter: Any) -> tuple[bool, bool, int]:
    info = adapter.info
    kind = str(info.get("adapter_type", "")).lower()
    opengl = str(info.get("backend_type", "")).lower().startswith("opengl")
    return is_software(info), opengl, _KINDS.index(kind) if kind in _KINDS else _KINDS.index("unknown")


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
