"""Modes that are asked about every function, and the helpers of ``rgrad.overrides``."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor
from rgrad.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    is_tensor_like,
    is_tensor_method_or_property,
    redispatch_function,
    resolve_name,
    wrap_torch_function,
)
from test_overrides import LOG, Duck, Logged, Quiet, Refusing, _empty_log, logged, names

__all__ = ["_empty_log"]


# Modes.


class LoggingMode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


def test_modes_see_everything() -> None:
    p = rgrad.ones(2)
    with LoggingMode() as mode:
        assert (p + 1).tolist() == [2.0, 2.0]
        rgrad.zeros(2)
        rgrad.tensor([1.0])
        -p
        2 - p
        p[0]
        _ = p.shape
        rgrad.exp(p)
        rgrad.arange(3)
        p.add_(1)
        F.softsign(p.as_subclass(Quiet))
        rgrad.manual_seed(1)
        rgrad.is_tensor(p)
    p + 1
    expected = "add tolist zeros tensor neg __rsub__ __getitem__ __get__ exp arange add_ softsign"
    assert " ".join(mode.seen) == expected


def test_modes_nest_and_end() -> None:
    p = rgrad.ones(2)
    with LoggingMode() as outer, LoggingMode() as inner:
        p + 1
        with BaseTorchFunctionMode():
            p * 2
    assert outer.seen == inner.seen == ["add", "mul"]

    class Constant(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented if func is rgrad.exp else 42

    with Constant():
        assert p + 1 == 42
        assert rgrad.zeros(2) == 42
        with pytest.raises(TypeError, match="mode object"):
            rgrad.exp(p)
    with pytest.raises(RuntimeError, match="boom"), Constant():
        raise RuntimeError("boom")
    assert type(p + 1) is Tensor
    with pytest.raises(IndexError, match="no TorchFunctionMode"):
        rgrad._core._pop_torch_function_mode()
    with Constant(), rgrad.DisableTorchFunction():
        assert type(p + 1) is Tensor
    with Constant(), rgrad.DisableTorchFunctionSubclass():
        assert p + 1 == 42


def test_mode_belongs_to_its_thread() -> None:
    from threading import Thread

    p, seen = rgrad.ones(2), []
    with LoggingMode() as mode:
        thread = Thread(target=lambda: seen.append(type(p + 1)))
        thread.start()
        thread.join()
    assert seen == [Tensor]
    assert mode.seen == []


# The module.


def test_python_functions_can_take_part() -> None:
    def scaled(a: Any, b: Any) -> Any:
        if has_torch_function((a, b)):
            return handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = logged(2)
    assert type(scaled(x, x)) is Logged
    assert names() == ["scaled"]
    assert scaled(rgrad.ones(1), 2).item() == 3.0
    assert scaled(Duck(), 1) == "duck"

    @wrap_torch_function(lambda a: (a,))
    def plus(a: Any) -> Any:
        return a + 0

    LOG.clear()
    assert type(plus(x)) is Logged
    assert LOG[0][0] is plus
    with pytest.raises(TypeError, match="plus"):
        plus(Refusing())


def test_redispatch() -> None:
    def scaled(a: Any) -> Any:
        if has_torch_function((a,)):
            return handle_torch_function(scaled, (a,), a)
        return a * 2 + 1

    class Inside(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            LOG.append((func, types, args, kwargs))
            return redispatch_function(func, types, args, kwargs)

    assert scaled(rgrad.ones(1).as_subclass(Inside)).item() == 3.0
    assert names() == ["scaled", "mul"]


def test_questions() -> None:
    x, p = logged(2), rgrad.ones(2)
    assert has_torch_function((p, x))
    assert not has_torch_function((p, 1, None))
    assert has_torch_function_unary(x)
    assert not has_torch_function_unary(p)
    assert is_tensor_like(x)
    assert is_tensor_like(p)
    assert is_tensor_like(Duck())
    assert not is_tensor_like(1)
    assert resolve_name(Tensor.add) == "rgrad.Tensor.add"
    assert resolve_name(rgrad.add) == "rgrad.add"
    assert resolve_name(Tensor.shape.__get__) == "rgrad.Tensor.shape.__get__"  # type: ignore[attr-defined]
    assert resolve_name(F.softsign) == "rgrad.nn.functional.softsign"
    assert is_tensor_method_or_property(Tensor.add)
    assert not is_tensor_method_or_property(rgrad.add)
    assert is_tensor_method_or_property(Tensor.shape.__get__)  # type: ignore[attr-defined]
    assert Tensor.grad.__get__ in get_default_nowrap_functions()  # type: ignore[union-attr]
    assert not get_ignored_functions() & set(get_overridable_functions()[rgrad])


def test_the_lists_are_true() -> None:
    """What is listed as overridable asks; what is listed as ignored does not."""
    d = Duck()
    for func in get_overridable_functions()[rgrad]:
        if getattr(func, "__module__", "") == "rgrad._core" and func.__name__ not in ("normal", "bernoulli"):
            assert func(d) == "duck", func
    for func in get_overridable_functions()[Tensor]:
        if type(func).__name__ != "method_descriptor":
            continue
        assert func(rgrad.ones(1), d) == "duck" if func.__name__ not in no_arguments() else True, func
    assert rgrad.tensor in get_ignored_functions()


def no_arguments() -> set[str]:
    """Methods that take nothing, as their definitions say."""
    return {
        name
        for name, method in vars(Tensor).items()
        if type(method).__name__ == "method_descriptor"
        and (method.__text_signature__ or "") in ("($self)", "($self, /)")
    }


def test_stand_ins_for_every_overridable_function() -> None:
    stand_ins = rgrad.overrides.get_testing_overrides()
    functions = {f for found in rgrad.overrides.get_overridable_functions().values() for f in found}
    assert set(stand_ins) == functions
    x = rgrad.ones(1)
    assert list(inspect.signature(stand_ins[rgrad.add]).parameters)[:2] == ["input", "other"]
    assert stand_ins[rgrad.add](x, 1) == -1
    assert stand_ins[rgrad.Tensor.exp](x) == -1
    with pytest.raises(TypeError, match="missing a required argument"):
        stand_ins[rgrad.add](x)

    class Counted:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return stand_ins[func](*args, **(kwargs or {}))

    assert rgrad.add(Counted(), 2) == -1
    assert rgrad.nn.functional.relu(Counted()) == -1


def test_a_mode_is_asked_about_functions_of_python() -> None:
    """Those without a native function behind them, with plain tensors; a parameter may be called as the function is."""
    seen: list[str] = []

    class Seen(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Own(rgrad.Tensor):
        pass

    x = rgrad.ones(2)
    with Seen():
        F.pad(x, (1, 1))
        rgrad.linalg.det(rgrad.eye(2))
        F.gelu(x)
    assert seen == ["pad", "eye", "det", "gelu"]
    assert type(F.pad(x.as_subclass(Own), (1, 1))) is Own
