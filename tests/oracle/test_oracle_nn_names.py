"""Public names of PyTorch's packages for networks that are rare or old, beside PyTorch's."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402


def plain(value: Any) -> str:
    return repr(value).replace("torch.", "").replace("rgrad.", "")


def swapped(T: Any, make: str, **options: Any) -> Any:
    """A step on other parameters with another state, and one on its own after that."""
    params = [T.nn.Parameter(T.arange(3.0)), T.nn.Parameter(T.ones(2, 2))]
    groups = [{"params": params[:1], "lr": 0.1}, {"params": params[1:], "lr": 0.3}]
    optimizer = getattr(T.optim, make)(groups, **options)
    for p in params:
        p.grad = p.detach() + 1
    optimizer.step()
    state = optimizer.state_dict()
    state["param_groups"][0]["lr"] = 0.7
    others = {"a": T.ones(3), "b": T.zeros(2, 2)}
    for q in others.values():
        q.grad = T.ones_like(q)
    with T.optim.swap_in_optimizer_params_and_state(optimizer, others, state):
        optimizer.step()
        inside = [[p.tolist() for p in g["params"]] for g in optimizer.param_groups]
    optimizer.step()
    kept = [optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["params"][0] is params[0]]
    return inside, kept, [p.tolist() for p in params], [q.tolist() for q in others.values()]


@pytest.mark.parametrize(
    ("make", "options"),
    [("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("RMSprop", {}), ("Adagrad", {})],
)
def test_an_optimizer_works_on_other_tensors(make: str, options: dict[str, Any]) -> None:
    def flat(nested: Any) -> list[float]:
        return [x for n in nested for x in flat(n)] if isinstance(nested, list | tuple) else [float(nested)]

    np.testing.assert_allclose(flat(swapped(rgrad, make, **options)), flat(swapped(torch, make, **options)), rtol=1e-6)


def in_swap(T: Any, change: Any, step: bool = True) -> None:
    p = T.nn.Parameter(T.ones(2))
    optimizer = T.optim.Adam([p])
    p.grad = T.ones(2)
    if step:
        optimizer.step()
    params, state = {"p": T.ones(2)}, optimizer.state_dict()
    change(params, state)
    with T.optim.swap_in_optimizer_params_and_state(optimizer, params, state):
        raise AssertionError("not reached")


def old(T: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = getattr(T.nn, name)(*args, **kwargs)
    return made, [w.category.__name__ for w in told]


def prefix(T: Any) -> Any:
    state = T.nn.DataParallel(T.nn.Sequential(T.nn.Linear(2, 1), T.nn.BatchNorm1d(1))).state_dict()
    T.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), sorted(state._metadata)


def without_statistics(T: Any) -> Any:
    net = T.nn.Sequential(T.nn.BatchNorm1d(3), T.nn.Sequential(T.nn.BatchNorm2d(2), T.nn.InstanceNorm1d(3)))
    found = T.func.replace_all_batch_norm_modules_(net)
    return found is net, list(net.state_dict()), repr(net)


def formats(T: Any) -> Any:
    net = T.nn.Sequential(T.nn.Conv2d(3, 4, 2), T.nn.ConvTranspose2d(4, 3, 2), T.nn.Conv3d(2, 3, 2), T.nn.Linear(2, 3))
    for dims, wanted in ((2, T.channels_last), (3, T.channels_last_3d)):
        given = getattr(T.nn.utils, f"convert_conv{dims}d_weight_memory_format")(net, wanted)
        assert given is net
    return [p.stride() for p in net.parameters()]


def functionalized(T: Any) -> Any:
    def f(x: Any, y: Any = 2) -> Any:
        z = x.clone()
        z[0] = y
        x.add_(1)
        return z.view(-1), x * 2

    given = T.zeros(2, 2)
    made = [T.func.functionalize(f, remove=r)(given, y=5) for r in ("mutations", "mutations_and_views")]
    return made, given, T.func.functionalize(T.func.grad(lambda x: x.clone().mul_(x).sum()))(T.ones(2))


SAME = {
    "NLLLoss2d": lambda T: old(T, "NLLLoss2d", ignore_index=2, reduction="sum"),
    "Container": lambda T: old(T, "Container", a=T.nn.Linear(2, 1), b=T.nn.ReLU()),
    "DataParallel": lambda T: T.nn.DataParallel(T.nn.Linear(2, 1), device_ids=[0]),
    "DataParallel device_ids": lambda T: T.nn.DataParallel(T.nn.ReLU()).device_ids,
    "parallel": lambda T: T.nn.parallel.DataParallel is T.nn.DataParallel,
    "prefix": prefix,
    "factory": lambda T: T.nn.factory_kwargs({"dtype": T.float64, "factory_kwargs": {"device": "cpu"}}),
    "factory None": lambda T: T.nn.factory_kwargs(None),
    "factory unknown": lambda T: T.nn.factory_kwargs({"size": 1}),
    "factory twice": lambda T: T.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}}),
    "pairs": lambda T: [getattr(T.nn.modules.utils, n)(3) for n in ("_single", "_pair", "_triple", "_quadruple")],
    "pair of a list": lambda T: T.nn.modules.utils._pair([3, 4]),
    "reversed": lambda T: T.nn.modules.utils._reverse_repeat_tuple((1, 2, 3), 2),
    "size types": lambda T: T.nn.common_types._size_2_t == int | tuple[int, int],
    "batch norms": without_statistics,
    "memory formats": formats,
    "functionalize": functionalized,
    "functionalize remove": lambda T: T.func.functionalize(lambda x: x, remove="views")(T.ones(1)),
    "swap before a step": lambda T: in_swap(T, lambda p, s: None, step=False),
    "swap groups": lambda T: in_swap(T, lambda p, s: s["param_groups"].append({})),
    "swap no groups": lambda T: in_swap(T, lambda p, s: s.pop("param_groups")),
    "swap no state": lambda T: in_swap(T, lambda p, s: s.pop("state")),
    "swap keys": lambda T: in_swap(T, lambda p, s: s["param_groups"][0].pop("lr")),
    "swap params": lambda T: in_swap(T, lambda p, s: s["param_groups"][0].update(params=[])),
    "swap ids": lambda T: in_swap(T, lambda p, s: s["param_groups"][0].update(params=["p"])),
    "swap extra": lambda T: in_swap(T, lambda p, s: s["state"].update({7: {}})),
    "swap too few": lambda T: in_swap(T, lambda p, s: p.clear()),
}


@pytest.mark.parametrize("name", SAME)
def test_a_name_does_the_same(name: str) -> None:
    ours, theirs = attempt(lambda: plain(SAME[name](rgrad))), attempt(lambda: plain(SAME[name](torch)))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.value == theirs.value


@pytest.mark.parametrize("package", ["nn.modules", "nn.utils"])
def test_files_have_the_names_of_pytorchs(package: str) -> None:
    """Those that a file of PyTorch lists, as far as there are such names here at all."""
    known = {*dir(rgrad.nn), *dir(rgrad.nn.utils)}
    for file in pkgutil.iter_modules(importlib.import_module(f"torch.{package}").__path__):
        listed = getattr(importlib.import_module(f"torch.{package}.{file.name}"), "__all__", [])
        if wanted := [name for name in listed if name in known]:
            ours = importlib.import_module(f"rgrad.{package}.{file.name}")
            assert [name for name in wanted if not hasattr(ours, name)] == [], file.name


def test_layers_have_the_bases_of_pytorchs() -> None:
    """Of two classes in files of the same names, one is derived from the other here if it is so there."""

    def here(cls: type) -> Any:
        try:
            return getattr(importlib.import_module(cls.__module__.replace("torch", "rgrad", 1)), cls.__name__, None)
        except ImportError:
            return None

    for name in torch.nn.modules.__all__:
        theirs = getattr(torch.nn, name)
        for base in theirs.__mro__:
            if base.__module__.startswith("torch.nn.modules.") and here(theirs) and here(base):
                assert issubclass(here(theirs), here(base)), (name, base.__name__)


def test_constants_of_layers_are_pytorchs() -> None:
    for name in torch.nn.modules.__all__:
        if hasattr(rgrad.nn, name):
            theirs = getattr(getattr(torch.nn, name), "__constants__", None)
            assert getattr(getattr(rgrad.nn, name), "__constants__", None) == (theirs and list(theirs)), name
