"""Repeated structure in a sequence: runs of equal periods, found without looking at all pairs."""

from typing import NamedTuple

import numpy as np

# The longest body of a loop that is recognised, in operations or boxes.
LONGEST_PERIOD = 400


class Run(NamedTuple):
    """``times`` equal pieces of ``period`` entries each, from ``start``."""

    start: int
    period: int
    times: int


class Sequence:
    """A sequence of entries, of which equal ones have equal codes.

    Args:
        codes: What the entries are.
        weights: Number of operations of each entry.
    """

    def __init__(self, codes: list[int], weights: list[int]) -> None:
        self.codes = np.asarray(codes, dtype=np.int64)
        self.weights = weights

    def runs(self, period: int, least: int) -> list[Run]:
        """The runs of one period, from left to right, without overlap.

        Args:
            period: The length of a piece.
            least: Least number of operations in a run, unless its pieces are large.
        """
        if len(self.codes) < 2 * period or not self._may_repeat(period):
            return []
        equal = self.codes[:-period] == self.codes[period:]
        # Stretches of True: each is a run of `length + period` entries.
        edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
        begins, ends = edges[::2], edges[1::2]
        long = ends - begins >= period
        found: list[Run] = []
        free = 0
        for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
            begin = max(begin, free)
            times = (end - begin) // period + 1
            if end - begin < period:
                continue
            inside = self.weights[begin : begin + period]
            piece, largest = sum(inside), max(inside)
            if times * piece < least and not (piece >= 3 and largest >= 3):
                continue
            if times < 3 and largest < 3:
                continue
            found.append(Run(begin, period, times))
            free = begin + period * times
        return found

    def _may_repeat(self, period: int) -> bool:
        """Whether there may be a run of this period; False for most periods of a sequence without structure."""
        step = period // 8
        if step < 2:
            return True
        # A run is `period` equal pairs in a row, so at least seven in a row of every `step`-th pair.
        equal = self.codes[:-period:step] == self.codes[period::step]
        for distance in (1, 2, 3):
            equal = equal[:-distance] & equal[distance:]
        return bool(equal.any())

    def periods(self) -> list[int]:
        """The periods that are worth a look, ascending: distances at which many entries are found again."""
        order = np.argsort(self.codes, kind="stable")
        sorted_codes = self.codes[order]
        distances = (order[1:] - order[:-1])[sorted_codes[1:] == sorted_codes[:-1]]
        return [int(d) for d in np.unique(distances[distances <= LONGEST_PERIOD])]
