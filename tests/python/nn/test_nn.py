"""Modules: registration, state, hooks, printing and containers."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import rgrad
from devices import memory, real
from rgrad import nn

pytestmark = pytest.mark.usefixtures("device")


def numbers(*shape: int, seed: int = 0) -> rgrad.Tensor:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=real())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.scale = nn.Parameter(rgrad.ones(1))
        self.register_buffer("count", rgrad.zeros(1))
        self.register_buffer("cache", rgrad.zeros(2), persistent=False)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "rest.1.weight", "rest.1.bias"]


# -------------------------------------------------------------------------------------------------- registration


def test_parameters_buffers_and_modules_are_found_by_name() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["count", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert next(iter(net.named_parameters(prefix="net")))[0] == "net.scale"
    assert len(list(net.parameters())) == 5
    assert net.get_parameter("rest.1.bias") is net.rest[1].bias
    assert net.get_buffer("count") is net.count
    assert net.get_submodule("rest.0") is net.rest[0]
    assert net.get_submodule("") is net
    kept = net.rest[0]
    made = nn.ReLU()
    net.set_submodule("rest.0", made, strict=True)
    assert net.rest[0] is made
    net.set_submodule("rest.0", kept)
    net.set_submodule("rest.0.more", made)
    assert net.rest[0].more is made
    del net.rest[0].more
    for get, target in ((net.get_submodule, "rest.7"), (net.get_parameter, "count"), (net.get_buffer, "scale")):
        with pytest.raises(AttributeError):
            get(target)


def test_shared_parameters_and_modules_come_once() -> None:
    net = nn.Module()
    net.a = nn.Linear(2, 2)
    net.b = net.a
    net.c = nn.Linear(2, 2)
    net.c.weight = net.a.weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight", "a.bias", "c.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert len(list(net.children())) == 2
    assert len(list(net.modules())) == 3


def test_attributes_move_between_the_tables() -> None:
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(rgrad.ones(1))
    assert list(net._parameters) == ["x"]
    assert "x" not in net.__dict__
    net.x = nn.Linear(1, 1)
    assert list(net._modules) == ["x"]
    assert not net._parameters
    net.x = None
    assert net.x is None
    del net.x
    assert not hasattr(net, "x")
    net.register_buffer("b", rgrad.ones(1), persistent=False)
    net.b = rgrad.zeros(1)
    assert net.state_dict() == {}
    assert net.b.item() == 0
    del net.b
    assert not net._non_persistent_buffers_set
    net.p = nn.Parameter(rgrad.ones(1))
    net.p = None
    assert list(net.parameters()) == []
    assert "p" in dir(net)
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'missing'"):
        _ = net.missing
    with pytest.raises(AttributeError):
        del net.missing


def test_wrong_attributes() -> None:
    net = Net()
    with pytest.raises(TypeError, match="cannot assign 'rgrad.*' as parameter 'scale'"):
        net.scale = rgrad.ones(1)
    with pytest.raises(TypeError, match="as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="as buffer 'count'"):
        net.count = 3
    with pytest.raises(TypeError, match=r"rgrad.nn.Parameter or None required"):
        net.register_parameter("w", rgrad.ones(1))
    with pytest.raises(KeyError, match="attribute 'first' already exists"):
        net.register_parameter("first", nn.Parameter(rgrad.ones(1)))
    with pytest.raises(KeyError, match="name can.*contain"):
        net.register_buffer("a.b", rgrad.ones(1))
    with pytest.raises(KeyError, match="be empty string"):
        net.add_module("", nn.ReLU())
    with pytest.raises(TypeError, match="is not a Module subclass"):
        net.add_module("m", 3)
    with pytest.raises(TypeError, match="name should be a string"):
        net.register_buffer(3, rgrad.ones(1))

    class Early(nn.Module):
        def __init__(self) -> None:
            self.w = nn.Parameter(rgrad.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        nn.Module(a=1)
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


def test_parameter() -> None:
    data = rgrad.ones(2)
    p = nn.Parameter(data)
    assert isinstance(p, rgrad.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    assert memory(p) == memory(data)
    assert not data.requires_grad
    assert repr(p) == "Parameter containing:\n" + repr(data.detach().requires_grad_())
    assert type(p * 2) is rgrad.Tensor
    with rgrad.no_grad():
        assert nn.Parameter(data).requires_grad
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    twin = copy.deepcopy(p)
    assert type(twin) is nn.Parameter
    assert memory(twin) != memory(p)
    back = pickle.loads(pickle.dumps(p))
    assert type(back) is nn.Parameter
    assert rgrad.equal(back, p)
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(rgrad.ones(2, dtype=rgrad.int64))


# ------------------------------------------------------------------------------------------ changing all of it


def test_modes_casts_and_gradients() -> None:
    net = Net()
    assert net.training
    assert not net.eval().rest[1].training
    assert net.train().first.training
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    net(rgrad.ones(2, 3)).sum().backward()
    weight, grad = net.first.weight, net.first.weight.grad.clone()
    other, cast = (real(), net.double) if real() == rgrad.float64 else (rgrad.float16, net.half)
    assert cast() is net
    assert net.first.weight is weight
    assert weight.dtype == other
    assert weight.grad.dtype == other
    assert rgrad.equal(weight.grad, grad.to(other))
    assert net.count.dtype == other
    assert net(rgrad.ones(2, 3, dtype=other)).dtype == other
    net.to(rgrad.float32).to("cpu").to(rgrad.ones(1, dtype=other)).to("cpu", rgrad.float32).to(dtype=other).float()
    assert weight.dtype == rgrad.float32
    with pytest.raises(TypeError, match="only accepts floating point"):
        net.to(rgrad.int64)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        net.to([1])
    net.zero_grad(set_to_none=False)
    assert weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    seen = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_modules_are_copied_pickled_and_freed() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    twin = copy.deepcopy(net)
    with rgrad.no_grad():
        twin[0].weight.zero_()
    assert net[0].weight.abs().sum().item() > 0
    back = pickle.loads(pickle.dumps(net))
    x = rgrad.ones(1, 3)
    assert rgrad.equal(back(x), net(x))
    ref = weakref.ref(net)
    del net, back
    gc.collect()
    assert ref() is None


# --------------------------------------------------------------------------------------------------------- state


def test_state_dict() -> None:
    net = Net()
    state = net.state_dict()
    assert list(state) == ["scale", "count", "first.weight", "first.bias", "rest.1.weight", "rest.1.bias"]
    assert memory(state["scale"]) == memory(net.scale)
    assert not state["scale"].requires_grad
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert state._metadata["rest.1"] == {"version": 1}
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale"
    other = Net()
    result = other.load_state_dict(state)
    assert repr(result) == "<All keys matched successfully>"
    assert rgrad.equal(other.first.weight, net.first.weight)
    assert other.first.weight.requires_grad


def test_load_state_dict_names_everything_that_is_wrong_and_changes_nothing() -> None:
    net = Net()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    state = {key: value + 1 for key, value in before.items()}
    del state["first.bias"]
    state["first.weight"] = rgrad.ones(4, 5)
    state["rest.1.bias"] = 3
    state["rest.9.bias"] = rgrad.ones(1)
    state["extra"] = rgrad.ones(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Net:")
    assert 'Missing key(s) in state_dict: "first.bias".' in text
    assert 'Unexpected key(s) in state_dict: "extra", "rest.9.bias".' in text
    assert "size mismatch for first.weight: copying a param with shape" in text
    assert "the shape in current model is" in text
    assert '"rest.1.bias"' in text
    assert all(rgrad.equal(value, before[key]) for key, value in net.state_dict().items())
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        net.load_state_dict([1])


def test_load_state_dict_not_strict() -> None:
    net = Net()
    result = net.load_state_dict({"scale": rgrad.tensor([5.0]), "extra": rgrad.ones(1)}, strict=False)
    assert result.unexpected_keys == ["extra"]
    assert "first.weight" in result.missing_keys
    assert net.scale.item() == 5


def test_load_state_dict_assign() -> None:
    net, source = Net(), Net()
    given = source.state_dict(keep_vars=True)
    given["first.bias"] = given["first.bias"].detach().half()
    net.load_state_dict(given, assign=True)
    assert net.first.weight is source.first.weight
    assert net.first.bias.dtype == rgrad.float16
    assert isinstance(net.first.bias, nn.Parameter)


def test_extra_state_and_hooks_of_state() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state) -> None:
            self.n = state["n"]

    net = nn.Sequential(Counter())
    net[0].n = 7
    state = net.state_dict()
    assert state == {"0._extra_state": {"n": 7}}
    other = nn.Sequential(Counter())
    other.load_state_dict(state)
    assert other[0].n == 7
    with pytest.raises(RuntimeError, match="Missing"):
        other.load_state_dict({})
    log = []
    net.register_state_dict_pre_hook(lambda module, prefix, keep: log.append("before"))
    net.register_state_dict_post_hook(lambda module, state, prefix, meta: log.append(list(state)))
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.state_dict()
    assert log == ["before", ["0._extra_state"]]
    assert net.load_state_dict({}) == ([], [])


# --------------------------------------------------------------------------------------------------------- hooks


def test_forward_hooks_see_and_replace() -> None:
    net = nn.Linear(2, 2).to(real())
    x = numbers(3, 2)
    plain = net(x)
    log = []
    pre = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    post = net.register_forward_hook(lambda module, args, out: log.append((args[0] is x, out.shape)))
    first = net.register_forward_hook(lambda module, args, out: out + 1, prepend=True)
    assert rgrad.allclose(net(x), (plain - net.bias) * 2 + net.bias + 1)
    assert log == [(False, plain.shape)]
    for handle in (pre, post, first):
        handle.remove()
        handle.remove()
    assert rgrad.equal(net(x), plain)


def test_forward_hooks_with_keyword_arguments() -> None:
    class Scaled(nn.Module):
        def forward(self, x, *, by=1):
            return x * by

    net = Scaled()
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    seen = []
    with net.register_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs), with_kwargs=True):
        assert net(rgrad.ones(1), by=2).item() == 3
    net(rgrad.ones(1), by=2)
    assert seen == [{"by": 3}]
    net.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        net(rgrad.ones(1), by=2)


def test_forward_hooks_that_are_always_called() -> None:
    class Failing(nn.Module):
        def forward(self, x):
            raise ArithmeticError("forward")

    net = Failing()
    log = []
    net.register_forward_hook(lambda module, args, out: log.append("never"))
    net.register_forward_hook(lambda module, args, out: log.append((args, out)), always_call=True)
    with pytest.raises(ArithmeticError, match="forward"):
        net(3)
    assert log == [((3,), None)]
    net.register_forward_hook(lambda module, args, out: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="raised an exception that was silenced"), pytest.raises(ArithmeticError):
        net(3)


def test_backward_hooks() -> None:
    net = nn.Linear(2, 3, bias=False).to(real())
    x = numbers(4, 2).requires_grad_()
    net(x).sum().backward()
    plain, weight_grad = x.grad, net.weight.grad
    x.grad = net.weight.grad = None
    log = []
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 5,))
    net(x).sum().backward()
    assert rgrad.allclose(net.weight.grad, weight_grad * 2)
    assert rgrad.allclose(x.grad, plain * 10)
    ((grad_input, grad_output),) = log
    assert rgrad.allclose(grad_input[0], plain * 2)
    assert rgrad.allclose(grad_output[0], rgrad.full((4, 3), 2.0, dtype=real()))


def test_backward_hooks_without_differentiable_inputs() -> None:
    net = nn.Linear(2, 3)
    log = []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    out = net(rgrad.ones(4, 2)).sum()
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        out.backward()
    ((grad_input, grad_output),) = log
    assert grad_input == (None,)
    assert tuple(grad_output[0].shape) == (4, 3)
    with rgrad.no_grad():
        net(rgrad.ones(4, 2))
    assert len(log) == 1


def test_backward_hooks_of_several_inputs_and_outputs() -> None:
    class Pair(nn.Module):
        def forward(self, a, n, b):
            return a * n, b, "text"

    net = Pair()
    a, b = rgrad.ones(2, requires_grad=True), rgrad.ones(2)
    log = []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    x, y, text = net(a, 3, b)
    assert text == "text"
    assert not y.requires_grad
    x.sum().backward()
    ((grad_input, grad_output),) = log
    assert grad_input[0].tolist() == [3, 3]
    assert grad_input[1:] == (None, None)
    assert grad_output[0].tolist() == [1, 1]
    assert grad_output[1:] == (None, None)
    net.forward = lambda a, n, b: [a * n]
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        net(a, 3, b)


def test_backward_hooks_that_return_too_much() -> None:
    net = nn.Linear(2, 2)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input * 2)
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        net(rgrad.ones(1, 2, requires_grad=True)).sum().backward()


def test_gradients_of_gradients_pass_through_backward_hooks() -> None:
    net = nn.Tanh()
    net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    x = numbers(3).to(real()).requires_grad_()
    assert rgrad.autograd.gradcheck(net, (x,)) is True
    assert rgrad.autograd.gradgradcheck(net, (x,)) is True


# ---------------------------------------------------------------------------------------------------- containers


def test_sequential() -> None:
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU(), c=nn.Linear(3, 1)))
    assert net.a is net[0]
    assert net[-1] is net.c
    assert [type(m).__name__ for m in net[1:]] == ["ReLU", "Linear"]
    assert isinstance(net[1:], nn.Sequential)
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    net.append(nn.Linear(3, 3)).insert(1, nn.Tanh())
    assert [type(m).__name__ for m in net] == ["Linear", "Tanh", "ReLU", "Linear"]
    assert list(net._modules) == ["0", "1", "2", "3"]
    del net[0]
    assert list(net._modules) == ["0", "1", "2"]
    net[0] = nn.Sigmoid()
    assert isinstance(net[0], nn.Sigmoid)
    assert isinstance(net.pop(-1), nn.Linear)
    assert len(net + nn.Sequential(nn.ReLU())) == 3
    assert len(2 * net) == 4
    net.extend([nn.ReLU()])
    net += nn.Sequential(nn.ReLU())
    assert len(net) == 4
    assert nn.Sequential()(3) == 3
    with pytest.raises(IndexError, match="index 4 is out of range"):
        net[4]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential"):
        net + [nn.ReLU()]
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(3)


def test_module_list_and_dict() -> None:
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    assert len(list(layers.parameters())) == 6
    assert len(layers[1:]) == 2
    layers.append(nn.ReLU()).extend([nn.ReLU()])
    layers.insert(0, nn.Tanh())
    layers += [nn.ReLU()]
    assert [type(m).__name__ for m in layers] == ["Tanh", *["Linear"] * 3, *["ReLU"] * 3]
    assert isinstance(layers.pop(0), nn.Tanh)
    del layers[-2:]
    assert len(layers + [nn.ReLU()]) == 5
    with pytest.raises(TypeError, match="should be called with an iterable"):
        layers.extend(3)
    named = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ReLU()})
    named["c"] = nn.Tanh()
    named.update([("d", nn.Tanh())])
    assert list(named) == ["a", "b", "c", "d"]
    assert "a" in named
    assert isinstance(named.pop("b"), nn.ReLU)
    del named["c"]
    assert [name for name, _ in named.named_parameters()] == ["a.weight", "a.bias"]
    assert len(list(named.items())) == len(list(named.values())) == len(named.keys()) == 2
    named.clear()
    assert len(named) == 0


def test_parameter_list_and_dict() -> None:
    values = nn.ParameterList([rgrad.ones(2), nn.Parameter(rgrad.zeros(3))])
    assert all(isinstance(p, nn.Parameter) for p in values)
    values.append(rgrad.ones(1)).extend([rgrad.ones(1)])
    values[0] = rgrad.zeros(2)
    assert len(values) == len(list(values.parameters())) == 4
    assert values[-1].item() == 1
    assert len(values[:2]) == 2
    assert list(values.state_dict()) == ["0", "1", "2", "3"]
    assert "(0): Parameter containing:" in repr(values)
    named = nn.ParameterDict({"a": rgrad.ones(2)})
    named["b"] = nn.Parameter(rgrad.ones(1))
    assert sorted(named.state_dict()) == ["a", "b"]
    assert named.get("z") is None
    assert named.pop("b").item() == 1
    assert list(named.keys()) == ["a"]
    with pytest.raises(KeyError):
        named["b"]


def test_repr() -> None:
    net = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(inplace=True), nn.Sequential(nn.Dropout(0.1)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): ReLU(inplace=True)\n"
        "  (2): Sequential(\n"
        "    (0): Dropout(p=0.1, inplace=False)\n"
        "  )\n"
        ")"
    )
    assert (
        repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    )
    assert repr(nn.Sequential()) == "Sequential()"
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
