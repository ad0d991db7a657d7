"""Modules that programs ask for what is not here, or under other names: random, xpu, distributed, model_zoo."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

import rgrad


def test_fork_rng() -> None:
    rgrad.random.manual_seed(3)
    with rgrad.random.fork_rng(devices=[]):
        first = rgrad.rand(3)
    assert rgrad.equal(rgrad.rand(3), first)
    state = rgrad.random.get_rng_state()
    for options in ({"enabled": False}, {"device_type": "meta"}):
        rgrad.random.set_rng_state(state)
        with rgrad.random.fork_rng(**options):
            first = rgrad.rand(3)
        assert not rgrad.equal(rgrad.rand(3), first)
    drawn = []

    @rgrad.random.fork_rng(device_type="cuda")
    def failing() -> None:
        drawn.append(rgrad.rand(3))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert rgrad.equal(rgrad.rand(3), drawn[0])
    with pytest.raises(RuntimeError, match="zork"), rgrad.random.fork_rng(device_type="zork"):
        pass
    assert rgrad.random.initial_seed() == 3


def test_what_is_not_here() -> None:
    assert not rgrad.xpu.is_available()
    assert not rgrad.xpu.is_initialized()
    assert rgrad.xpu.device_count() == 0
    rgrad.xpu.manual_seed(1)
    rgrad.xpu.manual_seed_all(1)
    rgrad.xpu.empty_cache()
    assert rgrad.distributed.is_available() == (find_spec("mpi4py") is not None)
    assert not rgrad.distributed.is_initialized()
    assert rgrad.utils.model_zoo.load_url is rgrad.hub.load_state_dict_from_url


def test_threads_beside_each_other() -> None:
    program = """
import pytest, rgrad
assert rgrad.get_num_interop_threads() > 0
for wrong in ("a", 2.5, True):
    with pytest.raises(RuntimeError, match="set_num_interop_threads expects an int, but got"):
        rgrad.set_num_interop_threads(wrong)
with pytest.raises(RuntimeError, match="expects a positive integer"):
    rgrad.set_num_interop_threads(0)
rgrad.set_num_interop_threads(3)
assert rgrad.get_num_interop_threads() == 3
with pytest.raises(RuntimeError, match="cannot set number of interop threads after"):
    rgrad.set_num_interop_threads(2)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_schedules_of_older_programs() -> None:
    class Halving(rgrad.optim.lr_scheduler._LRScheduler):
        def get_lr(self) -> list[float]:
            return [rate * 0.5**self.last_epoch for rate in self.base_lrs]

    optimizer = rgrad.optim.SGD([rgrad.nn.Parameter(rgrad.ones(1))], lr=1.0)
    schedule = Halving(optimizer)
    rates = []
    for _ in range(3):
        rates += schedule.get_last_lr()
        optimizer.step()
        schedule.step()
    assert rates == [1.0, 0.5, 0.25]
    assert isinstance(schedule, rgrad.optim.lr_scheduler.LRScheduler)


def test_types_of_older_programs() -> None:
    for kind in (rgrad.float64, rgrad.DoubleTensor, "rgrad.DoubleTensor", "torch.DoubleTensor"):
        layer = rgrad.nn.BatchNorm1d(2)
        assert layer.type(kind) is layer
        assert {t.dtype for t in layer.state_dict().values()} == {rgrad.float64}
