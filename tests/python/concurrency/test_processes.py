"""`rgrad.multiprocessing.spawn` and `start_processes`: results, failures, and that nobody is left."""

from __future__ import annotations

import pickle
import signal
import sys
import time
from pathlib import Path

import pytest

import process_work
import rgrad
import rgrad.multiprocessing as mp

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


def test_spawn_runs_the_function_once_in_each_process(tmp_path: Path) -> None:
    assert mp.spawn(process_work.write, args=(str(tmp_path), 2.0), nprocs=2) is None
    assert {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()} == {"0": "6.0", "1": "12.0"}


def test_an_error_comes_with_the_traceback_of_its_process() -> None:
    start = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(process_work.fail, args=(1,), nprocs=2, start_method="fork")
    assert time.monotonic() - start < 30
    error = caught.value
    assert str(error).startswith("\n\n-- Process 1 terminated with the following error:\nTraceback")
    assert "in fail" in str(error)
    assert "ValueError: process number 1 sees a bad value" in str(error)
    assert error.error_index == 1
    assert error.error_pid > 0
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.msg, again.error_index, again.error_pid) == (
        mp.ProcessRaisedException,
        error.msg,
        1,
        error.error_pid,
    )


@pytest.mark.parametrize(("work", "index"), [(process_work.leave, 1), (process_work.leave_politely, 0)])
def test_an_exit_code(work: object, index: int) -> None:
    with pytest.raises(mp.ProcessExitedException, match=f"^process {index} terminated with exit code 3$") as caught:
        mp.start_processes(work, args=(3,), nprocs=index + 1, start_method="fork")
    assert (caught.value.exit_code, caught.value.signal_name) == (3, None)
    assert caught.value.error_index == index


@needs_signals
def test_a_killed_process() -> None:
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with signal SIGKILL$") as caught:
        mp.start_processes(process_work.be_killed, start_method="fork")
    assert (caught.value.exit_code, caught.value.signal_name) == (-signal.SIGKILL, "SIGKILL")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.exit_code, again.signal_name) == (-signal.SIGKILL, "SIGKILL")


def test_processes_that_are_not_waited_for() -> None:
    context = mp.start_processes(process_work.stay, args=(0.5,), nprocs=2, join=False, start_method="fork")
    assert isinstance(context, mp.ProcessContext)
    assert len(set(context.pids())) == 2
    assert context.join(timeout=0.01) is False
    while not context.join():
        pass
    assert context.join() is True
    assert [process.exitcode for process in context.processes] == [0, 0]


@needs_signals
def test_processes_that_ignore_sigterm_are_killed() -> None:
    context = mp.start_processes(process_work.ignore_the_end, nprocs=2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException, match="first"):
        context.join(grace_period=0.5)
    assert context.processes[1].exitcode == -signal.SIGKILL
    assert not Path(context.error_files[0]).exists()


def test_an_interrupted_process_has_not_failed() -> None:
    assert mp.start_processes(process_work.interrupted, start_method="fork") is None


def test_a_tensor_in_shared_memory_is_written_by_all() -> None:
    shared = rgrad.zeros(2).share_memory_()
    mp.start_processes(process_work.add_one, args=(shared,), nprocs=2, start_method="fork")
    assert shared.tolist() == [1, 1]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot find context"):
        mp.start_processes(process_work.stay, args=(0,), start_method="nonsense")
    with pytest.warns(FutureWarning, match=r"only supports start_method=spawn \(got: fork\)"):
        mp.spawn(process_work.stay, args=(0,), nprocs=0, start_method="fork")
    with pytest.warns(UserWarning, match="renamed to ProcessContext"):
        assert mp.SpawnContext([], []).join() is True
