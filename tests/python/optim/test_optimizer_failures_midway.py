"""A step of one group that fails in mid-training, where states exist, writes nothing: not even to the good tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import optim

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD momentum": {"momentum": 0.9, "nesterov": True},
    "Adam": {},
    "Adam amsgrad": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSprop": {},
    "RMSprop momentum": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "ASGD": {},
    "Adafactor": {},
    "Muon": {},
}


def made(name: str, foreach: bool | None = None) -> tuple[list[rgrad.Tensor], optim.Optimizer]:
    """Four parameters in one group, after two steps, with gradients for the third."""
    rgrad.manual_seed(0)
    params = [rgrad.randn(3, 2).requires_grad_() for _ in range(4)]
    options = dict(OPTIMIZERS[name])
    if foreach is not None and name != "Muon":
        options["foreach"] = foreach
    optimizer = getattr(optim, name.split(maxsplit=1)[0])(params, **options)
    for step in range(3):
        for p in params:
            p.grad = rgrad.randn_like(p)
        if step < 2:
            optimizer.step()
    return params, optimizer


def copied(value: Any) -> Any:
    if isinstance(value, rgrad.Tensor):
        t = value.detach()
        return (t.shape, t.dtype, t.device, None if t.device.type == "meta" else t.tolist())
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def everything(params: list[rgrad.Tensor], optimizer: optim.Optimizer) -> Any:
    """Parameters, states with their counters, and gradients."""
    return [
        (copied(p), copied(dict(optimizer.state[p])) if p in optimizer.state else None, copied(p.grad)) for p in params
    ]


def assert_fails_and_writes_nothing(params: list[rgrad.Tensor], optimizer: optim.Optimizer) -> None:
    before = everything(params, optimizer)
    with pytest.raises((RuntimeError, TypeError, KeyError)):
        optimizer.step()
    assert everything(params, optimizer) == before


def other_shape(p: rgrad.Tensor) -> None:
    p.data = rgrad.ones(5, 4)
    p.grad = rgrad.ones(5, 4)


def other_data(p: rgrad.Tensor) -> None:
    p.data = rgrad.ones(5, 4)


def other_gradient(p: rgrad.Tensor) -> None:
    p.grad.data = rgrad.ones(7, 5)


def resized_gradient(p: rgrad.Tensor) -> None:
    p.grad.resize_(7)


def gradient_elsewhere(p: rgrad.Tensor) -> None:
    p.grad.data = p.grad.data.to("meta")


def expanded(p: rgrad.Tensor) -> None:
    p.data = rgrad.ones(1, 2).expand(3, 2)


def frozen(p: rgrad.Tensor) -> None:
    p.detach().freeze_()


CHANGES = [other_shape, other_data, other_gradient, resized_gradient, gradient_elsewhere, expanded, frozen]
# Plain SGD keeps nothing that a new shape could contradict.
CASES = [(name, change) for name in OPTIMIZERS for change in CHANGES if (name, change) != ("SGD", other_shape)]


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize(("name", "change"), CASES, ids=lambda of: of if isinstance(of, str) else of.__name__)
def test_one_parameter_or_gradient_that_does_not_fit(
    name: str, change: Callable[[rgrad.Tensor], None], foreach: bool | None
) -> None:
    for at in (0, 2, 3):
        params, optimizer = made(name, foreach)
        change(params[at])
        assert_fails_and_writes_nothing(params, optimizer)


def all_double(p: rgrad.Tensor) -> None:
    p.data = p.data.double()
    p.grad = rgrad.ones(3, 2, dtype=rgrad.float64)


def double_gradient(p: rgrad.Tensor) -> None:
    p.grad.data = p.grad.data.double()


def half_gradient(p: rgrad.Tensor) -> None:
    p.grad.data = p.grad.data.half()


# Whose first operation on a state is lerp, which takes one dtype only.
STRICT = ["AdamW", "NAdam", "RAdam", "Adamax", "Adafactor", "Muon"]


@pytest.mark.parametrize("change", [all_double, double_gradient, half_gradient], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", STRICT)
def test_one_parameter_or_gradient_of_another_dtype(name: str, change: Callable[[rgrad.Tensor], None]) -> None:
    for at in (0, 2, 3):
        params, optimizer = made(name)
        change(params[at])
        assert_fails_and_writes_nothing(params, optimizer)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "SGD"])
def test_a_state_that_was_replaced_by_hand(name: str) -> None:
    for entry in made(name)[1].state_dict()["state"][2]:
        params, optimizer = made(name)
        optimizer.state[params[2]][entry] = "x"
        before = everything(params, optimizer)
        with pytest.raises((TypeError, AttributeError, ValueError)):
            optimizer.step()
        assert everything(params, optimizer) == before


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n.split()[0] not in ("SGD", "Muon")])
def test_a_counter_that_is_gone(name: str) -> None:
    params, optimizer = made(name)
    del optimizer.state[params[2]]["step"]
    before = everything(params, optimizer)
    with pytest.raises(KeyError, match="step"):
        optimizer.step()
    assert everything(params, optimizer) == before


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_closure_that_raises(name: str) -> None:
    params, optimizer = made(name)
    before = everything(params, optimizer)

    def closure() -> rgrad.Tensor:
        raise LookupError("no batch")

    with pytest.raises(LookupError, match="no batch"):
        optimizer.step(closure)
    assert everything(params, optimizer) == before
    assert rgrad.is_grad_enabled()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_goes_on_where_a_failed_one_was_repaired(name: str) -> None:
    params, optimizer = made(name)
    others, other = made(name)
    good = params[2].grad.data
    params[2].grad.data = rgrad.ones(7, 5)
    assert_fails_and_writes_nothing(params, optimizer)
    params[2].grad.data = good
    optimizer.step()
    other.step()
    assert everything(params, optimizer) == everything(others, other)


@pytest.mark.wgpu
@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "SGD"])
def test_one_gradient_on_another_device(name: str) -> None:
    params, optimizer = made(name)
    params[2].grad.data = params[2].grad.data.to("wgpu")
    assert_fails_and_writes_nothing(params, optimizer)
