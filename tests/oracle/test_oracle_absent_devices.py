"""What every public name of PyTorch's modules for devices answers or raises where there is no such device."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import types
import warnings
from functools import cache
from typing import Any

import pytest

pytestmark = pytest.mark.oracle

MODULES = [
    "accelerator",
    "accelerator.memory",
    "backends.cuda",
    "backends.cudnn",
    "backends.cusparselt",
    "backends.kleidiai",
    "backends.mha",
    "backends.miopen",
    "backends.mkl",
    "backends.mkldnn",
    "backends.mps",
    "backends.nnpack",
    "backends.openmp",
    "backends.opt_einsum",
    "backends.quantized",
    "backends.xnnpack",
    "cpu",
    "cpu.amp",
    "cuda",
    "cuda.amp",
    "cuda.comm",
    "cuda.graphs",
    "cuda.green_contexts",
    "cuda.memory",
    "cuda.nccl",
    "cuda.nvtx",
    "cuda.profiler",
    "cuda.random",
    "cuda.sparse",
    "cuda.streams",
    "cuda.tunable",
    "mps",
    "mps.event",
    "mps.profiler",
    "mtia",
    "mtia.memory",
    "xpu",
    "xpu.memory",
    "xpu.random",
    "xpu.streams",
]

# What an argument without default is given, by its name; others are given 0.
ARGUMENTS: dict[str, Any] = {
    "allocator": None,
    "callables": len,
    "enabled": True,
    "filename": "results.csv",
    "fraction": 0.5,
    "msg": "a mark",
    "new_states": [],
    "sample_args": (),
    "size": 16,
    "source": "x",
    "stream": None,
    "value": True,
}
# They start processes, write files, or compile.
NOT_CALLED = {
    "cuda.tunable.get_results",
    "cuda.cudart",
    "cuda.tunable.write_file",
    "cuda.tunable.read_file",
    "cuda.tunable.tune_gemm_in_file",
}

# Names that differ, by the reason.
DIFFERENT = {
    "the machine has the library there, and here none is used": (
        "backends.cusparselt.is_available backends.cusparselt.version backends.mkl.is_available "
        "backends.nnpack.is_available backends.openmp.is_available "
        ""
    ),
    "PyTorch is built with CUDA": (
        "backends.cuda.is_built backends.cuda.is_flash_attention_available cuda.get_arch_list cuda.get_gencode_flags "
        "cuda.has_half cuda.has_magma backends.cuda.SDPAParams backends.cuda.can_use_cudnn_attention "
        "backends.cuda.can_use_efficient_attention backends.cuda.can_use_flash_attention "
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed cuda.tunable.get_validators cuda.GreenContext "
        "cuda.graph_pool_handle cuda.graphs.graph_pool_handle "
        "cuda.green_contexts.GreenContext cuda.ExternalStream cuda.streams.ExternalStream"
    ),
    "the memory functions count the memory of the default device": (
        "cuda.max_memory_allocated cuda.max_memory_cached cuda.max_memory_reserved cuda.memory_allocated "
        "cuda.memory_cached cuda.memory_reserved cuda.memory_stats cuda.memory_stats_as_nested_dict "
        "cuda.memory_summary "
        "cuda.reset_accumulated_memory_stats cuda.reset_max_memory_allocated cuda.reset_max_memory_cached "
        "cuda.reset_peak_memory_stats cuda.list_gpu_processes cuda.memory.max_memory_allocated "
        "cuda.memory.max_memory_cached cuda.memory.max_memory_reserved cuda.memory.memory_allocated "
        "cuda.memory.memory_cached cuda.memory.memory_reserved cuda.memory.memory_stats "
        "cuda.memory.memory_stats_as_nested_dict cuda.memory.memory_summary "
        "cuda.memory.reset_accumulated_memory_stats cuda.memory.reset_max_memory_allocated "
        "cuda.memory.reset_max_memory_cached cuda.memory.reset_peak_memory_stats cuda.memory.list_gpu_processes"
    ),
    "the accelerator is the GPU of wgpu": " ".join(
        f"accelerator.{name}"
        for name in [
            "current_accelerator",
            "current_device_idx",
            "current_device_index",
            "device_count",
            "get_device_capability",
            "get_memory_info",
            "is_available",
            "max_memory_allocated",
            "max_memory_reserved",
            "memory_allocated",
            "memory_reserved",
            "memory_stats",
            "set_device_idx",
            "set_device_index",
            "set_stream",
            "synchronize",
            "current_stream",
            "empty_cache",
            "memory.get_memory_info",
            "memory.max_memory_allocated",
            "memory.max_memory_reserved",
            "memory.memory_allocated",
            "memory.memory_reserved",
            "memory.memory_stats",
        ]
    ),
    "a part of PyTorch's own module is missing there, which is no answer": (
        "backends.mps.get_core_count backends.mps.get_name mps.profiler.is_capturing_metal "
        "mps.profiler.is_metal_capture_enabled xpu.reset_accumulated_memory_stats xpu.reset_peak_memory_stats "
        "xpu.memory.reset_accumulated_memory_stats xpu.memory.reset_peak_memory_stats"
    ),
    "the argument of this test is refused there for its type": (
        "cuda.set_rng_state cuda.random.set_rng_state mtia.set_rng_state xpu.set_rng_state xpu.random.set_rng_state "
        "xpu.device_of cuda.device_of backends.nnpack.set_flags cuda.tunable.set_numerical_check_tolerances "
        "mtia.attach_out_of_memory_observer"
    ),
    "work on the CPU is there when it is read, so nothing waits": (
        "cuda.ipc_collect cuda.is_current_stream_capturing cuda.graphs.is_current_stream_capturing cuda.synchronize"
    ),
    "the capabilities that PyTorch's library for processors reports": "cpu.get_capabilities",
    "internal classes of PyTorch's modules": "backends.cuda.cuFFTPlanCacheAttrContextProp",
}
NAMES_THAT_DIFFER = {name for names in DIFFERENT.values() for name in names.split()}


def public(module: str) -> list[str]:
    """The names of a module of PyTorch that are its own."""
    owner = importlib.import_module(f"torch.{module}")
    listed = getattr(owner, "__all__", None)
    if listed is not None:
        return sorted(name for name in listed if not isinstance(getattr(owner, name, None), types.ModuleType))
    own = []
    for name in dir(owner):
        value = getattr(owner, name, None)
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "ctypes":
            if getattr(value, "__module__", f"torch.{module}") == f"torch.{module}":
                own.append(name)
    return own


def all_names() -> list[str]:
    return sorted({f"{module}.{name}" for module in MODULES for name in public(module)} - NOT_CALLED)


# A child process that asks one package does not import the other.
NAMES = all_names() if __name__ != "__main__" else []


def outcome(package: str, path: str) -> list[str]:
    """What a name is, or what a call of it gives: a kind, and a type or value."""
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(f"{package}.{module}"), name)
    if isinstance(value, types.ModuleType):
        return ["module"]
    if not callable(value):
        plain = isinstance(value, (bool, int, float, str, tuple, type(None)))
        return ["value", repr(value) if plain else "object"]
    try:
        given = [
            ARGUMENTS.get(p.name, 0)
            for p in inspect.signature(value).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except ValueError:
        given = []
    print(path, file=sys.stderr)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = value(*given)
    except Exception as e:
        if isinstance(e, ImportError):
            return ["raises", "no sensor"]
        kind = next(t for t in type(e).__mro__ if t.__module__ == "builtins")
        # Without a device it does not matter at which argument PyTorch notices it.
        odd = kind in (AttributeError, TypeError, OSError)
        return ["raises", "RuntimeError" if odd else kind.__name__]
    if isinstance(made, (bool, int, float, str, tuple, list, dict, type(None))):
        return ["gives", repr(made)]
    return ["gives", "a context" if hasattr(type(made), "__enter__") else "an object"]


def main(package: str, paths: list[str]) -> None:
    print(json.dumps({path: outcome(package, path) for path in paths if reached(package, path)}))


def reached(package: str, path: str) -> bool:
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(f"{package}.{module}"), name)
    except ImportError:
        return False


@cache
def outcomes(package: str) -> dict[str, list[str]]:
    """All outcomes of a package, found in a process of its own: some calls change settings."""
    command = [sys.executable, __file__, package, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_name_is_there() -> None:
    missing = [path for path in NAMES if path not in outcomes("rgrad") and path not in NAMES_THAT_DIFFER]
    assert not missing


def test_every_answer_is_that_of_pytorch() -> None:
    ours, theirs = outcomes("rgrad"), outcomes("torch")
    sensor = {"no sensor", "RuntimeError"}
    wrong = {}
    for path, answer in theirs.items():
        if path in NAMES_THAT_DIFFER or path not in ours or ours[path] == answer:
            continue
        if "no sensor" in answer and ours[path][0] == "raises" and ours[path][1] in sensor:
            continue
        wrong[path] = answer, ours[path]
    assert not wrong


def test_names_that_are_said_to_differ_are_names_of_pytorch() -> None:
    assert not NAMES_THAT_DIFFER - set(NAMES)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
