"""Settings of the Python suite: Hypothesis runs the same examples every time, without deadlines."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "rgrad",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rgrad")
