"""What the Python suite and the comparison with PyTorch share: which combinations run, and what Hypothesis draws."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Both suites import helpers from here.
sys.path.insert(0, str(Path(__file__).parent / "python" / "helpers"))

import rotation

# A shell's background job ignores Ctrl-C, and tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A long run draws new examples, from a seed that it tells; others draw the same ones every time.
HYPOTHESIS_SEED = "RGRAD_HYPOTHESIS_SEED"
COMMON: dict[str, Any] = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("rgrad", max_examples=150, derandomize=True, **COMMON)
settings.register_profile("rgrad-long", max_examples=1000, derandomize=False, **COMMON)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Chooses what Hypothesis draws."""
    settings.load_profile("rgrad-long" if rotation.everything() else "rgrad")
    if rotation.everything() and config.getoption("--hypothesis-seed", None) is None:
        # The processes of pytest-xdist have it from the first one.
        fresh = random.SystemRandom().getrandbits(64)
        config.option.hypothesis_seed = os.environ.setdefault(HYPOTHESIS_SEED, str(fresh))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """How to run the same again."""
    lines = [rotation.header()]
    if rotation.everything():
        lines.append(f"hypothesis: {HYPOTHESIS_SEED}={config.getoption('--hypothesis-seed')} draws the same examples")
    return lines


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what other commits run."""
    left = rotation.rest(items, config.args)
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
        rotation.LEFT.tests = len(left)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Takes pytest's own objects out of garbage collections, which tests ask for: a tenth of a second each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Adds up what the processes of pytest-xdist left out: each collects all tests, and runs some."""
    tests, combinations = getattr(node, "workeroutput", {}).get("rotation", (0, 0))
    rotation.LEFT.tests = max(rotation.LEFT.tests, tests)
    rotation.LEFT.combinations += combinations


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tells the first process, if this is one of pytest-xdist."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["rotation"] = (rotation.LEFT.tests, rotation.LEFT.combinations)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how much is left to other commits."""
    left = rotation.LEFT
    terminalreporter.write_line(
        f"rotation: {left.tests} tests, and {left.combinations} combinations inside of tests, are left to other commits"
    )
