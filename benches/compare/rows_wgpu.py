"""Rows about the wgpu device: what one small operation costs the host, beside wgpu-py's own calls on that device."""

from __future__ import annotations

import statistics
import time
from typing import Any

from harness import Check, Settings

CHAIN = 1000
ROUNDS = 7

# The shader that wgpu-py's calls record: x + 1 over 16 numbers, with the sizes in a uniform, as rgrad's has them.
ADD_ONE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: array<vec4<u32>, 1>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params[0].x) { y[id.x] = x[id.x] + 1.0; }
}
"""


def chain(rgrad: Any) -> float:
    """Seconds of this thread for one `x + 1` of a dependent chain: calls, submissions, and the wait's own work."""
    x = rgrad.zeros(16).to("wgpu")
    y = x + 1
    rgrad.wgpu.synchronize()
    start = time.thread_time()
    for _ in range(CHAIN):
        y = y + 1
    rgrad.wgpu.synchronize()
    seconds = time.thread_time() - start
    assert y[0].item() == CHAIN + 1, y
    return seconds / CHAIN


class Recorder:
    """The same chain through wgpu-py: each result a buffer of its own, so each dispatch a bind group of its own."""

    def __init__(self, device: Any) -> None:
        self.device = device
        entries = [
            {"binding": 0, "visibility": "COMPUTE", "buffer": {"type": "read-only-storage"}},
            {"binding": 1, "visibility": "COMPUTE", "buffer": {"type": "storage"}},
            {"binding": 2, "visibility": "COMPUTE", "buffer": {"type": "uniform"}},
        ]
        self.layout = device.create_bind_group_layout(entries=entries)
        self.pipeline = device.create_compute_pipeline(
            layout=device.create_pipeline_layout(bind_group_layouts=[self.layout]),
            compute={"module": device.create_shader_module(code=ADD_ONE), "entry_point": "main"},
        )
        self.params = device.create_buffer_with_data(data=(16).to_bytes(16, "little"), usage="UNIFORM")
        # Only as many as rgrad's pool needs: making buffers is not recording.
        self.buffers = [device.create_buffer(size=64, usage="STORAGE|COPY_SRC|COPY_DST") for _ in range(2)]

    def group(self, i: int) -> Any:
        bound = [self.buffers[i % 2], self.buffers[1 - i % 2], self.params]
        entries = [{"binding": k, "resource": {"buffer": b, "offset": 0, "size": b.size}} for k, b in enumerate(bound)]
        return self.device.create_bind_group(layout=self.layout, entries=entries)

    def chain(self) -> tuple[float, float]:
        """Seconds of this thread to record one dispatch: with its bind group, and with one that was made before."""
        groups = [self.group(0), self.group(1)]
        seconds = []
        for fresh in (True, False):
            encoder = self.device.create_command_encoder()
            record = encoder.begin_compute_pass()
            start = time.thread_time()
            for i in range(CHAIN):
                record.set_pipeline(self.pipeline)
                record.set_bind_group(0, self.group(i) if fresh else groups[i % 2])
                record.dispatch_workgroups(1)
            seconds.append((time.thread_time() - start) / CHAIN)
            record.end()
            self.device.queue.submit([encoder.finish()])
        out = memoryview(self.device.queue.read_buffer(self.buffers[0])).cast("f")
        assert out[0] > 0, "the recorded work did not run"
        return seconds[0], seconds[1]


def small_chain(settings: Settings) -> tuple[str, str, bool | None]:
    rgrad = settings.modules["rgrad"]
    if not rgrad.wgpu.is_available():
        return "no adapter here", "", None
    recorder = Recorder(rgrad.wgpu.current_device())
    chain(rgrad)
    recorder.chain()
    ours, fresh, made = [], [], []
    for _ in range(ROUNDS):
        ours.append(chain(rgrad))
        a, b = recorder.chain()
        fresh.append(a)
        made.append(b)
    rgrad_us, fresh_us, made_us = (statistics.median(t) * 1e6 for t in (ours, fresh, made))
    name = rgrad.wgpu.current_device().adapter.info["device"]
    said = f"{rgrad_us:.2f} us on {name}"
    theirs = f"wgpu-py records it in {fresh_us:.1f} us ({made_us:.1f} with its bind group at hand)"
    return said, theirs, rgrad_us <= 6 and rgrad_us * 6 <= fresh_us


def transfer(settings: Settings) -> tuple[str, str, bool | None]:
    rgrad = settings.modules["rgrad"]
    if not rgrad.wgpu.is_available():
        return "no adapter here", "", None
    device = rgrad.wgpu.current_device()
    x = rgrad.zeros(4).to("wgpu")
    buffer = device.create_buffer(size=16, usage="STORAGE|COPY_SRC|COPY_DST")

    def median(call: Any) -> float:
        call()
        times = []
        for _ in range(100):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e6

    def ours() -> Any:
        return (x + 1).cpu()

    def theirs() -> Any:
        return device.queue.read_buffer(buffer)

    mine, other = median(ours), median(theirs)
    return f"{mine:.0f} us with an addition", f"wgpu-py {other:.0f} us without", mine <= other


CHECKS = [
    Check(
        "wgpu_small_op",
        f"x + 1 on 16 numbers on wgpu, {CHAIN} in a chain: the host's time for one, wait included",
        "<= 6 us, <= 1/6 of wgpu-py's recording",
        small_chain,
    ),
    Check("wgpu_read_back", "a small result brought to the host", "<= wgpu-py's read_buffer", transfer),
]
