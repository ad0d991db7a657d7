"""Settings of the Python suite: the device as a parameter, and which tests must run on wgpu."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import rgrad
import rotation
from wgpu_guard import Guard, lacking

# With this set to 1 the tests on wgpu must run: a machine without an adapter fails. Else they are skipped there.
REQUIRE_WGPU = "RGRAD_REQUIRE_WGPU"
# Results stay pending from so many elements on: with 2, the whole suite tests fused programs.
FUSION_LEAST = "RGRAD_FUSION_LEAST"
if FUSION_LEAST in os.environ:
    rgrad._core._set_fusion_least(int(os.environ[FUSION_LEAST]))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes the device runs on both, or on the one that its mark says."""
    marks = {mark.name: mark for mark in metafunc.definition.iter_markers()}
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "device" in metafunc.fixturenames and "device" not in own:
        devices: list[object] = [] if "wgpu_only" in marks else ["cpu"]
        if "cpu_only" not in marks:
            devices.append(pytest.param("wgpu", marks=pytest.mark.wgpu))
        metafunc.parametrize("device", devices, indirect=True)


@pytest.fixture
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


def is_float64(parameter: object) -> bool:
    """Whether a test with this parameter needs float64: the dtype, or the operation that gives it."""
    return str(parameter) in ("float64", "rgrad.float64") or getattr(parameter, "name", "") == "to_double"


def on_wgpu(item: pytest.Item) -> bool:
    """Whether a test runs there."""
    return item.get_closest_marker("wgpu") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests on wgpu, and drops parameters that are for the CPU alone."""
    for item in items:
        if item.path.name.startswith("test_wgpu"):
            item.add_marker(pytest.mark.wgpu)
    dropped = {item for item in items if on_wgpu(item) and item.get_closest_marker("cpu_only") is not None}
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]
    there = [item for item in items if on_wgpu(item)]
    for item in there:
        if hasattr(item, "callspec") and any(is_float64(value) for value in item.callspec.params.values()):
            item.add_marker(pytest.mark.needs("float64"))
        item.user_properties.append(("wgpu", True))
        if hasattr(item, "callspec") and "op" in item.callspec.params:
            # Reports carry these to the process that counts.
            item.user_properties.append(("op", item.callspec.params["op"].name))
    if there and os.environ.get(REQUIRE_WGPU) != "1" and not rgrad.wgpu.is_available():
        for item in there:
            item.add_marker(pytest.mark.skip(reason=f"no wgpu adapter on this machine ({REQUIRE_WGPU}=1 demands one)"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Opens the device before a test there, and skips the test if the adapter has not what it `needs`."""
    if on_wgpu(item) and not item.get_closest_marker("skip"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told once in a process, which is of no test
            device = rgrad.wgpu.current_device()
        for mark in item.iter_markers("needs"):
            reason = lacking(device, mark.args, mark.kwargs)
            if reason is not None:
                pytest.skip(reason)


# With pytest-xdist the reports arrive in the first process, and this is used there alone.
guard = Guard()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the tests on wgpu."""
    told = dict(report.user_properties)
    if "wgpu" in told:
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        guard.add(report.nodeid, report.when, report.outcome, reason, told.get("op"))


def is_whole(config: pytest.Config) -> bool:
    """Whether the run is of the whole suite, or of all that is on wgpu, with nothing else picked out."""
    option = config.option
    picked = (option.keyword, option.deselect, option.ignore, option.ignore_glob, option.maxfail)
    picked = (*picked, option.markexpr not in ("", "wgpu"), rotation.parts(on_wgpu=True) > 1)
    if any(picked) or getattr(option, "lf", False) or option.collectonly:
        return False
    here = Path(__file__).parent
    return all((config.invocation_params.dir / argument).resolve() == here for argument in config.args)


def problems(config: pytest.Config) -> list[str]:
    """What had to run on wgpu and did not."""
    if os.environ.get(REQUIRE_WGPU) != "1" or hasattr(config, "workerinput"):
        return []
    return guard.problems(whole=is_whole(config), files=[p.name for p in Path(__file__).parent.rglob("test_wgpu_*.py")])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a session that had to run tests on wgpu, and did not."""
    if session.exitstatus == pytest.ExitCode.OK and problems(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says how many tests ran on wgpu, and what is missing."""
    adapter = ""
    if guard.passed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapter = f", on {rgrad.wgpu.chosen()}"
    terminalreporter.write_line(f"{len(guard.passed)} tests passed on wgpu{adapter}")
    for problem in problems(config):
        terminalreporter.write_line(f"FAILED: {problem} ({REQUIRE_WGPU}=1)", red=True)
