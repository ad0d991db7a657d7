"""Programs about autograd as users write them at their worst: rgrad beside torch, statement by statement."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from autograd_observer import difference  # noqa: E402 - torch must be there first
from autograd_search import search, text  # noqa: E402

pytestmark = pytest.mark.oracle

# What random programs have found, as short as it got.
FOUND: dict[str, list[str]] = {
    "a dirty input that is not the first output": ["w.zero_()", "c, d = DirtyTwo.apply(w, b)", "d.sum().backward()"],
    "a view transposed in place under no_grad": [
        "c = a * 1",
        "v = c.t()",
        "with T.no_grad():\n    v.t_()",
        "(v * b).sum().backward()",
    ],
    "one of several views changed under no_grad": ["v = a.unbind(0)[1]", "with T.no_grad():\n    v.t_()"],
    "a no_grad view changed under no_grad": ["with T.no_grad():\n    v = a.view(-1)\n    v.unsqueeze_(0)"],
    "a leaf that was detached as a root": [
        "b = T.where(c > 0, a, c)",
        "a.detach_()",
        "T.autograd.backward([b, a], [c, c])",
    ],
    "jacfwd of a view with gaps": ["v = c.t()", "w = v.diagonal()", "d = T.func.jacfwd(lambda x: (x * x).sum(0))(w)"],
    "hessian of a transposed tensor": ["d = T.func.hessian(lambda x: (x ** 3).sum())(c.t()).clone()"],
    "a write inside of vmap": ["d = T.func.vmap(T.func.vmap(lambda x: x.add_(1)))(c).clone()"],
    "hooks of a root from which nothing leads to an input": [
        "c = a * 1",
        "c.retain_grad()",
        "c.register_hook(lambda g: log(g))",
        "T.autograd.grad(c, [b], T.ones_like(c), retain_graph=True)",
    ],
    "data that transforms write": [
        "d = b.data",
        "T.func.vmap(lambda x: x.add_(1))(d)",
        "log(b._version, d._version)",
    ],
    "one number everywhere": ["v = c[:1].expand(3, 3)", "v.zero_()", "v.fill_(2)"],
    "a gradient of another shape for what requires none": ["w.backward(c)"],
    "no tensor among the inputs": ["d = T.autograd.grad(a.sum(), [a, None])"],
    "roll of a number": ["d = a.sum().roll(1, 0)"],
    "positions in a number": ["d = a.sum().index_select(0, T.tensor([0, 1]))"],
    "None as data": ["c.data = c.grad"],
    "a vector times a matrix": ["d = w @ c * 1", "log((w @ c)._is_view(), (c[None] @ w)._is_view())"],
    "flags of a view that has lost its node": [
        "c, d = Same.apply(w, a)",
        "d.detach().add_(1)",
        "d.requires_grad_(False)",
    ],
    "gradient for a no_grad view": [
        "with T.no_grad():\n    v = a.t()",
        "c, d = T.autograd.grad(v.sum(), [v, b], allow_unused=True)",
        "b.sum().backward(inputs=[v])",
    ],
    "a captured view without a node in a transform": [
        "with T.set_grad_enabled(False):\n    v = b.view(-1)",
        "c = T.func.grad(lambda x: (x.sin() * v).sum())(a.mean(0).repeat(3)).clone()",
    ],
    "history below a transform whose nodes read nothing": ["c = T.func.grad(lambda x: ((1 - x) * b).sum())(c).clone()"],
    "retain_grad of a view that cannot be used any more": [
        "with T.no_grad():\n    v = a.view(-1)",
        "a, c = DirtyTwo.apply(a, u)",
        "v.retain_grad()",
    ],
    "flip keeps the order of dimensions": ["w = b.unfold(0, 2, 2)", "c = w.flip(0)", "v = c.flatten()"],
    "lerp keeps a number only": [
        "d.lerp_(a.clone(), 0.5)",
        "c = a * d",
        "(b * d).sum().backward()",
        "(c * v).sum().backward()",
    ],
    "a write in place of what has no gradient yet": [
        "c.scatter_reduce_(0, T.tensor([[0, 1, 1]]), b[:1].clone(), 'prod')",
        "c.sum().backward(create_graph=True)",
        "d.heaviside_(b * b + 1)",
        "d.sum().backward()",
    ],
    "views of an inference tensor that requires grad": [
        "with T.inference_mode():\n    c = a.detach().clone().requires_grad_()",
        "v, _, w = c.unbind(0)",
        "u = c.split(1)[0]",
    ],
    "the order of dimensions of a gradient": [
        "c = T.func.vmap(lambda x: x * 2, out_dims=1)(b).clone()",
        "c, d = T.autograd.grad((b * c).sum(), [b, c], create_graph=True)",
        "v = c.clone().contiguous().view(-1)",
    ],
    "an output of another size that was saved": [
        "d = a * c",
        "T.cat([d[0].detach(), d[1].detach()], out=c)",
        "d.sum().backward()",
    ],
    "a write by a function in Python to one of several views": [
        "c, d = Same.apply(a, a)",
        "with T.set_grad_enabled(False):\n    d.erfinv_()",
        "d.put_(T.tensor([0, 3]), v.reshape(-1)[:2].clone())",
    ],
    "what has no derivative, in place": [
        "c = a * 1",
        "c[:2].heaviside_(b[:2].clone())",
        "c.sum().backward()",
        "d.heaviside_(b.clone())",
        "d.sum().backward()",
    ],
    "data of another shape before the first gradient": [
        "c = T.nn.functional.gelu(b)",
        "b.data = v.detach().clone()",
        "c.sum().backward(inputs=leaves(b), retain_graph=True)",
    ],
    "a hook of a module whose inputs need no gradient": [
        "h = net.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))",
        "net(u).sum().backward()",
        "net(c).sum().backward()",
    ],
    "hooks of a node whose other outputs are positions": [
        "c = a.max(0)[0]",
        "c.grad_fn.register_prehook(lambda go: log(go))",
        "c.grad_fn.register_hook(lambda gi, go: log(gi, go))",
        "c.sum().backward()",
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_programs_that_once_differed(name: str) -> None:
    for watch in (False, True):
        found = difference(FOUND[name], rgrad, torch, watch)
        assert found is None, f"{FOUND[name][found[0]]}: {found[1]}"


def test_random_programs() -> None:
    """Some of them; `./run long autograd` runs fresh ones for half an hour."""
    found, crashed = search(1800, 1200)
    assert not found, "\n".join(text(each) for each in found)
    assert crashed < 10


def test_a_difference_is_seen() -> None:
    """The comparison is able to fail: other values, other errors, other flags."""

    class Other:
        def __getattr__(self, name: str) -> object:
            return getattr(rgrad, name)

    mine = Other()
    mine.__name__ = "rgrad"  # type: ignore[attr-defined]
    mine.tensor = lambda *args, **kw: rgrad.tensor(*args, **kw).detach()  # type: ignore[attr-defined]
    found = difference(["c = a * 2"], mine, torch, True)
    assert found is not None
    assert "requires_grad" in found[1]
    mine.tensor = lambda data, **kw: rgrad.tensor(np.add(data, 1), **kw)  # type: ignore[attr-defined]
    found = difference(["c = a * 2"], mine, torch, True)
    assert found is not None
    assert "values" in found[1]
