"""``jvp`` of custom Functions: the tangents it is given and may return, and what is said of others; beside torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import same  # noqa: E402 - torch must be there first
from function_kit import made, trial  # noqa: E402

pytestmark = pytest.mark.oracle

Jvp = Callable[..., Any]

# torch has no text for these: an assertion inside it fails. rgrad says something, or takes None for no tangent.
ASSERTIONS = ("INTERNAL ASSERT FAILED", "undefined tensor")


def ones(T: Any) -> Any:
    return T.tensor([1.0, 2.0, 3.0, 4.0], dtype=T.float64)


def tangents(T: Any, call: Callable[[Any, Any], Any], pick: Callable[[Any], Any] = lambda x: x) -> Any:
    """Tangents of ``call(dual, plain)`` and of its arguments afterwards."""
    forward_ad: Any = import_module(f"{T.__name__}.autograd.forward_ad")

    def run() -> list[Any]:
        with forward_ad.dual_level():
            dual, plain = forward_ad.make_dual(ones(T), ones(T) * 2), ones(T)
            got = call(pick(dual), pick(plain))
            outs = got if isinstance(got, tuple) else (got,)
            floating = [t for t in (*outs, dual, plain) if isinstance(t, T.Tensor) and t.is_floating_point()]
            return [forward_ad.unpack_dual(t).tangent for t in floating]

    return trial(run)


def agree(program: Callable[[Any], Any]) -> None:
    mine, theirs = program(rgrad), program(torch)
    if isinstance(theirs, str) and any(a in theirs for a in ASSERTIONS):
        return
    same(mine, theirs)


def integers_too(ctx: Any, x: Any, y: Any) -> Any:
    return x * 2, x.long()


def integers_first(ctx: Any, x: Any, y: Any) -> Any:
    return x.long(), x * 2


def one_not_differentiable(ctx: Any, x: Any, y: Any) -> Any:
    a = x * 2
    ctx.mark_non_differentiable(a)
    return a, x * 3


def with_number(ctx: Any, x: Any, y: Any) -> Any:
    return x * 1, 3


@pytest.mark.parametrize("forward", [integers_too, integers_first, one_not_differentiable, with_number])
def test_outputs_without_derivative_have_no_tangent(forward: Any) -> None:
    answers: list[Jvp] = [
        lambda ctx, g, h: (g, g),
        lambda ctx, g, h: (None, g),
        lambda ctx, g, h: (g, None),
        lambda ctx, g, h: (g.long(), g),
        lambda ctx, g, h: (g, g.bool()),
        lambda ctx, g, h: g,
        lambda ctx, g, h: (g, g, g),
        lambda ctx, g, h: (),
    ]
    for answer in answers:
        agree(lambda T, answer=answer: tangents(T, made(T, forward, jvp=answer).apply))


@pytest.mark.parametrize("materialize", [True, False])
def test_arguments_that_have_no_tangent(materialize: bool) -> None:
    def program(T: Any) -> Any:
        seen: list[Any] = []

        def forward(ctx: Any, *args: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return args[0] * 1

        def jvp(ctx: Any, *given: Any) -> Any:
            seen.append(given)
            return given[0]

        f = made(T, forward, jvp=jvp)
        for others in ((T.arange(4), T.ones(4).bool()), (3, None, "text"), (T.ones(2), T.ones(2, dtype=T.int32))):
            tangents(T, lambda x, y, others=others: f.apply(x, y, *others))
            tangents(T, lambda x, y, others=others: f.apply(x, *others, y))
        return seen

    same(program(rgrad), program(torch))


WRITTEN: dict[str, Jvp] = {
    "written": lambda ctx, g, h: g.mul_(2),
    "written and added": lambda ctx, g, h: g.mul_(2).add_(h) if h is not None else g.mul_(2),
    "another": lambda ctx, g, h: g * 2,
    "as it is": lambda ctx, g, h: g,
    "none": lambda ctx, g, h: None,
    "view": lambda ctx, g, h: g.view_as(g),
    "written view": lambda ctx, g, h: g.mul_(2).view_as(g),
    "written, another": lambda ctx, g, h: g.mul_(2) * 1,
    "other": lambda ctx, g, h: h,
    "other's multiple": lambda ctx, g, h: h * 2,
}


@pytest.mark.parametrize("pick", [lambda x: x, lambda x: x[:2], lambda x: x.view(2, 2)[1]])
@pytest.mark.parametrize("dual_first", [True, False])
@pytest.mark.parametrize("name", WRITTEN)
def test_tangents_of_written_inputs(name: str, dual_first: bool, pick: Callable[[Any], Any]) -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(y)

    def call(T: Any) -> Callable[[Any, Any], Any]:
        f = made(T, forward, jvp=WRITTEN[name])
        return lambda x, y: f.apply(x, y) if dual_first else f.apply(y, x)

    agree(lambda T: tangents(T, call(T), pick))


VIEWS: dict[str, Jvp] = {
    "part": lambda ctx, g, h: g[:2],
    "copied part": lambda ctx, g, h: g[:2] * 1,
    "part of a copy": lambda ctx, g, h: (g * 1)[:2],
    "whole": lambda ctx, g, h: g,
    "view": lambda ctx, g, h: g.view_as(g),
    "view of a copy": lambda ctx, g, h: (g * 1).view_as(g),
    "copy": lambda ctx, g, h: g * 1,
    "none": lambda ctx, g, h: None,
    "part of the other": lambda ctx, g, h: h[:2],
    "the other": lambda ctx, g, h: h,
}


@pytest.mark.parametrize("pick", [lambda x: x, lambda x: x[1:], lambda x: x.view(2, 2)])
@pytest.mark.parametrize("forward", [lambda ctx, x, y: x[:2], lambda ctx, x, y: x, lambda ctx, x, y: x * 1])
@pytest.mark.parametrize("name", VIEWS)
def test_tangents_of_views(name: str, forward: Any, pick: Callable[[Any], Any]) -> None:
    for dual_first in (True, False):

        def call(T: Any, dual_first: bool = dual_first) -> Callable[[Any, Any], Any]:
            f = made(T, forward, jvp=VIEWS[name])
            return lambda x, y: f.apply(x, y) if dual_first else f.apply(y, x)

        agree(lambda T, call=call: tangents(T, call(T), pick))
