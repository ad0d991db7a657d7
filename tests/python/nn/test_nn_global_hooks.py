"""Hooks on all modules, and buffers that are assigned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from rgrad import nn
from rgrad.nn.modules import module as everywhere


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Buffer(rgrad.full((3,), 2.0))
        self.last = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.last(self.first(x) * self.scale)


@pytest.fixture
def handles() -> Iterator[list[Any]]:
    """What a test registers for the whole process goes at its end."""
    registered: list[Any] = []
    yield registered
    for handle in registered:
        handle.remove()


def test_calls_of_all_modules_are_seen_in_order(handles: list[Any]) -> None:
    net, seen = Net(), []
    handles.append(everywhere.register_module_forward_pre_hook(lambda m, args: seen.append(("before", type(m)))))
    handles.append(everywhere.register_module_forward_hook(lambda m, args, out: seen.append(("after", type(m)))))
    net.first.register_forward_pre_hook(lambda m, args: seen.append(("own", type(m))))
    net(rgrad.ones(1, 2))
    assert seen == [
        ("before", Net),
        ("before", nn.Linear),
        ("own", nn.Linear),
        ("after", nn.Linear),
        ("before", nn.ReLU),
        ("after", nn.ReLU),
        ("after", Net),
    ]
    for handle in handles:
        handle.remove()
    seen.clear()
    net(rgrad.ones(1, 2))
    assert seen == [("own", nn.Linear)]


def test_results_of_hooks_replace_arguments_and_outputs(handles: list[Any]) -> None:
    relu = nn.ReLU()
    handles.append(everywhere.register_module_forward_pre_hook(lambda m, args: args[0] * 3))
    handles.append(everywhere.register_module_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True))
    assert relu(rgrad.tensor([-1.0, 2.0])).tolist() == [1.0, 7.0]


def test_a_hook_that_is_always_called_sees_failures(handles: list[Any]) -> None:
    seen: list[Any] = []
    handles.append(everywhere.register_module_forward_hook(lambda m, args, out: seen.append(out), always_call=True))
    with pytest.raises(RuntimeError):
        nn.Linear(2, 2)(rgrad.ones(1, 5))
    assert seen == [None]


def test_gradients_of_all_modules_are_seen(handles: list[Any]) -> None:
    net, seen = Net(), []
    handles.append(everywhere.register_module_full_backward_pre_hook(lambda m, grads: seen.append(type(m))))
    handles.append(
        everywhere.register_module_full_backward_hook(
            lambda m, inputs, outputs: (inputs[0] * 10,) if isinstance(m, nn.ReLU) else None
        )
    )
    x = rgrad.ones(1, 2, requires_grad=True)
    net.first.weight.data.fill_(1.0)
    net.first.bias.data.fill_(0.0)
    net(x).sum().backward()
    assert seen == [Net, nn.ReLU, nn.Linear]
    assert x.grad.tolist() == [[60.0, 60.0]]


def test_registrations_are_seen_and_may_be_replaced(handles: list[Any]) -> None:
    seen: list[str] = []
    handles.append(everywhere.register_module_parameter_registration_hook(lambda m, name, p: seen.append(f"p {name}")))
    handles.append(everywhere.register_module_buffer_registration_hook(lambda m, name, b: b + 1))
    handles.append(everywhere.register_module_module_registration_hook(lambda m, name, c: seen.append(f"m {name}")))
    net = Net()
    assert seen == ["p weight", "p bias", "m first", "m last"]
    assert net.scale.tolist() == [3.0, 3.0, 3.0]
    net.register_buffer("more", rgrad.zeros(1))
    net.add_module("again", nn.Identity())
    assert net.more.tolist() == [1.0]
    assert seen[-1] == "m again"


def test_buffers_are_registered_by_assignment() -> None:
    net = Net()
    assert [name for name, _ in net.named_buffers()] == ["scale"]
    assert isinstance(net.scale, nn.Buffer)
    assert not isinstance(rgrad.ones(1), nn.Buffer)
    net.hidden = nn.Buffer(rgrad.ones(1), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["scale", "hidden"]
    assert "hidden" not in net.state_dict()
    assert "scale" in net.state_dict()
    net.scale = rgrad.zeros(3)
    assert net.scale.tolist() == [0.0, 0.0, 0.0]
    assert "scale" not in vars(net)
    assert nn.Buffer().numel() == 0


def test_buffers_that_cannot_be() -> None:
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.Buffer([1.0])  # type: ignore[arg-type]

    class Early(nn.Module):
        def __init__(self) -> None:
            self.b = nn.Buffer(rgrad.ones(1))

    with pytest.raises(AttributeError, match="before Module"):
        Early()
    net = Net()
    with pytest.raises(TypeError, match="cannot assign"):
        net.first.weight = nn.Buffer(rgrad.ones(1))


def test_old_backward_hooks_of_all_modules(handles: list[Any]) -> None:
    seen: list[tuple[str, list[Any]]] = []

    def note(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        seen.append((type(module).__name__, [g.tolist() for g in grad_output]))

    handles.append(everywhere.register_module_backward_hook(note))
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        everywhere.register_module_full_backward_hook(note)
    layer = nn.Tanh()
    layer.register_backward_hook(lambda module, grad_input, grad_output: seen.append(("own", [])))
    x = rgrad.zeros(1, requires_grad=True)
    (layer(x * 1) * 2).sum().backward()
    assert seen == [("Tanh", [[2.0]]), ("own", [])]
    handles.pop().remove()
    handles.append(everywhere.register_module_full_backward_hook(note))
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        everywhere.register_module_backward_hook(note)
    seen.clear()
    (nn.Tanh()(x) * 3).sum().backward()
    assert seen == [("Tanh", [[3.0]])]
