"""Functions that are bound from their entry alone: what their arguments may be, and what is said of others."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rgrad
from rgrad import _core

DECLARED = _core._declared_functions


def test_every_declared_function_is_a_function_and_a_method() -> None:
    assert len(DECLARED) > 20
    for name, (_, _, is_method) in DECLARED.items():
        if not is_method:
            assert not hasattr(rgrad.Tensor, name)
            continue
        function, method = getattr(_core, name), getattr(rgrad.Tensor, name)
        mine, its = (list(inspect.signature(f).parameters.values()) for f in (function, method))
        its = [p for p in its if p.name != "out"]  # what Python adds to a function has it
        names = [p.name for p in mine if p.name != "out"]
        assert names[0] == "input"
        assert names[1:] == [p.name for p in its[1:]]
        assert [p.default for p in mine if p.name != "out"][1:] == [p.default for p in its[1:]]


@pytest.mark.parametrize("name", DECLARED)
def test_wrong_arguments_are_named(name: str) -> None:
    parameters, _, _ = DECLARED[name]
    f = getattr(_core, name)
    x = rgrad.ones(3)
    with pytest.raises(TypeError, match=r"missing 1 required positional arguments: \"input\""):
        f()
    with pytest.raises(TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not float"):
        f(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        f(x, nonsense=1)
    with pytest.raises(TypeError, match="multiple values for argument 'input'"):
        f(x, input=x)
    with pytest.raises(TypeError, match=r"takes \d positional argument"):
        f(x, *range(9))
    for at, (parameter, kind, _) in enumerate(parameters[1:], 1):
        values: list[Any] = [x, *[None] * (at - 1), object()]
        given = {p[0]: v for p, v in zip(parameters, values, strict=False) if v is not None}
        some = {"int": 0, "float": 1.0, "str": "", "tuple of ints": 0, "Tensor": x, "bool": False}
        required = {p[0]: some[p[1]] for p in parameters[1:at] if _is_required(f, p[0])}
        with pytest.raises(TypeError, match=rf"argument '{parameter}'.* must be .*{kind}.*, not object"):
            f(**required, **given)


def _is_required(f: Any, name: str) -> bool:
    return inspect.signature(f).parameters[name].default is inspect.Parameter.empty


def test_other_names_and_other_kinds_of_numbers() -> None:
    x = rgrad.tensor([[1.0, 3.0], [2.0, 0.0]])
    assert x.amax(axis=0, keepdims=True).tolist() == rgrad.amax(self=x, dim=[0], keepdim=True).tolist() == [[2.0, 3.0]]
    assert x.argmax(rgrad.tensor(1)).tolist() == [1, 0]
    assert rgrad.dist(x, x + 1, p=1).item() == 4.0
    for wrong in (True, 1.0):
        with pytest.raises(TypeError, match="must be int"):
            x.argmax(wrong)
    with pytest.raises(TypeError, match="must be bool"):
        x.amax(0, 1)


def test_results_are_written_over_out() -> None:
    x = rgrad.tensor([[1.0, 3.0], [2.0, 0.0]])
    values, indices = rgrad.empty(0), rgrad.empty(0, dtype=rgrad.int64)
    made = rgrad.sort(x, out=(values, indices))
    assert made.values is values
    assert made.indices is indices
    assert values.tolist() == [[1.0, 3.0], [0.0, 2.0]]
    assert indices.tolist() == [[0, 1], [1, 0]]
    out = rgrad.empty(2)
    assert rgrad.logsumexp(x, 1, out=out) is out
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        x.logsumexp(1, out=out)
