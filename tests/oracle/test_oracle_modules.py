"""Corners of modules, their state, loaders and comparison that PyTorch's users reach, beside PyTorch."""

from __future__ import annotations

import io
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402


def outcome(f: Callable[[Any], Any], T: Any) -> str:
    """What a check gives, or the builtin type and the text of its error, without the library's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = repr(f(T))
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ in ("builtins", "_pickle"))
            found = f"{kind}: {error}"
    return re.sub(r"\b(rgrad|torch)\.", "", found)


def refused(f: Callable[[], Any]) -> str:
    try:
        return repr(f())
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ in ("builtins", "_pickle"))


def check_assigned_grad(T: Any) -> Any:
    p = T.ones(2, requires_grad=True)
    p._grad = T.ones(2) * 3
    found = [p.grad.tolist(), p._grad is p.grad]
    p._grad = None
    found += [p.grad, (p * 2)._grad]
    return [*found, refused(lambda: setattr(p, "_grad", T.ones(3))), refused(lambda: setattr(p, "_grad", 1))]


def check_versions_after_conversion(T: Any) -> Any:
    layer = T.nn.Linear(2, 2)
    weight, before = layer.weight, layer.weight._version
    steps = [layer.double, lambda: layer.to(T.float32), layer.half, layer.half]
    found = []
    for step in steps:
        step()
        found.append((layer.weight is weight, layer.weight._version - before))
    return found


def check_call_super_init(T: Any) -> Any:
    class Mixed:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.mixed = (args, kwargs)

    class Passing(T.nn.Module, Mixed):
        call_super_init = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.layer = T.nn.Linear(1, 1)

    class Plain(T.nn.Module, Mixed):
        pass

    made = Passing(1, b=2)
    return made.mixed, len(list(made.parameters())), hasattr(Plain(), "mixed"), T.nn.Module.call_super_init


def check_dicts_of_parameters(T: Any) -> Any:
    one = T.ones(1)
    given = [{"b": one, "a": one}, OrderedDict(b=one, a=one), [("z", one), ("c", one)]]
    found = [list(T.nn.ParameterDict(value)) for value in given]
    for value in given:
        made = T.nn.ParameterDict({"m": one})
        made.update(value)
        found.append(list(made))
    return found


def check_flags_of_hooks(T: Any) -> Any:
    layer = T.nn.Linear(1, 1)
    always = layer.register_forward_hook(lambda *_: None, always_call=True, with_kwargs=True)
    layer.register_forward_hook(lambda *_: None)
    tables = (layer._forward_hooks, layer._forward_hooks_with_kwargs, layer._forward_hooks_always_called)
    before = [len(t) for t in tables]
    always.remove()
    return before, [len(t) for t in tables]


def check_module_as_extra_state(T: Any) -> Any:
    class Holder(T.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = T.nn.Linear(1, 1)

        def get_extra_state(self) -> Any:
            return T.nn.Linear(2, 1)

        def set_extra_state(self, state: Any) -> None:
            self.__dict__["given"] = state

    state = Holder().state_dict()
    other = Holder()
    found = list(state), other.load_state_dict(state), other.given
    return *found, refused(lambda: other.load_state_dict({k: v for k, v in state.items() if k[0] != "_"}))


def through(T: Any, obj: Any, **options: Any) -> Any:
    file = io.BytesIO()
    T.save(obj, file)
    file.seek(0)
    return T.load(file, **options)


def check_whole_modules(T: Any) -> Any:
    net = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU(), T.nn.BatchNorm1d(3))
    net[0].bias.requires_grad_(False)
    back = through(T, {"net": net, "epoch": 3}, weights_only=False)
    pairs = zip(net.state_dict().values(), back["net"].state_dict().values(), strict=True)
    found = [back["epoch"], back["net"], all(T.equal(a, b) for a, b in pairs)]
    found += [p.requires_grad for p in back["net"].parameters()]
    return [*found, refused(lambda: through(T, net)), refused(lambda: through(T, net, weights_only=True))]


def check_attributes_of_loaders(T: Any) -> Any:
    loader = T.utils.data.DataLoader(list(range(10)), batch_size=2)
    values: dict[str, Any] = {
        "batch_size": 3,
        "batch_sampler": None,
        "sampler": None,
        "drop_last": True,
        "dataset": [1],
        "persistent_workers": True,
        "num_workers": 1,
        "pin_memory": True,
    }
    return [refused(lambda n=n, v=v: setattr(loader, n, v)) for n, v in values.items()], loader.batch_size


def check_compiled_modules(T: Any) -> Any:
    layer = T.nn.Linear(2, 2)
    found = [refused(lambda: layer.compile(mode="default", options={}))]
    # PyTorch would look for a compiler; of this call it only keeps what it was given.
    found.append(layer.compile(backend="eager"))
    return found


def check_gradients_after_conversion(T: Any) -> Any:
    layer = T.nn.Linear(2, 2)
    layer.weight.grad = grad = T.ones(2, 2)
    layer.double()
    return layer.weight.grad is grad, grad.dtype, layer.weight.grad.tolist()


def check_states_that_are_none(T: Any) -> Any:
    optimizer = T.optim.Adam([T.ones(1)])
    return refused(lambda: optimizer.load_state_dict(3)), refused(lambda: optimizer.load_state_dict({"state": {}}))


def check_loading_into_meta(T: Any) -> Any:
    layer = T.nn.Linear(1, 1, device="meta")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        layer.load_state_dict(T.nn.Linear(1, 1).state_dict())
        layer.load_state_dict(T.nn.Linear(1, 1).state_dict(), assign=True)
    return [str(w.message) for w in seen], layer.weight.device.type


CHECKS = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}


@pytest.mark.parametrize("name", CHECKS)
def test_corners(name: str) -> None:
    assert outcome(CHECKS[name], rgrad) == outcome(CHECKS[name], torch)


# The arguments of Module.to, by T.
FORMS: list[Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]]] = [
    lambda T: ((), {}),
    lambda T: (("cpu",), {}),
    lambda T: ((None,), {}),
    lambda T: (("cpu", True), {}),
    lambda T: (("cpu", T.float64), {}),
    lambda T: (("cpu", T.float64, True), {}),
    lambda T: ((None, T.float64), {}),
    lambda T: (("cpu", None, False, True), {}),
    lambda T: (("cpu", "cpu"), {}),
    lambda T: (("cpu", True, T.float32), {}),
    lambda T: ((T.float64,), {}),
    lambda T: ((T.float64, True), {}),
    lambda T: ((T.float64,), {"device": "cpu"}),
    lambda T: ((T.float32, "cpu"), {}),
    lambda T: ((T.int64,), {}),
    lambda T: ((T.ones(1, dtype=T.float64),), {}),
    lambda T: ((T.ones(1, dtype=T.float64), True), {}),
    lambda T: ((T.ones(1), "cpu"), {}),
    lambda T: ((True,), {}),
    lambda T: (("x",), {}),
    lambda T: ((T.channels_last,), {}),
    lambda T: ((), {"device": "cpu", "dtype": T.float64}),
    lambda T: ((), {"tensor": T.ones(1, dtype=T.float64)}),
    lambda T: ((), {"other": T.ones(1)}),
    lambda T: ((), {"non_blocking": True}),
    lambda T: ((), {"copy": True}),
    lambda T: ((), {"copy": False}),
    lambda T: (("cpu",), {"copy": True}),
    lambda T: (("cpu", T.float32, False), {"memory_format": T.channels_last}),
    lambda T: ((T.float32,), {"memory_format": 3}),
]


@pytest.mark.parametrize("at", range(len(FORMS)))
def test_the_arguments_of_to(at: int) -> None:
    def converted(T: Any) -> str:
        args, kwargs = FORMS[at](T)
        layer = T.nn.Conv2d(2, 3, 2)
        found = refused(lambda: layer.to(*args, **kwargs) is layer)
        return f"{found} {str(layer.weight.dtype).rpartition('.')[2]} {layer.weight.stride()}"

    assert converted(rgrad) == converted(torch)


def state_changes(T: Any) -> list[Callable[[dict[str, Any]], Any]]:
    return [
        lambda s: s.pop("0.weight"),
        lambda s: s.update(x=T.ones(1)),
        lambda s: s.update({"0.weight": T.ones(3, 3)}),
        lambda s: (s.pop("0.bias"), s.update(z=T.ones(1)), s.update({"1.weight": T.ones(4)})),
        lambda s: s.update({"0.weight": 3}),
        lambda s: s.clear(),
    ]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("at", range(6))
def test_words_of_load_state_dict(at: int, strict: bool) -> None:
    def loaded(T: Any) -> Any:
        net = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3))
        state = dict(net.state_dict())
        state_changes(T)[at](state)
        return net.load_state_dict(state, strict=strict)

    assert outcome(loaded, rgrad) == outcome(loaded, torch)


PAIRS: list[Callable[[Any], tuple[Any, Any, dict[str, Any]]]] = [
    lambda T: (T.ones(2), T.ones(3), {}),
    lambda T: (T.ones(2), T.ones(2) * 2, {}),
    lambda T: (T.ones(2), T.ones(2).double(), {}),
    lambda T: (T.tensor(1.0), T.tensor(2.0), {}),
    lambda T: (T.tensor(1), T.tensor(4), {}),
    lambda T: (1.0, 2.0, {}),
    lambda T: (1, 3, {}),
    lambda T: ([1, 2], [1, 3], {}),
    lambda T: ({"a": 1}, {"b": 1}, {}),
    lambda T: (T.tensor([1.0, float("nan")]), T.tensor([1.0, float("nan")]), {}),
    lambda T: (T.tensor([1, 2]), T.tensor([1, 4]), {}),
    lambda T: (T.tensor([3, 7]), T.tensor([1, 3]), {}),
    lambda T: (T.tensor([True]), T.tensor([False]), {}),
    lambda T: (T.zeros(3, 3), T.eye(3), {}),
    lambda T: (T.ones(2), T.ones(2) * 2, {"msg": "other"}),
    lambda T: (T.ones(2), T.ones(2) * 2, {"msg": lambda text: text.upper()}),
    lambda T: (T.ones(2), T.ones(2) * 2, {"rtol": 1e-3}),
    lambda T: (T.ones(2), T.ones(2) * 2, {"atol": 1e-3}),
    lambda T: (T.ones(2), T.ones(2) * 3, {"rtol": 0.5, "atol": 0.1}),
    lambda T: ([T.ones(1), T.ones(2)], [T.ones(1), T.ones(2) * 3], {}),
    lambda T: ({"k": [T.ones(1, dtype=T.float64)]}, {"k": [T.ones(1, dtype=T.float64) * 3]}, {}),
    lambda T: ("a", "b", {}),
    lambda T: (None, 1, {}),
    lambda T: (T.ones(2), T.ones(2), {}),
]


@pytest.mark.parametrize("at", range(len(PAIRS)))
def test_words_of_assert_close(at: int) -> None:
    def compared(T: Any) -> Any:
        actual, expected, options = PAIRS[at](T)
        return T.testing.assert_close(actual, expected, **options)

    assert outcome(compared, rgrad) == outcome(compared, torch)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"weight_decay": 0.1, "maximize": True}),
        *((name, {}) for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop")),
        *((name, {}) for name in ("Rprop", "ASGD")),
        ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
        ("RMSprop", {"centered": True, "momentum": 0.9}),
    ],
)
def test_differentiable_steps(name: str, options: dict[str, Any]) -> None:
    def gradients(T: Any) -> np.ndarray:
        start = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
        p = start.clone()
        optimizer = getattr(T.optim, name)([p], lr=0.1, differentiable=True, **options)
        # PyTorch writes over what a second step's gradient would need.
        p.grad = p * 3 + start**2
        optimizer.step()
        return np.array([p.tolist(), T.autograd.grad(p.sum(), start)[0].tolist()])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # PyTorch counts steps in float32 there, so powers of the betas have 7 digits.
        np.testing.assert_allclose(gradients(rgrad), gradients(torch), rtol=3e-5)


def test_the_first_step_with_momentum_is_differentiated_too() -> None:
    """PyTorch cuts the first gradient off where it becomes the momentum."""

    def gradient(T: Any) -> list[list[float]]:
        start = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
        p = start.clone()
        p.grad = p * 3
        T.optim.SGD([p], lr=0.1, momentum=0.9, differentiable=True).step()
        return [p.tolist(), T.autograd.grad(p.sum(), start)[0].tolist()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = gradient(rgrad), gradient(torch)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], [0.7, 0.7], rtol=1e-12)
    assert theirs[1] == [1.0, 1.0]


def test_linear_is_one_node_over_its_weight() -> None:
    """PyTorch shows the transpose between the product and the weight."""

    def nodes(T: Any) -> list[Any]:
        made = T.nn.Linear(2, 3)(T.ones(4, 2)).grad_fn
        return [type(made).__name__, *(type(node).__name__ for node, _ in made.next_functions)]

    assert nodes(rgrad) == ["AddmmBackward0", "AccumulateGrad", "NoneType", "AccumulateGrad"]
    assert nodes(torch) == ["AddmmBackward0", "AccumulateGrad", "NoneType", "TBackward0"]
