"""Module hooks where they meet: order, removal while they run, errors, the old backward hooks."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import rgrad
from rgrad import nn


class Scale(nn.Module):
    """``x * w * scale``; with ``y`` a pair of that and ``y``; an error on demand."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.w = nn.Parameter(rgrad.ones(2))
        self.fails = fails

    def forward(self, x: Any, y: Any = None, scale: float = 1.0) -> Any:
        if self.fails:
            raise ValueError("forward")
        out = x * self.w * scale
        return out if y is None else (out, y)


def leaf() -> Any:
    return rgrad.ones(2, requires_grad=True)


def noting(log: list[Any], name: str) -> Any:
    return lambda *args: log.append((name, len(args)))


def test_order_of_all_kinds(device: str) -> None:
    m, log = Scale(), []
    m.register_forward_pre_hook(noting(log, "fp1"))
    m.register_forward_pre_hook(noting(log, "fp2"), prepend=True)
    m.register_forward_hook(noting(log, "f1"))
    m.register_forward_hook(noting(log, "f2"), prepend=True)
    m.register_full_backward_hook(noting(log, "b1"))
    m.register_full_backward_hook(noting(log, "b2"), prepend=True)
    m.register_full_backward_pre_hook(noting(log, "bp1"))
    m.register_full_backward_pre_hook(noting(log, "bp2"), prepend=True)
    m(leaf()).sum().backward()
    assert log == [("fp2", 2), ("fp1", 2), ("f2", 3), ("f1", 3), ("bp2", 2), ("bp1", 2), ("b2", 3), ("b1", 3)]


def test_a_hook_may_remove_itself_and_others_run() -> None:
    m, log, handles = Scale(), [], []

    def once(*args: Any) -> None:
        log.append("once")
        handles[0].remove()

    handles.append(m.register_full_backward_hook(once))
    m.register_full_backward_hook(lambda *args: log.append("always"))
    m(leaf()).sum().backward()
    m(leaf()).sum().backward()
    assert log == ["once", "always", "always"]


def test_a_removed_forward_pre_hook_ends_the_walk() -> None:
    """As in PyTorch, which walks the table itself: a change of it while it is walked shows."""
    m, handles = Scale(), []
    handles.append(m.register_forward_pre_hook(lambda *args: handles[0].remove()))
    m.register_forward_pre_hook(lambda *args: None)
    m(leaf())
    assert len(m._forward_pre_hooks) == 1


def test_gradients_can_be_replaced(device: str) -> None:
    m, x = Scale(), leaf()
    m.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 10,))
    m(x).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    assert m.w.grad is not None
    assert m.w.grad.tolist() == [1.0, 1.0]
    m, x = Scale(), leaf()
    m.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    m(x).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    for wrong in ((None, None), ()):
        m = Scale()
        m.register_full_backward_hook(lambda *args, wrong=wrong: wrong)
        with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad_input"):
            m(leaf()).sum().backward()


def test_always_called_hooks_get_what_there_is() -> None:
    seen: list[Any] = []
    m = Scale()

    def broken(*args: Any) -> None:
        raise KeyError("hook")

    m.register_forward_hook(broken)
    m.register_forward_hook(lambda m, args, output: seen.append(output), always_call=True)
    with pytest.raises(KeyError, match="hook"):
        m(leaf())
    assert seen[-1].tolist() == [1.0, 1.0]
    m = Scale(fails=True)
    m.register_forward_hook(
        lambda m, args, kwargs, output: seen.append((kwargs, output)), always_call=True, with_kwargs=True
    )
    with pytest.raises(ValueError, match="forward"):
        m(leaf(), scale=2.0)
    assert seen[-1] == ({"scale": 2.0}, None)


def test_old_backward_hooks(device: str) -> None:
    m, seen = nn.Tanh(), []
    handle = m.register_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    x = leaf()
    m(x * 1).sum().backward()
    assert [len(part) for part in seen[0]] == [1, 1]
    assert seen[0][1][0].tolist() == [1.0, 1.0]
    handle.remove()
    m(x * 1).sum().backward()
    assert len(seen) == 1

    several = Scale()
    several.register_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 2, *grad_input[1:]))
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        out = several(x, scale=3.0)
    x.grad = None
    out.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_old_and_full_hooks_do_not_mix() -> None:
    for first, second in (
        ("register_backward_hook", "register_full_backward_hook"),
        ("register_full_backward_hook", "register_backward_hook"),
    ):
        m = Scale()
        handle = getattr(m, first)(lambda *args: None)
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
            getattr(m, second)(lambda *args: None)
        handle.remove()


def test_state_dict_hooks() -> None:
    m = nn.Sequential(Scale())
    log: list[Any] = []
    m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(("pre", prefix)))
    m._register_state_dict_hook(lambda module, state, prefix, metadata: log.append(("private", sorted(state))))
    m.register_state_dict_post_hook(lambda module, state, prefix, metadata: log.append(("post", sorted(state))))
    m.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: log.append(("load", len(rest))))
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    state = m.state_dict()
    assert isinstance(state, OrderedDict)
    m.load_state_dict({})
    assert log == [("pre", ""), ("private", ["0.w"]), ("post", ["0.w"]), ("load", 5)]


def test_backward_hooks_under_create_graph_and_twice(device: str) -> None:
    m, log = Scale(), []
    m.register_full_backward_hook(lambda m, grad_input, grad_output: log.append(grad_input[0].tolist()))
    x = leaf()
    out = m(x)
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    assert log == [[1.0, 1.0], [1.0, 1.0]]
    (g,) = rgrad.autograd.grad((m(x) ** 2).sum(), x, create_graph=True)
    x.grad = None
    g.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
