"""The picture of a profile: bars where the events are, names as text, and the committed one of the documents."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rgrad
from rgrad import nn
from rgrad.autograd.profiler_util import EventList
from rgrad.profiler import profile, record_function
from test_memory_picture import PICTURES, WRITE

SVG = "{http://www.w3.org/2000/svg}"


def a_training_step() -> EventList:
    """What docs/pictures/profile-step.svg shows."""
    rgrad.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 26 * 26, 10))
    optimizer = rgrad.optim.SGD(model.parameters(), lr=0.1)
    data, target = rgrad.randn(64, 1, 28, 28), rgrad.randint(0, 10, (64,))

    def step() -> None:
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(data), target)
        with record_function("backward"):
            loss.backward()
        optimizer.step()

    step()
    with profile(with_modules=True) as prof:
        step()
    return prof.events()


def bars(svg: str) -> dict[str, list[tuple[float, float, float]]]:
    """By the name in the tooltip: left and right ends and top of the bars."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for bar in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = bar.find(f"{SVG}title")
        if title is not None:
            assert title.text is not None
            left, width, top = (float(bar.attrib[k]) for k in ("x", "width", "y"))
            found.setdefault(title.text.rpartition(": ")[0], []).append((left, left + width, top))
    return found


def test_bars_are_where_the_events_are() -> None:
    events = a_training_step()
    svg = events.svg()
    found = bars(svg)
    ((forward_left, forward_right, forward_top),) = found["forward"]
    ((backward_left, backward_right, backward_top),) = found["backward"]
    assert forward_right <= backward_left + 0.6
    assert forward_top == backward_top
    for name, (left, right, top) in (
        ("nn.Module: Conv2d_0", (forward_left, forward_right, forward_top)),
        ("ConvolutionBackward0", (backward_left, backward_right, backward_top)),
    ):
        ((own_left, own_right, own_top),) = found[name]
        assert left <= own_left < own_right <= right + 0.6
        assert own_top > top
    ratio = events[0].cpu_time_total / (events[-1].time_range.end - events[0].time_range.start)
    assert (forward_right - forward_left) / 984 == pytest.approx(ratio, abs=0.05)
    assert events._repr_svg_() == svg


def test_many_events_make_a_small_picture() -> None:
    x = rgrad.ones(3)
    with profile() as prof:
        for _ in range(20_000):
            x * x
    svg = prof.events().svg()
    assert len(svg) < 500_000
    assert 100 < len(bars(svg)["aten::mul"]) <= 2000
    assert "20,000 events" in svg


def test_names_are_text() -> None:
    name = '<evil a="1">&' + "'"
    with profile() as prof, record_function(name):
        rgrad.ones(2)
    assert list(bars(prof.events().svg())) == [name, "aten::ones"]


def test_nothing_and_averages() -> None:
    with profile() as prof:
        pass
    assert "0 events" in prof.events().svg()
    assert prof.events()._repr_svg_() is None
    with profile(profile_memory=True) as prof:
        kept = rgrad.ones(1000)
        del kept
    assert "aten::ones" in bars(prof.events().svg())
    with pytest.raises(TypeError, match="events"):
        prof.key_averages().svg()
    assert prof.key_averages()._repr_svg_() is None


@pytest.mark.wgpu
@pytest.mark.needs("timestamps")
def test_a_device_has_a_stripe_of_its_own() -> None:
    x: Any = rgrad.ones(100, 100, device="wgpu")
    with profile() as prof:
        (x @ x).sum().item()
    svg = prof.events().svg()
    assert "device queue (wgpu)" in svg
    found = bars(svg)
    assert found["matmul (matmul)"][0][2] > found["aten::matmul"][0][2]


def test_the_committed_picture_is_that_of_this_program() -> None:
    file: Path = PICTURES / "profile-step.svg"
    svg = a_training_step().svg()
    if os.environ.get(WRITE) == "1":
        file.write_text(svg, encoding="utf-8")
    committed = file.read_text(encoding="utf-8")
    assert len(committed) < 100_000
    # Bars that are narrow in one run may be left out in the other.
    shown, now = set(bars(committed)), set(bars(svg))
    assert {"forward", "backward", "aten::conv2d", "ConvolutionBackward0", "nn.Module: Linear_0"} <= shown & now
    assert not {name for name in shown - now if re.match("nn.Module", name)}
