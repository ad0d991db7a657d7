"""What tensors on wgpu do not do yet: tests that are expected to fail there, strictly, each with its reason.

A key is a test's name with the beginning of its parameters. An entry that starts to work must go.
"""

from __future__ import annotations

import pytest

GAPS: dict[str, str] = {}


def mark_gaps(items: list[pytest.Item]) -> None:
    """Marks the tests on wgpu that GAPS names."""
    for item in items:
        for key, reason in GAPS.items():
            if item.name.startswith(key):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
