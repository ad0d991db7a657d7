"""The floating point numbers that a test computes in, on the device that it runs on."""

from __future__ import annotations

from functools import cache

import numpy as np

import rgrad


def real() -> rgrad.dtype:
    """float64, or float32 where new tensors go to wgpu: few GPUs have more; float64 there has tests of its own."""
    return rgrad.float64 if rgrad.get_default_device().type == "cpu" else rgrad.float32


def tol(exact: float) -> float:
    """A relative tolerance that fits `real()`, given the one for float64."""
    return exact if real() == rgrad.float64 else max(exact, 2e-5)


def widest(device: str) -> rgrad.dtype:
    """float64, or float32 on an adapter without it."""
    if device == "cpu" or {"shader-f64", "shader-int64"} <= rgrad.wgpu.current_device().features:
        return rgrad.float64
    return rgrad.float32


def memory(t: rgrad.Tensor) -> tuple[int, int]:
    """Where a tensor's first element lies: a number for the storage, which every device has, and the offset in it."""
    return t.untyped_storage()._cdata, t.storage_offset()


@cache
def flushes(device: str) -> bool:
    """Whether a device takes float32 below 2^-126 for 0, as GPUs may."""
    return (rgrad.tensor(4e-39).to(device) * 2).item() == 0.0


def subnormal(x: np.ndarray) -> np.ndarray:
    """Which floats of 32 bits or fewer are subnormal float32."""
    if x.dtype.kind != "f" or x.dtype.itemsize > 4:
        return np.zeros(x.shape, bool)
    return (x != 0) & (np.abs(x) < np.finfo(np.float32).tiny)
