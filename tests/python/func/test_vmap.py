"""``vmap`` beside loops: dimensions, nesting, randomness, chunks, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import rgrad
from devices import real
from rgrad.func import grad, jacfwd, jacrev, jvp, vmap

pytestmark = pytest.mark.usefixtures("device")


def randn(*shape: int, seed: int = 0) -> Any:
    rgrad.manual_seed(seed)
    return rgrad.randn(*shape, dtype=real())


def close(got: Any, want: Any) -> None:
    have, need = np.asarray(got.tolist()), np.asarray(want.tolist() if isinstance(want, rgrad.Tensor) else want)
    assert have.shape == need.shape
    np.testing.assert_allclose(have, need, rtol=1e-4, atol=1e-5)


def loop(f: Any, *batches: Any, dims: Any = None) -> Any:
    dims = dims or (0,) * len(batches)
    size = next(b.shape[d] for b, d in zip(batches, dims, strict=True) if d is not None)
    return rgrad.stack(
        [f(*(b if d is None else b.select(d, i) for b, d in zip(batches, dims, strict=True))) for i in range(size)]
    )


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 0), (-1, 1), (0, -2)])
def test_in_dims(dims: Any) -> None:
    def arg(d: int | None, seed: int) -> Any:
        base = randn(4, 3, 2, seed=seed)
        return base[0] if d is None else base.movedim(0, d)

    x, y = arg(dims[0], 1), arg(dims[1], 2)
    f = lambda x, y: (x * y).sum(0) + x.exp()[0]  # noqa: E731
    close(vmap(f, in_dims=dims)(x, y), loop(f, x, y, dims=dims))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_out_dims(dim: int) -> None:
    x = randn(4, 3, 2)
    close(vmap(lambda x: x * 2, out_dims=dim)(x), (x * 2).movedim(0, dim))


def test_trees_of_arguments_and_results() -> None:
    x, y = randn(4, 3), randn(3, 4)
    out = vmap(
        lambda p, q, *, k: {"s": p["x"] + q[0], "t": (q[1] * k, p["x"].sum())},
        in_dims=({"x": 0}, [1, None]),
        out_dims={"s": 1, "t": (None, 0)},
    )({"x": x}, [y, 3.0], k=2)
    close(out["s"], (x + y.t()).t())
    assert out["t"][1].shape == (4,)


def test_values_without_the_batch() -> None:
    x, y = randn(4, 3), randn(3)
    assert vmap(lambda x: y * 2)(x).shape == (4, 3)
    close(vmap(lambda x: (y * 2, x), out_dims=(None, 0))(x)[0], y * 2)
    assert vmap(lambda x: (3, x), out_dims=(None, 0))(x)[0] == 3
    assert vmap(lambda x: rgrad.zeros(2))(x).shape == (4, 2)


def test_shapes_inside() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((x.shape, x.dim(), x.numel(), len(x), x.dtype, x.device.type))
        return x.reshape(-1)

    x = randn(5, 2, 3)
    assert vmap(f)(x).shape == (5, 6)
    assert seen == [((2, 3), 2, 6, 2, real(), x.device.type)]
    assert "tensor" in repr_inside(x)


def repr_inside(x: Any) -> str:
    texts = []
    vmap(lambda x: (texts.append(repr(x)), x)[1])(x)
    return texts[0]


def test_nested() -> None:
    x, y = randn(3, 2), randn(4, 2, seed=1)
    pairs = vmap(lambda x: vmap(lambda y: (x * y).sum())(y))(x)
    close(pairs, x @ y.t())
    close(vmap(vmap(lambda x, y: x.dot(y), (None, 0)), (0, None))(x, y), x @ y.t())
    close(vmap(vmap(rgrad.exp, 0), 1, 1)(x), x.exp())


def test_matrix_products() -> None:
    a, b, v = randn(5, 2, 3), randn(5, 3, 4, seed=1), randn(5, 3, seed=2)
    for f, args in (
        (lambda a, b: a @ b, (a, b)),
        (lambda a, v: a @ v, (a, v)),
        (lambda v, b: v @ b, (v, b)),
        (lambda v, w: v @ w, (v, v)),
        (lambda a, v: rgrad.nn.functional.linear(v, a), (a, v)),
        (lambda a, b: rgrad.einsum("ij,jk->ki", a, b), (a, b)),
    ):
        close(vmap(f)(*args), loop(f, *args))
        close(vmap(f, (0, None))(args[0], args[1][0]), loop(f, args[0], args[1][0], dims=(0, None)))
        close(vmap(f, (None, 0))(args[0][0], args[1]), loop(f, args[0][0], args[1], dims=(None, 0)))


def test_writes_inside() -> None:
    x = randn(4, 3)

    def f(x: Any) -> Any:
        y = x.clone()
        y[0] = y[1] * 2
        y.add_(1)
        z = rgrad.zeros_like(x)
        z[1:] = y[:2]
        return z

    close(vmap(f)(x), loop(f, x))
    shared = rgrad.zeros(3, dtype=real())
    with pytest.raises(RuntimeError, match="vmap: .* is not possible because there exists a Tensor"):
        vmap(lambda x: shared.add_(x))(x)
    assert shared.tolist() == [0.0, 0.0, 0.0]
    # What is the same for all may be written by what is the same for all.
    vmap(lambda x: shared.add_(1) + x)(x)
    assert shared.tolist() == [1.0, 1.0, 1.0]
    own = x.clone()
    vmap(lambda x: x.mul_(2))(own)
    close(own, x * 2)


def test_indexing_inside() -> None:
    x, i = randn(4, 5), rgrad.tensor([0, 3, 2, 4])
    close(vmap(lambda x, i: x[i])(x, i), x[rgrad.arange(4), i])
    close(vmap(lambda x: x[..., 1:3])(x), x[:, 1:3])
    close(vmap(lambda x, i: x.index_select(0, i.view(1)))(x, i), x[rgrad.arange(4), i].view(4, 1))
    close(vmap(lambda x: rgrad.where(x > 0, x, -x))(x), x.abs())


def test_history_goes_through() -> None:
    x = randn(4, 3).requires_grad_()
    w = randn(3, seed=1).requires_grad_()
    vmap(lambda x: (x * w).sin().sum())(x).sum().backward()
    gx, gw = x.grad, w.grad
    leaf, wleaf = x.detach().requires_grad_(), w.detach().requires_grad_()
    (leaf * wleaf).sin().sum().backward()
    close(gx, leaf.grad)
    close(gw, wleaf.grad)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_chunks(size: int) -> None:
    x, y = randn(4, 3), randn(3, 4)
    f = lambda x, y: ((x + y).sum(), x * y)  # noqa: E731
    got = vmap(f, in_dims=(0, 1), out_dims=(0, 1), chunk_size=size)(x, y)
    for have, need in zip(got, vmap(f, in_dims=(0, 1), out_dims=(0, 1))(x, y), strict=True):
        close(have, need)


def test_randomness() -> None:
    x = rgrad.zeros(4, 3, dtype=real())
    draw = lambda x: x + rgrad.rand(3, dtype=real())  # noqa: E731
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(draw)(x)
    same = vmap(draw, randomness="same")(x)
    assert all(row.tolist() == same[0].tolist() for row in same)
    different = vmap(draw, randomness="different")(x)
    assert len({tuple(row.tolist()) for row in different}) == 4
    for chunk in (1, 3):
        same = vmap(draw, randomness="same", chunk_size=chunk)(x)
        assert all(row.tolist() == same[0].tolist() for row in same)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are"):
        vmap(draw, randomness="some")
    drop = vmap(lambda x: rgrad.nn.functional.dropout(x, 0.5), randomness="different")(rgrad.ones(8, 64, dtype=real()))
    assert 0 < (drop == 0).sum().item() < 512
    # Drawn before, and used inside.
    noise = rgrad.rand(3, dtype=real())
    close(vmap(lambda x: x + noise)(x), x + noise)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: vmap(lambda x: x.sum().item())(x), "item"),
        (lambda x: vmap(lambda x: x if x.sum() > 0 else -x)(x), "data-dependent control flow"),
        (lambda x: vmap(lambda x: float(x.sum()))(x), "item"),
        (lambda x: vmap(lambda x: rgrad.nonzero(x))(x), "vmap"),
        (lambda x: vmap(lambda x: x[x > 0])(x), "vmap"),
        (lambda x: vmap(lambda x: x.tolist())(x), "vmap|storage"),
        (lambda x: vmap(lambda x: rgrad.unique(x))(x), "vmap"),
    ],
)
def test_values_cannot_be_looked_at(call: Any, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        call(randn(4, 3))
    assert rgrad._C._top_level() == 0


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda x: vmap(lambda x, y: x)(x, x[:2]),
            ValueError,
            "same size in the mapped dimension, got sizes \\[4, 2\\]",
        ),
        (lambda x: vmap(lambda x: x, in_dims=[0])(x), ValueError, "expected `in_dims` to be int or a"),
        (lambda x: vmap(lambda x: x, in_dims=([0],))(x), ValueError, "not compatible with the structure of `inputs`"),
        (lambda x: vmap(lambda x: x, in_dims=({"a": 0},))({"b": x}), ValueError, "not compatible with the structure"),
        (lambda x: vmap(lambda x: x, in_dims=("a",))(x), ValueError, "must be either an integer dimension or None"),
        (
            lambda x: vmap(lambda x: x, in_dims=2)(x),
            ValueError,
            "dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2",
        ),
        (lambda x: vmap(lambda x, y: x)(x, 3), ValueError, "We cannot vmap over non-Tensor arguments"),
        (lambda x: vmap(lambda x: x, in_dims=None)(x), ValueError, "expected `in_dims` to be int"),
        (lambda x: vmap(lambda x: x, in_dims=(None,))(x), ValueError, "at least one Tensor to vmap over"),
        (lambda x: vmap(lambda: 3)(), ValueError, "got no inputs"),
        (
            lambda x: vmap(lambda x: {"a": x}, out_dims={"b": 0})(x),
            ValueError,
            "not compatible with the structure of `outputs`",
        ),
        (lambda x: vmap(lambda x: x, out_dims="a")(x), ValueError, "`out_dims` must be an int, None or"),
        (lambda x: vmap(lambda x: x, out_dims=(0, 0))(x), ValueError, "not compatible with the structure of `outputs`"),
        (lambda x: vmap(lambda x: x, out_dims=3)(x), IndexError, "Dimension out of range"),
        (
            lambda x: vmap(lambda x: x, out_dims=None)(x),
            ValueError,
            "can not return a BatchedTensor when out_dim is None",
        ),
        (lambda x: vmap(lambda x: 3)(x), ValueError, "must only return Tensors, got type <class 'int'>"),
        (lambda x: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
    ],
)
def test_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(randn(4, 3))
    assert rgrad._C._top_level() == 0


def test_names_in_messages() -> None:
    def mine(a: Any, x: Any) -> Any:
        return x

    with pytest.raises(ValueError, match=r"vmap\(functools.partial\(mine, ...\)"):
        vmap(partial(mine, 1), out_dims=(0, 0))(randn(4))
    with pytest.raises(ValueError, match=r"vmap\(Linear\("):
        vmap(rgrad.nn.Linear(3, 2), out_dims=(0, 0))(randn(4, 3).float())


def test_modules_and_losses() -> None:
    net = rgrad.nn.Sequential(rgrad.nn.Linear(3, 4), rgrad.nn.Tanh(), rgrad.nn.Linear(4, 2)).to(real())
    x, t = randn(6, 3), rgrad.tensor([0, 1, 1, 0, 1, 0])
    loss = lambda x, t: rgrad.nn.functional.cross_entropy(net(x), t)  # noqa: E731
    close(vmap(loss)(x, t), rgrad.nn.functional.cross_entropy(net(x), t, reduction="none"))
    close(vmap(lambda x: rgrad.nn.functional.softmax(x, dim=-1))(x), rgrad.nn.functional.softmax(x, dim=-1))


def test_empty_batches() -> None:
    x = rgrad.zeros(0, 3, dtype=real())
    assert vmap(lambda x: x.sum())(x).shape == (0,)
    assert vmap(lambda x: x.outer(x))(x).shape == (0, 3, 3)


def test_a_vmapped_chain_is_one_pass() -> None:
    """Pending results stay pending through a batch."""
    x = randn(512, 512)
    f = lambda x: ((x * 2).sin() + x).exp()  # noqa: E731
    close(vmap(f)(x).sum(), f(x).sum())


# ---------------------------------------------------------------------------------------------------- random programs


UNARY = ["sin", "exp", "tanh", "neg", "square", "sigmoid"]


def program(rng: np.random.Generator, length: int) -> Any:
    """A function of a vector with a scalar result: a few random steps."""
    steps = [(int(rng.integers(0, 6)), str(rng.choice(UNARY)), float(rng.uniform(0.3, 0.9))) for _ in range(length)]

    def f(x: Any) -> Any:
        y = x * 0.5
        for kind, name, c in steps:
            if kind == 0:
                y = getattr(rgrad, name)(y) * c
            elif kind == 1:
                y = y * x + c
            elif kind == 2:
                y = rgrad.stack([y, y.flip(0)]).sum(0) * c
            elif kind == 3:
                y = y.outer(y) @ x * c
            elif kind == 4:
                y = rgrad.cat([y[1:], y[:1]]) / (2 + y.square())
            else:
                z = y.clone()
                z[0] = (y * c).sum()
                y = z.tanh()
        return (y * y).mean() + y[0]

    return f


@pytest.mark.cpu_only  # differences need double precision
@pytest.mark.parametrize("seed", range(40))
def test_random_nestings(seed: int) -> None:
    """A random tower of transforms over a random program, beside the same with loops and differences."""
    rng = np.random.default_rng(seed)
    f = program(rng, int(rng.integers(2, 5)))
    n = 3
    tower: list[str] = []
    fast: Any = f
    slow: Any = f
    rank = 0  # of the result, beyond the batches
    batches = 0
    for _ in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(["grad", "jvp", "jacrev", "jacfwd", "vmap"]))
        if kind == "vmap" and batches == 2:
            continue
        if rank + batches > 2 and kind != "jvp":
            continue
        tower.append(kind)
        if kind == "vmap":
            batches += 1
            fast = vmap(fast)
            slow = each_row(slow)
        elif kind == "jvp":
            fast = pushed(fast)
            slow = partial(along, slow)
        else:
            if kind == "grad" and (rank or batches):
                kind = "jacrev"
            way = {"grad": grad, "jacrev": jacrev, "jacfwd": jacfwd}[kind]
            fast = way(fast)
            slow = partial(table, slow)
            rank += 1 + batches
    x = rgrad.tensor(rng.uniform(-1, 1, (2,) * batches + (n,)))
    got = fast(x)
    assert rgrad._C._top_level() == 0
    # Of the third differences nothing is left in float64 but their shape.
    need = np.asarray(slow(x).tolist())
    have = np.asarray(got.tolist())
    assert have.shape == need.shape, tower
    if sum(kind != "vmap" for kind in tower) < 3:
        np.testing.assert_allclose(have, need, rtol=2e-3, atol=2e-3, err_msg=str(tower))


EPS = 1e-4


def each_row(g: Any) -> Any:
    return lambda x: rgrad.stack([g(row) for row in x])


def pushed(g: Any) -> Any:
    return lambda x: jvp(g, (x,), (x.cos(),))[1]


def along(g: Any, x: Any) -> Any:
    t = x.cos()
    return (g(x + EPS * t) - g(x - EPS * t)) / (2 * EPS)


def table(g: Any, x: Any) -> Any:
    columns = []
    for k in range(x.numel()):
        e = rgrad.zeros(x.numel(), dtype=real())
        e[k] = EPS
        e = e.view(x.shape)
        columns.append((g(x + e) - g(x - e)) / (2 * EPS))
    out = rgrad.stack(columns, -1)
    return out.reshape(*out.shape[:-1], *x.shape)


def test_a_batched_pointwise_chain_is_one_pass() -> None:
    """What stays pending outside vmap stays pending inside: nothing between is written."""
    x = rgrad.rand(8, 65536, dtype=rgrad.float32)
    before = rgrad.fusion.counts()
    y = vmap(lambda r: ((r * 2 + 1).tanh() * r).sum())(x)
    got = y.tolist()
    after = rgrad.fusion.counts()
    assert after.programs - before.programs == 1
    assert after.steps - before.steps == 5
    close(y, ((x * 2 + 1).tanh() * x).sum(1))
    assert len(got) == 8
