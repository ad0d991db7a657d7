"""Writes whose operands share memory with what they write: no round of a loop holds anything when it is over."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

import rgrad
from devices import real
from inplace_aliases import ALIASES, OTHERS, operands
from inplace_aliases import CALLS as LISTED
from rgrad import _core
from rgrad._functions.late_methods import LATE
from rgrad.autograd import forward_ad
from rgrad.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks

ROUNDS = 17


def of_row(method: str) -> Callable[[Any, Any, Any, Any], Any]:
    """The call of a pointwise row in place whose operands are all that has to be given."""
    given = inspect.signature(getattr(rgrad.Tensor, method)).parameters.values()
    count = sum(p.default is p.empty and p.name != "self" for p in given)
    return lambda T, t, o, x: getattr(t, method)(*[o] * count)


# Rows that have come since the list was written.
ROWS = {f"{name}_" for name in _core.pointwise_names} & set(dir(rgrad.Tensor)) - OTHERS - {n.split()[0] for n in LISTED}
# Functions in Python have forms in place that are one function, which copies the result. These stand for them.
LATE_CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "addmm_": lambda T, t, o, x: t.addmm_(o, T.eye(o.shape[1], dtype=o.dtype)),
    "digamma_": lambda T, t, o, x: t.digamma_(),
    "ldexp_": lambda T, t, o, x: t.ldexp_(o),
    "put_": lambda T, t, o, x: t.put_(T.tensor([0, 1]), o.flatten()[:2]),
}
LATE_FORMS = {f"{name.rstrip('_')}_" for names in LATE.values() for name, forms in names.items() if forms != "f"}
CALLS = {**LISTED, **LATE_CALLS, **{method: of_row(method) for method in sorted(ROWS)}}


def grows(step: Callable[[], Any], device: str, rounds: int) -> bool:
    """Whether memory is held after `step` has run three times `rounds` times. (A held node holds what it saved.)"""
    memory = _core.memory_allocated if device == "cpu" else rgrad.wgpu.memory_allocated
    held = []
    for _ in range(3):
        for _ in range(rounds):
            step()
        gc.collect()
        held.append(memory())
    return held[1:] != [held[0], held[0]]


def assert_steady(step: Callable[[], Any], device: str = "cpu", rounds: int = ROUNDS) -> None:
    assert not grows(step, device, rounds), "one round after another is held"


def assert_all_steady(steps: dict[str, Callable[[], Any]], device: str = "cpu", rounds: int = ROUNDS) -> None:
    """As `assert_steady`, of many steps together: to collect garbage takes longer than they do."""

    def together() -> None:
        for step in steps.values():
            step()

    if grows(together, device, rounds):
        pytest.fail(f"held: {[name for name, step in steps.items() if grows(step, device, rounds)]}")


def writes(name: str, w: rgrad.Tensor, aliases: Iterable[str] = ALIASES) -> dict[str, Callable[[], Any]]:
    """Of an operation, one write for each way in which operand and target share memory."""

    def write(alias: str) -> Any:
        y, t, o, x = operands(rgrad, w, alias)
        CALLS[name](rgrad, t, o, x)
        return y

    return {alias: partial(write, alias) for alias in aliases}


def leaf(columns: int = 4) -> rgrad.Tensor:
    rows = 4 if columns == 4 else columns
    return (rgrad.arange(rows * columns, dtype=real()).reshape(rows, columns) / (rows * columns) + 0.5).requires_grad_()


def test_every_operation_in_place_is_listed() -> None:
    methods = {n for n in dir(rgrad.Tensor) if n.endswith("_") and not n.startswith("_")}
    assert {name.split()[0] for name in CALLS if name[0].isalpha() and name != "subscript"} == (methods - OTHERS) - (
        LATE_FORMS - set(LATE_CALLS)
    )


@pytest.mark.rotate(take=46)
@pytest.mark.parametrize("name", CALLS)
def test_short_operations(name: str) -> None:
    assert_all_steady(writes(name, leaf()))


@pytest.mark.rotate(take=46)
@pytest.mark.usefixtures("small_programs")
@pytest.mark.parametrize("name", CALLS)
def test_pending_programs(name: str) -> None:
    assert_all_steady(writes(name, leaf(16)), rounds=5)


@pytest.mark.wgpu
@pytest.mark.parametrize(
    "name",
    ["mul_", "div_", "pow_", "addcmul_", "addcdiv_ third", "lerp_", "clamp_", "cumprod_", "index_put_", "subscript"],
)
def test_on_a_device(name: str) -> None:
    rgrad.set_default_device("wgpu")
    try:
        steps = writes(name, leaf(), ("itself", "target is a view", "the same part", "a row of the rest"))
        assert_all_steady(steps, "wgpu", rounds=4)
    finally:
        rgrad.set_default_device(None)


@pytest.mark.parametrize("alias", ALIASES)
def test_large_tensors(alias: str) -> None:
    w = leaf(300)

    def step() -> None:
        y, t, o, _ = operands(rgrad, w, alias)
        t.mul_(o)
        assert y[0, 0].item() > 0

    assert_steady(step, rounds=3)


def test_a_target_without_history_becomes_part_of_one() -> None:
    w = leaf()

    def whole() -> None:
        y = rgrad.zeros(4, 4, dtype=real())
        y.addcmul_(y, w)

    def part() -> None:
        y = rgrad.zeros(4, 4, dtype=real())
        y[:2].addcmul_(y[2:], w[:2])

    assert_steady(whole)
    assert_steady(part)


def test_what_overlaps_in_part_is_refused_and_not_held() -> None:
    w = leaf()

    def step() -> None:
        y = w * 1.5
        with pytest.raises(RuntimeError, match="single memory location"):
            y.mul_(y.t())

    assert_steady(step)


def test_tensors_that_keep_their_gradient() -> None:
    w = leaf()

    def step() -> None:
        y = w * 1.5
        y.retain_grad()
        y.mul_(y)
        y[0].mul_(y[0])

    assert_steady(step)


# ---- custom Functions ------------------------------------------------------------------------------------------------


def function(save: Callable[..., tuple[Any, ...]], places: int = 1) -> Any:
    """A Function that doubles its first input in place and saves what `save` makes of its inputs."""

    class Doubled(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            kept = save(*inputs)
            inputs[0].mul_(2)
            ctx.mark_dirty(inputs[0])
            ctx.save_for_backward(*kept)
            return inputs[0]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            total = sum(t.sum() for t in ctx.saved_tensors)
            return (grad * 2 * total, *[None] * (places - 1))

    return Doubled.apply


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda y: function(lambda a: (a,))(y),
    "a view that is written": lambda y: function(lambda a: (a,))(y[:2]),
    "a view made inside": lambda y: function(lambda a: (a.view(-1),))(y),
    "a view made inside of a view": lambda y: function(lambda a: (a[0],))(y[:2]),
    "another view of the same base": lambda y: function(lambda a, b: (b,), 2)(y[:2], y[1]),
    "the base": lambda y: function(lambda a, b: (b,), 2)(y[:2], y),
    "a view of what is written": lambda y: function(lambda a, b: (a, b), 2)(y, y[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_write_what_they_save(name: str) -> None:
    w = leaf()
    assert_steady(lambda: FUNCTIONS[name](w * 1.5))
    y = w * 1.5
    FUNCTIONS[name](y)
    # The values saved are those after the write.
    part, saved = {
        "itself": (slice(None), y),
        "a view that is written": (slice(2), y[:2]),
        "a view made inside": (slice(None), y),
        "a view made inside of a view": (slice(2), y[0]),
        "another view of the same base": (slice(2), y[1]),
        "the base": (slice(2), y),
        "a view of what is written": (slice(None), rgrad.cat([y, y[:1]])),
    }[name]
    want = rgrad.full((4, 4), 1.5, dtype=real())
    want[part] *= 2 * saved.detach().sum()
    rgrad.testing.assert_close(rgrad.autograd.grad(y.sum(), w)[0], want)


def test_a_function_that_saves_a_view_of_its_output() -> None:
    class Halves(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            out = a * 2
            ctx.save_for_backward(out[0])
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].sum()

    w = leaf()
    assert_steady(lambda: Halves.apply(w * 1))
    out = Halves.apply(w * 1)
    (grad,) = rgrad.autograd.grad(out.sum(), w)
    rgrad.testing.assert_close(grad, out[0].detach().sum().expand(4, 4))


def test_the_saved_view_is_the_same_tensor_while_it_lives() -> None:
    seen: list[Any] = []

    class Same(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            a.mul_(2)
            ctx.mark_dirty(a)
            ctx.save_for_backward(a)
            return a

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.extend(ctx.saved_tensors)
            return grad * 2

    y = leaf() * 1
    view = y[:2]
    Same.apply(view)
    y.sum().backward()
    assert seen[0] is view


# ---- transforms, hooks, forward mode ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mul_", "addcmul_", "lerp_", "cumprod_", "index_add_", "clamp_"])
def test_under_transforms(name: str) -> None:
    w = leaf()
    both = rgrad.stack([w, w]).detach()
    for alias in ("itself", "target is a view", "the same part"):

        def f(z: Any, alias: str = alias) -> Any:
            return writes(name, z)[alias]()

        def step(f: Any = f) -> None:
            rgrad.func.vmap(f)(rgrad.stack([w, w]))
            rgrad.func.vjp(f, w)
            rgrad.func.vmap(lambda z: rgrad.func.vjp(f, z)[0])(both)
            rgrad.func.jvp(f, (w,), (rgrad.ones_like(w),))

        assert_steady(step)


@pytest.mark.parametrize("name", ["mul_", "addcmul_", "lerp_", "exp_", "index_add_", "clamp_"])
def test_in_forward_mode(name: str) -> None:
    w = leaf()

    def step() -> None:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(w * 1, rgrad.ones_like(w))
            for write in writes(
                name, dual, ("itself", "operand is a view", "target is a view", "the same part")
            ).values():
                write()

    assert_steady(step)


@pytest.mark.parametrize("pack", [lambda t: t.detach().clone(), lambda t: t.detach(), lambda t: t.tolist()])
def test_under_hooks(pack: Callable[[Any], Any]) -> None:
    w = leaf()

    def step() -> None:
        with saved_tensors_hooks(pack, lambda t: rgrad.as_tensor(t)):
            y = w * 1.5
            y.mul_(y)
            y[0].addcmul_(y[1], y[0])

    assert_steady(step)


def test_a_hook_that_keeps_the_written_tensor_itself_is_collected() -> None:
    w = leaf()

    def step() -> None:
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = w * 1.5
            y.mul_(y)

    assert_steady(step)


def square_first_row(y: Any) -> Any:
    y.mul_(y)
    y[0].mul_(y[0])
    y[1:].addcmul_(y[1:], y[0])
    return y


def square_first_row_apart(y: Any) -> Any:
    y = y * y
    first = y[0] * y[0]
    return rgrad.cat([first[None], y[1:] + y[1:] * first])


def derivatives(f: Callable[[Any], Any]) -> list[rgrad.Tensor]:
    w = leaf()
    (first,) = rgrad.autograd.grad(f(w * 1.5).pow(2).sum(), w, create_graph=True)
    (second,) = rgrad.autograd.grad(first.pow(2).sum(), w)
    return [first, second]


def test_hooks_see_the_old_value_and_give_it_its_old_history() -> None:
    want = derivatives(square_first_row_apart)
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        got = derivatives(square_first_row)
    rgrad.testing.assert_close(got, want)


def test_saved_operands_may_be_written_where_that_is_allowed() -> None:
    want = derivatives(square_first_row_apart)
    with allow_mutation_on_saved_tensors():
        rgrad.testing.assert_close(derivatives(square_first_row), want)
        w = leaf()
        assert rgrad.autograd.gradcheck(lambda w: square_first_row(w * 1), w)
        assert rgrad.autograd.gradgradcheck(lambda w: square_first_row(w * 1), w)


# ---- the error in backward, and what is differentiable --------------------------------------------------------------


@pytest.mark.parametrize(
    "alias", ["itself", "operand is a view", "target is a view", "two views", "the same part", "both transposed"]
)
def test_backward_still_names_what_was_written(alias: str) -> None:
    w = leaf()
    y, t, o, _ = operands(rgrad, w, alias)
    t.mul_(o)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation.* at version 1; expected version 0 instead.* changed by mul_",
    ):
        y.sum().backward()
    del t, o
    with pytest.raises(RuntimeError, match="output 0 of "):
        y.sum().backward()


def test_the_attribute_of_a_node_names_what_was_written() -> None:
    y = leaf() * 1.5
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        getattr(y.grad_fn, "_saved_other")  # noqa: B009 - it raises


SAVE_NO_OPERAND = """
add_ sub_ copy_ fill_ masked_fill_ masked_scatter_ index_put_ index_add_ index_copy_ index_fill_ scatter_ scatter_add_
cumsum_ cumprod_ square_ exp_ tanh_
"""


@pytest.mark.parametrize("name", [*SAVE_NO_OPERAND.split(), "add_ alpha", "lerp_ number", "index_put_ add", "+="])
def test_derivatives_of_what_saves_no_operand(name: str) -> None:
    w = (rgrad.arange(16, dtype=rgrad.float64).reshape(4, 4) / 16 + 0.5).requires_grad_()
    for alias in ("itself", "target is a view", "the same part", "another part", "both transposed"):

        def f(w: Any, alias: str = alias) -> Any:
            return writes(name, w)[alias]()

        assert rgrad.autograd.gradcheck(f, w)
        assert rgrad.autograd.gradgradcheck(f, w)
