"""Settings of the Python suite: Hypothesis runs the same examples every time, without deadlines."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from known_differences import mark

settings.register_profile(
    "rgrad",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rgrad")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expected failures are listed in one place."""
    mark(items)
