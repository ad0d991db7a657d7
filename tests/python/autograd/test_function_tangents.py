"""What ``jvp`` of a custom Function sees: tensors without tangents of its own level, with those of all others."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
import rgrad.autograd.forward_ad as fwad
from points import close, point
from rgrad.autograd import Function
from rgrad.func import jacfwd, jacrev, jvp, vjp, vmap

pytestmark = pytest.mark.usefixtures("device")

# What the tangents of inputs, outputs and results of operations were inside `jvp`, one entry for each call.
SEEN: list[list[bool]] = []


class Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        x, y = ctx.saved_tensors
        made = 3 * x * x * t
        SEEN.append([fwad.unpack_dual(s).tangent is not None for s in (x, y, t, made, x.sum(), x.view(-1))])
        return made


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def test_saved_tensors_have_no_tangents_of_a_dual_level() -> None:
    x, t = point(0.5, -2.0), point(1.0, 3.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        out = fwad.unpack_dual(Cube.apply(dual))
        assert fwad.unpack_dual(dual).tangent is not None
        # Views were made inside, and their tangents are there when the call is over.
    close(out.tangent, (3 * x * x * t).tolist())
    assert SEEN == [[False] * 6]


def test_nested_jvps_see_the_tangents_of_outer_levels() -> None:
    x = point(0.5, -2.0, 3.0)
    ones = rgrad.ones_like(x)

    def pushed(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (ones,))[1]

    close(pushed(Cube.apply)(x), (3 * x * x).tolist())
    close(pushed(pushed(Cube.apply))(x), (6 * x).tolist())
    close(pushed(pushed(pushed(Cube.apply)))(x), [6.0, 6.0, 6.0])
    assert not any(map(any, SEEN))


@pytest.mark.parametrize("outer", ["jvp", "vjp"])
@pytest.mark.parametrize("inner", ["jvp", "vjp"])
def test_second_derivatives_by_every_pair(outer: str, inner: str) -> None:
    x = point(0.5, -2.0, 3.0)
    ones = rgrad.ones_like(x)

    def by(way: str, f: Any) -> Any:
        return (lambda x: jvp(f, (x,), (ones,))[1]) if way == "jvp" else (lambda x: vjp(f, x)[1](ones)[0])

    close(by(outer, by(inner, Cube.apply))(x), (6 * x).tolist())
    close(vmap(by(outer, by(inner, lambda x: Cube.apply(x * ones))))(x.expand(2, 3)), (6 * x).expand(2, 3).tolist())
    jacobian = {"jvp": jacfwd, "vjp": jacrev}[outer](by(inner, Cube.apply))(x)
    close(jacobian, rgrad.diag(6 * x))


def test_a_dual_level_and_a_jvp_inside_of_it() -> None:
    x, t = point(0.5, -2.0), point(1.0, 3.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        value, moved = jvp(Cube.apply, (dual,), (rgrad.ones_like(x),))
        assert not any(map(any, SEEN))
        close(fwad.unpack_dual(value).tangent, (3 * x * x * t).tolist())
        close(fwad.unpack_dual(moved).tangent, (6 * x * t).tolist())


def test_tangents_that_are_off_stay_off_at_lower_levels() -> None:
    x, t = point(0.5, -2.0), point(1.0, 3.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        with fwad._set_fwd_grad_enabled(False):
            assert not fwad._is_fwd_grad_enabled()
            assert fwad.unpack_dual(dual).tangent is None
            value, moved = jvp(lambda x: x * x * dual, (dual,), (rgrad.ones_like(x),))
            view = dual[1:]
            assert fwad.unpack_dual(view).tangent is None
        assert fwad._is_fwd_grad_enabled()
        close(moved, (2 * x * x).tolist())
        assert fwad.unpack_dual(value).tangent is None
        assert fwad.unpack_dual(moved).tangent is None
        # A view of a dual tensor is one, wherever it was made.
        close(fwad.unpack_dual(view).tangent, [3.0])


def test_a_jvp_inside_of_jvp_computes_tangents() -> None:
    class Inside(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return jvp(lambda x: x * x, (x,), (t,))[1]

    x, t = point(0.5, -2.0), point(1.0, 3.0)
    close(jvp(Inside.apply, (x,), (t,))[1], (2 * x * t).tolist())
    close(jvp(lambda x: jvp(Inside.apply, (x,), (t,))[1], (x,), (t,))[1], (2 * t * t).tolist())
    with fwad.dual_level():
        close(fwad.unpack_dual(Inside.apply(fwad.make_dual(x, t))).tangent, (2 * x * t).tolist())


def test_forward_sees_no_captured_tangents() -> None:
    seen = []

    class Captures(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(fwad.unpack_dual(dual * 2).tangent)
            return x * dual

    x, t = point(0.5, -2.0), point(1.0, 3.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        assert fwad.unpack_dual(Captures.apply(x)).tangent is None
    assert seen == [None]
