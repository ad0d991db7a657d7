"""Traces of the profiler: the format, the tracks, arrows and counters, and times of devices."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import rgrad
from perfetto_import import MAX_DEPTH, import_trace
from profiler_events import names, recorded
from rgrad import nn
from rgrad.autograd.profiler_util import EventList, FunctionEvent
from rgrad.profiler import DeviceType, ProfilerActivity, profile, record_function
from trace_format import arrows, check, read

QUEUE = "device queue (wgpu)"


def some_work() -> None:
    x = rgrad.ones(3, 4)
    for _ in range(3):
        x * x
    x @ rgrad.ones(4, 2)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_trace(tmp_path: Path, name: str) -> None:
    x = rgrad.ones(3, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with record_function("step"):
            (x * 2).tanh().sum().backward()
        prof.add_metadata("note", 'a "quoted" text')
        prof.add_metadata_json("numbers", "[1, 2]")
    prof.export_chrome_trace(str(tmp_path / name))
    trace = read(tmp_path / name)
    assert trace["note"] == 'a "quoted" text'
    assert trace["numbers"] == [1, 2]
    assert trace["profile_memory"] == 1
    assert "deviceTimes" not in trace
    tracks = check(trace)
    (slices,) = tracks.values()
    shown = [e for e in prof.events() if e.name != "[memory]"]
    assert [s["name"] for s in slices] == names(shown)
    tanh = next(s for s in slices if s["name"] == "aten::tanh")
    assert tanh["args"]["Input Dims"] == [[3]]
    assert __file__ in tanh["args"]["Call stack"][0]
    # An arrow from each operation to its backward.
    assert arrows(trace, "fwdbwd") == [
        ("aten::mul", "MulBackward0"),
        ("aten::sum", "SumBackward0"),
        ("aten::tanh", "TanhBackward0"),
    ]
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    assert len(counters) > 1
    assert all(e["args"]["CPU"] >= 0 for e in counters)


def test_a_training_step_is_a_valid_trace(tmp_path: Path, device: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    optimizer = rgrad.optim.Adam(model.parameters(), foreach=False)
    x, y = rgrad.randn(4, 3, 8, 8), rgrad.tensor([0, 1, 2, 3])
    with profile(record_shapes=True, profile_memory=True, with_modules=True) as prof:
        for _ in range(2):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read(tmp_path / "trace.json")
    tracks = check(trace)
    assert set(tracks) == {"thread 1", QUEUE} if device == "wgpu" else {"thread 1"}
    pairs = arrows(trace, "fwdbwd")
    assert len(pairs) >= 12
    assert ("aten::convolution", "ConvolutionBackward0") in pairs or ("aten::conv2d", "ConvolutionBackward0") in pairs


def test_ranges_that_overlap_are_no_slices(tmp_path: Path) -> None:
    first, second = record_function("first"), record_function("second")
    with profile() as prof:
        first.__enter__()
        rgrad.ones(2)
        second.__enter__()
        rgrad.ones(2)
        first.__exit__(None, None, None)
        rgrad.ones(2)
        second.__exit__(None, None, None)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read(tmp_path / "trace.json")
    (slices,) = check(trace).values()
    assert [s["name"] for s in slices] == ["first", "aten::ones", "aten::ones", "aten::ones"]
    assert [e["ph"] for e in trace["traceEvents"] if e["name"] == "second"] == ["b", "e"]


def test_passes_on_several_threads_are_tracks(tmp_path: Path) -> None:
    class Nested(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: rgrad.Tensor, depth: int) -> rgrad.Tensor:
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: rgrad.Tensor) -> Any:  # type: ignore[override]
            if ctx.depth:
                with rgrad.enable_grad():
                    x = rgrad.ones(1, requires_grad=True)
                    Nested.apply(x, ctx.depth - 1).sum().backward()
            return g, None

    with profile() as prof:
        Nested.apply(rgrad.ones(1, requires_grad=True), 80).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert len(check(read(tmp_path / "trace.json"))) > 1


def test_names_are_escaped(tmp_path: Path) -> None:
    name = 'a "name" with \\ and \u2028 and <b>'
    with profile() as prof, record_function(name):
        rgrad.ones(2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    (slices,) = check(read(tmp_path / "trace.json")).values()
    assert slices[0]["name"] == name


@pytest.mark.parametrize("name", ["\U0001f680 of two surrogates", "del \x7f and \x01", "x" * 5000])
def test_names_that_readers_of_json_know_badly(tmp_path: Path, name: str) -> None:
    with profile() as prof, record_function(name):
        rgrad.ones(2)
    prof.add_metadata("\U0001f680\x7f", name)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    (slices,) = check(read(tmp_path / "trace.json")).values()
    assert slices[0]["name"] == name


def test_half_a_character_in_the_name_of_a_file(tmp_path: Path) -> None:
    event = FunctionEvent(1, "aten::mul", 1, 10.0, 12.5, stack=["/home/\udcff.py(3): main"])
    EventList([event]).export_chrome_trace(tmp_path / "trace.json")
    (slices,) = check(read(tmp_path / "trace.json")).values()
    assert slices[0]["args"]["Call stack"] == ["/home/?.py(3): main"]
    EventList([event]).export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text(encoding="utf-8") == "/home/?.py(3):_main 2\n"


def test_passes_through_one_node_are_arrows_of_their_own(tmp_path: Path) -> None:
    x = rgrad.ones(3, requires_grad=True)
    with profile() as prof:
        y = (x * 2).sum()
        y.backward(retain_graph=True)
        y.backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read(tmp_path / "trace.json")
    check(trace)
    assert arrows(trace, "fwdbwd") == [("aten::mul", "MulBackward0")] * 2 + [("aten::sum", "SumBackward0")] * 2


def test_ranges_may_lie_in_each_other_without_end(tmp_path: Path) -> None:
    depth = MAX_DEPTH + 50
    with profile() as prof, ExitStack() as ranges:
        for number in range(depth):
            ranges.enter_context(record_function(f"range {number}"))
        rgrad.ones(2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read(tmp_path / "trace.json")
    check(trace)
    assert {s.name for s in import_trace(trace).slices} == {"aten::ones"} | {f"range {k}" for k in range(depth)}


def test_perfetto_shows_what_was_recorded(tmp_path: Path, device: str) -> None:
    x = rgrad.ones(3, 3, device=device, requires_grad=True)
    with profile(profile_memory=True) as prof:
        with record_function("step"):
            y = (x @ x).tanh().sum()
            y.backward()
        y.item()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    made = import_trace(read(tmp_path / "trace.json"))
    assert list(made.processes.values()) == ["python"]
    assert set(made.threads.values()) - {QUEUE} == {"thread 1"}
    shown = {s.args["External id"]: s for s in made.slices if "External id" in s.args}
    for event in prof.events():
        if event.name == "[memory]":
            continue
        one = shown[event.id]
        assert (one.name, one.dur) == (
            event.name,
            round(event.time_range.end * 1e3) - round(event.time_range.start * 1e3),
        )
        parent = event.cpu_parent
        assert (one.parent.args["External id"] if one.parent else None) == (parent.id if parent else None)
    held = {name for _, name in made.counters}
    assert held == {"Bytes held by tensors CPU"} | ({"Bytes held by tensors wgpu"} if device == "wgpu" else set())


def test_event_lists_write_traces(tmp_path: Path) -> None:
    events = recorded(some_work)
    assert isinstance(events, EventList)
    events.export_chrome_trace(tmp_path / "list.json")
    (slices,) = check(read(tmp_path / "list.json")).values()
    assert [s["name"] for s in slices] == names(events)


def test_metadata_that_is_no_json(tmp_path: Path) -> None:
    with profile() as prof:
        rgrad.ones(2)
    prof.add_metadata_json("broken", "{")
    with pytest.raises(ValueError, match="no valid JSON"):
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.parametrize(
    ("key", "text"), [("traceEvents", "[]"), ("displayTimeUnit", "1"), ("metadata", "{}"), ("n", "NaN")]
)
def test_metadata_that_would_spoil_a_trace(tmp_path: Path, key: str, text: str) -> None:
    with profile() as prof:
        rgrad.ones(2)
    prof.add_metadata_json(key, text)
    with pytest.raises(ValueError, match="part of every trace|no valid JSON"):
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert not (tmp_path / "trace.json").exists()


def test_the_checks_find_what_is_wrong(tmp_path: Path) -> None:
    x = rgrad.ones(3, requires_grad=True)
    with profile(profile_memory=True) as prof:
        (x * 2).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))

    def spoiled(phase: str, **values: Any) -> dict[str, Any]:
        trace = read(tmp_path / "trace.json")
        event = next(e for e in trace["traceEvents"] if e["ph"] == phase)
        event.update(values)
        return trace

    check(spoiled("X"))
    for phase, values in [
        ("X", {"dur": -1.0}),
        ("X", {"tid": "one"}),
        ("X", {"tid": 77}),
        ("s", {"id": -5}),
        ("s", {"ts": 0.0}),
        ("f", {"bp": "x"}),
        ("C", {"args": {}}),
        ("M", {"args": {}}),
    ]:
        with pytest.raises((AssertionError, KeyError)):
            check(spoiled(phase, **values))
    for phase, values in [("X", {"ts": -1.0}), ("s", {"tid": 5}), ("C", {"args": {"CPU": "many"}})]:
        with pytest.raises(AssertionError):
            check(spoiled(phase, **values))
    text = (tmp_path / "trace.json").read_bytes()
    for broken in (text + b"\n", text.replace(b"aten::mul", rb"\ud83d\ude80"), text.replace(b'"trace_id"', b'"\x7f"')):
        (tmp_path / "broken.json").write_bytes(broken)
        with pytest.raises(AssertionError):
            read(tmp_path / "broken.json")
    trace = spoiled("X")
    first, second = [e for e in trace["traceEvents"] if e["ph"] == "X"][:2]
    first["dur"] = round(second["ts"] - first["ts"] + second["dur"] / 2, 3)
    with pytest.raises(AssertionError):
        check(trace)


# ---- devices ---------------------------------------------------------------------------------------------------------


def step_on_device() -> float:
    x = rgrad.ones(300, 300, device="wgpu").requires_grad_()
    y = ((x @ x) * 2).tanh().sum()
    y.backward()
    return y.item()


@pytest.mark.wgpu
@pytest.mark.needs("timestamps")
def test_what_a_device_runs_is_timed_by_the_device(tmp_path: Path) -> None:
    with profile(profile_memory=True) as prof:
        before = rgrad.wgpu.memory_allocated()
        step_on_device()
        after = rgrad.wgpu.memory_allocated()
    events = prof.events()
    assert sum(e.self_device_memory_usage for e in events) == after - before
    runs = [e for e in events if e.device_type == DeviceType.PrivateUse1]
    # The gradient that backward begins with is filled by no operation.
    assert [e.name for e in runs if e.launched_by is None] == ["fill (fill)"]
    launched = {e.launched_by.name for e in runs if e.launched_by is not None}
    assert "aten::matmul" in launched
    assert any(name.startswith("rgrad::program(") for name in launched)
    # Each belongs to the operation that asked for it, runs after it began and before the reading operation has ended.
    (item,) = [e for e in events if e.name == "aten::item"]
    last = 0.0
    for run in runs:
        assert run.time_range.end <= item.time_range.end
        assert run.time_range.start >= last
        last = run.time_range.end
        assert run.cpu_time_total == 0
        if run.launched_by is not None:
            assert run.time_range.start >= run.launched_by.time_range.start
            assert (run.name, 0, run.device_time_total) in [tuple(k) for k in run.launched_by.kernels]
    whole = sum(e.device_time_total for e in runs)
    assert whole > 0
    by_operations = sum(e.self_device_time_total for e in events if e.device_type == DeviceType.CPU)
    assert by_operations == pytest.approx(sum(e.device_time_total for e in runs if e.launched_by is not None))
    table = prof.key_averages().table(sort_by="self_cuda_time_total")
    assert "Self WGPU %" in table
    assert "Times of wgpu are the device's own, by timestamp queries." in table
    assert "Self WGPU time total" in table
    shares = [row.split("%")[2].split()[-1] for row in table.splitlines()[3:] if row.count("%") >= 3]
    assert max(float(s) for s in shares) <= 100

    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read(tmp_path / "trace.json")
    assert "timestamp" in trace["deviceTimes"]
    tracks = check(trace)
    assert [s["name"] for s in tracks[QUEUE]] == names(runs)
    assert all(s["args"]["Clock"] == "device" for s in tracks[QUEUE])
    assert len(arrows(trace, "ac2g")) == len(runs) - 1
    assert {"CPU", "wgpu"} == {k for e in trace["traceEvents"] if e["ph"] == "C" for k in e["args"]}


@pytest.mark.wgpu
def test_without_timestamps_batches_have_the_hosts_times(tmp_path: Path) -> None:
    device = rgrad.wgpu.current_device()
    plain = device.adapter.request_device_sync(required_limits=dict(device.adapter.limits))
    try:
        rgrad.wgpu.set_device(plain)
        with profile() as prof:
            step_on_device()
        assert all(e.device_type == DeviceType.CPU for e in prof.events())
        assert "Times of wgpu are those of the host" in prof.key_averages().table()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
    finally:
        rgrad.wgpu.set_device(device)
    trace = read(tmp_path / "trace.json")
    assert "host" in trace["deviceTimes"]
    (batch, *_) = check(trace)[QUEUE]
    assert "dispatches: fill, matmul, " in batch["name"]
    assert batch["args"]["Clock"] == "host"
    assert batch["dur"] > 0


@pytest.mark.wgpu
def test_devices_are_timed_on_demand() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        step_on_device()
    assert all(not e.kernels for e in prof.events())
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        step_on_device()
    again = [e.name for e in prof.events() if e.device_type != DeviceType.CPU]
    with profile() as prof:
        step_on_device()
    assert [e.name for e in prof.events() if e.device_type != DeviceType.CPU] == again


@pytest.mark.wgpu
@pytest.mark.needs("timestamps")
def test_many_batches_and_work_that_nobody_reads() -> None:
    x = rgrad.ones(64, device="wgpu")
    with profile() as prof:
        for _ in range(700):
            x = rgrad.cumsum(x, 0)
    runs = [e for e in prof.events() if e.device_type != DeviceType.CPU]
    assert len(runs) >= 700
    assert all(e.launched_by.name == "aten::cumsum" for e in runs)
    starts = [e.time_range.start for e in runs]
    assert starts == sorted(starts)


@pytest.mark.wgpu
@pytest.mark.needs("timestamps")
def test_results_and_errors_are_those_without_a_profiler() -> None:
    x = rgrad.randn(50, 50, device="wgpu")
    expected = (x @ x).tanh().sum().item()
    with profile() as prof:
        assert (x @ x).tanh().sum().item() == expected
        with pytest.raises(IndexError):
            rgrad.index_select(x, 0, rgrad.tensor([77], device="wgpu")).sum().item()
    assert any(e.device_type != DeviceType.CPU for e in prof.events())
