"""copy.copy, copy.deepcopy, pickle and weak references of tensors, parameters and modules."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import rgrad
from rgrad import Tensor, nn


class Tagged(Tensor):
    pass


def test_copy_shares_memory_and_attributes(device: str) -> None:
    x: Any = rgrad.ones(2, requires_grad=True)
    x.note = ["mine"]
    x.grad = rgrad.ones(2)
    twin = copy.copy(x)
    assert twin is not x
    assert twin.note is x.note
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.grad is None
    with rgrad.no_grad():
        x.fill_(3)
    assert twin.tolist() == [3.0, 3.0]
    made = copy.copy(x * 2)
    assert made.is_leaf
    assert made.requires_grad
    for cls in (Tagged, nn.Parameter):
        own: Any = Tensor._make_subclass(cls, rgrad.ones(1))
        own.note = 1
        assert type(copy.copy(own)) is cls
        assert copy.copy(own).note == 1


def test_deepcopy_of_leaves(device: str) -> None:
    x: Any = rgrad.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    x.note = ["mine"]
    x.grad = rgrad.ones(3, 2)
    twin = copy.deepcopy(x)
    assert twin.tolist() == x.tolist()
    assert twin.stride() == x.stride() == (1, 3)
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.note == ["mine"]
    assert twin.note is not x.note
    assert twin.grad is not x.grad
    assert twin.grad.tolist() == x.grad.tolist()
    with rgrad.no_grad():
        twin.zero_()
    assert x.sum().item() == 15.0
    assert type(copy.deepcopy(rgrad.ones(1).as_subclass(Tagged))) is Tagged
    for empty in (rgrad.empty(0), rgrad.empty(2, 0), rgrad.tensor(1), rgrad.ones(1).expand(3)):
        assert copy.deepcopy(empty).shape == empty.shape
        assert copy.deepcopy(empty).stride() == empty.stride()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_deepcopy_keeps_what_is_shared(device: str) -> None:
    base = rgrad.arange(4.0)
    views = {"all": base, "half": base[:2], "again": base, "other": base.clone()}
    twins = copy.deepcopy(views)
    assert twins["all"] is twins["again"]
    twins["all"].fill_(7)
    assert twins["half"].tolist() == [7.0, 7.0]
    assert twins["other"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0]
    twins["half"].zero_()
    assert twins["all"].tolist() == [0.0, 0.0, 7.0, 7.0]


def test_deepcopy_of_modules(device: str) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("part", self.a.weight.detach()[0])
            self.own: Any = rgrad.ones(2)
            self.own.note = 1

    model = Tied()
    model.a(rgrad.ones(2)).sum().backward()
    twin = copy.deepcopy(model)
    assert twin.a.weight is twin.b.weight
    assert twin.a.weight is not model.a.weight
    assert type(twin.a.weight) is nn.Parameter
    with rgrad.no_grad():
        twin.a.weight.fill_(5)
    assert twin.part.tolist() == [5.0, 5.0]
    assert model.a.weight.tolist() != twin.a.weight.tolist()
    assert twin.own.note == 1
    before = twin.a.bias.detach().clone()
    rgrad.optim.SGD(model.parameters(), lr=1.0).step()
    assert twin.a.bias.tolist() == before.tolist()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int, device: str) -> None:
    x: Any = rgrad.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    x.note = {"a": 1}
    back = pickle.loads(pickle.dumps(x, protocol))
    assert back.tolist() == x.tolist()
    assert back.stride() == x.stride()
    assert back.requires_grad
    assert back.is_leaf
    assert back.note == {"a": 1}
    assert back.device == x.device
    assert back.grad is None
    made = pickle.loads(pickle.dumps(x * 2, protocol))
    assert made.is_leaf
    assert made.requires_grad
    for cls in (Tagged, nn.Parameter):
        own: Any = Tensor._make_subclass(cls, rgrad.ones(2), True)
        own.note = 1
        back = pickle.loads(pickle.dumps(own, protocol))
        assert type(back) is cls
        assert back.note == 1
        assert back.requires_grad
    for odd in (rgrad.empty(0, 3), rgrad.tensor(True), rgrad.arange(5)[1::2], rgrad.ones(1).expand(2, 3)):
        back = pickle.loads(pickle.dumps(odd, protocol))
        assert back.dtype == odd.dtype
        assert back.shape == odd.shape
        assert back.tolist() == odd.tolist()


def test_pickles_name_what_files_name() -> None:
    """Older files have these names, whatever module has the functions."""
    for value, name in (
        (rgrad.ones(2), "rebuild"),
        (nn.Parameter(rgrad.ones(2)), "rebuild"),
        (rgrad.Generator(), "generator"),
    ):
        named = f"crgrad._construct\n{name}\n".encode()
        assert named in pickle.dumps(value, 0)
        assert pickle.loads(named + b".") is value.__reduce_ex__(2)[0]
    for name in ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"):
        kind = getattr(nn.parameter, name)
        assert pickle.dumps(kind, 0).startswith(f"crgrad.nn.parameter\n{name}\n".encode())


def test_a_pickled_view_takes_only_its_own_part() -> None:
    whole = rgrad.zeros(100_000)
    assert len(pickle.dumps(whole[:10])) < 2000
    assert len(pickle.dumps(whole[:20:2])) < 2000


def test_pickle_of_modules_and_optimizers() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = rgrad.ones(1, 2)
    back = pickle.loads(pickle.dumps(model))
    assert back(x).tolist() == model(x).tolist()
    assert all(type(p) is nn.Parameter and p.requires_grad for p in back.parameters())


def test_a_parameter_of_another_class_stays_one() -> None:
    p: Any = nn.Parameter(rgrad.ones(2).as_subclass(Tagged))
    for twin in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(twin) is Tagged
        assert isinstance(twin, nn.Parameter)


def test_weak_references() -> None:
    x = rgrad.ones(2).as_subclass(Tagged)
    gone: list[int] = []
    ref = weakref.ref(x, lambda _: gone.append(1))
    table = weakref.WeakKeyDictionary({x: "x"})
    twin = copy.deepcopy(x)
    assert ref() is x
    del x
    gc.collect()
    assert ref() is None
    assert gone == [1]
    assert len(table) == 0
    assert twin.tolist() == [1.0, 1.0]


def test_hooks_that_stay_behind_are_warned_of(tmp_path: Any) -> None:
    def hook(grad: Any) -> None: ...

    x = rgrad.ones(1, requires_grad=True)
    x.register_hook(hook)
    ways = (pickle.dumps, copy.copy, lambda t: rgrad.save(t, tmp_path / "x"))
    for way in ways:
        with pytest.warns(UserWarning, match="backward hook <function .*hook at .* will not be serialized"):
            way(x)
    y = rgrad.ones(1, requires_grad=True)
    y.register_hook(rgrad.utils.hooks.unserializable_hook(hook))
    for way in ways:
        way(y)
    copy.deepcopy(x)
