"""Convolutions of the shapes that each kernel is for, beside float64 on the CPU; same bits; memory formats; modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
from devices import real, tol
from rgrad import nn
from rgrad.nn import functional as F

Shapes = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

# Tiles of every size, whole and partial, sums that are cut into parts; one invocation, one workgroup for each result.
CASES: list[Shapes] = [
    ((2, 3, 20, 20), (16, 3, 3, 3), {"padding": 1}),
    ((2, 16, 20, 20), (32, 16, 3, 3), {"padding": 1, "stride": 2}),
    ((4, 32, 14, 14), (64, 32, 3, 3), {"padding": 1}),
    ((2, 64, 7, 7), (128, 64, 1, 1), {}),
    ((2, 8, 17, 19), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
    ((2, 24, 17, 19), (48, 8, 3, 3), {"groups": 3, "padding": 2, "dilation": 2}),
    ((2, 16, 40), (24, 16, 5), {"stride": 3, "padding": 2}),
    ((1, 8, 6, 7, 8), (16, 8, 3, 2, 3), {"padding": 1}),
    ((16, 1, 28, 28), (10, 1, 5, 5), {}),
    ((1, 512, 1, 1), (300, 512, 1, 1), {}),
]


def _gradients(case: Shapes, transposed: bool, dtype: Any, device: str) -> list[np.ndarray]:
    """The result of a random convolution, and its gradients."""
    (x_shape, w_shape, params), rng = case, np.random.default_rng(0)
    if transposed:
        x_shape = (x_shape[0], w_shape[0], *x_shape[2:])
    channels = w_shape[1] * params.get("groups", 1) if transposed else w_shape[0]
    arrays = [rng.standard_normal(s) for s in (x_shape, w_shape, (channels,))]
    leaves = [rgrad.tensor(a).to(dtype).to(device).requires_grad_() for a in arrays]
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{len(x_shape) - 2}d")
    y = function(*leaves, **params)
    g = rgrad.tensor(rng.standard_normal(tuple(y.shape))).to(dtype).to(device)
    return [t.detach().cpu().double().numpy() for t in (y, *rgrad.autograd.grad(y, leaves, g))]


@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_kernel_agrees_with_float64(case: Shapes, transposed: bool, dtype: Any, device: str) -> None:
    def rounded(a: np.ndarray) -> np.ndarray:
        return np.array(rgrad.tensor(a, device="cpu").to(dtype).double().numpy())

    # Operands that the dtype holds exactly, so that the truth is of the same numbers.
    rng = np.random.default_rng(1)
    x_shape, w_shape, params = case
    if transposed:
        x_shape = (x_shape[0], w_shape[0], *x_shape[2:])
    x, w = (rounded(rng.standard_normal(s)) for s in (x_shape, w_shape))
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{len(x_shape) - 2}d")
    found = []
    for kind, where in ((dtype, device), (rgrad.float64, "cpu")):
        leaves = [rgrad.tensor(a, device="cpu").to(kind).to(where).requires_grad_() for a in (x, w)]
        y = function(*leaves, **params)
        g = (
            rgrad.tensor(rounded(np.random.default_rng(2).standard_normal(tuple(y.shape))), device="cpu")
            .to(kind)
            .to(where)
        )
        found.append([t.detach().cpu().double().numpy() for t in (y, *rgrad.autograd.grad(y, leaves, g))])
    tol = {rgrad.float32: 1e-5, rgrad.float64: 1e-13, rgrad.bfloat16: 5e-3}[dtype]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * float(np.abs(b).max()))


@pytest.mark.parametrize("case", CASES[:6])
@pytest.mark.parametrize("transposed", [False, True])
def test_same_bits_for_every_number_of_threads(case: Shapes, transposed: bool) -> None:
    threads = rgrad.get_num_threads()
    made = []
    try:
        for n in (1, 2, 3):
            rgrad.set_num_threads(n)
            made.append(_gradients(case, transposed, rgrad.float32, "cpu"))
    finally:
        rgrad.set_num_threads(threads)
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0])
def test_special_values(value: float, device: str) -> None:
    x = rgrad.zeros(1, 1, 3, 3, device=device)
    x[0, 0, 1, 1] = value
    y = F.conv2d(x, rgrad.ones(1, 1, 2, 2, device=device), padding=1).cpu().numpy()[0, 0]
    kept = np.zeros((4, 4), bool)
    kept[1:3, 1:3] = True
    assert (y[~kept] == 0).all()
    np.testing.assert_array_equal(y[kept], np.float32(value) + np.zeros(4, np.float32))


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.conv1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), padding=2**62),
        lambda: F.conv1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), dilation=2**62),
        lambda: F.conv_transpose1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), stride=2**62),
        lambda: F.conv_transpose1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), stride=2**45),
        lambda: F.conv2d(rgrad.ones(1, 1, 4, 4), rgrad.ones(1, 1, 2, 2), padding=2**30),
        lambda: F.conv1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), groups=2**62),
    ],
)
def test_sizes_beyond_memory(call: Any) -> None:
    with pytest.raises((RuntimeError, MemoryError)):
        call()
    # A step that leads out of the input at once is none.
    assert F.conv1d(rgrad.ones(1, 1, 4), rgrad.ones(1, 1, 2), stride=2**62).tolist() == [[[2.0]]]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_batches_of_every_operand(dims: int, device: str) -> None:
    rng = np.random.default_rng(dims)
    draw = lambda *shape: rgrad.tensor(rng.standard_normal(shape), dtype=real(), device=device)  # noqa: E731
    conv, transposed = (getattr(F, f"conv{t}{dims}d") for t in ("", "_transpose"))
    x, w, b = draw(3, 2, 4, *[5] * dims), draw(3, 6, 2, *[2] * dims), draw(3, 6)
    wt, bt = draw(3, 4, 3, *[2] * dims), draw(3, 6)
    for function, weight, bias in ((conv, w, b), (transposed, wt, bt)):
        for flags in range(1, 8):
            axes = tuple(0 if flags >> k & 1 else None for k in range(3))
            args = [t if a == 0 else t[1] for t, a in zip((x, weight, bias), axes, strict=True)]

            def call(x: Any, w: Any, b: Any, function: Any = function) -> Any:
                return function(x, w, b, stride=2, padding=1, groups=2)

            found = rgrad.func.vmap(call, in_dims=axes)(*args)
            each = [call(*(t[i] if a == 0 else t for t, a in zip(args, axes, strict=True))) for i in range(3)]
            assert rgrad.allclose(found, rgrad.stack(each), rtol=tol(1e-10), atol=tol(1e-10)), axes


def test_channels_last(device: str) -> None:
    x = rgrad.randn(2, 3, 6, 5, device=device)
    last = x.contiguous(memory_format=rgrad.channels_last)
    assert last.stride() == (90, 1, 15, 3)
    assert last.is_contiguous(memory_format=rgrad.channels_last)
    assert rgrad.equal(last, x)
    layer = nn.Conv2d(3, 4, 3).to(device).to(memory_format=rgrad.channels_last)
    assert layer.weight.stride() == (27, 1, 9, 3)
    y = layer(x)
    assert y.is_contiguous(memory_format=rgrad.channels_last)
    assert rgrad.allclose(y, F.conv2d(x, layer.weight.contiguous(), layer.bias), atol=1e-6)
    assert (y + 1).is_contiguous(memory_format=rgrad.channels_last)
    # A batch hides the order in memory.
    tops = rgrad.func.vmap(lambda t: t.contiguous(memory_format=rgrad.channels_last) * 2)(rgrad.stack([x, x]))
    assert rgrad.equal(tops[1], x * 2)


@pytest.mark.wgpu
def test_one_dispatch_for_all_images_channels_and_groups() -> None:
    x = rgrad.ones(8, 6, 9, 9, device="wgpu")
    w = rgrad.ones(6, 2, 3, 3, device="wgpu")
    y = F.conv2d(x, w, groups=3)
    assert y.shape == (8, 6, 7, 7)
    assert (y == 18).all()


def test_state_and_pickle() -> None:
    import copy
    import pickle

    layer = nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular")
    x = rgrad.randn(1, 2, 5, 5)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert rgrad.equal(other(x), layer(x))
        assert list(other.state_dict()) == ["weight", "bias"]
    bound = 1 / np.sqrt(2 * 9)
    assert float(layer.weight.detach().abs().max()) <= bound
    assert pickle.loads(pickle.dumps(rgrad.channels_last)) is rgrad.channels_last
