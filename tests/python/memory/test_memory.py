"""The memory that is alive, by line, to the byte; recordings of it, and their pictures."""

from __future__ import annotations

import gc
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rgrad import memory, nn

pytestmark = pytest.mark.usefixtures("device")
MB = 1 << 20


@pytest.fixture(autouse=True)
def no_recording_is_left() -> Iterator[None]:
    # What earlier tests have left in cycles is not freed in between.
    gc.collect()
    yield
    assert rgrad._core._memory_recording() is None


def here() -> int:
    """The number of the line before the caller's."""
    import sys

    return sys._getframe(1).f_lineno - 1


def settled(t: Any) -> Any:
    """A tensor whose value is computed."""
    t.data_ptr() if t.device.type == "cpu" else rgrad.wgpu.synchronize()
    t.sum().item()
    return t


def of_line(device: str, line: int) -> list[Any]:
    return [b for b in memory.report(graphs=False).devices[device].buffers if b.line.number == line]


def test_the_functions_agree(device: str) -> None:
    memory.reset_peak()
    before = memory.allocated()
    x = settled(rgrad.ones(512, 512))
    held = memory.allocated() - before
    assert held >= MB
    assert memory.allocated(device) == memory.memory_allocated() == rgrad.cuda.memory_allocated() == before + held
    assert memory.peak() == memory.max_memory_allocated() >= before + held
    assert memory.reserved() == memory.memory_reserved() >= memory.allocated()
    stats = memory.memory_stats()
    assert stats["allocated_bytes.all.current"] == before + held
    assert stats["allocated_bytes.all.peak"] == memory.peak()
    assert stats["reserved_bytes.all.peak"] >= stats["reserved_bytes.all.current"] == memory.reserved()
    del x
    assert memory.allocated() == before
    assert memory.peak() >= before + held
    memory.reset_peak()
    assert memory.peak() == before
    memory.empty_cache()
    assert memory.reserved() == memory.allocated()


@pytest.mark.parametrize("shape", [(1,), (17,), (100, 100), (256, 256), (1000, 1000)])
def test_a_report_is_the_allocators_to_the_byte(device: str, shape: tuple[int, ...]) -> None:
    kept = [settled(rgrad.rand(shape)) for _ in range(3)]
    report = memory.report()
    found = report.devices[device]
    assert found.allocated == memory.allocated() == sum(entry.bytes for entry in found.lines) + found.small
    assert sum(b.bytes for b in found.buffers) + found.small == found.allocated
    assert report.allocated == sum(d.allocated for d in report.devices.values())
    assert found.small >= 0
    mine = {rgrad._core._tensor_memory(t)[2]: rgrad._core._tensor_memory(t)[3] for t in kept}
    listed = {b.key: b.bytes for b in found.buffers if b.key in mine}
    if kept[0].numel() >= 1 << 14:
        assert listed == mine
        assert f"{memory.allocated():,} bytes allocated" in str(report)


def test_a_report_keeps_nothing_alive(device: str) -> None:
    w = rgrad.ones(64, 64, device=device, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        held = []
        for _ in range(4):
            loss = (w @ w).tanh().sum()
            loss.item()
            memory.report(device)
            rgrad.autograd.graph.memory_report(loss)
            held.append(memory.allocated(device))
    finally:
        gc.enable()
    assert len(set(held[1:])) == 1, held


def test_lines_are_those_of_the_user(device: str) -> None:
    x = rgrad.rand(300, 300)
    made = here()
    y = (x @ x) + 1
    computed = here()
    z = y.exp()
    pending = here()
    settled(z)
    for line, tensor in ((made, x), (computed, y), (pending, z)):
        keys = {b.key for b in of_line(device, line)}
        assert rgrad._core._tensor_memory(tensor)[2] in keys, line
    entry = next(e for e in memory.report(graphs=False).devices[device].lines if e.line.number == made)
    assert entry.buffers == len(of_line(device, made))
    assert entry.line.file == __file__
    assert entry.line.function == "test_lines_are_those_of_the_user"
    assert str(entry.line).endswith(f"test_memory.py:{made} in test_lines_are_those_of_the_user")


def test_gradients_belong_to_the_forward_line(device: str) -> None:
    w = rgrad.rand(400, 400).requires_grad_()
    loss = (w @ w).sum()
    line = here()
    loss.backward()
    assert w.grad is not None
    settled(w.grad)
    assert rgrad._core._tensor_memory(w.grad)[2] in {b.key for b in of_line(device, line)}


def test_small_memory_has_lines_in_a_recording(device: str) -> None:
    before = memory.report(graphs=False).devices[device]
    with memory.record():
        kept = [rgrad.ones(3) for _ in range(50)]
        line = here()
        [settled(t) for t in kept]
        report = memory.report(graphs=False).devices[device]
        assert sum(b.bytes for b in report.buffers if b.line.number == line) >= 50 * 12
        assert report.small <= before.small
    # What was recorded keeps its entry, and loses it when it ends.
    assert len(of_line(device, line)) >= 50
    del kept
    gc.collect()
    assert of_line(device, line) == []
    assert memory.report(graphs=False).devices[device].allocated == memory.allocated()


def model_step(x: Any) -> None:
    net = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8))
    (net(x) ** 2).mean().backward()


def test_events_add_up_to_the_byte(device: str) -> None:
    x = settled(rgrad.rand(64, 64))
    older = [settled(rgrad.ones(5)) for _ in range(10)]
    large = settled(rgrad.ones(300, 300))
    start = memory.allocated()
    with memory.record() as recording:
        model_step(x)
        del older, large
        kept = settled(rgrad.rand(100, 100))
        end = memory.allocated()
    snapshot = recording.snapshot()
    change = sum(e.bytes if e.action == "alloc" else -e.bytes for e in snapshot.events if e.device == device)
    assert change == end - start
    assert snapshot.allocated[device] == end
    assert snapshot.left_out == 0
    assert snapshot.timeline[-1][1] == sum(snapshot.allocated.values())
    assert len(snapshot) == len(snapshot.events) == len(snapshot.timeline) - 1
    times = [time for time, _ in snapshot.timeline]
    assert times == sorted(times)
    assert memory.snapshot() is snapshot
    for by in ("line", "module", "device"):
        assert sum(size for _, size in snapshot.peak_by(by)) == snapshot.peak == recording.peak
        assert all(size > 0 for _, size in snapshot.peak_by(by))
    assert dict(snapshot.peak_by("device"))[device] > 0
    del kept


def test_the_peak_is_the_allocators(device: str) -> None:
    x = settled(rgrad.rand(256, 256))
    memory.reset_peak()
    with memory.record() as recording:
        a = settled(x @ x)
        line = here()
        b = settled(a @ x)
        del a
        c = settled(b @ x)
    other = sum(size for name, size in recording.snapshot().groups("device", 0).items() if name != device)
    assert recording.peak - other <= memory.peak()
    assert recording.peak - other >= memory.peak() - (64 << 10)
    assert any(f"test_memory.py:{line} in" in name and size >= 1 << 18 for name, size in recording.peak_by("line"))
    del b, c


def test_modules_have_their_paths() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(64, 256), nn.ReLU())
            self.out = nn.Linear(256, 64)

        def forward(self, x: Any) -> Any:
            return self.out(self.inner(x) * 2)

    net = Block()
    x = rgrad.rand(128, 64)
    with memory.record() as recording:
        loss = net(x).sum()
        settled(loss)
    events = recording.snapshot().events
    modules = {e.module for e in events}
    assert {"Block.inner.0", "Block.out", None} <= modules
    assert modules <= {"Block", "Block.inner", "Block.inner.0", "Block.inner.1", "Block.out", None}
    assert {name for name, _ in recording.peak_by("module")} & {"Block", "Block.inner.1", "Block.out"}
    with memory.record(modules=False) as recording:
        settled(net(x).sum())
    assert {e.module for e in recording.snapshot().events} == {None}
    del loss


def test_a_module_that_raises_is_left() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ArithmeticError

    with memory.record() as recording:
        with pytest.raises(ArithmeticError):
            nn.Sequential(nn.Linear(4, 4), Fails())(rgrad.ones(1, 4))
        x = rgrad.ones(7)
        line = here()
        settled(x)
    assert {e.module for e in recording.snapshot().events if e.line.number == line} == {None}
    from rgrad.nn.modules import _global_hooks

    assert not _global_hooks.forward_pre
    assert not _global_hooks.forward


def test_the_latest_events_are_kept(device: str) -> None:
    with memory.record(max_entries=10) as recording:
        for _ in range(40):
            settled(rgrad.ones(5))
        end = memory.allocated()
    snapshot = recording.snapshot()
    assert len(snapshot) == 10
    assert snapshot.left_out > 0
    assert snapshot.allocated[device] == end
    assert f"{snapshot.left_out:,} older ones left out" in str(snapshot)


def test_a_snapshot_in_the_block_is_that_of_now() -> None:
    with memory.record() as recording:
        a = settled(rgrad.ones(200, 200))
        first = memory.snapshot()
        count = len(first)
        b = settled(rgrad.ones(200, 200))
        assert len(memory.snapshot()) > count == len(first)
    assert len(recording.snapshot()) > count
    del a, b


@pytest.mark.parametrize("by", ["line", "module", "device"])
def test_pictures_are_svg(tmp_path: Path, by: str) -> None:
    with memory.record() as recording:
        for size in (100, 200, 300):
            model_step(rgrad.rand(size, 64))
    snapshot = recording.snapshot()
    picture = ET.fromstring(snapshot.svg(by, top=2))
    areas = [
        p
        for p in picture.iter("{http://www.w3.org/2000/svg}path")
        if p.find("{http://www.w3.org/2000/svg}title") is not None
    ]
    assert 1 <= len(areas) <= 3
    titles = [t.text or "" for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    largest = snapshot.peak_by(by)[0][0]
    assert any(t.startswith((largest, "everything else")) for t in titles)
    snapshot.save(tmp_path / "m.svg", by, width=600)
    assert 'width="600"' in (tmp_path / "m.svg").read_text()
    assert snapshot._repr_svg_().startswith("<svg")


def test_an_area_is_as_high_as_its_bytes() -> None:
    from rgrad.memory._picture import stacked_areas

    text = stacked_areas({"a": 40}, [(1.0, "b", 60), (2.0, "a", -40)], "t", 8, 500, 300)
    first, second = (p for p in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}path") if len(p))
    # b is larger, so it lies below: from the second 1 on, 60 of 100 high; a lies above it until the second 2.
    assert first[0].text == "b: at most 60 B"
    assert second[0].text == "a: at most 40 B"
    assert stacked_areas({}, [], "nothing", 8, 500, 300).startswith("<svg")
    assert "&lt;module&gt; &amp;" in stacked_areas({"<module> &": 5}, [], "t", 8, 500, 300)


def test_other_threads_are_recorded(device: str) -> None:
    made: list[Any] = []

    def work() -> None:
        rgrad.set_default_device(device)
        made.extend(settled(rgrad.ones(100)) for _ in range(20))

    with memory.record() as recording:
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    of_work = [e for e in recording.snapshot().events if e.line.function == "<genexpr>" and e.action == "alloc"]
    assert len(of_work) >= 60


def test_threads_add_up_to_the_byte(device: str) -> None:
    settled(rgrad.ones(10) * 2)
    kept: list[Any] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        rgrad.set_default_device(device)
        start.wait()
        mine: list[Any] = []
        for k in range(60):
            mine.append(settled(rgrad.ones(1 + (seed * 7 + k * 37) % 200)))
            if k % 3 == 0:
                mine.pop(0)
        kept.extend(mine)

    before = memory.allocated()
    with memory.record() as recording:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        del threads
        gc.collect()
        end = memory.allocated()
    events = [e for e in recording.snapshot().events if e.device == device]
    assert sum(e.bytes if e.action == "alloc" else -e.bytes for e in events) == end - before
    assert recording.snapshot().allocated[device] == end
    found = memory.report(graphs=False).devices[device]
    assert sum(b.bytes for b in found.buffers) + found.small == memory.allocated()
    kept.clear()


def test_wrong_uses_are_errors() -> None:
    with memory.record(), pytest.raises(RuntimeError, match="being recorded already"), memory.record():
        pass
    with pytest.raises(ValueError, match="max_entries must be positive"):
        memory.record(max_entries=0)
    with pytest.raises(TypeError, match="max_entries must be an int"):
        memory.record(max_entries=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no memory that is counted"):
        memory.report("meta")
    with pytest.raises(ValueError, match="the devices are cpu and wgpu"):
        memory.allocated("cuda")
    with memory.record() as recording:
        pass
    with pytest.raises(ValueError, match="'line', 'module' or 'device', not 'file'"):
        recording.snapshot().svg("file")
    with pytest.raises(ValueError, match="at least"):
        recording.snapshot().svg(width=10)
    with pytest.raises(ValueError, match="being inside"), memory.record():
        raise ValueError("being inside")


@pytest.mark.cpu_only
def test_a_snapshot_without_a_recording_is_an_error() -> None:
    from rgrad.memory import _record

    before = _record._last
    _record._last = None
    try:
        with pytest.raises(RuntimeError, match="nothing was recorded"):
            memory.snapshot()
    finally:
        _record._last = before
