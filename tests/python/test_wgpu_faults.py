"""What goes wrong on the wgpu device: long waits, interrupts, indices out of range, lost devices, forks."""

from __future__ import annotations

import os
import signal

import pytest

import rgrad
from fresh import run

pytestmark = pytest.mark.wgpu

# Products that take some tenths of a second together, on fast devices too.
SLOW = """
import rgrad, os, signal, time
size = 448
while True:
    x = rgrad.rand(size, size, device="wgpu") / size
    for _ in range(2):
        rgrad.wgpu.synchronize()
        start = time.perf_counter()
        y = x @ x
        rgrad.wgpu.synchronize()
    if time.perf_counter() - start > 0.01 or size > 8000:
        break
    size *= 2
def work():
    y = x
    for _ in range(20):
        y = y @ x
    return y
"""


@pytest.mark.needs("work that waits")
def test_a_wait_ends_after_the_time_limit_and_can_be_repeated() -> None:
    out = run(
        SLOW
        + """
os.environ["RGRAD_WGPU_TIMEOUT"] = "0.01"
y = work()
try:
    y.cpu()
except RuntimeError as e:
    print(e)
del os.environ["RGRAD_WGPU_TIMEOUT"]
print(y.cpu().isfinite().all().item())
"""
    )
    assert "has not finished within 0.01 s" in out
    assert "RGRAD_WGPU_TIMEOUT" in out
    assert out.endswith("True\n")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer here")
def test_a_wait_can_be_interrupted() -> None:
    out = run(
        SLOW
        + """
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
y = work()
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    rgrad.wgpu.synchronize()
    print("ran through")
except KeyboardInterrupt:
    print("interrupted")
print(y.cpu().isfinite().all().item())
"""
    )
    assert out == "interrupted\nTrue\n"


def test_an_index_out_of_range_is_raised_at_the_next_synchronisation() -> None:
    x = rgrad.arange(5.0).to("wgpu")
    bad = rgrad.tensor([1, 7]).to("wgpu")
    y = x.index_select(0, bad)
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 5") as caught:
        rgrad.wgpu.synchronize()
    assert "test_wgpu_faults.py" in "".join(caught.value.__notes__)
    rgrad.wgpu.synchronize()
    assert x.index_select(0, rgrad.tensor([4, 0]).to("wgpu")).cpu().tolist() == [4, 0]
    del y


def test_a_lost_device_is_an_error_of_every_later_call() -> None:
    out = run(
        """
        import logging, rgrad, wgpu
        logging.getLogger("wgpu").disabled = True
        x = rgrad.ones(3).to("wgpu")
        y = x + 1
        rgrad.wgpu.current_device().destroy()
        calls = {
            "read": lambda: y.cpu(),
            "operation": lambda: (x + y).cpu(),
            "transfer": lambda: rgrad.ones(3).to("wgpu"),
            "synchronize": rgrad.wgpu.synchronize,
        }
        for name, call in calls.items():
            try:
                call()
                print(name, "passed")
            except RuntimeError as e:
                print(name, "is lost" in str(e) and "set_device" in str(e))
        rgrad.wgpu.set_device(rgrad.wgpu.devices()[0])
        print(rgrad.ones(3).to("wgpu").sum().item())
        """
    )
    assert out == "read True\noperation True\ntransfer True\nsynchronize True\n3.0\n"


@pytest.mark.parametrize("wait", ["y.cpu()", "rgrad.wgpu.synchronize()"])
def test_a_device_that_is_lost_at_work_is_an_error(wait: str) -> None:
    """Where a submission returns when its work is done, it is lost between two of them."""
    out = run(
        SLOW
        + f"""
import threading, wgpu, logging
logging.getLogger("wgpu").disabled = True
threading.Timer(0.05, rgrad.wgpu.current_device().destroy).start()
try:
    for _ in range(200):
        y = work()
        {wait}
except RuntimeError as e:
    print("is lost" in str(e))
"""
    )
    assert out == "True\n"


def test_a_lost_device_is_found_by_synchronize_alone() -> None:
    out = run(
        """
        import logging, rgrad, wgpu
        logging.getLogger("wgpu").disabled = True
        x = rgrad.ones(3).to("wgpu")
        rgrad.wgpu.synchronize()
        rgrad.wgpu.current_device().destroy()
        try:
            rgrad.wgpu.synchronize()
        except RuntimeError as e:
            print("is lost" in str(e))
        """
    )
    assert out == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_gets_a_clear_error() -> None:
    out = run(
        """
        import os, sys, rgrad
        x = rgrad.ones(3).to("wgpu")
        y = x + 1
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            adapter = rgrad.wgpu.current_device().adapter
            calls = [lambda: x + 1, lambda: y.cpu(), lambda: rgrad.ones(2).to("wgpu"), rgrad.wgpu.synchronize]
            for call in (*calls, rgrad.wgpu.devices, lambda: rgrad.wgpu.set_device(adapter)):
                try:
                    call()
                    print("passed")
                except RuntimeError as e:
                    print("forked" in str(e) and "spawn" in str(e))
            print(rgrad.wgpu.is_available(), (rgrad.ones(2) + 1).sum().item())
            del x, y
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(y.cpu().sum().item())
        """
    )
    assert out == "True\n" * 6 + "False 4.0\n" + "6.0\n"


def test_an_interpreter_ends_with_work_that_was_never_waited_for() -> None:
    assert run("import rgrad; x = rgrad.ones(9).to('wgpu')\nfor _ in range(700): x = x + 1\nprint('end')") == "end\n"
