"""Streams and events of the CPU, and what is refused of other devices."""

from __future__ import annotations

import pytest

import rgrad


def test_a_stream_of_the_cpu_has_nothing_to_wait_for() -> None:
    stream = rgrad.Stream(device="cpu", priority=-1)
    with stream as inside:
        assert inside is stream
        total = rgrad.ones(3).sum()
    assert total == 3
    assert stream.query()
    assert not stream.is_capturing()
    stream.synchronize()
    stream.wait_stream(rgrad.Stream("cpu"))
    stream.wait_event(rgrad.Event("cpu"))
    assert (stream.device, stream.stream_id) == (rgrad.device("cpu"), 0)
    assert stream == rgrad.Stream("cpu")
    assert hash(stream) == hash(rgrad.Stream("cpu"))
    assert stream != rgrad.Stream("meta")
    assert repr(stream) == "rgrad.Stream device_type=cpu, stream_id=0"


def test_an_event_can_be_asked_and_not_recorded() -> None:
    event = rgrad.Event("cpu", enable_timing=True)
    assert event.query()
    event.wait(rgrad.Stream("cpu"))
    event.synchronize()
    assert event.device == rgrad.Event().device == rgrad.device("cpu")
    for call in (event.record, rgrad.Stream("cpu").record_event):
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
            call()
    with pytest.raises(ValueError, match="Both events must be"):
        event.elapsed_time(event)


@pytest.mark.parametrize("kind", [rgrad.Stream, rgrad.Event])
def test_other_devices_have_no_streams(kind: type) -> None:
    with pytest.raises(RuntimeError, match=rf"{kind.__name__}: there are no streams of 'wgpu"):
        kind("wgpu")
    with pytest.raises(RuntimeError, match="nope"):
        kind("nope")
    with pytest.raises(TypeError):
        kind("cpu", 1, 2)


def test_a_stream_without_a_device_is_of_an_accelerator() -> None:
    with pytest.raises(RuntimeError, match="there is no accelerator with streams. Give a device"):
        rgrad.Stream()


def test_those_of_cuda_are_kinds_of_them() -> None:
    assert issubclass(rgrad.cuda.Stream, rgrad.Stream)
    assert isinstance(rgrad.cuda.Event(), rgrad.Event)
    with pytest.raises(RuntimeError, match="NVIDIA driver"):
        rgrad.cuda.Stream()
