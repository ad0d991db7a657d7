"""Modules: registration, state, hooks, printing, containers, layers, losses and initial values."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import nn

F64 = rgrad.float64


def numbers(*shape: int, seed: int = 0) -> rgrad.Tensor:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=F64)


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
    assert p.data_ptr() == data.data_ptr()
    assert not data.requires_grad
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p * 2) is rgrad.Tensor
    with rgrad.no_grad():
        assert nn.Parameter(data).requires_grad
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    twin = copy.deepcopy(p)
    assert type(twin) is nn.Parameter
    assert twin.data_ptr() != p.data_ptr()
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
    assert net.double() is net
    assert net.first.weight is weight
    assert weight.dtype == F64
    assert weight.grad.dtype == F64
    assert rgrad.equal(weight.grad, grad.double())
    assert net.count.dtype == F64
    assert net(rgrad.ones(2, 3, dtype=F64)).dtype == F64
    net.to(rgrad.float32).to("cpu").to(rgrad.ones(1, dtype=F64)).to("cpu", rgrad.float32).to(dtype=F64).float()
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
    assert state["scale"].data_ptr() == net.scale.data_ptr()
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
    given["first.bias"] = given["first.bias"].detach().double()
    net.load_state_dict(given, assign=True)
    assert net.first.weight is source.first.weight
    assert net.first.bias.dtype == F64
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
    net = nn.Linear(2, 2).double()
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
    net = nn.Linear(2, 3, bias=False).double()
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
    assert rgrad.allclose(grad_output[0], rgrad.full((4, 3), 2.0, dtype=F64))


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
    x = numbers(3).requires_grad_()
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


# -------------------------------------------------------------------------------------------------------- layers


def test_linear() -> None:
    layer = nn.Linear(3, 2, dtype=F64)
    x = numbers(4, 5, 3)
    want = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), want, rtol=1e-12)
    assert nn.Linear(3, 2, bias=False).bias is None
    bound = 1 / math.sqrt(3)
    for _ in range(3):
        layer.reset_parameters()
        assert layer.weight.abs().max().item() <= bound
    del layer.weight
    layer.weight = rgrad.ones(2, 3, dtype=F64)
    np.testing.assert_allclose(
        layer(x).detach().numpy(), x.numpy().sum(-1, keepdims=True) + layer.bias.detach().numpy(), rtol=1e-12
    )
    pair = nn.Bilinear(2, 3, 4, dtype=F64)
    a, b = numbers(5, 2), numbers(5, 3, seed=1)
    want = np.einsum("ni,kij,nj->nk", a.numpy(), pair.weight.detach().numpy(), b.numpy()) + pair.bias.detach().numpy()
    np.testing.assert_allclose(pair(a, b).detach().numpy(), want, rtol=1e-12)
    assert nn.Identity(3, key=1)(x) is x


SMOOTH = ["sigmoid", "tanh", "gelu", "silu", "softplus", "softsign", "logsigmoid", "elu", "leaky_relu"]


def reference(name: str, x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf)
    return {
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
        "gelu": lambda: 0.5 * x * (1 + erf(x / math.sqrt(2))),
        "silu": lambda: x / (1 + np.exp(-x)),
        "softplus": lambda: np.log1p(np.exp(x)),
        "softsign": lambda: x / (1 + np.abs(x)),
        "logsigmoid": lambda: -np.log1p(np.exp(-x)),
        "elu": lambda: np.where(x > 0, x, np.expm1(x)),
        "leaky_relu": lambda: np.where(x > 0, x, 0.01 * x),
    }[name]()


@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name: str) -> None:
    x = numbers(50) * 2
    func = getattr(F, name)
    np.testing.assert_allclose(func(x).numpy(), reference(name, x.numpy()), rtol=1e-12, atol=1e-14)
    p = numbers(5, seed=3).requires_grad_()
    assert rgrad.autograd.gradcheck(func, (p,), rtol=1e-5) is True
    assert rgrad.autograd.gradgradcheck(func, (p,), rtol=1e-5) is True


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "logsigmoid", "elu"])
def test_activations_far_out(name: str) -> None:
    x = rgrad.tensor([-800.0, -40.0, 40.0, 800.0], dtype=F64, requires_grad=True)
    y = getattr(F, name)(x)
    assert y.isfinite().all()
    (g,) = rgrad.autograd.grad(y.sum(), x, create_graph=True)
    assert g.isfinite().all()
    (h,) = rgrad.autograd.grad(g.sum(), x, allow_unused=True, materialize_grads=True)
    assert h.isfinite().all()


def test_gelu_keeps_its_digits_for_negative_input() -> None:
    x = rgrad.tensor(-10.0, dtype=F64)
    want = -10 * 0.5 * math.erfc(10 / math.sqrt(2))
    assert F.gelu(x).item() == pytest.approx(want, rel=1e-13)


def test_activations_in_place() -> None:
    for name in ("relu", "leaky_relu", "elu", "celu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "relu6"):
        x = numbers(4)
        want = getattr(F, name)(x)
        y = getattr(F, name)(x, inplace=True)
        assert y.data_ptr() == x.data_ptr()
        assert rgrad.equal(x, want)
    x = numbers(4).requires_grad_()
    y = nn.ReLU(inplace=True)(x * 1)
    y.sum().backward()
    assert rgrad.equal(x.grad, (x > 0).double())


def test_softmax() -> None:
    x = numbers(3, 4)
    e = np.exp(x.numpy())
    np.testing.assert_allclose(F.softmax(x, 0).numpy(), e / e.sum(0), rtol=1e-12)
    np.testing.assert_allclose(F.log_softmax(x, -1).numpy(), np.log(e / e.sum(-1, keepdims=True)), rtol=1e-12)
    np.testing.assert_allclose(nn.Softmax(1)(-x).numpy(), F.softmin(x, 1).numpy())
    assert F.softmax(x.float(), 1, dtype=F64).dtype == F64
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert rgrad.equal(F.softmax(x), F.softmax(x, 1))


def test_dropout() -> None:
    rgrad.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = rgrad.ones(20_000)
    y = layer(x)
    kept = y != 0
    assert rgrad.allclose(y[kept], rgrad.tensor(1 / 0.75))
    assert abs(kept.double().mean().item() - 0.75) < 0.02
    assert layer.eval()(x) is x
    assert F.dropout(x, 1.0).abs().sum().item() == 0
    z = rgrad.ones(100)
    assert F.dropout(z, 0.5, inplace=True) is z
    assert set(z.tolist()) == {0.0, 2.0}
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        nn.Dropout(1.5)


def test_flatten() -> None:
    x = rgrad.zeros(2, 3, 4, 5)
    assert tuple(nn.Flatten()(x).shape) == (2, 60)
    assert tuple(nn.Flatten(0, 1)(x).shape) == (6, 4, 5)
    assert tuple(nn.Unflatten(1, (3, -1))(nn.Flatten()(x)).shape) == (2, 3, 20)


def test_one_hot() -> None:
    x = rgrad.tensor([[0, 2], [1, 0]])
    assert F.one_hot(x).tolist() == np.eye(3, dtype=int)[x.numpy()].tolist()
    assert F.one_hot(x, 5).dtype == rgrad.int64
    assert tuple(F.one_hot(rgrad.zeros(0, dtype=rgrad.int64), 3).shape) == (0, 3)
    for bad, classes in ((x - 1, -1), (x, 2), (rgrad.zeros(0, dtype=rgrad.int64), -1), (x.float(), -1)):
        with pytest.raises(RuntimeError):
            F.one_hot(bad, classes)


# -------------------------------------------------------------------------------------------------------- losses


def picked(loss: np.ndarray, reduction: str) -> np.ndarray:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_regression_losses(reduction: str) -> None:
    a, b = numbers(3, 4).requires_grad_(), numbers(3, 4, seed=1) * 2
    d = a.detach().numpy() - b.numpy()
    huber = np.where(np.abs(d) < 0.7, 0.5 * d * d, 0.7 * (np.abs(d) - 0.35))
    for loss, want in (
        (nn.MSELoss(reduction=reduction), d * d),
        (nn.L1Loss(reduction=reduction), np.abs(d)),
        (nn.HuberLoss(reduction=reduction, delta=0.7), huber),
        (nn.SmoothL1Loss(reduction=reduction, beta=0.7), huber / 0.7),
        (nn.SmoothL1Loss(reduction=reduction, beta=0.0), np.abs(d)),
    ):
        np.testing.assert_allclose(loss(a, b).detach().numpy(), picked(want, reduction), rtol=1e-12)
        assert rgrad.autograd.gradcheck(lambda a, loss=loss: loss(a, b), (a,), rtol=1e-5) is True
    weight = numbers(3, 4, seed=2).abs()
    w = weight.numpy()
    want = {"none": w * d * d, "sum": (w * d * d).sum(), "mean": (w * d * d).sum() / w.sum()}[reduction]
    np.testing.assert_allclose(F.mse_loss(a, b, reduction=reduction, weight=weight).detach().numpy(), want, rtol=1e-12)


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = x - x.max(axis, keepdims=True)
    return e - np.log(np.exp(e).sum(axis, keepdims=True))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 5, 2)])
def test_cross_entropy_of_indices(reduction: str, weighted: bool, smoothing: float, shape: tuple[int, ...]) -> None:
    x = numbers(*shape).requires_grad_()
    classes = 5
    axis = 0 if len(shape) == 1 else 1
    sizes = shape[:axis] + shape[axis + 1 :]
    target = np.random.default_rng(1).integers(0, classes, sizes)
    if target.size > 2:
        target.reshape(-1)[1] = -100
    w = np.random.default_rng(2).uniform(0.5, 2, classes) if weighted else np.ones(classes)
    logs = np.moveaxis(log_softmax(x.detach().numpy(), axis), axis, -1)
    counted = target != -100
    safe = np.where(counted, target, 0)
    picked_log = np.take_along_axis(logs, safe[..., None], -1)[..., 0]
    hard = np.where(counted, -picked_log * w[safe], 0.0)
    spread = np.where(counted, -(logs * w).sum(-1), 0.0)
    loss = (1 - smoothing) * hard + smoothing / classes * spread
    total = np.where(counted, w[safe], 0.0).sum()
    want = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / total}[reduction]
    weight = rgrad.tensor(w) if weighted else None
    module = nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)
    t = rgrad.tensor(target)
    np.testing.assert_allclose(module(x, t).detach().numpy(), want, rtol=1e-10)
    assert rgrad.autograd.gradcheck(lambda x: module(x, t), (x,), rtol=1e-5) is True
    if smoothing == 0:
        nll = nn.NLLLoss(weight, reduction=reduction)(F.log_softmax(x, axis), t)
        np.testing.assert_allclose(nll.detach().numpy(), want, rtol=1e-10)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 5, 2)])
def test_cross_entropy_of_probabilities(
    reduction: str, weighted: bool, smoothing: float, shape: tuple[int, ...]
) -> None:
    x = numbers(*shape).requires_grad_()
    axis = 0 if len(shape) == 1 else 1
    p = np.exp(log_softmax(np.random.default_rng(5).standard_normal(shape), axis))
    w = np.random.default_rng(2).uniform(0.5, 2, 5) if weighted else np.ones(5)
    w_shape = [5 if i == axis else 1 for i in range(len(shape))]
    smooth = p * (1 - smoothing) + smoothing / 5
    loss = -(log_softmax(x.detach().numpy(), axis) * smooth * w.reshape(w_shape)).sum(axis)
    weight = rgrad.tensor(w) if weighted else None
    target = rgrad.tensor(p, requires_grad=True)

    def func(x, target):
        return F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)

    np.testing.assert_allclose(func(x, target).detach().numpy(), picked(loss, reduction), rtol=1e-10)
    assert rgrad.autograd.gradcheck(func, (x, target), rtol=1e-5) is True


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_binary_losses(reduction: str) -> None:
    x = numbers(4, 3).requires_grad_()
    t = rgrad.tensor(np.random.default_rng(1).uniform(0, 1, (4, 3)))
    pos = rgrad.tensor([0.5, 1.0, 2.0], dtype=F64)
    weight = numbers(4, 3, seed=2).abs()
    p = 1 / (1 + np.exp(-x.detach().numpy()))
    plain = -(t.numpy() * np.log(p) + (1 - t.numpy()) * np.log(1 - p))
    with_pos = -(pos.numpy() * t.numpy() * np.log(p) + (1 - t.numpy()) * np.log(1 - p)) * weight.numpy()
    for loss, want in (
        (nn.BCEWithLogitsLoss(reduction=reduction), plain),
        (nn.BCEWithLogitsLoss(weight, reduction=reduction, pos_weight=pos), with_pos),
        (lambda x, t: nn.BCELoss(reduction=reduction)(x.sigmoid(), t), plain),
    ):
        np.testing.assert_allclose(loss(x, t).detach().numpy(), picked(want, reduction), rtol=1e-10)
        assert rgrad.autograd.gradcheck(lambda x, loss=loss: loss(x, t), (x,), rtol=1e-5) is True
    edge = F.binary_cross_entropy(rgrad.tensor([0.0, 1.0]), rgrad.tensor([1.0, 1.0]), reduction="none")
    assert edge.tolist() == [100.0, 0.0]
    far = F.binary_cross_entropy_with_logits(rgrad.tensor([-500.0, 500.0]), rgrad.tensor([1.0, 0.0]), reduction="none")
    assert far.tolist() == [500.0, 500.0]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction: str, log_target: bool) -> None:
    x = F.log_softmax(numbers(4, 5), 1)
    t = F.softmax(numbers(4, 5, seed=1), 1)
    loss = t.numpy() * (np.log(t.numpy()) - x.numpy())
    want = loss.sum() / 4 if reduction == "batchmean" else picked(loss, reduction)
    got = F.kl_div(x, t.log() if log_target else t, reduction=reduction, log_target=log_target)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)
    assert F.kl_div(x, rgrad.zeros(4, 5, dtype=F64), reduction="sum").item() == 0


def test_losses_refuse() -> None:
    x, t = numbers(3, 4), rgrad.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, x, reduction="average")
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(x, x[:1])
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.raises(RuntimeError, match="label_smoothing must be between 0.0 and 1.0"):
        F.cross_entropy(x, t, label_smoothing=1.5)
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
        F.cross_entropy(x, x, ignore_index=1)
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 4 classes or no classes"):
        F.cross_entropy(x, x, rgrad.ones(3, dtype=F64))
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(x, x[0])
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(x * 10, x.sigmoid())
    with pytest.raises((RuntimeError, ValueError)):
        F.cross_entropy(x, t[:2])
    with pytest.raises((IndexError, RuntimeError)):
        F.cross_entropy(x, t + 2)


# ------------------------------------------------------------------------------------------------ initial values


def test_initial_values() -> None:
    rgrad.manual_seed(0)
    w = rgrad.empty(200, 300, requires_grad=True)
    assert nn.init.uniform_(w, -2, 3) is w
    assert w.grad_fn is None
    assert -2 <= w.min().item() < -1.9
    assert 2.9 < w.max().item() <= 3
    nn.init.normal_(w, 1.0, 2.0)
    assert w.mean().item() == pytest.approx(1, abs=0.05)
    assert w.std().item() == pytest.approx(2, abs=0.05)
    nn.init.constant_(w, 3)
    assert (w == 3).all()
    nn.init.ones_(w)
    nn.init.zeros_(w)
    assert (w == 0).all()
    assert rgrad.equal(nn.init.eye_(rgrad.empty(2, 3)), rgrad.eye(2, 3))
    for fill, deviation in (
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (nn.init.kaiming_uniform_, math.sqrt(2 / 300)),
        (nn.init.kaiming_normal_, math.sqrt(2 / 300)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda t: nn.init.xavier_uniform_(t, nn.init.calculate_gain("tanh")), 5 / 3 * math.sqrt(2 / 500)),
    ):
        fill(w)
        assert w.std().item() == pytest.approx(deviation, rel=0.03)
        assert w.mean().item() == pytest.approx(0, abs=0.1 * deviation)
    nn.init.trunc_normal_(w, 0.5, 1.0, -1.0, 1.0)
    assert w.min().item() >= -1
    assert w.max().item() <= 1
    # Mean of a normal N(0.5, 1) cut to [-1, 1].
    density, low, high = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi), -1.5, 0.5
    mass = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    assert w.mean().item() == pytest.approx(0.5 + (density(low) - density(high)) / mass, abs=0.01)
    assert nn.init._calculate_fan_in_and_fan_out(rgrad.empty(4, 3, 5, 5)) == (75, 100)


def test_initial_values_refuse() -> None:
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(rgrad.empty(3))
    with pytest.raises(ValueError, match="Mode middle not supported"):
        nn.init.kaiming_uniform_(rgrad.empty(3, 3), mode="middle")
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("unknown")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        nn.init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        nn.init.eye_(rgrad.empty(3))
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.init.kaiming_uniform_(rgrad.empty(0, 3))


# ------------------------------------------------------------------------------------------------------ utilities


def test_clipping() -> None:
    a, b = nn.Parameter(rgrad.ones(2, dtype=F64)), nn.Parameter(rgrad.ones(1, dtype=F64))
    unused = nn.Parameter(rgrad.ones(1))
    a.grad, b.grad = rgrad.tensor([3.0, 0.0], dtype=F64), rgrad.tensor([4.0], dtype=F64)
    norm = nn.utils.clip_grad_norm_([a, b, unused], 10.0)
    assert norm.item() == 5
    assert a.grad.tolist() == [3, 0]
    assert nn.utils.clip_grad_norm_(iter([a, b]), 0.5).item() == 5
    np.testing.assert_allclose(a.grad.numpy(), [0.3, 0], rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [0.4], rtol=1e-6)
    assert nn.utils.clip_grad_norm_([a, b], 0.1, norm_type=math.inf).item() == pytest.approx(0.4, rel=1e-6)
    nn.utils.clip_grad_value_(b, 0.05)
    assert b.grad.item() == 0.05
    b.grad[0] = math.inf
    with pytest.raises(RuntimeError, match="is non-finite"):
        nn.utils.clip_grad_norm_(b, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([unused], 1.0).item() == 0


def test_vectors_of_parameters() -> None:
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (8,)
    assert vector.requires_grad
    nn.utils.vector_to_parameters(rgrad.arange(8.0), net.parameters())
    assert net.bias.tolist() == [6, 7]
    with pytest.raises(ValueError, match=r"got a vector of shape \(7,\), expected \(8,\)"):
        nn.utils.vector_to_parameters(rgrad.ones(7), net.parameters())
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


# -------------------------------------------------------------------------------------------- the package itself


def test_package_names() -> None:
    for name in rgrad.__all__:
        assert hasattr(rgrad, name), name
    for module in (nn, rgrad.optim, rgrad.utils.data, rgrad.autograd):
        for name in module.__all__:
            assert hasattr(module, name), name
    assert rgrad.finfo(rgrad.float32).eps == np.finfo(np.float32).eps
    assert rgrad.finfo(F64).max == np.finfo(np.float64).max
    assert rgrad.finfo(rgrad.float32).tiny == np.finfo(np.float32).tiny
    assert rgrad.finfo(rgrad.float32).resolution == pytest.approx(np.finfo(np.float32).resolution)
    assert rgrad.finfo().bits == 32
    assert (rgrad.iinfo(rgrad.uint8).min, rgrad.iinfo(rgrad.int64).max) == (0, 2**63 - 1)
    for call in (lambda: rgrad.finfo(rgrad.int64), lambda: rgrad.iinfo(F64)):
        with pytest.raises(TypeError):
            call()
    assert rgrad.device("cuda" if rgrad.cuda.is_available() else "cpu").type == "cpu"
    assert rgrad.cuda.device_count() == 0
    assert rgrad.is_tensor(nn.Parameter(rgrad.ones(1)))
    assert not rgrad.is_tensor(3)
    assert rgrad.typename(nn.Linear(1, 1)) == "rgrad.nn.linear.Linear"
    assert rgrad.typename(3) == "int"


def test_print_options() -> None:
    x = rgrad.tensor([1 / 3, 2.0])
    try:
        rgrad.set_printoptions(precision=2)
        assert "0.33" in repr(x)
        assert "0.333" not in repr(x)
        rgrad.set_printoptions(profile="full", linewidth=40)
        assert "..." not in repr(rgrad.zeros(2000))
        for bad in ({"precision": -1}, {"edgeitems": 1.5}, {"profile": "wide"}, {"threshold": math.nan}):
            with pytest.raises(ValueError, match="set_printoptions"):
                rgrad.set_printoptions(**bad)
    finally:
        rgrad.set_printoptions(profile="default")
    assert "0.3333" in repr(x)


def test_assert_close() -> None:
    close = rgrad.testing.assert_close
    close(rgrad.ones(2), rgrad.ones(2) + 1e-7)
    close({"a": [1.0, rgrad.ones(1)]}, {"a": (1.0, rgrad.ones(1))})
    close(rgrad.tensor([math.nan]), rgrad.tensor([math.nan]), equal_nan=True)
    close(np.ones(2), np.ones(2))
    close(rgrad.tensor([2**53 + 1]), rgrad.tensor([2**53 + 1]))
    for actual, expected, said in (
        (rgrad.ones(3), rgrad.tensor([1.0, 2.0, 1.0]), r"Mismatched elements: 1 / 3 \(33.3%\)"),
        (rgrad.ones(3), rgrad.tensor([1.0, 2.0, 1.0]), r"Greatest absolute difference: 1.0 at index \(1,\)"),
        (rgrad.tensor([2**53]), rgrad.tensor([2**53 + 1]), "Tensor-likes are not equal!"),
        (rgrad.tensor([math.nan]), rgrad.tensor([math.nan]), "not close"),
        (rgrad.ones(3), rgrad.ones(2), "attribute 'shape' do not match"),
        (rgrad.ones(3), rgrad.ones(3, dtype=F64), "attribute 'dtype' do not match"),
        ([1.0], [1.0, 2.0], "length of the sequences mismatch"),
        ({"a": 1}, {"b": 1}, "keys of the mappings do not match"),
        ({"a": [1, 2]}, {"a": [1, 3]}, r"for item \['a'\]\[1\]"),
        (1.0, 1, "types do not match"),
    ):
        with pytest.raises(AssertionError, match=said):
            close(actual, expected)
    with pytest.raises(AssertionError, match="^mine$"):
        close(1, 2, msg="mine")
    with pytest.raises(ValueError, match="rtol and atol must both be specified"):
        close(1, 2, rtol=1)


def test_a_model_learns() -> None:
    rgrad.manual_seed(0)
    x = rgrad.linspace(-1, 1, 64).unsqueeze(1)
    y = (3 * x).sin()
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = rgrad.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(300):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2
    file = io.BytesIO()
    rgrad.save(net.state_dict(), file)
    assert file.tell() > 0
