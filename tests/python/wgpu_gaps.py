"""What tensors on wgpu do not do yet. An entry that starts to work must go: the tests see to it."""

from __future__ import annotations

import pytest

# Tests that are expected to fail on wgpu, strictly: a test's name with the beginning of its parameters, and the reason.
GAPS: dict[str, str] = {}

# Rows of the table of operations, and expressions and functions of the promotion tests, that take no float64 on wgpu.
NO_FLOAT64: frozenset[str] = frozenset()
# The same for uint8.
NO_UINT8: frozenset[str] = frozenset()

# Rows that wait for the device, once: the size of the result depends on values, or a value decides what is done.
READS_BACK: frozenset[str] = frozenset(
    {
        *("masked_select", "getitem_mask", "getitem_mask0", "setitem_mask", "setitem_mask0"),
        *("setitem_mask_scalar", "setitem_mask0_scalar", "unique", "unique_consecutive"),
        *(
            "median",
            "nanmedian",
            "nanmedian_with_nan",
            "quantile",
            "nanquantile",
            "quantile_with_nan",
            "nanquantile_with_nan",
        ),
    }
)


def mark_gaps(items: list[pytest.Item]) -> None:
    """Marks the tests on wgpu that GAPS names."""
    for item in items:
        for key, reason in GAPS.items():
            if item.name.startswith(key):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
