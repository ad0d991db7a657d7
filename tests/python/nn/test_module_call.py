"""`nn.Module.__call__` calls `forward` itself where it can; wherever `forward` comes from, a call means the same."""

import copy
import pickle
import sys

import pytest

import rgrad
from rgrad import nn
from rgrad.nn.modules import _global_hooks


class Add(nn.Module):
    def forward(self, x, y=1, *more, z=0):
        return x, y, more, z


class Static(nn.Module):
    @staticmethod
    def forward(x):
        return "static", x


class OfClass(nn.Module):
    @classmethod
    def forward(cls, x):
        return cls.__name__, x


class Property(nn.Module):
    @property
    def forward(self):
        return lambda x: ("property", x)


class Reading(nn.Module):
    """Finds `forward` in another way."""

    def forward(self, x):
        raise AssertionError("this one is hidden")

    def __getattribute__(self, name):
        if name == "forward":
            return lambda x: ("read", x)
        return super().__getattribute__(name)


class Own(nn.Module):
    def __call__(self, x):
        return "own", super().__call__(x)

    def forward(self, x):
        return x


class Mixed(Add, dict):
    """A module that is a dict, too."""


class NoInit(nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


def test_arguments_arrive():
    add = Add()
    assert add(1) == (1, 1, (), 0)
    assert add(1, 2, 3, 4) == (1, 2, (3, 4), 0)
    assert add(1, z=5) == (1, 1, (), 5)
    assert add(x=1, y=2) == (1, 2, (), 0)
    assert Mixed()(1, 2) == (1, 2, (), 0)
    assert add(*range(20)) == (0, 1, tuple(range(2, 20)), 0)
    with pytest.raises(TypeError, match=r"forward\(\) missing 1 required positional argument: 'x'"):
        add()
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'w'"):
        add(1, w=2)


@pytest.mark.parametrize(
    "module, result",
    [(Static(), "static"), (OfClass(), "OfClass"), (Property(), "property"), (Reading(), "read"), (Own(), "own")],
)
def test_forward_of_any_kind(module, result):
    assert module(7) == (result, 7)


def test_forward_of_one_module():
    add = Add()
    add.forward = lambda x: ("mine", x)
    assert add(3) == ("mine", 3)
    del add.forward
    assert add(3) == (3, 1, (), 0)


def test_forward_and_call_that_are_replaced(monkeypatch):
    add = Add()
    monkeypatch.setattr(Add, "forward", lambda self, x: ("new", x))
    assert add(3) == ("new", 3)
    monkeypatch.setattr(nn.Module, "__call__", lambda self, *a, **k: ("patched", self.forward(*a, **k)))
    assert add(3) == ("patched", ("new", 3))
    monkeypatch.undo()
    assert add(3) == (3, 1, (), 0)


def test_forward_may_replace_itself():
    class Once(nn.Module):
        def forward(self, x):
            type(self).forward = lambda self, x: "second"
            return "first"

    once = Once()
    assert (once(1), once(1)) == ("first", "second")


def test_copies_are_called():
    add = Add()
    for other in (copy.copy(add), copy.deepcopy(add), pickle.loads(pickle.dumps(add))):
        assert other(4) == (4, 1, (), 0)
    assert NoInit()(5) == 5


def test_hooks_are_seen_from_the_next_call_on():
    add, told = Add(), []
    add(1)
    own = add.register_forward_hook(lambda module, args, output: told.append(output))
    add(2)
    own.remove()
    everywhere = nn.modules.module.register_module_forward_pre_hook(lambda module, args: told.append(args))
    add(3)
    everywhere.remove()
    add(4)
    assert told == [(2, 1, (), 0), (3,)]
    add(5)
    assert len(told) == 2


def test_what_no_hook_watches_any_more_takes_the_short_path():
    add = Add()
    nn.modules.module.register_module_forward_hook(lambda module, args, output: None).remove()
    assert NoInit()(5) == 5
    assert not _global_hooks._hooked
    with nn.modules.module.register_module_full_backward_hook(lambda module, grads, outputs: None):
        add(1)
        assert _global_hooks._hooked


def test_endless_calls_end():
    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        Endless()(1)
    assert sys.getrecursionlimit() == limit


def test_an_error_in_forward_passes_through():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError(x)

    with pytest.raises(KeyError, match="9"):
        Fails()(9)
    with pytest.raises(NotImplementedError, match='Module \\[Module\\] is missing the required "forward" function'):
        nn.Module()(1)
    x = rgrad.ones(2, requires_grad=True)
    assert nn.Identity()(x) is x


def test_the_class_of_a_module_may_be_exchanged():
    class Mixin:
        pass

    class Lazy(Mixin, Add):
        pass

    module = Lazy()
    module.__class__ = Add
    assert type(module) is Add
    assert module(1) == (1, 1, (), 0)
