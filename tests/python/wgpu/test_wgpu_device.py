"""The wgpu device itself: its choice, the check of the C interface, memory, the order of work."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from fresh import run
from rgrad import _core

pytestmark = pytest.mark.wgpu


@pytest.fixture
def native() -> Any:
    """wgpu-py's native backend, with a device in use."""
    rgrad.wgpu.current_device()
    import wgpu.backends.wgpu_native as native

    return native


@pytest.fixture
def description() -> dict[str, Any]:
    return copy.deepcopy(_core._wgpu_description())


@pytest.fixture(autouse=True)
def same_device() -> Iterator[None]:
    """Leaves the device in use that a test found."""
    before = rgrad.wgpu.current_device()
    yield
    rgrad.wgpu.set_device(before)


# The choice of a device


def test_importing_rgrad_does_not_import_wgpu() -> None:
    assert run("import rgrad, sys; print('wgpu' in sys.modules, 'cffi' in sys.modules)") == "False False\n"


def test_the_first_use_brings_the_shared_default_device_in() -> None:
    assert rgrad.wgpu.is_available()
    assert rgrad.ones(2).to("wgpu").sum().item() == 2
    from wgpu.utils.device import get_default_device

    out = run(
        """
        import rgrad
        assert rgrad.ones(2).to("wgpu").sum().item() == 2
        from wgpu.utils.device import get_default_device
        print(get_default_device() is rgrad.wgpu.current_device())
        """
    )
    assert out == "True\n"
    assert get_default_device() is rgrad.wgpu.current_device()


def test_what_other_packages_have_asked_of_the_default_device_stands() -> None:
    out = run(
        """
        import logging, rgrad, wgpu
        from wgpu.utils.device import preconfigure_default_device
        warnings = []
        class Handler(logging.Handler):
            def emit(self, record):
                warnings.append(record.getMessage())
        logging.getLogger("wgpu").addHandler(Handler())
        preconfigure_default_device("someone", power_preference="low-power", required_limits={"max-bind-groups": 3})
        assert rgrad.ones(2).to("wgpu").sum().item() == 2
        print(rgrad.wgpu.current_device().limits["max-bind-groups"], [w for w in warnings if "override" in w])
        """
    )
    assert out == "3 []\n"


@pytest.mark.needs("own limits")
def test_the_default_device_has_the_limits_and_features_of_its_adapter() -> None:
    device = rgrad.wgpu.current_device()
    assert device.limits["max-buffer-size"] == device.adapter.limits["max-buffer-size"]
    assert device.limits["max-storage-buffer-binding-size"] == device.adapter.limits["max-storage-buffer-binding-size"]
    useful = {"shader-f16", "subgroup", "timestamp-query", "immediates", "shader-int64", "shader-f64"}
    assert useful & device.adapter.features <= device.features


def test_devices_lists_adapters_that_set_device_takes() -> None:
    adapters = rgrad.wgpu.devices()
    assert adapters
    x = rgrad.ones(3).to("wgpu")
    before = rgrad.wgpu.current_device()
    rgrad.wgpu.set_device(rgrad.wgpu.current_device().adapter)
    assert rgrad.wgpu.current_device() is not before
    y = rgrad.ones(3).to("wgpu")
    # Tensors of either device are usable among themselves, not together.
    assert (x + x).sum().item() == 6
    assert (y + y).sum().item() == 6
    with pytest.raises(RuntimeError, match="two wgpu devices"):
        x + y
    rgrad.wgpu.set_device(before)
    assert (x + rgrad.ones(3).to("wgpu")).sum().item() == 6


def test_set_device_takes_a_device_of_the_user() -> None:
    device = rgrad.wgpu.current_device().adapter.request_device_sync(label="mine")
    rgrad.wgpu.set_device(device)
    assert rgrad.wgpu.current_device() is device
    assert rgrad.arange(4).to("wgpu").sum().item() == 6


def test_a_device_without_features_has_all_but_float64() -> None:
    adapter = rgrad.wgpu.current_device().adapter
    rgrad.wgpu.set_device(adapter.request_device_sync(required_limits=dict(adapter.limits)))
    assert not {"shader-f64", "shader-int64", "shader-f16", "subgroup"} & set(rgrad.wgpu.current_device().features)
    big = rgrad.tensor([2**40 + 1, -7], device="wgpu")
    assert (big * 3 // 2).tolist() == [(2**40 + 1) * 3 // 2, -11]
    w = rgrad.ones(3, 2, requires_grad=True, device="wgpu")
    rgrad.nn.functional.cross_entropy(rgrad.eye(3, device="wgpu")[:2] @ w, big.remainder(2)).backward()
    assert w.grad.sum().item() == pytest.approx(0.0, abs=1e-6)
    for call in (
        lambda: rgrad.ones(2, dtype=rgrad.float64, device="wgpu"),
        lambda: rgrad.ones(2, device="wgpu").double(),
        lambda: rgrad.tensor([1.0], dtype=rgrad.float64).to("wgpu"),
    ):
        with pytest.raises(NotImplementedError, match=r"adapter .* has no float64 .*Convert with .* or use \.cpu\(\)"):
            call()


def test_what_the_host_computes_in_float64_goes_to_a_device_without_it() -> None:
    adapter = rgrad.wgpu.current_device().adapter
    rgrad.wgpu.set_device(adapter.request_device_sync(required_limits=dict(adapter.limits)))
    init = rgrad.nn.init
    wide = rgrad.tensor([1.5, -2.0, 0.1], dtype=rgrad.float64)
    makes: dict[str, Any] = {
        "trunc_normal_": lambda: init.trunc_normal_(rgrad.empty(4, 3)),
        "orthogonal_": lambda: init.orthogonal_(rgrad.empty(4, 3)),
        "cauchy_": lambda: rgrad.empty(4).cauchy_(),
        "log_normal_": lambda: rgrad.empty(4).log_normal_(),
        "geometric_": lambda: rgrad.empty(4).geometric_(0.3),
        "hann_window": lambda: rgrad.hann_window(6),
        "kaiser_window": lambda: rgrad.kaiser_window(6),
        "one place": lambda: rgrad.hamming_window(1),
        "range": lambda: rgrad.range(0, 2, 0.5),
        "copy_": lambda: rgrad.empty(3).copy_(wide),
        "fill_": lambda: rgrad.empty(3).fill_(wide[0]),
        "to": lambda: wide.to("wgpu", rgrad.float32),
        "quantile": lambda: rgrad.quantile(rgrad.tensor([1.0, 2.0, 4.0]), rgrad.tensor([0.5, 0.75])),
        "isclose": lambda: rgrad.isclose(rgrad.tensor([1, 5]), rgrad.tensor([1, 6])).float(),
    }
    for name, make in makes.items():
        with rgrad.device("wgpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rgrad.manual_seed(1)
            there = make()
        with rgrad.device("cpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rgrad.manual_seed(1)
            here = make().cpu()
        assert (there.device.type, there.dtype) == ("wgpu", here.dtype), name
        assert rgrad.allclose(there.cpu(), here, rtol=1e-5, atol=1e-6), name


def test_a_device_lives_as_long_as_its_tensors() -> None:
    adapter = rgrad.wgpu.current_device().adapter
    rgrad.wgpu.set_device(adapter)
    alive = weakref.ref(rgrad.wgpu.current_device())
    x = rgrad.arange(3.0).to("wgpu")
    rgrad.wgpu.set_device(adapter)
    gc.collect()
    assert alive() is not None
    assert (x + 1).cpu().tolist() == [1, 2, 3]
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("wrong", [None, 0, "wgpu", object()])
def test_set_device_refuses_anything_else(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"expected a wgpu\.GPUAdapter or a wgpu\.GPUDevice, got"):
        rgrad.wgpu.set_device(wrong)


def test_software_adapters_are_named_as_such() -> None:
    info = rgrad.wgpu.current_device().adapter.info
    x = rgrad.ones(3)
    _core._wgpu_fail_in(0)
    with pytest.raises(MemoryError) as caught:
        x.to("wgpu")
    assert info["device"] in str(caught.value)
    assert ("software" in str(caught.value)) == (info["adapter_type"].lower() == "cpu")


def test_without_an_adapter_the_error_says_what_was_looked_for() -> None:
    out = run(
        """
        import rgrad, wgpu, wgpu.backends.wgpu_native  # which replaces wgpu.gpu
        def nothing(): raise RuntimeError("none fits")
        wgpu.gpu.enumerate_adapters_sync = nothing
        print(rgrad.wgpu.is_available())
        try:
            rgrad.ones(2).to("wgpu")
        except RuntimeError as e:
            print(e)
        """
    )
    assert out.startswith("False\n")
    for word in ("Vulkan", "Metal", "Direct3D 12", "none fits", "mesa-vulkan-drivers"):
        assert word in out


def test_without_the_package_the_error_says_how_to_install_it() -> None:
    out = run(
        """
        import sys
        sys.modules["wgpu"] = None
        import rgrad
        print(rgrad.wgpu.is_available())
        try:
            rgrad.ones(2).to("wgpu")
        except RuntimeError as e:
            print(e)
        """
    )
    assert out.startswith("False\n")
    assert 'pip install "wgpu>=' in out


@pytest.mark.parametrize(
    ("version", "age"), [("0.31.4", "old"), ("0.33.0", "new"), ("1.0", "new"), ("0.9.5.dev3", "old")]
)
def test_versions_that_were_not_tested_are_refused(version: str, age: str) -> None:
    with pytest.raises(RuntimeError, match=rf"wgpu {version} is too {age} .*pip install"):
        rgrad.wgpu._interface.check_version(version)


# The C interface


def test_the_interface_of_the_loaded_library_is_the_expected_one(native: Any, description: dict[str, Any]) -> None:
    assert rgrad.wgpu._interface.mismatches(description, native.ffi, native.lib) == []
    assert len(description["structs"]) > 15
    assert len(description["functions"]) > 25


def forged_size(d: dict[str, Any]) -> str:
    size, fields = d["structs"]["WGPUBufferDescriptor"]
    d["structs"]["WGPUBufferDescriptor"] = (size + 8, fields)
    return "struct WGPUBufferDescriptor"


def forged_offset(d: dict[str, Any]) -> str:
    size, fields = d["structs"]["WGPUBindGroupEntry"]
    name, offset, kind = fields[2]
    d["structs"]["WGPUBindGroupEntry"] = (size, [*fields[:2], (name, offset + 4, kind), *fields[3:]])
    return "struct WGPUBindGroupEntry: field"


def forged_field_type(d: dict[str, Any]) -> str:
    size, fields = d["structs"]["WGPUStringView"]
    d["structs"]["WGPUStringView"] = (size, [fields[0], ("length", fields[1][1], "uint64_t")])
    return "struct WGPUStringView: field"


def forged_missing_field(d: dict[str, Any]) -> str:
    size, fields = d["structs"]["WGPUStringView"]
    d["structs"]["WGPUStringView"] = (size, fields[:1])
    return "struct WGPUStringView: 2 fields, expected 1"


def forged_struct(d: dict[str, Any]) -> str:
    d["structs"]["WGPUNoSuchThing"] = (8, [])
    return "struct WGPUNoSuchThing: not in the library's header"


def forged_constant(d: dict[str, Any]) -> str:
    d["constants"]["WGPUBufferUsage_Storage"] = 0x100
    return "constant WGPUBufferUsage_Storage: 128, expected 256"


def forged_missing_constant(d: dict[str, Any]) -> str:
    d["constants"]["WGPUBufferUsage_Telepathic"] = 1
    return "constant WGPUBufferUsage_Telepathic: not there"


def forged_signature(d: dict[str, Any]) -> str:
    d["functions"]["wgpuDevicePoll"] = "void(*)(struct WGPUDeviceImpl *)"
    return "function wgpuDevicePoll"


def forged_function(d: dict[str, Any]) -> str:
    d["functions"]["wgpuDeviceThink"] = "void(*)(void)"
    return "function wgpuDeviceThink: not there"


@pytest.mark.parametrize(
    "forge",
    [
        forged_size,
        forged_offset,
        forged_field_type,
        forged_missing_field,
        forged_struct,
        forged_constant,
        forged_missing_constant,
        forged_signature,
        forged_function,
    ],
)
def test_a_mismatch_is_one_error_that_names_both_versions(forge: Any, native: Any, description: dict[str, Any]) -> None:
    expected = forge(description)
    with pytest.raises(RuntimeError) as caught:
        rgrad.wgpu._interface.check_interface(description, native.ffi, native.lib, "0.32.7", "29.1")
    text = str(caught.value)
    assert expected in text
    assert "wgpu 0.32.7 (wgpu-native 29.1)" in text
    assert f"rgrad {rgrad.__version__} was compiled for (wgpu-native {description['version']})" in text


# Memory


def test_memory_is_counted_and_reused() -> None:
    w = rgrad.wgpu
    before = w.memory_allocated()
    w.reset_peak_memory_stats()
    x = rgrad.ones(1 << 20).to("wgpu")
    assert w.memory_allocated() - before >= 4 << 20
    y = x + 1
    w.synchronize()  # results may be pending until then
    assert w.max_memory_allocated() - before >= 8 << 20
    del x, y
    assert w.memory_allocated() == before
    idle = _core._wgpu_memory()[2]
    assert idle >= 8 << 20
    z = rgrad.ones(1 << 20).to("wgpu")
    assert _core._wgpu_memory()[2] < idle
    del z
    w.synchronize()
    w.empty_cache()
    assert _core._wgpu_memory()[2] == 0
    w.reset_peak_memory_stats()
    assert w.max_memory_allocated() == w.memory_allocated()


def test_memory_is_flat_over_many_steps() -> None:
    x = rgrad.arange(16.0).to("wgpu")

    def steps(n: int) -> None:
        y = x
        for _ in range(n):
            y = y * 0.5 + 1
        rgrad.wgpu.synchronize()

    steps(600)
    before, compiled = _core._wgpu_memory(), _core._wgpu_counts()[1]
    steps(3_000)
    after = _core._wgpu_memory()
    assert after[0] == before[0]
    assert after[2] <= before[2] + 4096
    assert _core._wgpu_counts()[1] == compiled


@pytest.mark.usefixtures("small_programs")
def test_shaders_that_are_not_used_any_more_are_given_back() -> None:
    x = rgrad.linspace(-1, 1, 300)
    there = x.to("wgpu")
    made = _core._wgpu_counts()[1]
    results = []
    _core._wgpu_keep_pipelines(6)
    try:
        for n in range(60):  # in one pass, for nobody looks
            chain = [rgrad.sin, rgrad.cos, rgrad.tanh, rgrad.neg]
            y, z = x, there
            with rgrad.fusion(n % 2 == 0):
                for k in range(3):
                    y, z = (chain[n // 4**k % 4](t) for t in (y, z))
            results.append((y @ x, z @ there, n))  # a product's inputs do not wait
        _, compiled, _, kept = _core._wgpu_counts()
        assert compiled > made + 6
        assert kept <= 3 * 6
        for y, z, n in results:
            assert rgrad.allclose(z.cpu(), y, rtol=1e-4, atol=1e-4), n
    finally:
        _core._wgpu_keep_pipelines()


def test_memory_is_flat_over_thousands_of_training_steps() -> None:
    F = rgrad.nn.functional
    model = rgrad.nn.Linear(4, 3).to("wgpu")
    optimizer = rgrad.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = rgrad.rand(8, 4).to("wgpu"), rgrad.arange(8).remainder(3).to("wgpu")

    def steps(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        rgrad.wgpu.synchronize()

    steps(300)
    before, compiled = _core._wgpu_memory(), _core._wgpu_counts()[1]
    steps(3_000)
    assert _core._wgpu_memory() == before
    assert _core._wgpu_counts()[1] == compiled


def test_out_of_memory_leaves_device_and_operands_usable() -> None:
    x = rgrad.arange(5.0).to("wgpu")
    _core._wgpu_fail_in(0)
    with pytest.raises(MemoryError, match=r"cannot allocate .* bytes on wgpu .*use smaller batches"):
        x + 1
    assert (x + 1).cpu().tolist() == [1, 2, 3, 4, 5]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_device_without_memory_is_usable_after_some_is_free() -> None:
    out = run(
        """
        import os, resource, rgrad
        x = rgrad.arange(3.0).to("wgpu")
        info = rgrad.wgpu.current_device().adapter.info
        (x + 1).cpu()
        if info["adapter_type"].lower() != "cpu":
            print("True\\nTrue")  # its memory is its own, and not to be filled by a test
            raise SystemExit
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + (600 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        held = []
        try:
            while len(held) < 100:
                held.append(rgrad.empty(16 << 20, device="wgpu"))
        except MemoryError as e:
            print("memory" in str(e) and (x + 1).cpu().tolist() == [1, 2, 3])
        n = len(held)
        held.clear()
        held = [rgrad.empty(16 << 20, device="wgpu") for _ in range(n)]
        print((x + 1).cpu().tolist() == [1, 2, 3])
        """
    )
    assert out == "True\nTrue\n"


def test_tensors_beyond_the_binding_limit_are_refused_with_the_limit() -> None:
    limits = rgrad.wgpu.current_device().limits
    most = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    with pytest.raises(MemoryError, match=f"at most {most // 4 * 4} bytes"):
        rgrad.empty(most // 4 + 1, device="wgpu")


# Order


def test_transfers_keep_their_place_among_recorded_operations() -> None:
    # Each round's buffers are those that the round before has dropped, while work that reads them is not submitted yet.
    for n in (3, 5000):
        sums = []
        for i in range(40):
            a = rgrad.full((n,), float(i)).to("wgpu")
            sums.append(a * 2)
            del a
        assert [s[-1].item() for s in sums] == [2.0 * i for i in range(40)]


def test_long_chains_are_few_submissions() -> None:
    x = rgrad.zeros(16).to("wgpu")
    rgrad.wgpu.synchronize()
    before = _core._wgpu_counts()[0]
    for _ in range(1000):
        x = x + 1
    assert x.cpu().tolist() == [1000.0] * 16
    assert _core._wgpu_counts()[0] - before <= 4


def test_threads_share_the_device() -> None:
    wrong: list[object] = []

    def work(k: int) -> None:
        try:
            for i in range(30):
                x = rgrad.full((100,), float(k)).to("wgpu")
                for _ in range(20):
                    x = x + 1
                if i % 3 == 0:
                    rgrad.wgpu.synchronize()
                if not (x.cpu() == k + 20).all():
                    wrong.append((k, i))
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_training_step_is_few_submissions() -> None:
    model = rgrad.nn.Sequential(rgrad.nn.Linear(64, 64), rgrad.nn.ReLU(), rgrad.nn.Linear(64, 10)).to("wgpu")
    optimizer = rgrad.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        x, y = rgrad.rand(64, 64).to("wgpu"), rgrad.arange(64).remainder(10).to("wgpu")
        optimizer.zero_grad()
        loss = rgrad.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    step()
    rgrad.wgpu.synchronize()
    before = _core._wgpu_counts()[0]
    step()
    rgrad.wgpu.synchronize()
    assert _core._wgpu_counts()[0] - before <= 3


def test_the_library_may_log_through_python_at_any_time() -> None:
    # The library calls Python's log handlers in the middle of its work, while other threads wait for the queue; and a
    # handler may drop tensors, or even use the device.
    out = run(
        """
        import logging, threading, rgrad, wgpu
        x = rgrad.ones(1).to("wgpu")
        records, refused, kept = [], [], [x + 1 for _ in range(20)]
        class Handler(logging.Handler):
            def emit(self, record):
                records.append(record)
                if kept:
                    kept.pop()
                try:
                    rgrad.wgpu.synchronize()
                except RuntimeError as e:
                    refused.append(str(e))
        log = logging.getLogger("wgpu")
        log.handlers[:] = [Handler()]
        log.propagate = False
        log.setLevel(logging.DEBUG)
        wrong = []
        def work(k):
            for _ in range(5):
                y = rgrad.full((100,), float(k)).to("wgpu")
                for _ in range(30):
                    y = y + 1
                if not (y.cpu() == k + 30).all():
                    wrong.append(k)
                rgrad.wgpu.empty_cache()
        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(bool(records), all("from within another one" in r for r in refused), wrong)
        """
    )
    assert out == "True True []\n"
