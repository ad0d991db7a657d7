"""Steps of optimizers on wgpu: many parameters in few dispatches, with the bits that each alone would get."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad
from rgrad import optim
from rgrad._core import _wgpu_counts

pytestmark = pytest.mark.wgpu

# Less than a workgroup, just one, more than several; a matrix; nothing.
SHAPES = [(3,), (256,), (1000, 7), (70_001,), (0,), (2, 5), *[(40 + n,) for n in range(6)]]
#: Which tensors a step reads and writes: the parameter, its gradient, and the states.
OPTIMIZERS = {
    "SGD": (3, {"lr": 0.1, "momentum": 0.9}),
    "Adam": (4, {"amsgrad": False}),
    "AdamW": (5, {"amsgrad": True}),
    "RMSprop": (5, {"momentum": 0.7, "centered": True}),
    "Rprop": (4, {}),
}


def started(name: str, dtype: rgrad.dtype, apart: bool) -> tuple[list[rgrad.Tensor], list[optim.Optimizer]]:
    rng = np.random.default_rng(0)
    params = [rgrad.tensor(rng.standard_normal(s), dtype=dtype, device="wgpu", requires_grad=True) for s in SHAPES]
    options = OPTIMIZERS[name][1]
    groups = [[p] for p in params] if apart else [params]
    return params, [getattr(optim, name)(group, **options) for group in groups]


def steps(params: list[rgrad.Tensor], optimizers: list[optim.Optimizer], count: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(count):
        for p in params:
            p.grad = rgrad.tensor(rng.standard_normal(tuple(p.shape)), dtype=p.dtype, device="wgpu")
        for optimizer in optimizers:
            optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float16])
def test_parameters_together_get_the_bits_of_each_alone(name: str, dtype: rgrad.dtype) -> None:
    together, apart = started(name, dtype, False), started(name, dtype, True)
    for run in (together, apart):
        steps(*run, 3)
    for p, q in zip(together[0], apart[0], strict=True):
        np.testing.assert_array_equal(p.detach().cpu().numpy(), q.detach().cpu().numpy())
    states = [s for o in apart[1] for s in o.state.values()]
    for state, alone in zip(together[1][0].state.values(), states, strict=True):
        for key, value in state.items():
            np.testing.assert_array_equal(value.cpu().numpy(), alone[key].cpu().numpy(), err_msg=key)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_takes_few_dispatches(name: str) -> None:
    bound = rgrad.wgpu.current_device().limits["max-storage-buffers-per-shader-stage"]
    if bound < 2 * OPTIMIZERS[name][0]:
        pytest.skip(f"the adapter has {bound} storage buffers a stage, too few for all of a parameter's tensors")
    params, optimizers = started(name, rgrad.float32, False)
    steps(params, optimizers, 2)
    rgrad.wgpu.synchronize()
    before = _wgpu_counts()[2]
    optimizers[0].step()
    made = _wgpu_counts()[2] - before
    each = min(bound, 128) // OPTIMIZERS[name][0]
    assert made <= -(-len(SHAPES) // each)
