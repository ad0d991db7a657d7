"""What tests need of an adapter, and which of them must have passed on wgpu where that is demanded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from op_table import OPS

# A test may be skipped for what an adapter lacks, and says so in these words.
LACKS = ("the adapter ",)

# What tests call by other names than WebGPU does, and the features that it takes.
FEATURES = {
    "float64": {"shader-f64", "shader-int64"},
    "float16": {"shader-f16"},
    "timestamps": {"timestamp-query"},
}
# What is no feature of WebGPU: a test of the device in use, and what is said where it fails.
TRAITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "own limits": (
        lambda d: d.limits["max-buffer-size"] == d.adapter.limits["max-buffer-size"],
        "is opened with the least limits",
    ),
    "work that waits": (
        # There the library runs what is submitted before the call returns, in the driver's own threads.
        lambda d: not (d.adapter.info["backend_type"].startswith("OpenGL") and d.adapter.info["adapter_type"] == "CPU"),
        "has run its work when a submission returns",
    ),
}


def lacking(device: Any, names: Iterable[str], limits: dict[str, int]) -> str | None:
    """What a device has not of what a test needs, for the reason of a skip.

    Args:
        device: The ``wgpu.GPUDevice`` in use.
        names: Features, or names of `FEATURES` and `TRAITS`.
        limits: The least value of limits, which are spelt with underscores.
    """
    missing = []
    for name in names:
        if name in TRAITS:
            has, what = TRAITS[name]
            missing += [] if has(device) else [what]
        else:
            wanted = FEATURES.get(name, {name})
            missing += [] if wanted <= set(device.features) else [f"has no {name} ({', '.join(sorted(wanted))})"]
    for name, least in limits.items():
        found = device.limits[name.replace("_", "-")]
        missing += [] if found >= least else [f"has a {name.replace('_', '-')} of {found}, not {least}"]
    return f"the adapter {device.adapter.info['device']} {' and '.join(missing)}" if missing else None


def demanded() -> set[tuple[str, str]]:
    """(test, operation): every operation of the table has its values, its place and its derivatives tested there."""
    pairs = {(test, op.name) for op in OPS for test in ("test_work_stays_on_wgpu", "test_values")}
    return pairs | {("test_every_mode_on_wgpu", op.name) for op in OPS if op.grad in ("smooth", "zero")}


class Guard:
    """Counts the tests on wgpu from their reports."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self.lacking: set[str] = set()
        # Passed, or not to be had on this adapter.
        self.operations: set[tuple[str, str]] = set()

    def add(self, nodeid: str, when: str | None, outcome: str, reason: str = "", op: str | None = None) -> None:
        """One report of a phase of a test, with the reason of a skip and the operation that it is about."""
        self.begun.add(nodeid)
        if outcome == "failed":
            self.failed.add(nodeid)
            return
        lacks = outcome == "skipped" and any(words in reason for words in LACKS)
        if lacks:
            self.lacking.add(nodeid)
        elif outcome == "passed" and when == "call":
            self.passed.add(nodeid)
        else:
            return
        if op is not None:
            self.operations.add((nodeid.partition("[")[0].rpartition("::")[2], op))

    def problems(self, whole: bool, files: Iterable[str]) -> list[str]:
        """What is missing, in a sentence each; a whole run must have tested every operation, and each file."""
        found = []
        left = self.begun - self.passed - self.failed - self.lacking
        if left:
            found.append(f"{len(left)} tests on wgpu did not run, such as {min(left)}")
        if self.begun and not self.passed:
            found.append("no test passed on wgpu")
        if whole:
            missing = demanded() - self.operations
            if missing:
                test, op = min(missing)
                found.append(f"{len(missing)} tests of operations did not pass on wgpu, such as {test} of {op}")
            ran = {nodeid.partition("::")[0].rpartition("/")[2] for nodeid in self.passed}
            found += [f"no test of {file} passed" for file in sorted(set(files) - ran)]
        return found
