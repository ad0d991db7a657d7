"""An AttributeError inside of a property names what the property looked for, in all classes with ``__getattr__``."""

from __future__ import annotations

import ast
import copy
import functools
from typing import Any

import pytest

import rgrad
from places import ROOT
from rgrad import nn
from rgrad.utils.benchmark import Measurement, TaskSpec


class Net(nn.Module):
    count = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    @property
    def size(self):
        Net.count += 1
        return self.layer.weigth.shape

    @property
    def area(self):
        return self.size[0] * self.size[1]

    @functools.cached_property
    def name(self):
        return self.titel

    @property
    def fine(self):
        return self.layer.weight.shape

    @property
    def empty(self):
        raise AttributeError


class Around(nn.Module):
    """What it does not have is the network's, as wrappers do it."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.net, name)


def test_properties_of_modules() -> None:
    net = Net()
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weigth'") as caught:
        _ = net.size
    assert any("return self.layer.weigth.shape" in str(entry.statement) for entry in caught.traceback)
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weigth'"):
        _ = net.area
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'titel'"):
        _ = net.name
    with pytest.raises(AttributeError, match=r"^$"):
        _ = net.empty
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        _ = net.missing
    assert net.fine == (2, 2)
    assert not hasattr(net, "size")
    assert getattr(net, "size", None) is None
    assert isinstance(copy.deepcopy(net), Net)


def test_a_property_that_fails_once_gives_its_value() -> None:
    class Later(nn.Module):
        calls = 0

        @property
        def value(self):
            type(self).calls += 1
            if self.calls == 1:
                raise AttributeError("not yet")
            return 3

    assert Later().value == 3


def test_tables_come_before_the_class() -> None:
    class Named(nn.Module):
        weight: Any = property(lambda self: self.nothing)

    net = Named()
    net._parameters["weight"] = nn.Parameter(rgrad.ones(1))
    assert net.weight is net._parameters["weight"]


def test_wrappers_fall_back_to_what_they_hold() -> None:
    wrapped = Around(Net())
    assert wrapped.fine == (2, 2)
    assert wrapped.layer is wrapped.net.layer
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weigth'"):
        _ = wrapped.size


def test_a_module_before_its_constructor() -> None:
    net = Net.__new__(Net)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'layer'"):
        _ = net.size


def test_properties_of_distributions() -> None:
    class Odd(rgrad.distributions.Bernoulli):
        @property
        def mean(self):
            return self.probabilities

    with pytest.raises(AttributeError, match="'Odd' object has no attribute 'probabilities'"):
        _ = Odd(0.5).mean
    assert Odd(0.5).probs.item() == 0.5


def test_properties_of_measurements() -> None:
    class Odd(Measurement):
        @property
        def longest(self):
            return self.raw

    made = Odd(1, [1.0], TaskSpec("pass", ""))
    with pytest.raises(AttributeError, match="'Odd' object has no attribute 'raw'"):
        _ = made.longest
    assert made.stmt == "pass"


# Modules have no properties; contexts, operations and proxies have none that reads an attribute.
WITHOUT_PROPERTIES = {"_BatchedContext", "_Context", "_Helper", "OpOverloadPacket", "Proxy", "_OpNamespace"}


def test_every_class_with_getattr_is_seen_here() -> None:
    found = {}
    for path in (ROOT / "python" / "rgrad").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "__getattr__":
                        found[node.name] = "missing(self, name)" in ast.unparse(method)
    assert {name for name, ends_well in found.items() if ends_well} == {"Module", "Measurement"}
    assert {name for name, ends_well in found.items() if not ends_well} == WITHOUT_PROPERTIES
