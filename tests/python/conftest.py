"""Settings of the Python suite: Hypothesis runs the same examples every time; the device as a parameter."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import rgrad
from known_differences import mark
from wgpu_gaps import mark_gaps

# A shell's background job ignores Ctrl-C, and tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "rgrad",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rgrad")

# With this set to 1 the tests on wgpu must run: a machine without an adapter fails. Else they are skipped there.
REQUIRE_WGPU = "RGRAD_REQUIRE_WGPU"
# Results stay pending from so many elements on: with 2, the whole suite tests fused programs.
FUSION_LEAST = "RGRAD_FUSION_LEAST"
if FUSION_LEAST in os.environ:
    rgrad._core._set_fusion_least(int(os.environ[FUSION_LEAST]))


@pytest.fixture(params=["cpu", pytest.param("wgpu", marks=pytest.mark.wgpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device under test. While the test runs, new tensors that name no device are on it."""
    rgrad.set_default_device(request.param)
    try:
        yield request.param
    finally:
        rgrad.set_default_device(None)
    if request.param == "wgpu":
        rgrad.wgpu.synchronize()  # what went wrong there belongs to this test


@pytest.fixture
def small_programs() -> Iterator[None]:
    """Results stay pending from a hundred elements on."""
    before = rgrad._core._set_fusion_least(100)
    try:
        with rgrad.fusion(True):
            yield
    finally:
        rgrad._core._set_fusion_least(before)


def on_wgpu(item: pytest.Item) -> bool:
    """Whether a test runs there."""
    return item.get_closest_marker("wgpu") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests on wgpu, and the expected failures, which are listed in two places."""
    mark(items)
    for item in items:
        if item.path.name.startswith("test_wgpu"):
            item.add_marker(pytest.mark.wgpu)
    kept = [item for item in items if not item.get_closest_marker("cpu_only" if on_wgpu(item) else "wgpu_only")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
    there = [item for item in items if on_wgpu(item)]
    mark_gaps(there)
    if there and os.environ.get(REQUIRE_WGPU) != "1" and not rgrad.wgpu.is_available():
        for item in there:
            item.add_marker(pytest.mark.skip(reason=f"no wgpu adapter on this machine ({REQUIRE_WGPU}=1 demands one)"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Most adapters have no float64: what a test then cannot do there is no failure."""
    try:
        return (yield)
    except NotImplementedError as error:
        if on_wgpu(item) and "has no float64" in str(error):
            pytest.skip(str(error))
        raise


# Tests on wgpu that began, and those that passed. With pytest-xdist they are counted where the reports arrive.
_seen_on_wgpu = 0
_passed_on_wgpu = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the tests on wgpu."""
    global _seen_on_wgpu, _passed_on_wgpu
    if "wgpu" in report.keywords:
        _seen_on_wgpu += report.when == "setup"
        _passed_on_wgpu += report.when == "call" and report.passed


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a session that has tests on wgpu, had to run them, and did not."""
    if _seen_on_wgpu and not _passed_on_wgpu and os.environ.get(REQUIRE_WGPU) == "1":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests ran on wgpu."""
    adapter = ""
    if _passed_on_wgpu:
        info = rgrad.wgpu.current_device().adapter.info
        adapter = f", on {info['device']} ({info['adapter_type']}, {info['backend_type']})"
    terminalreporter.write_line(f"{_passed_on_wgpu} tests passed on wgpu{adapter}")
