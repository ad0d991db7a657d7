"""Pending results on the device: one dispatch for a program, the bits of the unfused rows, pipelines made once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rgrad
import rotation
from rgrad import Tensor, _core, wgpu

pytestmark = pytest.mark.wgpu
LEAST = 2


@pytest.fixture(autouse=True)
def _small_programs() -> Iterator[None]:
    """Results stay pending from two elements on."""
    before = _core._set_fusion_least(LEAST)
    try:
        with rgrad.fusion(True):
            yield
    finally:
        wgpu.synchronize()
        _core._set_fusion_least(before)


def vector(*shape: int, seed: int = 0, dtype: Any = rgrad.float32) -> Tensor:
    x = np.random.default_rng(seed).standard_normal(shape or (300,)) * 3
    return rgrad.tensor(x.astype(np.float32)).to(dtype).to("wgpu")


def programs() -> int:
    return rgrad.fusion.counts().programs


def same_bits(got: Any, want: Any) -> None:
    a, b = got.detach().cpu(), want.detach().cpu()
    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    assert a.numpy().tobytes() == b.numpy().tobytes()


def fused_and_not(f: Callable[..., Any], *make: Callable[[], Tensor]) -> None:
    """`f` on fresh tensors, with and without fusion."""
    got = f(*(m() for m in make))
    with rgrad.fusion(False):
        want = f(*(m() for m in make))
    got, want = (t if isinstance(t, tuple) else (t,) for t in (got, want))
    for g, w in zip(got, want, strict=True):
        same_bits(g, w)


def test_a_chain_is_one_program_and_one_dispatch() -> None:
    x, y = vector(seed=1), vector(seed=2)
    wgpu.synchronize()
    before = rgrad.fusion.counts()
    z = (x * y + x).tanh() * y
    assert programs() == before.programs
    dispatched = _core._wgpu_counts()[2]
    values = z.cpu()
    assert _core._wgpu_counts()[2] == dispatched + 1
    after = rgrad.fusion.counts()
    assert (after.programs - before.programs, after.steps - before.steps) == (1, 4)
    assert after.bytes_not_written - before.bytes_not_written == 3 * 300 * 4
    with rgrad.fusion(False):
        same_bits(values, (x * y + x).tanh() * y)


def test_synchronize_computes_what_somebody_holds() -> None:
    x = vector()
    y = x.exp()
    before = programs()
    wgpu.synchronize()
    assert programs() == before + 1
    z = y.sin() + y.cos()
    del y
    wgpu.synchronize()
    assert programs() == before + 2
    assert z.cpu().isfinite().all().item()


def test_what_is_held_is_written_in_the_same_pass() -> None:
    x = vector()
    middle = x.exp()
    end = middle.sin() + 1
    before = programs()
    end[0].item()
    middle[0].item()
    assert programs() == before + 1
    with rgrad.fusion(False):
        same_bits(middle, x.exp())


LAYOUTS: dict[str, Callable[[Tensor], Any]] = {
    "broadcast": lambda x: (x * x[0] + x[:, :1]).relu() * 2,
    "transposed": lambda x: (x.t() * 2).exp() + x.t(),
    "transposed beside": lambda x: (x[:5, :5] + x[:5, :5].t()).tanh(),
    "strided": lambda x: (x[::2, 1::2] * 3 - x[1::2, ::2][:, :3]).abs(),
    "flat": lambda x: ((x + 1).view(-1) * x.reshape(-1)).view(6, 7),
    "narrow of pending": lambda x: (x * 2)[2:5] + x[:3],
    "single element": lambda x: (x - x[2, 3]) / x[1, 1].abs(),
    "numbers of the host": lambda x: x * rgrad.tensor(2.5) + 1,
    "comparisons": lambda x: rgrad.where((x > 0) & (x < 2), x * x, -x),
    "casts": lambda x: ((x * 10).to(rgrad.int64) % 3 + x.to(rgrad.int32)).to(rgrad.float32) * x.bool(),
    "narrow": lambda x: ((x * 90).to(rgrad.int8) * 3 - 7).to(rgrad.int16) * (x * 300).to(rgrad.int16) // 3,
    "bytes": lambda x: (x.abs() * 9).to(rgrad.uint8) + (x > 0).to(rgrad.uint8),
    "int64": lambda x: ((x * 1e9).to(rgrad.int64) * 7 - 3).abs(),
    "one value twice": lambda x: x * x + x.exp() * x.exp(),
    "nan and infinity": lambda x: ((x / 0).exp() - (x * 0 / 0)).nan_to_num() + (x / 0).isinf(),
    "parameters": lambda x: rgrad.nn.functional.leaky_relu(x, 0.3).clamp(-1, 2).add(x, alpha=0.25) ** 3,
    "softmax of pending": lambda x: (x * 2 + 1).softmax(1),
    "matrix product of pending": lambda x: (x * 2) @ (x.t() + 1),
    "reductions of pending": lambda x: ((x * 2).sum(0), (x + 1).amax(1), (x.exp() * x).mean()),
    "indexing of pending": lambda x: (x * 2)[rgrad.tensor([3, 0], device="wgpu")],
    "cat of pending": lambda x: rgrad.cat([x * 2, x + 1, x]),
    "many inputs": lambda x: sum((x[i % 6] * (i + 1) for i in range(45)), x[0]),
    "many results": lambda x: tuple(y for y in chain(x, 40)),
    "to the host and back": lambda x: (x * 2).cpu().to("wgpu") + x,
}


def chain(x: Tensor, n: int) -> list[Tensor]:
    held = [x * 1.5]
    for k in range(n):
        held.append(held[-1] * 0.9 + held[k // 2])
    return held


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_same_bits(name: str) -> None:
    fused_and_not(LAYOUTS[name], lambda: vector(6, 7))


def writes(x: Tensor, f: Callable[[Tensor], Any]) -> tuple[Tensor, Tensor]:
    """A result that waits, what is written to its input, and both afterwards."""
    x = x * 1.0
    waiting = x * 2 + 1
    f(x)
    return waiting, x


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(x),
        lambda x: x.fill_(3),
        lambda x: x.zero_(),
        lambda x: x.copy_(x.flip(0)),
        lambda x: x[2:4].mul_(0.5),
        lambda x: x.t().add_(rgrad.arange(6.0, device="wgpu")),
        lambda x: x.__setitem__(rgrad.tensor([1, 2], device="wgpu"), 7.0),
        lambda x: x.index_add_(0, rgrad.tensor([1, 1], device="wgpu"), x[:2] * 2),
        lambda x: x.scatter_(0, rgrad.tensor([[1, 2]], device="wgpu"), 5.0),
        lambda x: x.masked_fill_(x > 0, 1.0),
        lambda x: x.uniform_(generator=rgrad.Generator().manual_seed(3)),
        lambda x: x.tril_(),
        lambda x: rgrad.mul(x, 3, out=x),
        lambda x: x.addcmul_(x * 2, x + 1, value=0.5),
    ],
)
def test_who_waits_sees_what_was_there_before_a_write(f: Callable[[Tensor], Any]) -> None:
    fused_and_not(lambda x: writes(x, f), lambda: vector(6, 6))


def test_in_place_steps_are_one_program() -> None:
    def step(p: Tensor, g: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        m.mul_(0.9).add_(g)
        p.add_(m, alpha=-0.1)
        return p, m

    fused_and_not(step, vector, lambda: vector(seed=1), lambda: vector(seed=2))
    p, g, m = vector(), vector(seed=1), vector(seed=2)
    wgpu.synchronize()
    before = programs()
    step(p, g, m)
    p[0].item()
    assert programs() == before + 1


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_have_the_same_bits(order: int) -> None:
    def f(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        x, y = x.requires_grad_(), y.requires_grad_()
        z = ((x * y + x).tanh() * y).sum()
        grads = rgrad.autograd.grad(z, (x, y), create_graph=order == 2)
        if order == 2:
            grads = rgrad.autograd.grad((grads[0] * grads[1]).sum(), (x, y))
        return tuple(grads)

    fused_and_not(f, vector, lambda: vector(seed=1))


def test_a_number_minus_itself_is_nan_where_it_has_to_be() -> None:
    x = rgrad.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0]).to("wgpu")
    y = x * 1
    got = (y - y).cpu().tolist()
    assert got[0] == got[4] == 0
    assert all(v != v for v in got[1:4])


def test_random_programs_have_the_same_bits() -> None:
    def run(seed: int) -> list[Tensor]:
        rng = np.random.default_rng(seed)
        pool = [
            vector(4, 6, seed=seed),
            vector(4, 6, seed=seed + 1),
            vector(4, 6, seed=seed + 2).t().contiguous().t(),
            vector(6, seed=seed),
        ]
        for _ in range(25):
            a, b = (pool[rng.integers(len(pool))] for _ in range(2))
            match rng.integers(9):
                case 0:
                    made = a + b
                case 1:
                    made = a * b
                case 2:
                    made = (a - b).tanh()
                case 3:
                    made = rgrad.where(a > b, a, b * 0.5)
                case 4:
                    made = (a.sigmoid() * 5).to(rgrad.int32).to(rgrad.float32)
                case 5:
                    made = rgrad.maximum(a, b).clamp(-2, 2)
                case 6 if a.shape == (4, 6):
                    a.mul_(0.5).add_(b)
                    continue
                case 7 if a.shape == (4, 6):
                    a[1:3] += b[..., :6] if b.dim() == 1 else b[1:3]
                    continue
                case _:
                    made = a.sin()
            pool.append(made)
            if rng.random() < 0.3:
                pool.pop(int(rng.integers(3, len(pool))))
        return pool

    for seed in rotation.some(range(60), 20, "random programs on wgpu"):
        got = run(seed)
        with rgrad.fusion(False):
            want = run(seed)
        for g, w in zip(got, want, strict=True):
            same_bits(g, w)


def test_a_training_loop_compiles_nothing_after_its_first_steps() -> None:
    rgrad.manual_seed(0)
    model = rgrad.nn.Sequential(rgrad.nn.Linear(8, 16), rgrad.nn.Tanh(), rgrad.nn.Linear(16, 3)).to("wgpu")
    optimizer = rgrad.optim.Adam(model.parameters(), lr=0.01)
    x, y = vector(32, 8), (vector(32, seed=1).abs() % 3).to(rgrad.int64)

    def step(rows: int) -> None:
        optimizer.zero_grad()
        rgrad.nn.functional.cross_entropy(model(x[:rows]), y[:rows]).backward()
        optimizer.step()

    for _ in range(3):
        step(32)
    wgpu.synchronize()
    made = _core._wgpu_counts()[1]
    for k in range(5):
        step(32 - k)
    wgpu.synchronize()
    assert _core._wgpu_counts()[1] == made


def test_no_memory_for_a_program_names_its_lines_and_leaves_it_waiting() -> None:
    x = vector()
    y = (x * 2).exp()
    _core._wgpu_fail_in(0)
    with pytest.raises(MemoryError, match="cannot allocate") as caught:
        y.cpu()
    notes = "".join(caught.value.__notes__)
    assert "exp" in notes
    assert "test_wgpu_fusion.py" in notes
    with rgrad.fusion(False):
        same_bits(y, (x * 2).exp())


@pytest.mark.parametrize(("writes", "reads"), [(16, 30), (31, 31), (3, 47)])
def test_more_results_than_a_shader_can_bind(writes: int, reads: int) -> None:
    def f(p: Tensor, q: Tensor) -> tuple[Tensor, ...]:
        held = []
        for _ in range(reads):
            q = q * 0.9
            held.append(q)
        for _ in range(writes):
            p.mul_(0.9)
        return (p.add_(q), *held)

    fused_and_not(f, vector, lambda: vector(seed=1))


def test_results_beyond_the_binding_limit_are_refused_at_once() -> None:
    limit = min(wgpu.current_device().limits[k] for k in ("max-storage-buffer-binding-size", "max-buffer-size"))
    row = rgrad.ones(1 << 16, device="wgpu")
    wide = row.expand(limit // 4 // (1 << 16) + 1, 1 << 16)
    if wide.numel() >= 2**31:
        pytest.skip("the adapter binds more than a tensor can have")
    with pytest.raises(MemoryError, match=str(limit)):
        wide + 1
    wgpu.synchronize()


def test_waiting_for_the_device_writes_only_what_is_held() -> None:
    x = vector()
    wgpu.synchronize()
    before = rgrad.fusion.counts().bytes_not_written
    y = (x * 2 + 1).tanh()
    wgpu.synchronize()
    assert rgrad.fusion.counts().bytes_not_written - before == 2 * 300 * 4
    assert y.isfinite().all().item()


def test_errors_come_at_once() -> None:
    x = vector(6, 7) * 2
    with pytest.raises(RuntimeError, match="must match"):
        x + vector(5)
    with pytest.raises(RuntimeError, match="same device"):
        x + rgrad.ones(6, 7)


def looked_at_by_threads(tensors: tuple[Tensor, ...]) -> list[Any]:
    seen: list[Any] = []
    threads = [threading.Thread(target=lambda t=t: seen.append(t.cpu().numpy())) for t in tensors]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return seen


def test_several_threads_look_at_one_result() -> None:
    for k in range(5):
        x = vector(seed=k)
        y = (x * 2).tanh()
        z = y + 1
        assert len(looked_at_by_threads((y, z, y, z))) == 4
        with rgrad.fusion(False):
            same_bits(z, (x * 2).tanh() + 1)
