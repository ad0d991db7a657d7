"""The pictures of memory in the documents: this program makes them, and the committed ones show what it does."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

import rgrad
from places import PICTURES, WRITE
from rgrad import memory, nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(512, 2048)
        self.narrow = nn.Linear(2048, 512)

    def forward(self, x: Any) -> Any:
        return x + self.narrow(self.wide(x).relu())


def three_steps() -> memory.Snapshot:
    model = nn.Sequential(Block(), Block(), nn.Linear(512, 10))
    data = rgrad.rand(512, 512)
    with memory.record() as recording:
        for _ in range(3):
            loss = model(data).square().mean()
            loss.backward()
            model.zero_grad()
    return recording.snapshot()


def legend(picture: str) -> list[str]:
    """What the picture names, without the sizes, which depend on what else is alive."""
    return re.findall(r'fill="#222222">([^<]+)<tspan', picture)


@pytest.mark.parametrize("by", ["module", "line"])
def test_committed_pictures_are_those_of_this_program(by: str) -> None:
    snapshot = three_steps()
    file = PICTURES / f"memory-by-{by}.svg"
    if os.environ.get(WRITE) == "1":
        file.parent.mkdir(exist_ok=True)
        snapshot.save(file, by, top=12)
    committed = file.read_text(encoding="utf-8")
    assert set(legend(committed)) == set(legend(snapshot.svg(by, top=12)))
    assert len(committed) < 100_000
    if by == "module":
        assert {"Sequential.0.wide", "Sequential.1.narrow"} <= set(legend(committed))
