"""What backward needs in memory: gradients are written over, saved inputs forgotten early, and neither is seen."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import memory, nn
from rgrad.autograd import Function
from rgrad.nn import functional as F

# Functions whose results depend on a flag.
pooled: Any = F

N, C, S = 8, 16, 64
SHAPE = (N, C, S, S)
BYTES = 4 * N * C * S * S

NORMS: dict[str, Callable[[], Any]] = {
    "batch": lambda: nn.BatchNorm2d(C),
    "batch_eval": lambda: nn.BatchNorm2d(C).eval(),
    "batch_plain": lambda: nn.BatchNorm2d(C, affine=False),
    "batch_columns": lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(C * S * S), nn.Unflatten(1, SHAPE[1:])),
    "layer": lambda: nn.LayerNorm([S, S]),
    "group": lambda: nn.GroupNorm(4, C),
    "instance": lambda: nn.InstanceNorm2d(C, affine=True),
}


def values(seed: int, shape: tuple[int, ...] = SHAPE) -> Any:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def most(run: Callable[[], Any]) -> int:
    """The bytes that a call allocates at most, beyond what was alive."""
    gc.collect()
    memory.reset_peak("cpu")
    before = memory.allocated("cpu")
    run()
    return memory.peak("cpu") - before


@pytest.fixture(params=sorted(NORMS))
def norm(request: pytest.FixtureRequest) -> Any:
    return NORMS[request.param]()


def reference(norm: Any, x: Any, g: Any) -> list[Any]:
    """Gradients of x and the parameters where the caller holds the gradient, which therefore stays."""
    x = x.detach().requires_grad_()
    kept = g.clone()
    grads = rgrad.autograd.grad(norm(x), (x, *norm.parameters()), g)
    assert (g == kept).all()
    return [t.numpy().copy() for t in grads]


def same(got: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a.numpy() if isinstance(a, rgrad.Tensor) else a, b)


def test_the_same_bits_over_the_gradient(norm: Any) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    x.requires_grad_()
    # The gradient that mul makes has no other holder.
    (norm(x) * g).sum().backward()
    same([x.grad, *(p.grad for p in norm.parameters())], wanted)


@pytest.mark.parametrize("name", ["batch", "layer", "group"])
def test_a_chain_of_norms_needs_one_gradient(name: str) -> None:
    layers = nn.Sequential(*(NORMS[name]() for _ in range(4)))
    x, g = values(0).requires_grad_(), values(1)

    def backward() -> None:
        y.backward(g)

    y = layers(x)
    # The caller's gradient stays, so the first norm makes a new array, and the others write over it.
    assert most(backward) < 1.5 * BYTES
    assert x.grad is not None


def test_norms_and_pointwise_operations_need_few_gradients() -> None:
    layers = nn.Sequential(*(m for _ in range(4) for m in (nn.BatchNorm2d(C), nn.ReLU())))
    x, g = values(0).requires_grad_(), values(1)
    y = layers(x)
    assert most(lambda: y.backward(g)) < 1.5 * BYTES


def test_who_holds_a_gradient_keeps_it(norm: Any) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    seen: list[Any] = []
    x.requires_grad_()
    y = norm(x)
    y.retain_grad()
    y.register_hook(seen.append)
    y.grad_fn.register_hook(lambda _, given: seen.append(given[0]))
    y.grad_fn.register_prehook(lambda given: seen.append(given[0]))
    (y * g).sum().backward()
    assert len(seen) == 3
    for t in (*seen, y.grad):
        assert (t == g).all()
    assert (x.grad.numpy() == wanted[0]).all()


def test_a_hook_that_replaces_the_gradient(norm: Any) -> None:
    x, g, other = values(0), values(1), values(2)
    wanted = reference(norm, x, other)
    kept = other.clone()
    x.requires_grad_()
    y = norm(x)
    y.register_hook(lambda _: other)
    (y * g).sum().backward()
    assert (other == kept).all()
    assert (x.grad.numpy() == wanted[0]).all()


def test_a_weak_reference_finds_no_gradient_that_was_written_over(norm: Any) -> None:
    x, g = values(0).requires_grad_(), values(1)
    found: list[Any] = []
    y = norm(x)

    def hook(grad: Any) -> None:
        grad.label = "mine"
        found.append(weakref.ref(grad))

    y.register_hook(hook)
    (y * g).sum().backward()
    left = found[0]()
    assert left is None or (left == g).all()


@pytest.mark.parametrize("twice", [lambda y: y + y, lambda y: rgrad.stack([y, y]).sum(0), lambda y: y - (-y)])
def test_edges_that_share_a_gradient(norm: Any, twice: Callable[[Any], Any]) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g + g)
    x.requires_grad_()
    twice(norm(x)).backward(g)
    assert (x.grad.numpy() == wanted[0]).all()


def test_two_norms_share_a_gradient(norm: Any) -> None:
    # add passes one array to both of its edges.
    x, other, g = values(0), values(2), values(1)
    first, second = reference(norm, x, g), reference(norm, other, g)
    x.requires_grad_()
    other.requires_grad_()
    a, b, c = norm(x), norm(other), values(3).requires_grad_()
    ((a + b + c) * g).sum().backward()
    assert (c.grad == g).all()
    assert (x.grad.numpy() == first[0]).all()
    assert (other.grad.numpy() == second[0]).all()


def test_a_gradient_that_views_share(norm: Any) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    x.requires_grad_()
    left, right = values(2).requires_grad_(), norm(x)
    both = (left.flatten() + right.flatten()).view(SHAPE)
    (both * g).sum().backward()
    assert (left.grad == g).all()
    assert (x.grad.numpy() == wanted[0]).all()


def test_an_expanded_gradient(norm: Any) -> None:
    x = values(0)
    wanted = reference(norm, x, rgrad.ones(SHAPE))
    x.requires_grad_()
    left = values(2).requires_grad_()
    (norm(x) + left).sum().backward()
    assert (x.grad.numpy() == wanted[0]).all()
    assert (left.grad == 1).all()


def test_a_graph_that_is_kept_gives_the_same_twice(norm: Any) -> None:
    x, g = values(0).requires_grad_(), values(1)
    loss = (norm(x) * g).sum()
    first = rgrad.autograd.grad(loss, x, retain_graph=True)[0].clone()
    second = rgrad.autograd.grad(loss, x, retain_graph=True)[0]
    third = rgrad.autograd.grad(loss, x)[0]
    assert (first == second).all()
    assert (first == third).all()


def test_the_gradient_of_a_gradient() -> None:
    norm = nn.LayerNorm(8).double()
    x = rgrad.tensor(np.random.default_rng(0).standard_normal((4, 8))).requires_grad_()
    assert rgrad.autograd.gradgradcheck(lambda t: norm(t) * t, (x,))


def test_create_graph_keeps_the_gradient(norm: Any) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    x.requires_grad_()
    y = norm(x)
    middle = y * 1
    dx, dy = rgrad.autograd.grad((middle * g).sum(), (x, y), create_graph=True)
    assert (dy == g).all()
    np.testing.assert_allclose(dx.detach().numpy(), wanted[0], rtol=1e-3, atol=1e-5)


def test_captured_gradients_stay(norm: Any) -> None:
    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    x.requires_grad_()
    y = norm(x)
    dy, dx = rgrad.autograd.grad((y * g).sum(), (y, x))
    assert (dy == g).all()
    assert (dx.numpy() == wanted[0]).all()


def test_functions_that_keep_or_pass_on_a_gradient(norm: Any) -> None:
    kept: list[Any] = []

    class Keep(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            ctx.mine = grad
            kept.append(ctx)
            return grad

    x, g = values(0), values(1)
    wanted = reference(norm, x, g)
    x.requires_grad_()
    (Keep.apply(norm(x)) * g).sum().backward()
    assert (kept[0].mine == g).all()
    assert (x.grad.numpy() == wanted[0]).all()


def test_memory_of_numpy_is_not_written() -> None:
    given = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
    before = given.copy()

    class Constant(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return rgrad.from_numpy(given)

    x = values(0).requires_grad_()
    Constant.apply(nn.BatchNorm2d(C)(x)).sum().backward()
    assert (given == before).all()


def test_an_address_that_is_known_outside_is_not_written() -> None:
    arrays: list[Any] = []
    x, g = values(0).requires_grad_(), values(1)
    y = nn.BatchNorm2d(C)(x)
    y.register_hook(lambda grad: arrays.append(grad.numpy()))
    (y * g).sum().backward()
    np.testing.assert_array_equal(arrays[0], g.numpy())


def test_grad_that_was_moved_in_stays() -> None:
    # The gradient of the leaf is the array that the norm made. Later passes do not write over it.
    x, g = values(0).requires_grad_(), values(1)
    norm = nn.LayerNorm([S, S])
    (norm(x) * g).sum().backward()
    first = x.grad
    kept = first.clone()
    (norm(norm(values(5).requires_grad_())) * g).sum().backward()
    assert x.grad is first
    assert (first == kept).all()
    bias = values(3).requires_grad_()
    ((norm(x) + bias) * g).sum().backward()
    assert (bias.grad == g).all()


def test_passes_of_several_threads() -> None:
    norm, g = nn.GroupNorm(4, C), values(1)
    data = [values(i) for i in range(4)]
    wanted = [reference(norm, x, g)[0] for x in data]
    got: list[Any] = [None] * 4

    def work(i: int) -> None:
        x = data[i].detach().requires_grad_()
        (norm(x) * g).sum().backward(inputs=[x])
        got[i] = x.grad.numpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(got, wanted)


def test_transforms(norm: Any) -> None:
    x, g = values(0), values(1)
    if any(m.training and hasattr(m, "running_mean") for m in norm.modules()):
        norm = norm.eval()
    wanted = reference(norm, x, g)
    _y, pull = rgrad.func.vjp(norm, x)
    kept = g.clone()
    first, second = pull(g)[0].clone(), pull(g)[0]
    assert (g == kept).all()
    assert (first == second).all()
    np.testing.assert_allclose(first.detach().numpy(), wanted[0], rtol=1e-3, atol=1e-5)
    many = rgrad.func.vmap(lambda v: pull(v)[0])(rgrad.stack([g, 2 * g]))
    np.testing.assert_allclose(many[1].detach().numpy(), 2 * many[0].detach().numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [rgrad.float64, rgrad.bfloat16, rgrad.float16])
def test_other_dtypes(norm: Any, dtype: Any) -> None:
    norm = norm.to(dtype)
    x, g = values(0).to(dtype), values(1).to(dtype)
    x.requires_grad_()
    (held,) = rgrad.autograd.grad(norm(x), x, g)
    (over,) = rgrad.autograd.grad((norm(x) * g).sum(), x)
    assert (held == over).all()


# ---- saved inputs that are forgotten before the gradient of the input is made --------------------


def linear() -> tuple[Any, Any]:
    return nn.Linear(1024, 1024, bias=False), values(0, (1024, 1024))


def test_a_product_forgets_its_first_factor_early() -> None:
    # So large that the 2.5 MB in which a product packs its operands count little.
    n = 2048
    layer, x = nn.Linear(n, n, bias=False), values(0, (n, n))
    hidden = x.requires_grad_() * 1
    y = layer(hidden)
    del hidden
    g = rgrad.ones(n, n)
    # The weight's gradient and that of the activations, whose own memory is free by then.
    assert most(lambda: y.backward(g)) < 1.5 * 4 * n * n


def test_a_kept_graph_forgets_nothing() -> None:
    layer, x = linear()
    y = layer(x.requires_grad_() * 1)
    first = rgrad.autograd.grad(y.sum(), (x, layer.weight), retain_graph=True)
    node = y.grad_fn
    assert node._saved_self is not None
    second = rgrad.autograd.grad(y.sum(), (x, layer.weight))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    with pytest.raises(RuntimeError, match="second time"):
        rgrad.autograd.grad(y.sum(), x)
    with pytest.raises(RuntimeError, match="freed"):
        _ = node._saved_self


def test_a_post_hook_still_reads_what_is_saved() -> None:
    layer, x = linear()
    y = layer(x.requires_grad_() * 1)
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda *_: seen.append(y.grad_fn._saved_self.sum().item()))
    y.sum().backward()
    assert seen == [x.detach().sum().item()]


@pytest.mark.parametrize("at", range(4))
def test_a_run_that_fails_half_way_counts_as_one(at: int) -> None:
    layer, x = linear()
    y = layer(x.requires_grad_() * 1)
    g = rgrad.ones(1024, 1024)
    rgrad._core._fail_allocation_in(at)
    try:
        y.backward(g)
        return
    except rgrad.OutOfMemoryError:
        pass
    finally:
        rgrad._core._fail_allocation_in(-1)
    try:
        kept = y.grad_fn._saved_self
    except RuntimeError:
        with pytest.raises(RuntimeError, match="second time"):
            y.backward(g)
        return
    assert kept is not None
    y.backward(g)
    assert layer.weight.grad is not None


# ---- pooling -------------------------------------------------------------------------------------


POOLS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (3, 5), "stride": (2, 1), "padding": (1, 2)},
    {"kernel_size": 3, "dilation": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 16, "stride": 8},
    {"kernel_size": 17, "stride": 8},
]


@pytest.mark.parametrize("arguments", POOLS, ids=str)
def test_places_in_windows_give_what_positions_give(arguments: dict[str, Any]) -> None:
    # Equal elements, infinities and nan, so that the choice among several matters.
    data = np.round(np.random.default_rng(0).standard_normal((2, 3, 33, 41)) * 2)
    data[0, 0, 3:9, 4:11] = np.nan
    data[1, 1, :9, :11] = -np.inf
    data[1, 2, 20:, 20:] = np.inf
    x = rgrad.tensor(data).requires_grad_()
    y, positions = pooled.max_pool2d(x, return_indices=True, **arguments)
    alone = pooled.max_pool2d(x, **arguments)
    np.testing.assert_array_equal(y.detach().numpy(), alone.detach().numpy())
    shown = alone.grad_fn._saved_result1
    assert shown.dtype == rgrad.int64
    assert (shown == positions).all()
    g = values(1, tuple(y.shape)).double()
    np.testing.assert_array_equal(*(rgrad.autograd.grad(t, x, g)[0].numpy() for t in (y, alone)))
    # Twice, and along a tangent.
    v = values(2, tuple(x.shape)).double()
    w = g.clone().requires_grad_()
    for t in (pooled.max_pool2d(x, return_indices=True, **arguments)[0], pooled.max_pool2d(x, **arguments)):
        (dx,) = rgrad.autograd.grad(t, x, w, create_graph=True)
        (dw,) = rgrad.autograd.grad(dx, w, v)
        picked = v.flatten(2).gather(2, positions.flatten(2)).view_as(positions)
        np.testing.assert_array_equal(dw.numpy(), picked.numpy())
    _, along = rgrad.func.jvp(lambda t: pooled.max_pool2d(t, **arguments), (x.detach(),), (v,))
    np.testing.assert_array_equal(along.numpy(), picked.numpy())


def test_places_of_other_ranks_and_formats() -> None:
    for pool, shape in [
        (pooled.max_pool1d, (2, 3, 31)),
        (pooled.max_pool3d, (2, 2, 9, 8, 7)),
        (pooled.max_pool2d, (3, 9, 8)),
    ]:
        x = values(0, shape).requires_grad_()
        first, second = pool(x, 3, 2, 1), pool(x, 3, 2, 1, return_indices=True)[0]
        a, b = (rgrad.autograd.grad(t.sin().sum(), x)[0] for t in (first, second))
        assert (a == b).all()
    x = values(0, (2, 8, 9, 9)).contiguous(memory_format=rgrad.channels_last).requires_grad_()
    a, b = (
        rgrad.autograd.grad(t.sin().sum(), x)[0]
        for t in (pooled.max_pool2d(x, 3), pooled.max_pool2d(x, 3, return_indices=True)[0])
    )
    assert (a == b).all()


def test_places_under_vmap() -> None:
    x, g = values(0, (3, 2, 4, 9, 9)), values(1, (3, 2, 4, 3, 3))
    one = rgrad.func.grad(lambda t, v: (pooled.max_pool2d(t, 3) * v).sum())
    together = rgrad.func.vmap(one)(x, g)
    alone = rgrad.stack([one(a, b) for a, b in zip(x, g, strict=True)])
    assert (together == alone).all()
    pull = rgrad.func.vjp(lambda t: pooled.max_pool2d(t, 3), x[0])[1]
    assert (rgrad.func.vmap(lambda v: pull(v)[0])(g)[1] == pull(g[1])[0]).all()


def test_a_pooling_layer_keeps_a_byte_for_each_window() -> None:
    x = values(0).requires_grad_()
    y: list[Any] = []
    made = most(lambda: y.append(pooled.max_pool2d(x, 2)))
    assert made < (BYTES + BYTES // 4) / 4 * 1.2


def test_hooks_of_saved_tensors_see_positions() -> None:
    seen: list[Any] = []

    def note(t: Any) -> Any:
        seen.append(t.dtype)
        return t

    x = values(0, (1, 1, 6, 6)).requires_grad_()
    with rgrad.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        y = pooled.max_pool2d(x, 2)
    assert seen == [rgrad.float32, rgrad.int64]
    y.sum().backward()
    assert x.grad.sum() == 9
