"""Signatures beside PyTorch's: every public function, method and class that both have takes the same arguments, by the
same names, in the same order and of the same kinds, with the same defaults. What rgrad takes beyond that is its own.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rgrad.testing  # noqa: E402
import torch_signatures  # noqa: E402
from signature_differences import DIFFERENT  # noqa: E402

PLACES: dict[str, tuple[ModuleType, ModuleType]] = {
    "": (rgrad, torch),
    "autograd": (rgrad.autograd, torch.autograd),
    "autograd.forward_ad": (rgrad.autograd.forward_ad, torch.autograd.forward_ad),
    "autograd.function": (rgrad.autograd.function, torch.autograd.function),
    "autograd.functional": (rgrad.autograd.functional, torch.autograd.functional),
    "autograd.graph": (rgrad.autograd.graph, torch.autograd.graph),
    "func": (rgrad.func, torch.func),
    "hub": (rgrad.hub, torch.hub),
    "nn": (rgrad.nn, torch.nn),
    "nn.functional": (rgrad.nn.functional, torch.nn.functional),
    "nn.init": (rgrad.nn.init, torch.nn.init),
    "nn.parallel": (rgrad.nn.parallel, torch.nn.parallel),
    "nn.utils": (rgrad.nn.utils, torch.nn.utils),
    "optim": (rgrad.optim, torch.optim),
    "optim.lr_scheduler": (rgrad.optim.lr_scheduler, torch.optim.lr_scheduler),
    "overrides": (rgrad.overrides, torch.overrides),
    "testing": (rgrad.testing, torch.testing),
    "utils.checkpoint": (rgrad.utils.checkpoint, torch.utils.checkpoint),
    "utils.data": (rgrad.utils.data, torch.utils.data),
}
VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

# Methods of Module for devices, formats and tools that do not exist here.
NO_METHODS = {
    "ipu", "mtia",
}  # fmt: skip


def of(function: Any) -> Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def is_comparable(signature: Signature, others: list[Signature], is_method: bool) -> bool:
    """Whether a form says something that rgrad could have: named dimensions and dtypes of products it has not, forms
    with `self` among the arguments beside others are what PyTorch deprecated, and `(*args, **kwargs)` says nothing."""
    names = list(signature.parameters)
    kinds = " ".join(str(p.annotation) for p in signature.parameters.values())
    if "ellipsis" in kinds.lower() or "out_dtype" in names:
        return False
    if all(p.kind in VARIADIC for p in signature.parameters.values()) and names:
        return False
    deprecated = names[1:] if is_method else names
    return "self" not in deprecated or not any("self" not in list(o.parameters)[is_method:] for o in others)


def without_self(signature: Signature) -> list[Parameter]:
    found = list(signature.parameters.values())
    return found[1:] if found and found[0].name in ("self", "cls") else found


def differences(ours: Signature, theirs: Signature, is_method: bool) -> Iterator[str]:
    """What of PyTorch's arguments is not taken here, or otherwise."""
    mine = without_self(ours) if is_method else list(ours.parameters.values())
    want = without_self(theirs) if is_method else list(theirs.parameters.values())
    places = [p for p in mine if p.kind in POSITIONAL]
    named = {p.name: p for p in mine if p.kind not in VARIADIC}
    kinds = {p.kind for p in mine}
    used = set()
    for i, p in enumerate(p for p in want if p.kind in POSITIONAL):
        if p.name.startswith("_") and p.kind is not Parameter.POSITIONAL_ONLY:
            continue
        if i >= len(places):
            if Parameter.VAR_POSITIONAL not in kinds:
                yield f"{p.name} cannot be given by position" if p.name in named else f"{p.name} is missing"
            continue
        here = places[i]
        used.add(here.name)
        if (
            p.kind is Parameter.POSITIONAL_OR_KEYWORD
            and here.name != p.name
            and (here.name, p.name) != ("input", "self")
        ):
            yield f"{p.name} stands where {here.name} is"
        else:
            yield from another_default(here, p)
    for p in want:
        if p.kind is Parameter.KEYWORD_ONLY and not p.name.startswith("_"):
            used.add(p.name)
            if p.name in named:
                yield from another_default(named[p.name], p)
            elif Parameter.VAR_KEYWORD not in kinds:
                yield f"{p.name}= is missing"
        elif p.kind in VARIADIC and p.kind not in kinds and p.annotation != Parameter.empty:
            yield f"*{p.name} is missing"
    yield from (
        f"{name} has no default" for name, p in named.items() if p.default is Parameter.empty and name not in used
    )


def another_default(ours: Parameter, theirs: Parameter) -> Iterator[str]:
    plain = (bool, int, float, str, tuple, type(None))
    if theirs.default is Parameter.empty or theirs.default is torch_signatures.UNKNOWN:
        return
    if isinstance(theirs.default, plain) and ours.default != theirs.default:
        yield f"{theirs.name} is {said(ours.default)}, not {said(theirs.default)}"


def said(default: Any) -> str:
    return "without default" if default is Parameter.empty else repr(default)


Case = tuple[Callable[..., Any], list[Signature], bool]


def native(name: str, theirs: Any, table: dict[str, list[Signature]]) -> list[Signature]:
    known = of(theirs)
    return table.get(name, []) if known is None else [known]


def public(of_what: Any) -> list[str]:
    return [name for name in dir(of_what) if not name.startswith("_")]


def is_ours(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "rgrad").startswith("rgrad")


@functools.cache
def cases() -> dict[str, Case]:
    with warnings.catch_warnings():
        # Classes of storages warn when they are looked at.
        warnings.simplefilter("ignore")
        return all_cases()


def all_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}

    def add(name: str, ours: Any, theirs: list[Signature], is_method: bool) -> None:
        forms = [s for s in theirs if is_comparable(s, theirs, is_method)]
        if forms:
            found[name] = (ours, forms, is_method)

    for place, (ours, theirs) in PLACES.items():
        table = torch_signatures.functions() if not place else torch_signatures.functional()
        for name in public(ours):
            mine, other = getattr(ours, name), getattr(theirs, name, None)
            if not callable(mine) or not callable(other) or not is_ours(mine) or mine is rgrad.Tensor:
                continue
            path = f"{place}.{name}".lstrip(".")
            add(path, mine, native(name, other, table), False)
            if inspect.isclass(mine) and inspect.isclass(other):
                for method, function in vars(mine).items():
                    known = of(getattr(other, method, None))
                    if inspect.isfunction(function) and not method.startswith("_") and known is not None:
                        add(f"{path}.{method}", function, [known], True)
    for name in public(rgrad.Tensor):
        mine, other = getattr(rgrad.Tensor, name), getattr(torch.Tensor, name, None)
        if callable(mine) and other is not None:
            add(f"Tensor.{name}", mine, native(name, other, torch_signatures.methods()), True)
    return found


def found_in(case: Case) -> set[str]:
    ours, theirs, is_method = case
    mine = of(ours)
    assert mine is not None, "rgrad's own function has no signature"
    if is_method and inspect.isfunction(ours):  # written in Python: the tensor comes first under some name
        mine = mine.replace(parameters=list(mine.parameters.values())[1:])
    return {text for form in theirs for text in differences(mine, form, is_method)}


@pytest.mark.parametrize("name", sorted(cases()))
def test_arguments(name: str) -> None:
    expected = {text for group in DIFFERENT.values() for text in group.get(name, ())}
    assert found_in(cases()[name]) == expected


def test_every_difference_is_one_of_a_function_that_is_compared() -> None:
    assert {name for group in DIFFERENT.values() for name in group} <= set(cases())


def test_module_has_the_methods_of_pytorchs() -> None:
    theirs = {name for name, value in vars(torch.nn.Module).items() if inspect.isfunction(value)}
    lacking = {name for name in theirs if not name.startswith("_") and not hasattr(rgrad.nn.Module, name)}
    assert lacking == NO_METHODS


def test_there_is_something_to_compare() -> None:
    names = list(cases())
    assert len([n for n in names if "." not in n]) > 250
    assert len([n for n in names if n.startswith("Tensor.")]) > 300
    assert len([n for n in names if n.startswith("nn.")]) > 100
    assert len(names) > 800


def test_forms_of_native_functions_are_found() -> None:
    assert list(torch_signatures.functions()["max"][0].parameters) == ["input", "out"]
    assert any("dim" in s.parameters for s in torch_signatures.methods()["sum"])


def test_a_difference_is_seen() -> None:
    def theirs(a: int, b: int = 1, *, c: int = 2) -> None: ...

    def seen(ours: Any) -> set[str]:
        return set(differences(inspect.signature(ours), inspect.signature(theirs), False))

    assert seen(lambda a, b=1, d=0, *, c=2, e=0: None) == set()
    assert seen(lambda a, x=1, *, c=2: None) == {"b stands where x is"}
    assert seen(lambda a, b=3, *, c=None: None) == {"b is 3, not 1", "c is None, not 2"}
    assert seen(lambda a, *, b=1: None) == {"b cannot be given by position", "c= is missing"}
    assert seen(lambda a, b=1, *, c=2, d: None) == {"d has no default"}
