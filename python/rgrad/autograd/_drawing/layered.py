"""A layered layout: ranks, an order within each rank with few crossings, and places.

The steps are those of Sugiyama, Tagawa and Toda (1981): edges point down; an edge that passes a rank gets a place of
its own in it; ranks are sorted by the mean place of their neighbours; then places are moved towards their neighbours as
far as the order lets them, which is an isotonic regression for each rank.
"""

from bisect import bisect_right, insort
from itertools import pairwise
from typing import NamedTuple

# Beyond so many passed ranks in total, long edges are drawn without places of their own.
MOST_PASSED = 20_000
GAP_X = 22.0
PASS_WIDTH = 10.0
SWEEPS = 8
# How hard a straight connection of two blocks pulls, beside an edge that branches, and a stretch past ranks.
STRAIGHT, TO_PASS, PASS = 6.0, 2.0, 12.0


class Block(NamedTuple):
    """A rectangle to place.

    Attributes:
        width: Its width.
        height: Its height.
        pin: None, or ``"top"`` or ``"bottom"`` for the ports of the box that is laid out.
    """

    width: float
    height: float
    pin: str | None = None


class Edge(NamedTuple):
    """An edge between two blocks; the offsets say where it leaves and enters, None: it may be chosen."""

    source: int
    target: int
    source_x: float | None = None
    target_x: float | None = None


class Placed(NamedTuple):
    """A finished layout.

    Attributes:
        x: Left edges of the blocks.
        y: Upper edges.
        routes: For each edge its points, from source to target; between the second and the third point, the fourth
            and the fifth and so on the edge crosses the gap between two ranks.
        width: Of everything.
        height: Of everything.
    """

    x: list[float]
    y: list[float]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


def lay_out(blocks: list[Block], edges: list[Edge], gap_y: float = 22.0) -> Placed:
    """Places blocks in ranks from top to bottom. Edges must make no circle."""
    return _Layout(blocks, edges, gap_y).run()


class _Layout:
    def __init__(self, blocks: list[Block], edges: list[Edge], gap_y: float) -> None:
        self.blocks = blocks
        self.edges = edges
        self.gap_y = gap_y
        n = len(blocks)
        self.out: list[list[int]] = [[] for _ in range(n)]
        self.into: list[list[int]] = [[] for _ in range(n)]
        for i, e in enumerate(edges):
            self.out[e.source].append(i)
            self.into[e.target].append(i)
        self.rank = [0] * n

    def run(self) -> Placed:
        if not self.blocks:
            return Placed([], [], [], 0.0, 0.0)
        self._set_ranks()
        self._add_passes()
        self._sort_ranks()
        return self._place()

    # Ranks: as far up as the edges allow, then blocks without inputs move down to their users.

    def _set_ranks(self) -> None:
        n = len(self.blocks)
        waiting = [len(x) for x in self.into]
        ready = [i for i in range(n) if not waiting[i]]
        order = []
        rank = self.rank
        while ready:
            i = ready.pop()
            order.append(i)
            for e in self.out[i]:
                j = self.edges[e].target
                rank[j] = max(rank[j], rank[i] + 1)
                waiting[j] -= 1
                if not waiting[j]:
                    ready.append(j)
        if len(order) != n:
            raise ValueError("lay_out: the edges make a circle")
        tops = [i for i in range(n) if self.blocks[i].pin == "top"]
        if tops and len(tops) < n:
            # Ports are alone in the first rank.
            for i in range(n):
                if self.blocks[i].pin != "top" and not any(self.blocks[self.edges[e].source].pin for e in self.into[i]):
                    rank[i] = max(rank[i], 1)
            for i in order:
                for e in self.out[i]:
                    j = self.edges[e].target
                    rank[j] = max(rank[j], rank[i] + 1)
        for i in reversed(order):
            if not self.into[i] and self.out[i] and self.blocks[i].pin is None:
                rank[i] = min(rank[self.edges[e].target] for e in self.out[i]) - 1
        last = max((rank[i] for i in range(n) if self.blocks[i].pin != "bottom"), default=0)
        for i in range(n):
            if self.blocks[i].pin == "bottom":
                rank[i] = last + 1

    def _add_passes(self) -> None:
        """Makes the items: one for each block, and one for each rank that an edge passes."""
        n = len(self.blocks)
        self.item_rank = list(self.rank)
        self.width = [b.width for b in self.blocks]
        self.chains: list[list[int]] = []
        # Neighbours of each item: (item, offset of the attachment there from its middle).
        self.up: list[list[int]] = [[] for _ in range(n)]
        self.down: list[list[int]] = [[] for _ in range(n)]
        total = sum(max(0, self.rank[e.target] - self.rank[e.source] - 1) for e in self.edges)
        longest = MOST_PASSED if total <= MOST_PASSED else 40
        for e in self.edges:
            chain = [e.source]
            first, last = self.rank[e.source] + 1, self.rank[e.target]
            if last - first <= longest:
                for r in range(first, last):
                    chain.append(len(self.item_rank))
                    self.item_rank.append(r)
                    self.width.append(PASS_WIDTH)
                    self.up.append([])
                    self.down.append([])
            chain.append(e.target)
            if len(chain) > 2 or last == first:
                for a, b in pairwise(chain):
                    self.down[a].append(b)
                    self.up[b].append(a)
            self.chains.append(chain)

    def _sort_ranks(self) -> None:
        ranks: list[list[int]] = [[] for _ in range(max(self.item_rank) + 1)]
        # In the order of a walk down from the first blocks, so that chains start side by side.
        seen = [False] * len(self.item_rank)
        for start in range(len(self.item_rank)):
            stack = [] if seen[start] or self.up[start] else [start]
            while stack:
                i = stack.pop()
                if seen[i]:
                    continue
                seen[i] = True
                ranks[self.item_rank[i]].append(i)
                stack.extend(j for j in reversed(self.down[i]) if not seen[j])
        for i, done in enumerate(seen):
            if not done:
                ranks[self.item_rank[i]].append(i)
        self.ranks = ranks
        place = [0.0] * len(self.item_rank)
        for row in ranks:
            for k, i in enumerate(row):
                place[i] = float(k)
        best, fewest = [list(row) for row in ranks], self._crossings(ranks, place)
        for sweep in range(SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            near = self.up if down else self.down
            for row in ranks[1:] if down else ranks[-2::-1]:
                key = {i: (sum(place[j] for j in near[i]) / len(near[i]) if near[i] else place[i]) for i in row}
                row.sort(key=key.__getitem__)
                for k, i in enumerate(row):
                    place[i] = float(k)
            crossings = self._crossings(ranks, place)
            if crossings < fewest:
                best, fewest = [list(row) for row in ranks], crossings
        self.ranks = best

    def _crossings(self, ranks: list[list[int]], place: list[float]) -> int:
        total = 0
        for row in ranks:
            ends: list[float] = []
            for i in row:
                targets = sorted(place[j] for j in self.down[i])
                total += sum(len(ends) - bisect_right(ends, t) for t in targets)
                for t in targets:
                    insort(ends, t)
        return total

    # Places.

    def _attachments(self) -> tuple[list[float], list[float]]:
        """Offsets from the middles of its blocks at which each edge leaves and enters."""
        place = {i: k for row in self.ranks for k, i in enumerate(row)}
        leave = [0.0] * len(self.edges)
        enter = [0.0] * len(self.edges)
        for i, block in enumerate(self.blocks):
            for edges, side, at in ((self.out[i], leave, 1), (self.into[i], enter, -2)):
                free = []
                for e in edges:
                    fixed = self.edges[e].source_x if at == 1 else self.edges[e].target_x
                    if fixed is None:
                        free.append(e)
                    else:
                        side[e] = fixed - block.width / 2
                free.sort(key=lambda e: place[self.chains[e][at]])
                step = min(18.0, block.width * 0.7 / max(1, len(free)))
                if at == 1:
                    step = 0.0  # one result: all edges leave from the same point
                for k, e in enumerate(free):
                    side[e] = (k - (len(free) - 1) / 2) * step
        return leave, enter

    def _place(self) -> Placed:
        leave, enter = self._attachments()
        middle = [0.0] * len(self.item_rank)
        for row in self.ranks:
            x = 0.0
            for i in row:
                middle[i] = x + self.width[i] / 2
                x += self.width[i] + GAP_X
        # Neighbours with the two offsets of the edge between them; an edge that passes ranks pulls harder.
        above: list[list[tuple[int, float, float]]] = [[] for _ in middle]
        below: list[list[tuple[int, float, float]]] = [[] for _ in middle]
        n = len(self.blocks)
        for e, chain in enumerate(self.chains):
            if len(chain) == 2 and self.item_rank[chain[1]] - self.item_rank[chain[0]] > 1:
                continue
            for k, (a, b) in enumerate(pairwise(chain)):
                from_a = leave[e] if k == 0 else 0.0
                to_b = enter[e] if k == len(chain) - 2 else 0.0
                weight = PASS if a >= n and b >= n else TO_PASS if a >= n or b >= n else 1.0
                if len(self.down[a]) == 1 and len(self.up[b]) == 1 and a < n and b < n:
                    weight = STRAIGHT
                below[a].append((b, to_b - from_a, weight))
                above[b].append((a, from_a - to_b, weight))
        both = [a + b for a, b in zip(above, below, strict=True)]
        for sweep in range(SWEEPS if len(middle) > 2000 else 4 * SWEEPS):
            down = sweep % 2 == 0
            # One side at a time first, which moves whole branches; then both, which straightens.
            near = both if sweep >= SWEEPS // 2 else above if down else below
            for row in self.ranks if down else self.ranks[::-1]:
                self._settle(row, middle, near)
        for row in self.ranks:
            self._settle(row, middle, both)
        self._straighten(middle, leave, enter)
        left = min(middle[i] - self.width[i] / 2 for i in range(len(middle)))
        middle = [m - left for m in middle]
        return self._finish(middle, leave, enter)

    def _settle(self, row: list[int], middle: list[float], near: list[list[tuple[int, float, float]]]) -> None:
        """Moves a rank as near to its neighbours as the order allows: least squares by pooling neighbours."""
        pools: list[list[float]] = []  # sum of weighted wishes, weight, number of items
        shifts = []
        offset = 0.0
        for k, i in enumerate(row):
            if k:
                before = row[k - 1]
                n = len(self.blocks)
                gap = GAP_X if before < n or i < n else PASS_WIDTH
                offset += (self.width[before] + self.width[i]) / 2 + gap
            shifts.append(offset)
            wishes = near[i]
            weight = sum(w for *_, w in wishes)
            if weight:
                # The neighbour's middle, and the offsets of both ends of the edge.
                wish = sum((middle[j] + d) * w for j, d, w in wishes) / weight
            else:
                wish, weight = middle[i], 0.05
            pools.append([(wish - offset) * weight, weight, 1])
            while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
                total, w, count = pools.pop()
                pools[-1] = [pools[-1][0] + total, pools[-1][1] + w, pools[-1][2] + count]
        k = 0
        for total, w, count in pools:
            for _ in range(int(count)):
                middle[row[k]] = total / w + shifts[k]
                k += 1

    def _straighten(self, middle: list[float], leave: list[float], enter: list[float]) -> None:
        """Gives the stretches of an edge past ranks, and blocks in a single file, one x as far as there is room."""
        n = len(self.blocks)
        files: list[tuple[list[int], list[float]]] = []
        for e, chain in enumerate(self.chains):
            if len(chain) > 2:
                a, b = chain[0], chain[-1]
                files.append((chain[1:-1], [middle[b] + enter[e], middle[a] + leave[e]]))
        following = {
            self.edges[edges[0]].source: self.edges[edges[0]].target
            for edges in self.out
            if len(edges) == 1
            and len(self.into[self.edges[edges[0]].target]) == 1
            and self.edges[edges[0]].source_x is None
            and self.edges[edges[0]].target_x is None
            and len(self.chains[edges[0]]) == 2
        }
        behind = set(following.values())
        for start in following:
            if start in behind:
                continue
            file = [start]
            while file[-1] in following:
                file.append(following[file[-1]])
            files.append((file, [sum(middle[i] for i in file) / len(file)]))
        place = {i: (r, k) for r, row in enumerate(self.ranks) for k, i in enumerate(row)}

        def room(i: int) -> tuple[float, float]:
            r, k = place[i]
            row = self.ranks[r]
            low, high = float("-inf"), float("inf")
            if k:
                j = row[k - 1]
                gap = GAP_X if i < n or j < n else PASS_WIDTH
                low = middle[j] + (self.width[i] + self.width[j]) / 2 + gap
            if k + 1 < len(row):
                j = row[k + 1]
                gap = GAP_X if i < n or j < n else PASS_WIDTH
                high = middle[j] - (self.width[i] + self.width[j]) / 2 - gap
            return low, high

        for file, wishes in files:
            at = 0
            while at < len(file):
                low, high = room(file[at])
                end = at + 1
                while end < len(file):
                    more = room(file[end])
                    if max(low, more[0]) > min(high, more[1]):
                        break
                    low, high = max(low, more[0]), min(high, more[1])
                    end += 1
                if low <= high:
                    fits = next((w for w in wishes if low <= w <= high), None)
                    x = min(max(wishes[0], low), high) if fits is None else fits
                    for i in file[at:end]:
                        middle[i] = x
                at = end

    def _finish(self, middle: list[float], leave: list[float], enter: list[float]) -> Placed:
        n = len(self.blocks)
        heights = [max((self.blocks[i].height for i in row if i < n), default=0.0) for row in self.ranks]
        tops = []
        y = 0.0
        for r, row in enumerate(self.ranks):
            tops.append(y)
            gap = self.gap_y
            if r + 1 < len(self.ranks):
                # Edges that go far to the side get more room.
                far = max((abs(middle[i] - middle[j]) for i in row for j in self.down[i]), default=0.0)
                gap += min(50.0, far / 12)
                if all(i < n and self.blocks[i].pin for i in row) or all(
                    i < n and self.blocks[i].pin for i in self.ranks[r + 1]
                ):
                    gap *= 0.7
            y += heights[r] + gap
        height = tops[-1] + heights[-1]
        x = [middle[i] - b.width / 2 for i, b in enumerate(self.blocks)]
        top = [
            tops[self.rank[i]] + (0.0 if b.pin else (heights[self.rank[i]] - b.height) / 2)
            for i, b in enumerate(self.blocks)
        ]
        routes = []
        for e, chain in enumerate(self.chains):
            a, b = chain[0], chain[-1]
            points = [
                (middle[a] + leave[e], top[a] + self.blocks[a].height),
                (middle[a] + leave[e], tops[self.rank[a]] + heights[self.rank[a]]),
            ]
            for i in chain[1:-1]:
                r = self.item_rank[i]
                points += [(middle[i], tops[r]), (middle[i], tops[r] + heights[r])]
            points += [(middle[b] + enter[e], tops[self.rank[b]]), (middle[b] + enter[e], top[b])]
            routes.append(points)
        width = max(middle[i] + self.width[i] / 2 for i in range(len(middle)))
        return Placed(x, top, routes, width, height)
