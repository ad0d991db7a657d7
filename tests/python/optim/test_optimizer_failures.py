"""A step that fails leaves parameters and states as they were, also where a later group is to blame."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import optim

NAMES = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD")
NAMES += ("Adafactor", "Muon")


def made(name: str, steps: int, groups: int = 2) -> tuple[list[rgrad.Tensor], optim.Optimizer]:
    """Parameters in groups of two, and their optimizer after some steps."""
    rgrad.manual_seed(0)
    params = [rgrad.randn(3, 2).requires_grad_() for _ in range(2 * groups)]
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    parts = [{"params": params[at : at + 2]} for at in range(0, 2 * groups, 2)]
    optimizer = getattr(optim, name)(parts, **options)
    for _ in range(steps):
        give_gradients(params)
        optimizer.step()
    give_gradients(params)
    return params, optimizer


def give_gradients(params: list[rgrad.Tensor]) -> None:
    for p in params:
        p.grad = rgrad.randn_like(p)


def everything(params: list[rgrad.Tensor], optimizer: optim.Optimizer) -> Any:
    return copy.deepcopy(([p.detach() for p in params], optimizer.state_dict()["state"]))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, rgrad.Tensor):
        return isinstance(b, rgrad.Tensor) and a.shape == b.shape and rgrad.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def assert_nothing_changes(
    params: list[rgrad.Tensor], optimizer: optim.Optimizer, error: Any, match: str | None
) -> None:
    before = everything(params, optimizer)
    with pytest.raises(error, match=match):
        optimizer.step()
    assert same(before, everything(params, optimizer))


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("name", NAMES)
def test_an_option_of_a_later_group(name: str, steps: int) -> None:
    params, optimizer = made(name, steps)
    wrong = {"etas": (None, "x")} if name == "Rprop" else {"lr": "x"}
    right = {key: optimizer.param_groups[1][key] for key in wrong}
    optimizer.param_groups[1].update(wrong)
    assert_nothing_changes(params, optimizer, (TypeError, ValueError), None)
    optimizer.param_groups[1].update(right)
    optimizer.step()
    assert not same(everything(params, optimizer), everything(*made(name, steps)))
    assert same(everything(params, optimizer), after_one_more(name, steps))


def after_one_more(name: str, steps: int) -> Any:
    params, optimizer = made(name, steps)
    optimizer.step()
    return everything(params, optimizer)


@pytest.mark.parametrize("option", ["eps", "betas", "weight_decay"])
def test_other_options_of_a_later_group(option: str) -> None:
    params, optimizer = made("Adam", 1)
    optimizer.param_groups[1][option] = ("x", 0.5) if option == "betas" else "x"
    assert_nothing_changes(params, optimizer, TypeError, None)
    del optimizer.param_groups[1][option]
    assert_nothing_changes(params, optimizer, KeyError, option)


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_parameter_of_a_later_group(name: str, steps: int) -> None:
    params, optimizer = made(name, steps)
    params[3].detach().freeze_()
    assert_nothing_changes(params, optimizer, RuntimeError, "frozen")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_an_expanded_parameter(name: str, groups: int) -> None:
    params, optimizer = made(name, 0, groups)
    params[-1].data = rgrad.ones(1, 2).expand(3, 2)
    assert_nothing_changes(params, optimizer, RuntimeError, "expanded|single memory location")


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_of_a_later_group_that_has_another_shape_now(name: str) -> None:
    params, optimizer = made(name, 2)
    params[3].data = rgrad.ones(5, 4)
    params[3].grad = rgrad.ones(5, 4)
    assert_nothing_changes(params, optimizer, RuntimeError, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_of_a_later_group_that_is_on_another_device_now(name: str) -> None:
    params, optimizer = made(name, 2)
    params[3].data = params[3].detach().to("meta")
    params[3].grad = rgrad.empty(3, 2, device="meta")

    def others() -> Any:
        return copy.deepcopy(([p.detach() for p in params[:3]], [optimizer.state[p] for p in params]))

    before = others()
    with pytest.raises(RuntimeError, match="device|meta"):
        optimizer.step()
    assert same(before, others())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("SGD", "Muon")])
def test_a_loaded_state_that_lacks_an_entry(name: str) -> None:
    params, optimizer = made(name, 2)
    state = copy.deepcopy(optimizer.state_dict())
    key = [key for key in state["state"][3] if key != "step"][-1]
    del state["state"][3][key]
    optimizer.load_state_dict(state)
    assert_nothing_changes(params, optimizer, KeyError, key)


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_state_of_another_size(name: str) -> None:
    params, optimizer = made(name, 2)
    state = copy.deepcopy(optimizer.state_dict())
    key = [key for key in state["state"][3] if key != "step"][-1]
    state["state"][3][key] = rgrad.ones(7)
    optimizer.load_state_dict(state)
    assert_nothing_changes(params, optimizer, RuntimeError, "must match")


@pytest.mark.parametrize("option", ["ns_steps", "ns_coefficients"])
def test_options_of_muon(option: str) -> None:
    params, optimizer = made("Muon", 1)
    optimizer.param_groups[1][option] = {"ns_steps": 100, "ns_coefficients": (1.0, 2.0)}[option]
    assert_nothing_changes(params, optimizer, ValueError, "Number of steps|exactly 3 values")


def test_a_differentiable_step() -> None:
    params = [rgrad.ones(2, requires_grad=True), rgrad.ones(2, requires_grad=True)]
    copies = [params[0].clone(), params[1]]
    optimizer = optim.Adam([{"params": copies[:1]}, {"params": copies[1:]}], differentiable=True)
    give_gradients(copies)
    # The first may be written, the second is a leaf.
    assert_nothing_changes(copies, optimizer, RuntimeError, "leaf")


def lbfgs(search: str | None) -> tuple[list[rgrad.Tensor], optim.Optimizer, Callable[[], rgrad.Tensor]]:
    params = [rgrad.tensor(start, dtype=rgrad.float64, requires_grad=True) for start in ([-1.2, 1.0], [[0.5], [2.0]])]
    optimizer = optim.LBFGS(params, lr=1.0 if search else 1e-3, history_size=3, max_iter=6, line_search_fn=search)

    def closure() -> rgrad.Tensor:
        optimizer.zero_grad()
        a, b = params
        loss = 100 * (a[1] - a[0] ** 2) ** 2 + (1 - a[0]) ** 2 + (b**4).sum()
        loss.backward()
        return loss

    return params, optimizer, closure


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_lbfgs_whose_closure_fails(search: str | None, steps: int, at: int) -> None:
    params, optimizer, closure = lbfgs(search)
    for _ in range(steps):
        optimizer.step(closure)
    before, calls = everything(params, optimizer), 0

    def failing() -> rgrad.Tensor:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return closure()

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(failing)
    assert calls == at
    assert same(before, everything(params, optimizer))
    # It goes on as if nothing had happened.
    optimizer.step(closure)
    others, other, again = lbfgs(search)
    for _ in range(steps + 1):
        other.step(again)
    assert same(everything(params, optimizer), everything(others, other))


@pytest.mark.parametrize("steps", [0, 2])
def test_lbfgs_with_wrong_options_or_parameters(steps: int) -> None:
    params, optimizer, closure = lbfgs(None)
    for _ in range(steps):
        optimizer.step(closure)
    before = everything(params, optimizer)
    group = optimizer.param_groups[0]
    for wrong in ({"line_search_fn": "x"}, {"lr": "x"}, {"tolerance_change": "x"}):
        right = {key: group[key] for key in wrong}
        group.update(wrong)
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            optimizer.step(closure)
        group.update(right)
        assert same(before, everything(params, optimizer))
    params[1].detach().freeze_()
    with pytest.raises(RuntimeError, match="frozen"):
        optimizer.step(closure)
    assert same(before, everything(params, optimizer))
