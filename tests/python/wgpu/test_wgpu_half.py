"""float16 and bfloat16 on wgpu: two bytes an element, in whatever way the device can store them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor

pytestmark = pytest.mark.wgpu

HALVES = [rgrad.float16, rgrad.bfloat16]
PATTERNS = np.arange(1 << 16, dtype=np.uint16)


@pytest.fixture(params=["of the adapter", "without f16"])
def unit(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device with all features, then one whose shaders have no 16-bit floats."""
    before = rgrad.wgpu.current_device()
    if request.param == "without f16":
        adapter = before.adapter
        features = sorted({"shader-int64", "shader-f64"} & set(adapter.features))
        rgrad.wgpu.set_device(
            adapter.request_device_sync(required_features=features, required_limits=dict(adapter.limits))
        )
    yield rgrad.wgpu.current_device()
    rgrad.wgpu.synchronize()
    rgrad.wgpu.set_device(before)


def from_bits(bits: np.ndarray, dtype: Any) -> Tensor:
    x = rgrad.empty(bits.size, dtype=dtype)
    bits = np.ascontiguousarray(bits)
    ctypes.memmove(x.data_ptr(), bits.ctypes.data, bits.nbytes)
    return x


def bits_of(x: Tensor) -> np.ndarray:
    x = x.detach().cpu().contiguous()
    bits = np.empty(x.numel(), np.uint16)
    ctypes.memmove(bits.ctypes.data, x.data_ptr(), bits.nbytes)
    return bits


def same_bits(got: np.ndarray, want: np.ndarray, dtype: Any, *, exact: bool) -> None:
    """Nan may be another nan unless ``exact``."""
    infinity = 0x7C00 if dtype == rgrad.float16 else 0x7F80
    wrong = got != want
    if not exact:
        wrong &= ~(((got & 0x7FFF) > infinity) & ((want & 0x7FFF) > infinity))
    assert not wrong.any(), [(hex(w), hex(g)) for w, g in zip(want[wrong][:5], got[wrong][:5], strict=True)]


COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda x: x.clone(),
    "from an odd place": lambda x: x[1:].clone(),
    "every third": lambda x: x[2::3].clone(),
    "backwards": lambda x: x.flip(0),
    "transposed": lambda x: x.view(256, 256).t().contiguous().view(-1),
    "joined": lambda x: rgrad.cat([x[:7], x[7:40001], x[40001:]]),
    "at positions": lambda x: x[rgrad.arange(x.numel() - 1, -1, -1, device=x.device)],
    "gathered": lambda x: x.gather(0, rgrad.arange(x.numel() - 1, -1, -1, device=x.device)),
    "rolled": lambda x: x.roll(5),
    "written at positions": lambda x: rgrad.zeros_like(x).index_copy(0, rgrad.arange(x.numel(), device=x.device), x),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_bit_pattern_survives(dtype: Any, unit: Any) -> None:
    here = from_bits(PATTERNS, dtype)
    there = here.to("wgpu")
    same_bits(bits_of(there), PATTERNS, dtype, exact=True)
    # An f16 of a shader keeps a nan, not its payload.
    exact = dtype == rgrad.bfloat16 or "shader-f16" not in unit.features
    number = rgrad.arange(1 << 16)
    for name, copy in COPIES.items():
        want = PATTERNS[copy(number).numpy()]
        got = bits_of(copy(there))
        assert got.size == want.size, name
        same_bits(got, want, dtype, exact=exact)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_an_element_takes_two_bytes(dtype: Any, unit: Any) -> None:
    held = rgrad.wgpu.memory_allocated()
    x = rgrad.ones(1 << 20, dtype=dtype, device="wgpu")
    rgrad.wgpu.synchronize()
    assert rgrad.wgpu.memory_allocated() - held == 2 << 20
    assert x.untyped_storage().nbytes() == 2 << 20
    y = (x * 3 + 1).exp()
    rgrad.wgpu.synchronize()
    assert rgrad.wgpu.memory_allocated() - held == 4 << 20
    assert y.element_size() == 2


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_odd_sizes_and_places(dtype: Any, unit: Any) -> None:
    for n in range(9):
        want = rgrad.arange(float(n)).to(dtype)
        x = want.to("wgpu")
        for start in range(n + 1):
            for end in range(start, n + 1):
                assert x[start:end].cpu().tolist() == want[start:end].tolist()
        assert (x + 1).cpu().tolist() == (want + 1).tolist()
        assert x.sum().item() == want.sum().item()
    for n in (255, 257, 4095, 100_001):
        want = (rgrad.arange(float(n)) % 251).to(dtype)
        assert (want.to("wgpu")[1:] * 0.5).cpu().tolist() == (want[1:] * 0.5).tolist()


WRITES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda x: x.fill_(7),
    "copy": lambda x: x.copy_(rgrad.arange(1.0, x.numel() + 1, device=x.device)),
    "copy of the same dtype": lambda x: x.copy_(rgrad.arange(1, x.numel() + 1, device=x.device).to(x.dtype)),
    "add": lambda x: x.add_(2),
    "number at a mask": lambda x: x.masked_fill_(x > -100, 3),
    "at positions": lambda x: x.index_fill_(0, rgrad.arange(x.numel(), device=x.device), 5),
    "sum at positions": lambda x: x.index_add_(
        0, rgrad.zeros(3, dtype=rgrad.int64, device=x.device), rgrad.ones(3, dtype=x.dtype, device=x.device)
    ),
    "scattered": lambda x: x.scatter_(0, rgrad.zeros(1, dtype=rgrad.int64, device=x.device), 9),
    "running sum": lambda x: x.cumsum_(0),
    "activation": lambda x: x.relu_(),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_writes_leave_their_neighbours_alone(dtype: Any, unit: Any) -> None:
    for name, write in WRITES.items():
        for start in (0, 1, 2, 3):
            for n in (1, 2, 3, 301):
                here = rgrad.full((n + 6,), -1.0, dtype=dtype)
                there = here.to("wgpu")
                for x in (here, there):
                    write(x[start : start + n])
                assert there.cpu().tolist() == here.tolist(), (name, start, n)
    rows = rgrad.zeros(7, 5, dtype=dtype, device="wgpu")
    rows[:, 1] = 1
    rows[3, 2:] += 4
    assert rows.sum(0).cpu().tolist() == [0, 7, 4, 4, 4]
    assert rows[3].cpu().tolist() == [0, 1, 4, 4, 4]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_conversions_round_as_on_the_cpu(dtype: Any, unit: Any) -> None:
    rng = np.random.default_rng(0)
    numbers = from_bits(PATTERNS, dtype).float().numpy()
    finite = np.sort(numbers[np.isfinite(numbers)]).astype(np.float64)
    between = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(between, np.float32(to)) for to in (-math.inf, math.inf)]
    wide = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([65519.99, 65520, -65520, 3.4e38, math.inf, -math.inf, math.nan, 0.0, -0.0], np.float32)
    values = np.concatenate([between, *beside, wide, special])
    values = values[(np.abs(values) >= np.finfo(np.float32).tiny) | (values == 0) | np.isnan(values)]
    x = rgrad.from_numpy(values)
    want, got = bits_of(x.to(dtype)), x.to("wgpu").to(dtype)
    same_bits(bits_of(got), want, dtype, exact=False)
    # Not converted by a step of its own, but where the result of a kernel is stored.
    stored = rgrad.ones(1, 1, device="wgpu").to(dtype).expand(1, 1)
    for value in (65504.0, 1.0, 1 + 2.0**-8, 2.0**-20, 3.0):
        y = (stored * value) @ (stored * 1.5)
        same_bits(bits_of(y), bits_of(y.float().to(dtype)), dtype, exact=False)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_subnormals_and_the_ends_of_the_range(dtype: Any, unit: Any) -> None:
    info = rgrad.finfo(dtype)
    if dtype == rgrad.float16:
        small = from_bits(np.arange(0x400, dtype=np.uint16), dtype)
        same_bits(bits_of(small.to("wgpu") * -1), bits_of(small * -1), dtype, exact=True)
        same_bits(bits_of(small.to("wgpu").float().to(dtype)), bits_of(small), dtype, exact=True)
    x = rgrad.tensor([info.max, info.min, info.tiny], dtype=dtype).to("wgpu")
    assert (x * (1 + info.eps)).cpu().tolist()[:2] == [math.inf, -math.inf]
    assert (x * 1).cpu().tolist() == [info.max, info.min, info.tiny]


def noise(*shape: int, dtype: Any, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    return rgrad.from_numpy(values).to(dtype)


F = rgrad.nn.functional

# Functions of 24x33 numbers.
WORK: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: x @ x.t(),
    "conv": lambda x: F.conv2d(x[:, :32].reshape(3, 4, 8, 8), x[:18, :32].reshape(16, 4, 3, 3)),
    "layer norm": lambda x: F.layer_norm(x, (33,)),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "softmax": lambda x: x.softmax(1),
    "log_softmax of columns": lambda x: x.log_softmax(0),
    "attention": lambda x: F.scaled_dot_product_attention(x.view(2, 12, 33), x.view(2, 12, 33), x.view(2, 12, 33)),
    "max_pool": lambda x: F.max_pool2d(x[:, :32].reshape(1, 12, 8, 8), 3, 2),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1),
    "variance": lambda x: x.var(1),
    "running sum": lambda x: x.cumsum(1),
    "running maximum": lambda x: x.cummax(0)[0],
    "sort": lambda x: x.sort(1)[0],
    "topk": lambda x: x.topk(3, 0)[0],
    "where": lambda x: rgrad.where(x > 0, x, x * 0.1),
    "sum at positions": lambda x: rgrad.zeros_like(x).index_add(0, rgrad.arange(24, device=x.device) % 5, x),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "triangle": lambda x: x.tril(1),
    "nll": lambda x: F.cross_entropy(x, rgrad.arange(24, device=x.device) % 7),
    "many sums at positions": lambda x: rgrad.zeros(9, device=x.device, dtype=x.dtype).scatter_add(
        0, rgrad.arange(24 * 33, device=x.device) % 9, x.reshape(-1)
    ),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", WORK)
def test_kernels_round_once(name: str, dtype: Any, unit: Any) -> None:
    f = WORK[name]
    x = noise(24, 33, dtype=dtype).to("wgpu")
    want = f(x.float()).to(dtype)
    got = f(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.cpu().float().numpy(), want.cpu().float().numpy())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_states_that_steps_hand_on_are_rounded_at_the_end(dtype: Any, unit: Any) -> None:
    rgrad.manual_seed(0)
    for layer in (rgrad.nn.LSTM(5, 7), rgrad.nn.GRU(5, 7), rgrad.nn.RNN(5, 7)):
        half = layer.to(dtype).to("wgpu")
        x = noise(11, 3, 5, dtype=dtype).to("wgpu")
        got = half(x)[0]
        wide = half.float()(x.float())[0]
        eps = rgrad.finfo(dtype).eps
        np.testing.assert_allclose(got.detach().cpu().float().numpy(), wide.detach().cpu().numpy(), atol=4 * eps)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_of_a_network(dtype: Any, unit: Any) -> None:
    rgrad.manual_seed(0)
    model = rgrad.nn.Sequential(
        rgrad.nn.Conv2d(3, 5, 3), rgrad.nn.BatchNorm2d(5), rgrad.nn.GELU(), rgrad.nn.Flatten(), rgrad.nn.Linear(125, 3)
    )
    x = noise(9, 3, 7, 7, dtype=dtype)
    gradients = []
    for place in ("cpu", "wgpu"):
        model = model.to(dtype).to(place)
        loss = F.cross_entropy(model(x.to(place)), rgrad.arange(9, device=place) % 3)
        made = rgrad.autograd.grad(loss, list(model.parameters()))
        gradients.append([g.cpu().float().numpy() for g in made])
    for here, there in zip(*gradients, strict=True):
        np.testing.assert_allclose(there, here, atol=float(30 * rgrad.finfo(dtype).eps * (np.abs(here).max() + 1e-2)))
