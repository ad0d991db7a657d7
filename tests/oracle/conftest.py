"""The comparison with PyTorch: needs torch beside rgrad, and the table of operations of the Python suite."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
pytest.register_assert_rewrite("compare")

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

settings.register_profile(
    "oracle",
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("oracle")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expected failures are listed in one place, beside the Python suite."""
    from known_differences import mark

    mark(items)
