"""What rgrad does not do as PyTorch yet: tests that are expected to fail, strictly, each with its reason.

A key is a test's name with the beginning of its parameters; when the behaviour is mended, the entry must go.
"""

from __future__ import annotations

import re

import pytest

KNOWN: dict[str, str] = {}


def mark(items: list[pytest.Item]) -> None:
    """Marks the collected tests that KNOWN names."""
    for item in items:
        # The device stands first among a test's parameters, and the behaviour is the same on all.
        name = re.sub(r"\[(?:cpu|wgpu)(?:-|(\]))", lambda m: "" if m[1] else "[", item.name)
        for key, reason in KNOWN.items():
            if name.startswith(key):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
