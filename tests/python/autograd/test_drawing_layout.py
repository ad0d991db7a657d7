"""The layout of drawings by itself: blocks and edges have places, and repetitions are found."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from rectangles import overlap
from rgrad.autograd._drawing.layered import Block, Edge, lay_out
from rgrad.autograd._drawing.place import Rect
from rgrad.autograd._drawing.repeats import Sequence


def chain_with_jumps(n: int) -> list[Edge]:
    return [Edge(i, i + 1) for i in range(n - 1)] + [Edge(i, i + 7) for i in range(0, n - 7, 3)]


def test_layout_of_random_graphs() -> None:
    state = 3
    for n in (1, 2, 5, 20, 60):
        edges = []
        for b in range(1, n):
            for _ in range(2):
                state = state * 1103515245 + 12345 & 0x7FFFFFFF
                edges.append(Edge((state >> 8) % b, b))
        edges = list(dict.fromkeys(edges))
        blocks = [Block(40.0 + i % 5 * 30, 20.0 + i % 3 * 25) for i in range(n)]
        laid = lay_out(blocks, edges)
        rects = [Rect(x, y, b.width, b.height) for x, y, b in zip(laid.x, laid.y, blocks, strict=True)]
        for i, a in enumerate(rects):
            assert not any(overlap(a, b) for b in rects[:i])
            assert a.x >= -1e-6
            assert a.x + a.width <= laid.width + 1e-6
        for edge, route in zip(edges, laid.routes, strict=True):
            source, target = rects[edge.source], rects[edge.target]
            assert source.y + source.height < target.y
            assert route[0][1] == pytest.approx(source.y + source.height)
            assert route[-1][1] == pytest.approx(target.y)
            assert source.x <= route[0][0] <= source.x + source.width
            assert target.x <= route[-1][0] <= target.x + target.width
            # Stretches within a rank are straight, and meet no block.
            for (x0, y0), (x1, y1) in list(pairwise(route))[::2]:
                assert x0 == pytest.approx(x1)
                for k, r in enumerate(rects):
                    if k not in (edge.source, edge.target):
                        assert not (r.x < x0 < r.x + r.width and y0 < r.y + r.height and r.y < y1)


def test_layout_of_a_long_graph_with_far_edges() -> None:
    n = 400
    laid = lay_out([Block(50.0, 20.0)] * n, [*chain_with_jumps(n), *(Edge(0, i) for i in range(2, n))])
    assert len(set(zip(laid.x, laid.y, strict=True))) == n


def test_layout_refuses_circles() -> None:
    with pytest.raises(ValueError, match="circle"):
        lay_out([Block(1.0, 1.0)] * 2, [Edge(0, 1), Edge(1, 0)])


def test_layout_of_nothing() -> None:
    assert lay_out([], []).width == 0


def test_a_tree_is_drawn_without_crossings() -> None:
    edges = [Edge(0, 2), Edge(1, 2), Edge(3, 5), Edge(4, 5), Edge(2, 6), Edge(5, 6)]
    laid = lay_out([Block(30.0, 10.0)] * 7, edges)
    assert {laid.x[0] < laid.x[3], laid.x[1] < laid.x[4], laid.x[0] < laid.x[4]} in ({True}, {False})


def test_runs() -> None:
    sequence = Sequence([0, 1, 2, 1, 2, 1, 2, 1, 2, 3], [1] * 10)
    assert sequence.periods() == [2]
    (run,) = sequence.runs(2, 8)
    assert (run.start, run.period, run.times) == (1, 2, 4)
    assert sequence.runs(2, 9) == []
    assert Sequence([], []).runs(1, 1) == []
    assert Sequence([], []).periods() == Sequence([5], [1]).periods() == []


def test_periods_that_are_ruled_out_have_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(4)
    sequences, found = [], []
    for _ in range(100):
        codes: list[int] = []
        while len(codes) < 200:
            piece = [random.randint(0, 3) for _ in range(random.randint(1, 60))]
            codes += piece * random.randint(1, 4)
        sequences.append(Sequence(codes, [random.randint(1, 4) for _ in codes]))
    for _ in range(2):
        found.append([[s.runs(period, 8) for period in s.periods()] for s in sequences])
        monkeypatch.setattr(Sequence, "_may_repeat", lambda self, period: True)
    assert found[0] == found[1]
    assert sum(run.period >= 16 for runs in found[0] for some in runs for run in some) >= 10
