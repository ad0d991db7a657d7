"""Tangents of views and of their bases, written to and made in every order: the same programs in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

View = Callable[[Any], Any]

VIEWS: dict[str, View] = {
    "part": lambda x: x[0],
    "slice": lambda x: x[:, 1:3],
    "step": lambda x: x[::2],
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "movedim": lambda x: x.movedim(0, 1),
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(2, 6),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x[:1].squeeze(0),
    "diagonal": lambda x: x.diagonal(),
    "narrow": lambda x: x.narrow(0, 1, 1),
    "select": lambda x: x.select(1, 2),
    "view_as": lambda x: x.view_as(x),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "as_strided, all": lambda x: x.as_strided((3, 4), (4, 1), 0),
    "as_strided, overlapping": lambda x: x.as_strided((2, 3), (1, 1), 0),
    "as_strided, expanded": lambda x: x.as_strided((2, 3), (0, 1), 1),
    "as_strided of a view": lambda x: x[1:].as_strided((2, 2), (4, 1), 5),
    "as_strided before the view": lambda x: x[1:].as_strided((2, 2), (4, 1), 0),
    "view of as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1)[1],
    "split": lambda x: x.split(2, 1)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "unbind": lambda x: x.unbind()[1],
    "expand": lambda x: x.unsqueeze(0).expand(2, 3, 4),
    "mT": lambda x: x.mT,
    "view of a view": lambda x: x[1:].t()[1:],
    "detach": lambda x: x.detach(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "contiguous": lambda x: x.contiguous(),
}


class Kit:
    """One library, with a base, a direction for each shape, and dual tensors."""

    def __init__(self, T: Any) -> None:
        self.T = T
        self.forward_ad: Any = import_module(f"{T.__name__}.autograd.forward_ad")

    def base(self) -> Any:
        return self.T.arange(12.0, dtype=self.T.float64).reshape(3, 4).clone()

    def like(self, x: Any, scale: float = 1.0) -> Any:
        return self.T.arange(float(x.numel()), dtype=self.T.float64).reshape(x.shape) * scale + 1

    def dual(self, x: Any, scale: float = 1.0) -> Any:
        return self.forward_ad.make_dual(x.detach().clone(), self.like(x, scale))

    def tangent(self, x: Any) -> Any:
        tangent = self.forward_ad.unpack_dual(x).tangent
        return None if tangent is None else tangent.detach().tolist()


def view_then_base(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    b.mul_(k.dual(b))
    return k.tangent(b), k.tangent(v), k.tangent(v * 2)


def view_then_view(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    v.mul_(k.dual(v))
    return k.tangent(b), k.tangent(v), k.tangent(v * 2)


def sibling(k: Kit, f: View) -> Any:
    b = k.base()
    v, w, u = f(b), f(b), b.view_as(b)
    v.mul_(k.dual(v))
    return k.tangent(b), k.tangent(w), k.tangent(u), k.tangent(w * 2)


def view_written(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    v.mul_(3.0)
    return k.tangent(b), k.tangent(v)


def base_written(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    b.mul_(3.0)
    return k.tangent(b), k.tangent(v)


def dual_written_to_view(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    v.mul_(k.dual(v, 5.0))
    return k.tangent(b), k.tangent(v)


def constant_written_to_view(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    v.copy_(k.like(v))
    return k.tangent(b), k.tangent(v)


def zero_written_to_view(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    v.zero_()
    b.add_(1)
    return k.tangent(b), k.tangent(v)


def tangent_written(k: Kit, f: View) -> Any:
    b = k.base()
    t = k.like(b)
    d = k.forward_ad.make_dual(b, t)
    v = f(d)
    k.forward_ad.unpack_dual(v).tangent.mul_(2)
    return t.tolist(), k.tangent(d), k.tangent(v)


def made_after_the_write(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    v.mul_(k.dual(v))
    return k.tangent(f(b)), k.tangent(b.view_as(b))


def layout_changed(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    v = f(b)
    v.unsqueeze_(0)
    v.mul_(2)
    return k.tangent(b), k.tangent(v)


def with_history(k: Kit, f: View) -> Any:
    b = k.base().requires_grad_()
    c = b * 1
    v = f(c)
    v.mul_(k.dual(v))
    c.sum().backward()
    return k.tangent(c), b.grad.tolist()


def dual_of_a_view(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    d = k.forward_ad.make_dual(v, k.like(v))
    before = k.tangent(b), k.tangent(v), k.tangent(d)
    d.mul_(2)
    return before, k.tangent(b), k.tangent(v), k.tangent(d)


def one_after_the_other(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    b.copy_(k.dual(b))
    first = k.tangent(v)
    b.mul_(2)
    second = k.tangent(v)
    v.mul_(2)
    return first, second, k.tangent(v), k.tangent(b)


def not_looked_at(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    b.copy_(k.dual(b))
    v.mul_(2)
    return k.tangent(b), k.tangent(v)


def item_set(k: Kit, f: View) -> Any:
    b = k.base()
    v = f(b)
    v[0] = k.dual(v[0], 2.0)
    return k.tangent(b), k.tangent(v)


def under_no_tangents(k: Kit, f: View) -> Any:
    b = k.dual(k.base())
    with k.forward_ad._set_fwd_grad_enabled(False):
        v = f(b)
        inside = k.tangent(v), k.tangent(b), k.tangent(v * b.sum())
        b.mul_(2)
    return inside, k.tangent(b), k.tangent(v)


PROGRAMS: list[Callable[[Kit, View], Any]] = [
    view_then_base,
    view_then_view,
    sibling,
    view_written,
    base_written,
    dual_written_to_view,
    constant_written_to_view,
    zero_written_to_view,
    tangent_written,
    made_after_the_write,
    layout_changed,
    with_history,
    dual_of_a_view,
    one_after_the_other,
    not_looked_at,
    item_set,
    under_no_tangents,
]

# torch gives an overlapping view's dual the strides of the view, so that its tangent overlaps, too:
# [[1, 2, 3], [4, 5, 6]] becomes [[1, 2, 3], [2, 3, 6]]. rgrad keeps what was given.
# A write to a tangent that overlaps multiplies twice in torch.
DIFFERS = {("as_strided, overlapping", f.__name__) for f in (dual_of_a_view, tangent_written)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", VIEWS)
def test_tangents_of_views(name: str, program: Callable[[Kit, View], Any]) -> None:
    def run(T: Any) -> Any:
        kit = Kit(T)

        def call() -> Any:
            with kit.forward_ad.dual_level():
                return program(kit, VIEWS[name])

        return attempt(call)

    mine, theirs = run(rgrad), run(torch)
    if (name, program.__name__) in DIFFERS:
        assert (mine.value, mine.error) != (theirs.value, theirs.error)
        return
    assert mine.error == theirs.error, (mine.message, theirs.message)
    assert mine.value == theirs.value
