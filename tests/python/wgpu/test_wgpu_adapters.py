"""Which adapter is used where nobody has chosen one, and what is said of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import rgrad
from fresh import run
from rgrad.wgpu import _adapters


def adapter(name: str, kind: str, backend: str, compute: int = 256) -> SimpleNamespace:
    info = {"device": name, "adapter_type": kind, "backend_type": backend}
    return SimpleNamespace(info=info, limits={"max-compute-invocations-per-workgroup": compute})


BEST_FIRST = [
    adapter("big", "DiscreteGPU", "Vulkan"),
    adapter("small", "IntegratedGPU", "Vulkan"),
    adapter("cloudy", "Unknown", "Vulkan"),
    adapter("big", "DiscreteGPU", "OpenGL"),
    adapter("llvmpipe", "CPU", "Vulkan"),
    adapter("llvmpipe", "CPU", "OpenGLES"),
]


def test_a_gpu_comes_before_software_and_opengl_last_among_equals() -> None:
    for first in range(len(BEST_FIRST)):
        rest = BEST_FIRST[first:]
        for found in (rest, rest[::-1]):
            chosen = _adapters.best(found)
            assert chosen is not None
            assert chosen[0] is rest[0]
            assert chosen[1].startswith("the best of" if len(rest) > 1 else "the only adapter")
            assert all(_adapters.describe(other.info) in chosen[1] for other in rest[1:])


def test_what_cannot_compute_is_not_chosen() -> None:
    old = adapter("old", "DiscreteGPU", "OpenGLES", compute=0)
    assert _adapters.best([]) is None
    assert _adapters.best([old]) is None
    assert _adapters.best([old, BEST_FIRST[-1]]) == (BEST_FIRST[-1], "the only adapter found")


@pytest.mark.wgpu
def test_one_line_says_which_adapter_it_is_and_why() -> None:
    text = rgrad.wgpu.chosen()
    assert len(text.splitlines()) == 1
    assert rgrad.wgpu.current_device().adapter.info["device"] in text


@pytest.mark.wgpu
def test_software_is_told_once() -> None:
    run("""
        import warnings
        import rgrad
        used = []
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for adapter in [None, *rgrad.wgpu.devices(), *rgrad.wgpu.devices()]:
                if adapter is not None:
                    rgrad.wgpu.set_device(adapter)
                x = rgrad.ones(3).to("wgpu")
                used.append(rgrad.wgpu.current_device().adapter.info["adapter_type"])
                assert adapter is None or "given to set_device()" in rgrad.wgpu.chosen()
        said = [str(w.message) for w in told if "computes in software" in str(w.message)]
        assert len(said) == ("CPU" in used), (said, used)
        assert all("(software, " in text for text in said)
    """)


def test_devices_are_opened_with_the_least_that_webgpu_promises_where_that_is_asked() -> None:
    run(
        """
        import warnings
        import rgrad
        warnings.simplefilter("ignore")
        def check():
            device = rgrad.wgpu.current_device()
            assert not device.features, device.features
            assert {name: device.limits[name] for name in rgrad.wgpu._adapters._LEAST} == rgrad.wgpu._adapters._LEAST
            assert "the least that WebGPU promises (RGRAD_WGPU_LIMITS=least)" in rgrad.wgpu.chosen()
            assert rgrad.ones(3, device="wgpu").sum().item() == 3
        check()
        rgrad.wgpu.set_device(rgrad.wgpu.current_device().adapter)
        check()
        """,
        RGRAD_WGPU_LIMITS="least",
    )


def test_other_limits_are_refused() -> None:
    told = run(
        """
        import rgrad
        try:
            rgrad.wgpu.current_device()
        except ValueError as e:
            print(e)
        """,
        RGRAD_WGPU_LIMITS="most",
    )
    assert told == 'RGRAD_WGPU_LIMITS=most: expected "least", or nothing for the limits of the adapter\n'
