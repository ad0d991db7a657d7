"""Tangents of views share memory with the tangent of their base, whichever was there first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
import rgrad.autograd.forward_ad as fwad
from devices import real
from points import close
from rgrad.func import jvp

pytestmark = pytest.mark.usefixtures("device")

VIEWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda x: x[1],
    "slice": lambda x: x[:, 1:3],
    "step": lambda x: x[::2],
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "view": lambda x: x.view(2, 6),
    "flatten": lambda x: x.flatten(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "narrow": lambda x: x.narrow(0, 1, 2),
    "view_as": lambda x: x.view_as(x),
    "view of a view": lambda x: x[1:].t()[1:],
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "as_strided of a view": lambda x: x[1:].as_strided((2, 2), (4, 1), 5),
    "as_strided before its view": lambda x: x[1:].as_strided((2, 2), (4, 1), 0),
    "view of as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1)[1],
}


def base() -> Any:
    return rgrad.arange(12, dtype=real()).reshape(3, 4).clone()


def direction() -> Any:
    return base() * 0.5 + 1


def tangent(x: Any) -> Any:
    return fwad.unpack_dual(x).tangent


def dual() -> Any:
    return fwad.make_dual(base(), direction())


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_write_to_one_of_two(view: Callable[[Any], Any]) -> None:
    with fwad.dual_level():
        x = dual()
        v = view(x)
        v.mul_(3)
        want = direction()
        view(want).mul_(3)
        close(tangent(x), want.tolist())
        close(tangent(v), view(want).tolist())
        x.mul_(2)
        close(tangent(x), (want * 2).tolist())
        close(tangent(v), view(want * 2).tolist())
        assert tangent(v)._is_view()
        tangent(v).zero_()
        view(want).zero_()
        close(tangent(x), (want * 2).tolist())


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_base_that_gets_its_tangent_after_its_views(view: Callable[[Any], Any]) -> None:
    with fwad.dual_level():
        x = base()
        v, w = view(x), view(x)
        assert tangent(v) is None
        x.copy_(dual())
        # An operation comes before any look at the tangent.
        close(tangent(v * 2), view(direction() * 2).tolist())
        close(tangent(v), view(direction()).tolist())
        w.mul_(3)
        want = direction()
        view(want).mul_(3)
        close(tangent(v), view(want).tolist())
        close(tangent(x), want.tolist())
        close(tangent(view(x)), view(want).tolist())


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_that_gives_its_base_a_tangent(view: Callable[[Any], Any]) -> None:
    with fwad.dual_level():
        x = base()
        v, sibling, other = view(x), view(x), x[2:]
        v.copy_(view(dual()))
        want = rgrad.zeros_like(direction())
        view(want).copy_(view(direction()))
        close(tangent(x), want.tolist())
        close(tangent(sibling.sin()), (view(want) * view(base()).cos()).tolist())
        close(tangent(other), want[2:].tolist())
        other[0, 0] = 7.0
        want[2, 0] = 0
        close(tangent(x), want.tolist())
    with fwad.dual_level():
        assert all(tangent(y) is None for y in (x, v, sibling, other))


def test_bases_of_other_layouts() -> None:
    with fwad.dual_level():
        x = (base().t() * 1).clone()
        assert x.stride() == (1, 4)
        v = x.t().view(12)
        assert v._base is x
        x.mul_(fwad.make_dual(rgrad.ones_like(x), direction().t()))
        close(tangent(v), (base() * direction()).flatten().tolist())
        v.mul_(2)
        close(tangent(x), (base() * direction() * 2).t().tolist())
        # The tangent of a result has the strides of the result.
        y = dual().t() * rgrad.ones(4, 3, dtype=real())
        assert tangent(y).stride() == y.stride()


def test_a_base_whose_layout_has_changed() -> None:
    with fwad.dual_level():
        x = base()
        v = x[0]
        x.t_()
        x.copy_(fwad.make_dual(base().t().contiguous(), direction().t().contiguous()))
        close(tangent(v), direction()[0].tolist())


def test_views_made_without_tangents_being_on() -> None:
    with fwad.dual_level():
        x = dual()
        with fwad._set_fwd_grad_enabled(False):
            v = x[1]
            x.t_()
        v.mul_(2)
        want = direction()
        want[1] *= 2
        close(tangent(x), want.t().tolist())


def test_views_under_transforms() -> None:
    def f(x: Any) -> Any:
        made = rgrad.zeros(3, 4, dtype=real())
        row, column = made[1], made[:, 2]
        made.copy_(x * 2)
        row.mul_(3)
        return made + 0, row * 1, column.sin()

    x, t = base(), direction()
    (value, row, column), (moved, moved_row, moved_column) = jvp(f, (x,), (t,))
    scale = rgrad.tensor([[2.0], [6.0], [2.0]], dtype=real())
    close(value, (x * scale).tolist())
    close(moved, (t * scale).tolist())
    close(moved_row, (t * scale)[1].tolist())
    close(moved_column, ((t * scale)[:, 2] * value[:, 2].cos()).tolist())
    close(row, value[1].tolist())
    close(column, value[:, 2].sin().tolist())
    # Twice: each level has tangents of its own.
    _, twice = jvp(lambda x: jvp(lambda x: f(x * x), (x,), (t,))[1], (x,), (t,))
    close(twice[0], (2 * t * t * scale).tolist())


def test_a_history_goes_through_the_tangents() -> None:
    x, t = base(), direction().requires_grad_()
    with fwad.dual_level():
        made = rgrad.zeros(3, 4, dtype=real())
        v = made.as_strided((2, 2), (4, 1), 1)
        made.copy_(fwad.make_dual(x, t))
        v.mul_(3)
        tangent(made).sum().backward()
    want = rgrad.ones(3, 4, dtype=real())
    want.as_strided((2, 2), (4, 1), 1).fill_(3)
    close(t.grad, want.tolist())
