"""What a bug report should say about the machine: versions, processor, threads, adapters."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from typing import NamedTuple

from .. import __version__, _core

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

#: Packages whose versions matter.
_PACKAGES = ("numpy", "wgpu", "rendercanvas", "scikit-learn", "safetensors", "torch", "tensorboard")
#: Features of processors for which there are kernels, or that explain a speed.
_FEATURES = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_fp16", "asimd", "neon")


class SystemEnv(NamedTuple):
    """The parts of the report."""

    rgrad_version: str
    native_module: str
    python_version: str
    python_platform: str
    os: str
    cpu_info: str
    cpu_features: str
    threads: str
    memory: str
    adapters: str
    packages: list[str]
    environment: list[str]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _cpu_lines() -> dict[str, str]:
    """The lines of the first processor in ``/proc/cpuinfo``; none on other systems."""
    first = _read("/proc/cpuinfo").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _features() -> str:
    lines = _cpu_lines()
    has = set((lines.get("flags") or lines.get("Features") or "").split())
    return " ".join(f for f in _FEATURES if f in has) or "unknown"


def _os() -> str:
    for line in _read("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.platform()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{total / 1024**3:.1f} GB, of which tensors hold {_core.memory_allocated() / 1024**2:.1f} MB now"


def _threads() -> str:
    return f"{_core.get_num_threads()} for computing, of {os.cpu_count()} processors"


def _adapters() -> str:
    """The adapters that wgpu-py finds, one a line. Asking for them makes no device."""
    try:
        infos = [a.info for a in import_module("wgpu").gpu.enumerate_adapters_sync()]
    except Exception as e:
        return f"not available ({type(e).__name__}: {e})"
    lines = [
        f"{i.get('device')} ({i.get('adapter_type')}, {i.get('backend_type')}, {i.get('description')})" for i in infos
    ]
    return "\n".join(lines) or "none"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _guarded(ask: Callable[[], str]) -> str:
    """What ``ask`` says; a report is written on broken machines, too."""
    try:
        return ask()
    except Exception as e:
        return f"unknown ({type(e).__name__}: {e})"


def get_env_info() -> SystemEnv:
    """Asks the machine. Nothing is sent anywhere."""
    versions = {package: _version(package) for package in _PACKAGES}
    names = sorted(n for n in os.environ if n.startswith(("RGRAD_", "WGPU_", "OMP_", "RAYON_")))
    return SystemEnv(
        rgrad_version=__version__,
        native_module=str(_core.__file__),
        python_version=sys.version.replace("\n", " "),
        python_platform=platform.platform(),
        os=_guarded(_os),
        cpu_info=_guarded(lambda: _cpu_lines().get("model name") or platform.processor() or platform.machine()),
        cpu_features=_guarded(_features),
        threads=_guarded(_threads),
        memory=_guarded(_memory),
        adapters=_guarded(_adapters),
        packages=[f"{package}=={version}" for package, version in versions.items() if version is not None],
        environment=[f"{name}={os.environ[name]}" for name in names],
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """The report as text."""

    def block(lines: list[str]) -> str:
        return "".join("\n  " + line for line in lines) or " none"

    return "\n".join(
        [
            f"rgrad version: {envinfo.rgrad_version}",
            f"Native module: {envinfo.native_module}",
            f"Python version: {envinfo.python_version}",
            f"Python platform: {envinfo.python_platform}",
            f"OS: {envinfo.os}",
            f"CPU: {envinfo.cpu_info}",
            f"CPU features: {envinfo.cpu_features}",
            f"Threads: {envinfo.threads}",
            f"Memory: {envinfo.memory}",
            f"wgpu adapters:{block(envinfo.adapters.splitlines())}",
            f"Packages:{block(envinfo.packages)}",
            f"Environment variables:{block(envinfo.environment)}",
        ]
    )


def get_pretty_env_info() -> str:
    """The report of this machine as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
