"""Names that tutorials use beside the operations: old types, queries and switches of backends that are not here."""

import math
import subprocess
import sys

import numpy as np
import pytest

import rgrad
from rgrad import nn

TYPES = {
    "FloatTensor": rgrad.float32,
    "DoubleTensor": rgrad.float64,
    "HalfTensor": rgrad.float16,
    "BFloat16Tensor": rgrad.bfloat16,
    "ByteTensor": rgrad.uint8,
    "CharTensor": rgrad.int8,
    "ShortTensor": rgrad.int16,
    "IntTensor": rgrad.int32,
    "LongTensor": rgrad.int64,
    "BoolTensor": rgrad.bool,
}


@pytest.mark.parametrize("name", TYPES)
def test_a_type_makes_and_knows_its_tensors(name: str) -> None:
    kind, dtype = getattr(rgrad, name), TYPES[name]
    assert kind.__name__ == name
    assert kind.dtype == dtype
    made = kind([1, 0])
    assert made.dtype == dtype
    assert made.tolist() == [1, 0]
    assert kind(2, 3).shape == (2, 3)
    assert kind().shape == (0,)
    assert isinstance(made, kind)
    assert made.type(kind) is made
    assert rgrad.zeros(2).type(kind).dtype == dtype
    others = [other for other in TYPES if other != name]
    assert not any(isinstance(made, getattr(rgrad, other)) for other in others)
    assert made.type() == f"rgrad.{name}"


def test_a_type_is_of_the_cpu_whatever_the_default() -> None:
    with rgrad.device("meta"):
        assert rgrad.FloatTensor([1.0]).device.type == "cpu"
    assert not isinstance(rgrad.ones(1, device="meta"), rgrad.FloatTensor)
    assert not isinstance(3, rgrad.FloatTensor)
    with pytest.raises(RuntimeError, match="expects device type: cpu"):
        rgrad.FloatTensor(2, device="meta")


def test_a_type_refuses_what_it_cannot_take() -> None:
    with pytest.raises(TypeError, match="data must be a sequence"):
        rgrad.FloatTensor(2.5)
    with pytest.raises(TypeError, match="float64"):
        rgrad.FloatTensor(rgrad.ones(2, dtype=rgrad.float64))
    with pytest.raises(RuntimeError, match="negative dimension"):
        rgrad.LongTensor(-1)
    with pytest.raises(ValueError, match="invalid type"):
        rgrad.ones(2).type("torch.cuda.FloatTensor")


def test_the_default_type() -> None:
    try:
        rgrad.set_default_tensor_type(rgrad.DoubleTensor)
        assert rgrad.ones(1).dtype == rgrad.float64
        rgrad.set_default_tensor_type("torch.FloatTensor")
        assert rgrad.ones(1).dtype == rgrad.float32
    finally:
        rgrad.set_default_dtype(rgrad.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        rgrad.set_default_tensor_type(rgrad.LongTensor)
    with pytest.raises(TypeError, match="invalid type object"):
        rgrad.set_default_tensor_type(3)
    with pytest.raises(TypeError, match="invalid type object"):
        rgrad.set_default_tensor_type("torch.cuda.FloatTensor")


def test_constants() -> None:
    assert (rgrad.pi, rgrad.e, rgrad.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(rgrad.nan)
    assert rgrad.ones(2)[rgrad.newaxis].shape == (1, 2)


def test_cuda_says_that_it_is_not_there() -> None:
    cuda = rgrad.cuda
    assert not cuda.is_available()
    assert not cuda.is_initialized()
    assert not cuda.is_bf16_supported()
    assert cuda.device_count() == 0
    assert cuda.get_rng_state_all() == []
    for call in (cuda.manual_seed_all, cuda.manual_seed):
        call(3)
    for quiet in (cuda.seed, cuda.seed_all, cuda.synchronize, cuda.empty_cache, cuda.ipc_collect):
        quiet()
    cuda.set_rng_state_all([])
    cuda.set_device(-1)
    with cuda.device(0):
        assert rgrad.ones(1).device.type == "cpu"
    for refused in (cuda.init, cuda.current_device, cuda.get_device_name, cuda.get_device_properties):
        with pytest.raises(RuntimeError, match="no CUDA devices"):
            refused()
    with pytest.raises(RuntimeError, match="no CUDA devices"):
        cuda.set_device(0)
    with pytest.raises(RuntimeError, match="no CUDA devices"):
        cuda.set_rng_state_all([rgrad.ones(1)])


def test_cuda_counts_the_memory_of_the_default_device(device: str) -> None:
    cuda = rgrad.cuda
    with rgrad.device(device):
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        kept = rgrad.ones(1000, 1000)
        kept.sum().item()
        held = cuda.memory_allocated() - before
        assert 4_000_000 <= held < 4_200_000
        assert cuda.max_memory_allocated() >= before + held
        assert cuda.max_memory_reserved() >= cuda.max_memory_allocated(device)
        assert cuda.memory_stats()["allocated_bytes.all.current"] == cuda.memory_allocated() == before + held
        assert cuda.memory_stats()["reserved_bytes.all.current"] == cuda.memory_reserved() >= before + held
        assert cuda.memory_summary(abbreviated=True).startswith(f"Memory on {device}: {before + held:,} bytes")
        del kept
        assert cuda.memory_allocated() < before + held
        assert cuda.max_memory_allocated() >= before + held
        cuda.reset_max_memory_allocated()
        assert cuda.max_memory_allocated() < before + held


def test_backends_answer_and_keep_their_switches() -> None:
    backends = rgrad.backends
    for module in (backends.cudnn, backends.mps, backends.mkl, backends.mkldnn, backends.openmp, backends.opt_einsum):
        assert module.is_available() is False
    assert backends.cudnn.version() is None
    assert not backends.cuda.is_built()
    assert not backends.mps.is_built()
    assert not rgrad.mps.is_available()
    assert rgrad.mps.device_count() == 0
    assert backends.cudnn.enabled
    with backends.cudnn.flags(enabled=False, benchmark=None, deterministic=True):
        assert not backends.cudnn.enabled
        assert not backends.cudnn.benchmark
        assert backends.cudnn.deterministic
    assert backends.cudnn.enabled
    assert not backends.cudnn.deterministic
    with pytest.raises(KeyError), backends.mkldnn.flags(enabled=False):
        raise KeyError
    assert backends.mkldnn.enabled
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.allow_tf32
    backends.cuda.matmul.allow_tf32 = False


def test_switches_of_precision_and_determinism() -> None:
    assert rgrad.get_float32_matmul_precision() == "highest"
    rgrad.set_float32_matmul_precision("high")
    assert rgrad.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="no effect"):
        rgrad.set_float32_matmul_precision("exact")
    assert rgrad.get_float32_matmul_precision() == "high"
    rgrad.set_float32_matmul_precision("highest")
    for mode, number, on, warn in [("warn", 1, True, True), ("error", 2, True, False), ("default", 0, False, False)]:
        rgrad.set_deterministic_debug_mode(mode)
        assert rgrad.get_deterministic_debug_mode() == number
        assert rgrad.are_deterministic_algorithms_enabled() is on
        assert rgrad.is_deterministic_algorithms_warn_only_enabled() is warn
        rgrad.set_deterministic_debug_mode(number)
        assert rgrad.get_deterministic_debug_mode() == number
    with pytest.raises(TypeError, match="must be bool, not int"):
        rgrad.use_deterministic_algorithms(1)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        rgrad.set_deterministic_debug_mode("x")
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        rgrad.set_deterministic_debug_mode(3)
    with pytest.raises(TypeError, match="str or int"):
        rgrad.set_deterministic_debug_mode(None)  # type: ignore[arg-type]
    assert rgrad.set_flush_denormal(False)
    assert not rgrad.set_flush_denormal(True)
    assert rgrad.tensor(1e-42).mul(1).item() > 0


def test_compile_gives_its_argument_back() -> None:
    @rgrad.compile
    def twice(x: rgrad.Tensor) -> rgrad.Tensor:
        return x * 2

    @rgrad.compile(mode="reduce-overhead")
    def thrice(x: rgrad.Tensor) -> rgrad.Tensor:
        return x * 3

    layer = nn.Linear(2, 2)
    assert rgrad.compile(layer) is layer
    assert np.array_equal((twice(rgrad.ones(2)) + thrice(rgrad.ones(2))).numpy(), [5, 5])
    with pytest.raises(RuntimeError, match="Either mode or options"):
        rgrad.compile(layer, mode="default", options={})
    assert not rgrad.compiler.is_compiling()
    assert not rgrad.compiler.is_dynamo_compiling()
    assert not rgrad.compiler.is_exporting()
    assert rgrad.compiler.disable(layer) is layer
    assert rgrad.compiler.disable(recursive=False)(layer) is layer
    rgrad.compiler.reset()
    assert not rgrad.jit.is_scripting()
    assert not rgrad.jit.is_tracing()
    assert rgrad.jit.script(layer) is layer
    assert rgrad.jit.ignore(twice) is rgrad.jit.ignore(drop=True)(twice) is rgrad.jit.unused(twice)
    assert rgrad.jit.export(twice) is twice


def test_the_version() -> None:
    assert rgrad.version.__version__ == rgrad.__version__
    assert rgrad.version.cuda is None


def test_they_cost_an_import_nothing() -> None:
    lazy = ("backends", "cuda", "jit", "_runtime.settings", "_tensor.legacy_types", "version")
    known = tuple(f"rgrad.{name}." for name in lazy)
    code = f"import sys, rgrad; print([m for m in sys.modules if (m + '.').startswith({known})])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_volatile_warns_and_changes_nothing() -> None:
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        x = rgrad.autograd.Variable(rgrad.ones(2), volatile=True)
    with pytest.warns(UserWarning, match="volatile is always False"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="now has no effect"):
        x.volatile = True
    with pytest.warns(UserWarning, match="volatile"), pytest.raises(ValueError, match="volatile and require_grad"):
        rgrad.autograd.Variable(rgrad.ones(2), requires_grad=True, volatile=True)
