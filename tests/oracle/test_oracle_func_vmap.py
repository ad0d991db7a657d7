"""What a picky user tries with `vmap`, in PyTorch and in rgrad: operations, layouts, randomness, bad arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from func_kit import compared, point

# A name; the function of (library, slices); the shapes of the arguments; further arguments of vmap.
Row = tuple[str, Any, tuple[tuple[int, ...], ...]]


def where(x: Any) -> Any:
    return (x * 3).long()


def written(T: Any, x: Any, key: Any, value: Any) -> Any:
    x = x.clone()
    x[key] = value
    return x


def swapped(x: Any) -> Any:
    y = x.clone()
    y.view(2, 2).t()[0].mul_(2)
    return y


A, B, C, N, S = (3, 4), (3, 4, 4), (3, 2), (3,), (3, 2, 2)

OPERATIONS: list[Row] = [
    ("compare", lambda T, x, y: x > y, (A, A)),
    ("where", lambda T, x, y: T.where(x > y, x, 0.0), (A, A)),
    ("index", lambda T, x, y: x[where(y)], (A, C)),
    ("index of a captured tensor", lambda T, y: point(T, 4)[where(y)], (C,)),
    ("two indices", lambda T, x, y: x[where(y), where(y)], (B, C)),
    ("slice, index, None", lambda T, x, y: x[:, where(y), None], (B, C)),
    ("an index of one number", lambda T, x, y: x[where(y)], (A, N)),
    ("an index of one number and an int", lambda T, x, y: x[where(y), 1], (B, N)),
    ("index_put", lambda T, x, y: x.clone().index_put((where(y),), T.tensor(0.0, dtype=T.float64)), (A, C)),
    ("index_put_ adds", lambda T, x, y: x.clone().index_put_((where(y),), y, accumulate=True), (A, C)),
    ("setitem by index", lambda T, x, y: written(T, x, where(y), y), (A, C)),
    ("setitem by int", lambda T, x, y: written(T, x, 1, y[0]), (A, C)),
    ("setitem of zeros_like", lambda T, x, y: written(T, T.zeros_like(x), slice(1, 3), y), (A, C)),
    ("setitem of a constant", lambda T, x: written(T, T.zeros(4, dtype=T.float64), slice(1, 3), 1.0) + x, (A,)),
    ("masked_fill", lambda T, x: x.masked_fill(x > 0.5, 0.0), (A,)),
    ("einsum", lambda T, x, y: T.einsum("ij,jk->ik", x, y), ((3, 2, 4), (3, 4, 2))),
    ("sort", lambda T, x: T.sort(x, descending=True), (A,)),
    ("topk", lambda T, x: T.topk(x, 2), (A,)),
    ("cumsum", lambda T, x: (T.cumsum(x, -1), T.cumprod(x, 0)), (A,)),
    ("factories", lambda T, x: (T.ones(4) + x, T.arange(4) * x, x * T.tensor([1.0, 2, 3, 4])), (A,)),
    ("a factory alone", lambda T, x: T.zeros(2), (A,)),
    ("stack and cat", lambda T, x: (T.stack([x[0], x[1]]), T.cat([x, T.ones(2, dtype=T.float64)])), (A,)),
    ("cat with an empty one", lambda T, x: T.cat([T.empty(0, dtype=T.float64), x], 1), (B,)),
    ("iteration", lambda T, x: sum(v for v in x) * len(x) + x.shape[0] + x.dim() + x.numel(), (A,)),
    ("views", lambda T, x: x.view(2, 2).t().reshape(-1).unsqueeze(0).expand(2, 4).permute(1, 0), (A,)),
    ("a write through views", lambda T, x: swapped(x), (A,)),
    ("squeeze", lambda T, x: T.squeeze(x), ((3, 1, 2, 1),)),
    ("squeeze of a batch of one", lambda T, x: T.squeeze(x), ((1, 1, 2, 1),)),
    ("mean", lambda T, x: x.mean((0, -1), keepdim=True), (S,)),
    ("max", lambda T, x: (x.max(), x.max(0), x.argmax()), (S,)),
    ("max of numbers", lambda T, x: (x.max(), x.median(), x.amax(())), (N,)),
    ("median", lambda T, x: (x.median(), x.nanmedian(), x.median(0)), (B,)),
    ("var", lambda T, x: (x.var(), x.std(0), x.norm()), (S,)),
    ("cross_entropy", lambda T, x, y: T.nn.functional.cross_entropy(x, where(y)), ((3, 5, 4), (3, 5))),
    ("its weights", lambda T, x, y, w: T.nn.functional.cross_entropy(x, where(y), w), ((3, 5, 4), (3, 5), A)),
    (
        "its weights, summed",
        lambda T, x, y, w: T.nn.functional.cross_entropy(x, where(y), w, ignore_index=1, reduction="sum"),
        ((3, 5, 4), (3, 5), A),
    ),
    ("block_diag", lambda T, x, y: T.block_diag(x, y, T.ones(1, 2, dtype=T.float64)), (S, A)),
    ("linear", lambda T, x, w: T.nn.functional.linear(x, w), (A, (3, 2, 4))),
    ("matrices", lambda T, x, y: (T.mm(x, y), x @ y[0], T.outer(x[0], y[1])), ((3, 4, 5), (3, 5, 4))),
    ("rearranged", lambda T, x: (x.flip(0), x.roll(1), x.repeat(2, 2), x.tile(2), x.tril(), x.diagonal()), (B,)),
    ("parts", lambda T, x: (x.split(2), x.chunk(2), x.unbind()), (A,)),
    ("gather", lambda T, x, y: (x.gather(0, where(y)), x.index_select(0, where(y)), T.take(x, where(y))), (A, C)),
    ("scatter", lambda T, x, y: (x.scatter(0, where(y), y), x.scatter_add(0, where(y), y)), (A, C)),
    ("index_add", lambda T, x, y: x.index_add(0, where(y), y), (A, C)),
    ("promotion of numbers", lambda T, x: (x + T.ones(4), x.long() + T.ones(4, dtype=T.int32)), (N,)),
    ("in place", lambda T, x, y: x.clone().add_(y).mul_(2), (A, A)),
    ("in place, on the argument", lambda T, x: x.add_(1), (A,)),
    ("a dictionary", lambda T, x: {"a": x, "b": [x, x.sum()]}, (A,)),
]


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row[0])
def test_operations(row: Row) -> None:
    _, f, shapes = row

    def call(T: Any) -> Any:
        return T.func.vmap(partial(f, T))(*[point(T, *shape, seed=i) for i, shape in enumerate(shapes)])

    compared(call)


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row[0])
def test_gradients_through_batches(row: Row) -> None:
    """`grad` around `vmap`: histories lie below the batch."""
    _, f, shapes = row

    def call(T: Any) -> Any:
        xs = [point(T, *shape, seed=i) for i, shape in enumerate(shapes)]

        def total(x: Any) -> Any:
            found = T.func.vmap(partial(f, T))(x.clone(), *xs[1:])
            flat = []
            stack = [found]
            while stack:
                entry = stack.pop()
                if isinstance(entry, dict):
                    stack.extend(entry.values())
                elif isinstance(entry, (tuple, list)):
                    stack.extend(entry)
                elif entry.is_floating_point():
                    flat.append(entry.double().square().sum())
            return sum(flat, x.sum())

        return T.func.grad(total)(xs[0])

    compared(call)


def drawn(T: Any, f: Any, *shape: int, **arguments: Any) -> list[Any]:
    """How many different numbers there are among the slices of what was drawn, and its shape."""
    found = T.func.vmap(f, **arguments)(T.ones(*shape))
    rows = {tuple(row.reshape(-1).tolist()) for row in found}
    return [len(rows), tuple(found.shape), str(found.dtype).rpartition(".")[2]]


DRAWS = {
    "rand": lambda T, x: T.rand(20),
    "randn_like": lambda T, x: T.randn_like(x),
    "randint": lambda T, x: T.randint(0, 1000, (9,)),
    "randperm": lambda T, x: T.randperm(40),
    "dropout": lambda T, x: T.nn.functional.dropout(x, 0.5),
    "bernoulli": lambda T, x: T.bernoulli(x / 2),
    "bernoulli of a captured tensor": lambda T, x: T.bernoulli(T.full((40,), 0.5)),
    "multinomial": lambda T, x: T.multinomial(x, 20),
    "multinomial of a captured tensor": lambda T, x: T.multinomial(T.ones(40), 20),
    "normal_ of a batch": lambda T, x: x.clone().normal_(),
    "normal_ of a captured tensor": lambda T, x: T.zeros(20).normal_(),
    "bernoulli_": lambda T, x: x.clone().bernoulli_(0.5),
    "none": lambda T, x: T.nn.functional.dropout(x, 0.0) + T.nn.functional.dropout(x, 0.5, training=False),
}


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name: str, randomness: str) -> None:
    compared(lambda T: drawn(T, partial(DRAWS[name], T), 3, 40, randomness=randomness))


@pytest.mark.parametrize("outer", ["error", "same", "different"])
@pytest.mark.parametrize("inner", ["error", "same", "different"])
@pytest.mark.parametrize("name", ["rand", "randperm", "dropout", "multinomial of a captured tensor"])
def test_nested_randomness(name: str, outer: str, inner: str) -> None:
    def call(T: Any) -> Any:
        f = T.func.vmap(partial(DRAWS[name], T), randomness=inner)
        found = T.func.vmap(f, randomness=outer)(T.ones(2, 3, 40))
        rows = {tuple(row.reshape(-1).tolist()) for row in found.reshape(6, -1)}
        return [len(rows), tuple(found.shape)]

    compared(call)


def test_draws_of_a_batch_are_spread_as_their_weights_say() -> None:
    import rgrad

    weights = rgrad.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]).repeat(200, 1)
    found = rgrad.func.vmap(lambda w: rgrad.multinomial(w, 1), randomness="different")(weights)
    even, odd = found[0::2].unique().tolist(), found[1::2].unique().tolist()
    assert even == [1]
    assert odd == [0, 2]
    orders = rgrad.func.vmap(lambda x: rgrad.randperm(5), randomness="different")(rgrad.ones(50))
    assert (orders.sort(1).values == rgrad.arange(5)).all()


REFUSED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("nonzero", lambda T, x: x.nonzero(), ("dynamic shape",)),
    ("a mask as index", lambda T, x: x[x > 0.5], ("dynamic shape", "boolean mask")),
    ("a mask written to", lambda T, x: written(T, x, x > 0.5, 0.0), ("dynamic shape",)),
    ("unique", lambda T, x: T.unique(x), ("dynamic shape",)),
    ("masked_select", lambda T, x: T.masked_select(x, x > 0.5), ("masked_select", "differently shaped")),
    ("item", lambda T, x: x.sum().item(), (r"\.item\(\)",)),
    ("float", lambda T, x: float(x.sum()), (r"\.item\(\)",)),
    ("index", lambda T, x: [1, 2, 3][x.sum().long()], (r"\.item\(\)",)),
    ("if", lambda T, x: x if x.sum() > 0 else -x, ("data-dependent control flow",)),
    ("any", lambda T, x: x if (x > 0).any() else -x, ("data-dependent control flow",)),
    ("tolist", lambda T, x: x.tolist(), ()),
    ("numpy", lambda T, x: x.numpy(), ()),
    ("allclose", lambda T, x: T.allclose(x, x), ("vmap",)),
    ("data", lambda T, x: x.data, ("accessing `data` under vmap",)),
    ("data set", lambda T, x: setattr(x, "data", T.ones(4)), ("mutating directly with `.data`",)),
    ("data_ptr", lambda T, x: x.data_ptr(), ("Cannot access data pointer",)),
    ("deepcopy", lambda T, x: __import__("copy").deepcopy(x), ("Cannot access storage",)),
    ("requires_grad_", lambda T, x: x.requires_grad_(), (r"requires_grad_\(\)", "outside of a function")),
    ("backward", lambda T, x: T.ones(2, requires_grad=True).sum().backward(), (r"backward\(\) called inside",)),
    ("jacobian", lambda T, x: T.autograd.functional.jacobian(lambda y: y * y, x), (r"autograd.functional\.\*",)),
    ("captured", lambda T, x: T.ones(4, dtype=T.float64).add_(x), ()),
    ("None", lambda T, x: None, ("must only return Tensors",)),
    ("a string", lambda T, x: "a", ("must only return Tensors",)),
    ("wrong sizes", lambda T, x: T.mm(x.view(2, 2), x.view(4, 1)), ()),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_refusals(row: tuple[str, Any, tuple[str, ...]]) -> None:
    _, f, words = row
    compared(lambda T: T.func.vmap(partial(f, T))(point(T, 3, 4)), words)


ARGUMENTS: dict[str, Any] = {
    "out_dims of a list": lambda T, x: T.func.vmap(lambda x: [x, x], out_dims=[0, 1])(x),
    "out_dims of a dict": lambda T, x: T.func.vmap(lambda x: {"a": x}, out_dims={"a": 1})(x),
    "out_dims a string": lambda T, x: T.func.vmap(lambda x: x, out_dims="a")(x),
    "out_dims negative": lambda T, x: T.func.vmap(lambda x: x, out_dims=-1)(x),
    "out_dims too small": lambda T, x: T.func.vmap(lambda x: x, out_dims=-3)(x),
    "out_dims None": lambda T, x: T.func.vmap(lambda x: (x, 3), out_dims=(0, None))(x),
    "in_dims negative": lambda T, x: T.func.vmap(lambda x: x.sum(), in_dims=-1)(x),
    "in_dims None": lambda T, x: T.func.vmap(lambda x: x, in_dims=None)(x),
    "in_dims all None": lambda T, x: T.func.vmap(lambda x: x, in_dims=(None,))(x),
    "in_dims a string": lambda T, x: T.func.vmap(lambda x: x, in_dims=("a",))(x),
    "in_dims a float": lambda T, x: T.func.vmap(lambda x: x, in_dims=0.0)(x),
    "in_dims too many": lambda T, x: T.func.vmap(lambda x: x, in_dims=(0, 0))(x),
    "in_dims too large": lambda T, x: T.func.vmap(lambda x: x, in_dims=2)(x),
    "in_dims of a number": lambda T, x: T.func.vmap(lambda x: x)(x.sum()),
    "in_dims of a dict": lambda T, x: T.func.vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))(
        {"a": x, "b": x[0]}
    ),
    "in_dims nested": lambda T, x: T.func.vmap(lambda p, y: p[0] + p[1][0] + y, in_dims=([0, (1,)], None))(
        [x, (x.t(),)], x[0]
    ),
    "a Python number": lambda T, x: T.func.vmap(lambda x, n: x * n, in_dims=(0, None))(x, 2),
    "a Python number mapped": lambda T, x: T.func.vmap(lambda x, n: x * n)(x, 2),
    "None": lambda T, x: T.func.vmap(lambda x, n: x, in_dims=(0, None))(x, None),
    "keywords": lambda T, x: T.func.vmap(lambda x, *, y: x * y)(x, y=x[0]),
    "keywords are not mapped": lambda T, x: T.func.vmap(lambda x, y=None: x * y)(x, y=x),
    "keywords alone": lambda T, x: T.func.vmap(lambda y: y)(y=x),
    "chunks": lambda T, x: T.func.vmap(lambda x: (x * 2, x.sum()), chunk_size=2, out_dims=(1, 0))(x),
    "chunks of nothing": lambda T, x: T.func.vmap(lambda x: x * 2, chunk_size=0)(x),
    "large chunks": lambda T, x: T.func.vmap(lambda x: x * 2, chunk_size=100)(x),
    "no slices": lambda T, x: T.func.vmap(lambda x: x * 2)(x[:0]),
    "other sizes": lambda T, x: T.func.vmap(lambda x, y: x)(x, x[:2]),
    "a partial": lambda T, x: T.func.vmap(partial(T.sum, dim=0))(x[None]),
    "a function of the library": lambda T, x: T.vmap(T.dot)(x, x),
    "every pair": lambda T, x: T.func.vmap(T.func.vmap(T.dot, in_dims=(None, 0)), in_dims=(0, None))(x, x[:2]),
    "a module": lambda T, x: T.func.vmap(T.nn.Flatten(0))(x),
    "no function": lambda T, x: T.func.vmap(3)(x),
    "with history": lambda T, x: T.func.vmap(lambda x: x * x)(x.requires_grad_()),
    "a generator inside": lambda T, x: T.func.vmap(lambda x: sum(x * i for i in range(3)))(x),
    "a generator as result": lambda T, x: T.func.vmap(lambda x: (x * i for i in range(2)))(x),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    compared(lambda T: ARGUMENTS[name](T, point(T, 3, 4)))
