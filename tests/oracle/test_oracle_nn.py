"""`nn` beside PyTorch's: the same weights and inputs give the same outputs, gradients, state, printing and errors."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402


def both(*shape: int, seed: int = 0, kind: str = "float64", scale: float = 1.0) -> tuple[Any, Any]:
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return tuple(T.tensor(values, dtype=getattr(T, kind)) for T in (rgrad, torch))


def as_array(x: Any) -> np.ndarray:
    return np.array(x.detach().numpy())


def agree(ours: Any, theirs: Any, rtol: float = 1e-10, atol: float = 1e-12) -> None:
    if theirs is None:
        assert ours is None
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_allclose(as_array(ours), as_array(theirs), rtol=rtol, atol=atol)


def transfer(theirs: Any, ours: Any) -> None:
    """Give our module the state of theirs."""
    ours.load_state_dict({k: rgrad.tensor(as_array(v)) for k, v in theirs.state_dict().items()})


# -------------------------------------------------------------------------------------------------------- modules

MODULES = {
    "Linear": (lambda nn: nn.Linear(4, 3), (5, 4)),
    "Linear without bias": (lambda nn: nn.Linear(4, 3, bias=False), (2, 5, 4)),
    "ReLU": (lambda nn: nn.ReLU(), (5, 4)),
    "Tanh": (lambda nn: nn.Tanh(), (5, 4)),
    "Sigmoid": (lambda nn: nn.Sigmoid(), (5, 4)),
    "LeakyReLU": (lambda nn: nn.LeakyReLU(0.2), (5, 4)),
    "ELU": (lambda nn: nn.ELU(0.7), (5, 4)),
    "SiLU": (lambda nn: nn.SiLU(), (5, 4)),
    "GELU": (lambda nn: nn.GELU(), (5, 4)),
    "GELU by tanh": (lambda nn: nn.GELU(approximate="tanh"), (5, 4)),
    "Softplus": (lambda nn: nn.Softplus(beta=2.0, threshold=1.0), (5, 4)),
    "Softsign": (lambda nn: nn.Softsign(), (5, 4)),
    "LogSigmoid": (lambda nn: nn.LogSigmoid(), (5, 4)),
    "Hardtanh": (lambda nn: nn.Hardtanh(-0.5, 0.5), (5, 4)),
    "CELU": (lambda nn: nn.CELU(0.7), (5, 4)),
    "Mish": (lambda nn: nn.Mish(), (5, 4)),
    "Hardsigmoid": (lambda nn: nn.Hardsigmoid(), (5, 4)),
    "Hardswish": (lambda nn: nn.Hardswish(), (5, 4)),
    "Hardshrink": (lambda nn: nn.Hardshrink(0.3), (5, 4)),
    "Softshrink": (lambda nn: nn.Softshrink(0.3), (5, 4)),
    "Tanhshrink": (lambda nn: nn.Tanhshrink(), (5, 4)),
    "Threshold": (lambda nn: nn.Threshold(0.1, 20.0), (5, 4)),
    "ReLU6": (lambda nn: nn.ReLU6(), (5, 4)),
    "Softmax": (lambda nn: nn.Softmax(dim=0), (5, 4)),
    "LogSoftmax": (lambda nn: nn.LogSoftmax(dim=-1), (5, 4)),
    "Flatten": (lambda nn: nn.Flatten(), (5, 2, 3)),
    "Unflatten": (lambda nn: nn.Unflatten(1, (2, 2)), (5, 4)),
    "Identity": (lambda nn: nn.Identity(), (5, 4)),
    "Dropout in evaluation": (lambda nn: nn.Dropout(0.3).eval(), (5, 4)),
    "MLP": (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.ReLU()), (5, 4)),
    "named": (lambda nn: nn.Sequential(OrderedDict(a=nn.Linear(4, 2), b=nn.Sigmoid())), (5, 4)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_modules_and_their_gradients(name: str, kind: str) -> None:
    make, shape = MODULES[name]
    ours, theirs = make(rgrad.nn).to(getattr(rgrad, kind)), make(torch.nn).to(getattr(torch, kind))
    transfer(theirs, ours)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    x, y = (v.requires_grad_() for v in both(*shape, seed=1, kind=kind, scale=2.0))
    a, b = ours(x), theirs(y)
    weights = both(*a.shape, seed=2, kind=kind)
    tolerance = {"float64": (1e-11, 1e-13), "float32": (2e-5, 2e-6)}[kind]
    if name in ("CELU", "Hardsigmoid", "Hardswish"):
        # PyTorch keeps 1 / alpha and 1 / 6 in float32 here, also for float64.
        tolerance = max(tolerance, (1e-6, 1e-7))
    agree(a, b, *tolerance)
    (a * weights[0]).sum().backward()
    (b * weights[1]).sum().backward()
    agree(x.grad, y.grad, *tolerance)
    for (n, p), (m, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert n == m
        agree(p.grad, q.grad, *tolerance)


def test_bilinear() -> None:
    ours, theirs = rgrad.nn.Bilinear(2, 3, 4).double(), torch.nn.Bilinear(2, 3, 4).double()
    transfer(theirs, ours)
    (a, b), (c, d) = both(5, 2, seed=1), both(5, 3, seed=2)
    agree(ours(a, c), theirs(b, d))
    assert repr(ours) == repr(theirs)


REPRS = {
    "nested": lambda nn: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(True), nn.Dropout(0.1)), nn.Tanh()),
    "list": lambda nn: nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Tanh())]),
    "empty list": lambda nn: nn.ModuleList(),
    "dict": lambda nn: nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()}),
    "losses": lambda nn: nn.Sequential(nn.MSELoss(), nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()),
    "activations": lambda nn: nn.Sequential(
        nn.LeakyReLU(0.1, True), nn.ELU(2.0), nn.Softplus(), nn.Hardtanh(), nn.Softmax(1), nn.SiLU(True), nn.GELU()
    ),
}


@pytest.mark.parametrize("name", REPRS)
def test_printing(name: str) -> None:
    assert repr(REPRS[name](rgrad.nn)) == repr(REPRS[name](torch.nn))


def test_initial_ranges() -> None:
    rgrad.manual_seed(0)
    torch.manual_seed(0)
    for T in (rgrad, torch):
        layer = T.nn.Linear(400, 300)
        bound = 1 / 20
        assert 0.99 * bound < layer.weight.max().item() <= bound
        assert 0.95 * bound < layer.bias.max().item() <= bound
    for kind in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert rgrad.nn.init.calculate_gain(kind) == torch.nn.init.calculate_gain(kind)
    assert rgrad.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


# --------------------------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(6, 5), (5,), (3, 5, 2), (2, 5, 2, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("soft", [False, True])
def test_cross_entropy(reduction: str, shape: tuple[int, ...], weighted: bool, smoothing: float, soft: bool) -> None:
    x, y = (v.requires_grad_() for v in both(*shape))
    w = both(5, seed=3)
    weights = (w[0].abs(), w[1].abs()) if weighted else (None, None)
    axis = 0 if len(shape) == 1 else 1
    if soft:
        t = both(*shape, seed=4)
        targets = (t[0].softmax(axis), t[1].softmax(axis))
        ignored = {}
    else:
        numbers = np.random.default_rng(5).integers(0, 5, shape[:axis] + shape[axis + 1 :])
        targets = (rgrad.tensor(numbers), torch.tensor(numbers))
        ignored = {"ignore_index": 2}
        if numbers.ndim == 0:
            ignored = {}
    results = [
        T.nn.functional.cross_entropy(v, t, w, reduction=reduction, label_smoothing=smoothing, **ignored)
        for T, v, t, w in zip((rgrad, torch), (x, y), targets, weights, strict=True)
    ]
    agree(*results)
    cotangents = both(*results[0].shape, seed=6)
    results[0].backward(cotangents[0])
    results[1].backward(cotangents[1])
    agree(x.grad, y.grad)


ELEMENTWISE = {
    "mse_loss": {},
    "l1_loss": {},
    "smooth_l1_loss": {"beta": 0.5},
    "huber_loss": {"delta": 0.5},
    "binary_cross_entropy_with_logits": {},
    "kl_div": {},
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses(name: str, reduction: str) -> None:
    x, y = (v.requires_grad_() for v in both(4, 3))
    t, u = (v.requires_grad_() for v in both(4, 3, seed=1))
    if name in ("binary_cross_entropy_with_logits", "kl_div"):
        (t, u) = (v.detach().sigmoid().requires_grad_() for v in (t, u))
    a = getattr(rgrad.nn.functional, name)(x, t, reduction=reduction, **ELEMENTWISE[name])
    b = getattr(torch.nn.functional, name)(y, u, reduction=reduction, **ELEMENTWISE[name])
    agree(a, b)
    cotangents = both(*a.shape, seed=6)
    a.backward(cotangents[0])
    b.backward(cotangents[1])
    agree(x.grad, y.grad)
    agree(t.grad, u.grad)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_binary_losses_with_weights(reduction: str) -> None:
    x, y = (v.requires_grad_() for v in both(4, 3))
    t, u = (v.sigmoid() for v in both(4, 3, seed=1))
    w, v = (v.abs() for v in both(4, 3, seed=2))
    p, q = (v.abs() for v in both(3, seed=3))
    a = rgrad.nn.functional.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction=reduction)
    b = torch.nn.functional.binary_cross_entropy_with_logits(y, u, v, pos_weight=q, reduction=reduction)
    agree(a, b)
    a = rgrad.nn.functional.binary_cross_entropy(x.sigmoid(), t, w, reduction=reduction)
    b = torch.nn.functional.binary_cross_entropy(y.sigmoid(), u, v, reduction=reduction)
    agree(a, b)
    a.sum().backward()
    b.sum().backward()
    agree(x.grad, y.grad)


def test_one_hot() -> None:
    numbers = np.array([[0, 3], [1, 1]])
    agree(rgrad.nn.functional.one_hot(rgrad.tensor(numbers)), torch.nn.functional.one_hot(torch.tensor(numbers)))
    agree(rgrad.nn.functional.one_hot(rgrad.tensor(numbers), 6), torch.nn.functional.one_hot(torch.tensor(numbers), 6))


# ---------------------------------------------------------------------------------------------------------- hooks


def hooked(T: Any) -> list[Any]:
    """What hooks of every kind saw, in order."""
    log: list[Any] = []

    def note(label: str):
        def hook(module: Any, *seen: Any) -> None:
            def shape(value: Any) -> Any:
                if isinstance(value, T.Tensor):
                    return [round(v, 6) for v in value.detach().reshape(-1).tolist()]
                return [shape(v) for v in value] if isinstance(value, (tuple, list)) else value

            log.append((label, type(module).__name__, shape(seen)))

        return hook

    net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Tanh(), T.nn.Linear(2, 1)).double()
    with T.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(T.linspace(-1, 1, p.numel(), dtype=T.float64).reshape(p.shape) + 0.1 * i)
    for module in (net, net[1], net[2]):
        module.register_forward_pre_hook(note("pre"))
        module.register_forward_hook(note("forward"))
        module.register_full_backward_pre_hook(note("backward pre"))
        module.register_full_backward_hook(note("backward"))
        module.register_forward_hook(note("first"), prepend=True)
    x = T.tensor([[0.5, -1.0]], dtype=T.float64, requires_grad=True)
    net(x).sum().backward()
    log.append(x.grad.tolist())
    log.append([p.grad.tolist() for p in net.parameters()])
    x.requires_grad_(False)
    net(x).sum().backward()
    return log


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hooks_see_the_same_in_the_same_order() -> None:
    for ours, theirs in zip(hooked(rgrad), hooked(torch), strict=True):
        if isinstance(theirs, tuple):
            assert ours == theirs
        else:
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


# --------------------------------------------------------------------------------------------------------- errors

MISTAKES = {
    "wrong attribute": lambda T: setattr(T.nn.Linear(2, 2), "weight", 3),
    "wrong submodule": lambda T: setattr(T.nn.Sequential(T.nn.ReLU()), "0", 3),
    "missing attribute": lambda T: T.nn.Linear(2, 2).wieght,
    "no forward": lambda T: T.nn.Module()(1),
    "taken name": lambda T: T.nn.Linear(2, 2).register_buffer("forward", None),
    "dotted name": lambda T: T.nn.Linear(2, 2).register_parameter("a.b", None),
    "empty name": lambda T: T.nn.Linear(2, 2).add_module("", None),
    "number as name": lambda T: T.nn.Linear(2, 2).register_buffer(1, None),
    "no module": lambda T: T.nn.Sequential(3),
    "index": lambda T: T.nn.Sequential(T.nn.ReLU())[1],
    "list index": lambda T: T.nn.ModuleList([T.nn.ReLU()])[-2],
    "key": lambda T: T.nn.ModuleDict()["a"],
    "mode": lambda T: T.nn.ReLU().train("yes"),
    "probability": lambda T: T.nn.Dropout(2),
    "not leaf": lambda T: T.nn.Module().register_parameter("w", T.ones(1)),
    "state": lambda T: T.nn.Linear(2, 2).load_state_dict({"weight": T.ones(3, 2), "b": T.ones(2)}),
    "state of another kind": lambda T: T.nn.Linear(2, 2).load_state_dict(3),
    "dtype": lambda T: T.nn.Linear(2, 2).to(T.int64),
    "width": lambda T: T.nn.Linear(2, 2)(T.ones(3, 3)),
    "input dtype": lambda T: T.nn.Linear(2, 2)(T.ones(3, 2, dtype=T.float64)),
    "reduction": lambda T: T.nn.functional.mse_loss(T.ones(2), T.ones(2), reduction="middle"),
    "smoothing": lambda T: T.nn.functional.cross_entropy(T.ones(2, 2), T.tensor([0, 1]), label_smoothing=2.0),
    "class": lambda T: T.nn.functional.cross_entropy(T.ones(2, 2), T.tensor([0, 2])),
    "batch": lambda T: T.nn.functional.cross_entropy(T.ones(2, 2), T.tensor([0, 1, 1])),
    "target size": lambda T: T.nn.functional.binary_cross_entropy_with_logits(T.ones(2), T.ones(3)),
    "fan": lambda T: T.nn.init.kaiming_uniform_(T.ones(3)),
    "gain": lambda T: T.nn.init.calculate_gain("x"),
    "one hot": lambda T: T.nn.functional.one_hot(T.tensor([3]), 2),
    "submodule": lambda T: T.nn.Linear(2, 2).get_submodule("a.b"),
    "set submodule, no name": lambda T: T.nn.Linear(2, 2).set_submodule("", T.nn.ReLU()),
    "set submodule, no module": lambda T: T.nn.Sequential(T.nn.ReLU()).set_submodule("0", 3),
    "set submodule, no owner": lambda T: T.nn.Sequential(T.nn.ReLU()).set_submodule("x.y", T.nn.ReLU()),
    "set submodule, nothing there": lambda T: T.nn.Sequential(T.nn.ReLU()).set_submodule("1", T.nn.ReLU(), True),
    "set submodule, a parameter": lambda T: T.nn.Linear(2, 2).set_submodule("weight", T.nn.ReLU()),
    "parameter": lambda T: T.nn.Linear(2, 2).get_parameter("forward"),
    "add": lambda T: T.nn.Sequential() + [],
    "warn size": lambda T: T.nn.functional.mse_loss(T.ones(2, 1), T.ones(2)),
    "warn softmax": lambda T: T.nn.functional.softmax(T.ones(2, 1)),
    "warn divergence": lambda T: T.nn.functional.kl_div(T.ones(2), T.ones(2)),
    "warn reduce": lambda T: T.nn.MSELoss(reduce=False),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned


def test_messages_of_load_state_dict() -> None:
    def message(T: Any) -> str:
        net = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.Linear(3, 1))
        state = net.state_dict()
        del state["0.bias"]
        state["1.weight"] = T.ones(2, 2)
        state["2.x"] = T.ones(1)
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        return str(caught.value).replace("rgrad", "torch")

    assert message(rgrad) == message(torch)


def test_float32_gradcheck_is_right_where_pytorchs_is_not() -> None:
    """The reason for the float64 side: correct float32 functions pass, wrong ones fail, at the default step."""

    def verdicts(T: Any, factor: float) -> bool:
        class Sine(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.sin()

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0].cos() * factor

        x = T.linspace(-1, 1, 7, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return T.autograd.gradcheck(Sine.apply, (x,), raise_exception=False)

    assert verdicts(torch, 1.0) is False
    assert verdicts(rgrad, 1.0) is True
    assert verdicts(rgrad, 1.01) is False
