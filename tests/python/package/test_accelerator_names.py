"""What portable code asks of `cuda`, `accelerator`, `mps`, `cpu` and `backends.cuda`, beside the memory functions."""

from __future__ import annotations

from typing import ClassVar

import pytest

import rgrad
from rgrad import optim

cuda = rgrad.cuda

REFUSED = {
    "get_device_capability": lambda: cuda.get_device_capability(),
    "current_stream": lambda: cuda.current_stream(),
    "default_stream": lambda: cuda.default_stream(),
    "get_rng_state": lambda: cuda.get_rng_state(),
    "initial_seed": lambda: cuda.initial_seed(),
    "mem_get_info": lambda: cuda.mem_get_info(),
    "can_device_access_peer": lambda: cuda.can_device_access_peer(0, 1),
    "utilization": lambda: cuda.utilization(),
    "temperature": lambda: cuda.temperature(),
    "power_draw": lambda: cuda.power_draw(),
    "clock_rate": lambda: cuda.clock_rate(),
    "memory_usage": lambda: cuda.memory_usage(),
    "cudart": lambda: cuda.cudart(),
    "current_blas_handle": lambda: cuda.current_blas_handle(),
    "get_sync_debug_mode": lambda: cuda.get_sync_debug_mode(),
    "set_sync_debug_mode": lambda: cuda.set_sync_debug_mode(1),
    "get_per_process_memory_fraction": lambda: cuda.get_per_process_memory_fraction(),
    "set_per_process_memory_fraction": lambda: cuda.set_per_process_memory_fraction(0.5),
    "Stream": lambda: cuda.Stream(),
    "Event.record": lambda: cuda.Event(enable_timing=True).record(),
    "Event.wait": lambda: cuda.Event().wait(),
    "StreamContext": lambda: cuda.stream("a stream"),
    "CUDAGraph": lambda: cuda.CUDAGraph(),
    "graph": lambda: cuda.graph(None),
    "make_graphed_callables": lambda: cuda.make_graphed_callables(len, ()),
    "FloatTensor": lambda: cuda.FloatTensor(3),
    "LongTensor": lambda: cuda.LongTensor([1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_cuda_device_says_that_there_is_none(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"^cuda.{name}: Found no NVIDIA driver on your system"):
        REFUSED[name]()


def test_what_does_not_need_a_cuda_device() -> None:
    assert cuda.get_arch_list() == []
    assert cuda.get_gencode_flags() == ""
    assert not cuda.is_tf32_supported()
    assert not cuda.is_current_stream_capturing()
    assert cuda.get_allocator_backend() == "native"
    assert cuda.default_generators == ()
    cuda.set_rng_state(rgrad.get_rng_state())
    cuda.set_stream(None)
    event = cuda.Event()
    assert event.query()
    event.synchronize()
    with pytest.raises(ValueError, match="must be recorded"):
        event.elapsed_time(cuda.Event())
    with cuda.stream(None), cuda.device_of(rgrad.ones(1)), cuda.nvtx.range("step {}", 1):
        cuda.nvtx.mark("here")
    assert (cuda.nvtx.range_push("a"), cuda.nvtx.range_pop()) == (-2, -2)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.set_device("cpu")
    assert not isinstance(rgrad.ones(1), cuda.FloatTensor)
    assert cuda.FloatTensor.is_cuda


def test_old_names_of_memory_functions_warn() -> None:
    kept = rgrad.ones(1000)
    with pytest.warns(FutureWarning, match="renamed to `rgrad.cuda.memory_reserved`"):
        assert cuda.memory_cached() == cuda.memory_reserved()
    with pytest.warns(FutureWarning, match="max_memory_reserved"):
        assert cuda.max_memory_cached() == cuda.max_memory_reserved()
    with pytest.warns(FutureWarning, match="reset_peak"):
        cuda.reset_max_memory_cached()
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == cuda.memory_allocated()
    assert cuda.memory_allocated() >= kept.nbytes


def test_custom_functions_of_cuda_amp() -> None:
    with pytest.warns(FutureWarning, match=r"custom_(fwd|bwd)\(args...\)` is deprecated"):

        class Twice(rgrad.autograd.Function):
            @staticmethod
            @cuda.amp.custom_fwd(cast_inputs=rgrad.float16)
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @cuda.amp.custom_bwd
            def backward(ctx, grad):
                return grad * 2

    x = rgrad.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_the_accelerator_is_the_gpu_of_wgpu() -> None:
    accelerator = rgrad.accelerator
    assert accelerator.current_accelerator() == rgrad.device("wgpu")
    device = accelerator.current_accelerator().type if accelerator.is_available() else "cpu"
    assert rgrad.ones(2, device=device).sum().item() == 2
    assert accelerator.device_count() == int(accelerator.is_available())
    assert accelerator.memory_allocated() <= accelerator.max_memory_allocated() <= accelerator.max_memory_reserved()
    accelerator.reset_peak_memory_stats()
    accelerator.empty_cache()
    if accelerator.is_available():
        accelerator.synchronize()
        assert accelerator.current_device_index() == 0
        with accelerator.device_index(0):
            pass
        with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
            accelerator.set_device_index(1)
    else:
        assert accelerator.current_accelerator(check_available=True) is None
        for refused in (accelerator.synchronize, accelerator.current_device_index):
            with pytest.raises(RuntimeError, match="there is no accelerator"):
                refused()
    accelerator.set_device_index(-1)
    with pytest.raises(RuntimeError, match="no streams"):
        accelerator.current_stream()


def test_a_software_adapter_is_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    class Adapter:
        def __init__(self, kind: str) -> None:
            self.info = {"adapter_type": kind}

    monkeypatch.setattr(rgrad.wgpu, "is_available", lambda: True)
    for kinds, expected in ((["CPU"], False), (["CPU", "DiscreteGPU"], True), ([], False)):
        monkeypatch.setattr(rgrad.wgpu, "devices", lambda kinds=kinds: [Adapter(kind) for kind in kinds])
        assert rgrad.accelerator.is_available() is expected


def test_mps_and_the_cpu() -> None:
    for refused in (rgrad.mps.synchronize, rgrad.mps.empty_cache, rgrad.mps.current_allocated_memory, rgrad.mps.seed):
        with pytest.raises(RuntimeError, match=r"^Cannot execute \w+\(\) without MPS backend"):
            refused()
    assert rgrad.cpu.is_initialized()
    stream = rgrad.cpu.current_stream()
    assert isinstance(stream, rgrad.cpu.Stream)
    with rgrad.cpu.stream(stream):
        rgrad.cpu.set_device(0)


@pytest.mark.parametrize("kind", ["flash", "mem_efficient", "math", "cudnn"])
def test_switches_of_attention_are_kept(kind: str) -> None:
    cuda_backend = rgrad.backends.cuda
    enable, enabled = getattr(cuda_backend, f"enable_{kind}_sdp"), getattr(cuda_backend, f"{kind}_sdp_enabled")
    assert enabled()
    try:
        enable(False)
        assert not enabled()
    finally:
        enable(True)
    assert not cuda_backend.is_flash_attention_available()


def test_constants_of_layers() -> None:
    assert rgrad.nn.Linear.__constants__ == ["in_features", "out_features"]

    class Scaled(rgrad.nn.Linear):
        __constants__: ClassVar = [*rgrad.nn.Linear.__constants__, "scale"]

    assert Scaled.__constants__ == ["in_features", "out_features", "scale"]
    assert not hasattr(rgrad.nn.Module, "__constants__")


def test_a_step_of_its_own_gets_hooks() -> None:
    seen = []

    def step(self, closure=None):
        return 3

    class Still(optim.Optimizer):
        def __init__(self, params) -> None:
            super().__init__(params, {})

    optimizer = Still([rgrad.ones(1, requires_grad=True)])
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    hooked = optim.Optimizer.profile_hook_step(step)
    assert hooked(optimizer) == 3
    assert seen == [1]
    assert optim.Optimizer.profile_hook_step(hooked) is hooked
