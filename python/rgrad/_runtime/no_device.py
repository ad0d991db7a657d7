"""The error of everything that needs a CUDA device."""

from typing import Never


def refuse(name: str) -> Never:
    """Say that there is none, with the words of PyTorch where no driver is found.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        f"cuda.{name}: Found no NVIDIA driver on your system: there are no CUDA devices. rgrad runs on the CPU and, by "
        'WebGPU, on GPUs of any vendor. Ask cuda.is_available() first, or use the device "wgpu" (rgrad.wgpu)'
    )
