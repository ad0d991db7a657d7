"""Types that TorchScript's programs import from here."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from ..futures import Future

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
]


class _BroadcastingList:
    """``BroadcastingList2[int]``: a list, or one number for all places. In annotations alone."""

    def __getitem__(self, types: Any) -> Any:
        return List[types]  # noqa: UP006


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()
