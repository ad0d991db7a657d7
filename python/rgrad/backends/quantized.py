"""The libraries of products of quantised matrices, of which there is none here."""

from typing import Any

supported_engines: list[str] = []


def __getattr__(name: str) -> Any:
    if name == "engine":
        raise RuntimeError("backends.quantized: rgrad has no engine for quantised tensors, and no such tensors")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
