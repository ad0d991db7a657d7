"""Which combinations run, and which tests on wgpu must have: the suite's own rules."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

import rotation
from fresh import run
from op_table import OPS
from wgpu_guard import Guard, demanded, lacking


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests here choose for themselves, however this run was started."""
    for name in (rotation.LONG, rotation.PART, rotation.WGPU_PART):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("take", [1, 2, 3, 7])
def test_as_many_seeds_in_a_row_as_there_are_turns_run_everything_once(take: int) -> None:
    for count in range(40):
        period = max(1, -(-count // take))
        for start in (0, 5, 1 << 40):
            ran = [list(rotation.chosen(count, take, start + turn, "key")) for turn in range(period)]
            assert sorted(n for turn in ran for n in turn) == list(range(count))
            assert all(0 < len(turn) <= take for turn in ran) or count == 0


def test_groups_do_not_keep_step() -> None:
    assert len({tuple(rotation.chosen(10, 1, 0, f"group {n}")) for n in range(40)}) > 3


class Item(SimpleNamespace):
    """What rotation asks of a pytest item."""

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def __hash__(self) -> int:
        return id(self)


def items() -> list[Any]:
    mark = SimpleNamespace(args=("op",), kwargs={"take": 2})
    made = []
    for device in ("cpu", "wgpu"):
        for op in ("exp", "sum"):
            for n in range(5):
                marks = {"rotate": mark, **({"wgpu": True} if device == "wgpu" else {})}
                params = {"op": op, "n": n}
                nodeid = f"tests/python/test_x.py::test_it[{device}-{op}-{n}]"
                made.append(Item(nodeid=nodeid, callspec=SimpleNamespace(params=params), marks=marks))
    return [*made, Item(nodeid="tests/python/test_x.py::test_other", marks={})]


def test_every_operation_runs_on_every_device_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = {item.nodeid for item in items()}
    ran: set[str] = set()
    for seed in range(3):
        monkeypatch.setattr(rotation, "seed", lambda seed=seed: seed)
        left = {item.nodeid for item in rotation.rest(items(), ["tests/python"])}
        now = everything - left
        for device in ("cpu", "wgpu"):
            for op in ("exp", "sum"):
                assert 1 <= sum(f"[{device}-{op}-" in nodeid for nodeid in now) <= 2
        assert "tests/python/test_x.py::test_other" in now
        ran |= now
    assert ran == everything


def test_what_is_named_runs_and_a_long_run_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "seed", lambda: 0)
    left = sorted(item.nodeid for item in rotation.rest(items(), []))
    named = left[0]
    for argument in (named, named.rpartition("/")[2], f"/somewhere/{named}"):
        assert sorted(item.nodeid for item in rotation.rest(items(), [argument])) == left[1:]
    assert 0 < len(rotation.some(range(10), 3, "key")) <= 3
    monkeypatch.setenv(rotation.LONG, "1")
    assert rotation.rest(items(), []) == set()
    assert rotation.some(range(10), 3, "key") == list(range(10))


def test_a_name_that_is_an_address_is_refused() -> None:
    with pytest.raises(AssertionError, match="another name in every process"):
        rotation._name(object())


def test_the_seed_is_the_number_of_commits_or_what_the_environment_says() -> None:
    code = "import sys; sys.path.insert(0, {here!r}); import rotation; print(rotation.seed())"
    code = code.format(here=os.path.dirname(rotation.__file__))
    assert run(code, RGRAD_ROTATION="17") == "17\n"
    count = rotation._git("rev-list", "--count", "HEAD")
    if count is not None and rotation._git("rev-parse", "--is-shallow-repository") == "false":
        assert run(f"import os; os.environ.pop('RGRAD_ROTATION', None); {code}") == f"{count}\n"


# ---- what tests need of an adapter -----------------------------------------------------------------------------------


def opened(features: set[str], backend: str = "Vulkan", **limits: int) -> SimpleNamespace:
    info = {"device": "this one", "adapter_type": "CPU", "backend_type": backend}
    own = {name.replace("_", "-"): most for name, most in limits.items()}
    return SimpleNamespace(adapter=SimpleNamespace(info=info, limits=own), features=features, limits=own)


def test_what_an_adapter_lacks_is_said_with_its_name() -> None:
    device = opened({"shader-f64", "shader-int64", "subgroup"}, max_bind_groups=4, max_buffer_size=9)
    assert lacking(device, ["float64", "subgroup", "own limits", "work that waits"], {"max_bind_groups": 4}) is None
    assert lacking(device, ["float16"], {}) == "the adapter this one has no float16 (shader-f16)"
    told = lacking(opened({"shader-f64"}, backend="OpenGL"), ["float64", "work that waits"], {})
    assert told == (
        "the adapter this one has no float64 (shader-f64, shader-int64) and has run its work when a submission returns"
    )
    told = lacking(device, [], {"max_bind_groups": 5})
    assert told == "the adapter this one has a max-bind-groups of 4, not 5"
    device.limits = {"max-buffer-size": 8}
    assert lacking(device, ["own limits"], {}) == "the adapter this one is opened with the least limits"


# ---- what must run on wgpu -------------------------------------------------------------------------------------------


def complete() -> Guard:
    guard = Guard()
    for test, op in demanded():
        guard.add(f"tests/python/test_op.py::{test}[wgpu-{op}]", "call", "passed", op=op)
    guard.add("tests/python/test_wgpu_x.py::test_it", "call", "passed")
    return guard


def test_the_table_says_what_must_run() -> None:
    assert {op for _, op in demanded()} == {op.name for op in OPS}
    assert len(demanded()) > 2 * len(OPS)


def test_a_complete_run_has_no_problems() -> None:
    guard = complete()
    guard.add("tests/python/test_wgpu_x.py::test_wide", "setup", "skipped", "Skipped: the adapter has no float64")
    assert guard.problems(whole=True, files=["test_wgpu_x.py"]) == []
    test, op = min(guard.operations)
    guard.operations.remove((test, op))
    guard.add(f"test_op.py::{test}[wgpu-{op}]", "setup", "skipped", "Skipped: the adapter has no float64", op=op)
    assert guard.problems(whole=True, files=["test_wgpu_x.py"]) == []


def test_one_operation_one_file_or_one_skipped_test_that_is_missing_is_told() -> None:
    guard = complete()
    gone = min(guard.operations)
    guard.operations.remove(gone)
    (told,) = guard.problems(whole=True, files=["test_wgpu_x.py"])
    assert told.startswith("1 tests of operations did not pass")
    assert f"{gone[0]} of {gone[1]}" in told
    assert guard.problems(whole=False, files=["test_wgpu_x.py"]) == []
    assert complete().problems(whole=True, files=["test_wgpu_y.py"]) == ["no test of test_wgpu_y.py passed"]
    guard = complete()
    guard.add("tests/python/test_wgpu_x.py::test_more", "setup", "skipped", "Skipped: no reason")
    assert guard.problems(whole=False, files=[]) == [
        "1 tests on wgpu did not run, such as tests/python/test_wgpu_x.py::test_more"
    ]


def test_skipping_everything_is_told() -> None:
    guard = Guard()
    assert guard.problems(whole=False, files=[]) == []
    guard.add("tests/python/test_x.py::test_it[wgpu]", "setup", "skipped", "Skipped: the adapter has no float64")
    assert guard.problems(whole=False, files=[]) == ["no test passed on wgpu"]


def test_a_failure_is_told_by_itself() -> None:
    guard = complete()
    guard.add("tests/python/test_wgpu_x.py::test_more", "call", "failed")
    assert guard.problems(whole=False, files=[]) == []


def test_a_part_of_the_suite_is_another_one_with_each_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "seed", lambda: 0)
    whole = {item.nodeid for item in items()} - {item.nodeid for item in rotation.rest(items(), [])}
    monkeypatch.setenv(rotation.PART, "4")
    parts = []
    for seed in range(60):
        monkeypatch.setattr(rotation, "seed", lambda seed=seed: seed)
        left = {item.nodeid for item in rotation.rest(items(), [])}
        parts.append({item.nodeid for item in items()} - left)
    assert sum(map(len, parts)) < 60 * len(whole) / 2
    assert set().union(*parts) == {item.nodeid for item in items()}
    assert f"{rotation.PART}=4" in rotation.header()
    named = items()[0].nodeid
    assert named not in {item.nodeid for item in rotation.rest(items(), [named])}


def test_a_part_of_the_tests_on_wgpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "seed", lambda: 3)
    whole = rotation.rest(items(), [])
    monkeypatch.setenv(rotation.WGPU_PART, "100")
    ran = {item.nodeid for item in items()} - {item.nodeid for item in rotation.rest(items(), [])}
    assert f"on wgpu one of 100 ({rotation.WGPU_PART}=100)" in rotation.header()
    assert ran == {n for n in {item.nodeid for item in items()} - {item.nodeid for item in whole} if "wgpu" not in n}
