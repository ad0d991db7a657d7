"""``__torch_function__``: subclasses, duck types and modes are asked, in PyTorch's order and with its arguments."""

from __future__ import annotations

import gc
import operator
import sys
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor
from rgrad.overrides import (
    BaseTorchFunctionMode,
    enable_reentrant_dispatch,
    has_torch_function,
)

LOG: list[tuple[Any, tuple[type, ...], tuple[Any, ...], dict[str, Any] | None]] = []


class Logged(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs or {})


class Quiet(Tensor):
    """Has no ``__torch_function__`` of its own."""


class Duck:
    """No tensor at all."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((func, types, args, kwargs))
        return "duck"


class Refusing:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


@pytest.fixture(autouse=True)
def _empty_log() -> Iterator[None]:
    LOG.clear()
    yield
    LOG.clear()


def logged(*shape: int) -> Any:
    made = rgrad.rand(*shape).as_subclass(Logged)
    LOG.clear()
    return made


def names() -> list[str]:
    return [getattr(func, "__name__", "?") for func, *_ in LOG]


# What handlers see. In the table: how it is called, the function, the classes of the arguments.

METHODS = [
    ("x + 2", Tensor.add, [Logged, int]),
    ("2 + x", Tensor.add, [Logged, int]),
    ("x + p", Tensor.add, [Logged, Tensor]),
    ("p + x", Tensor.add, [Tensor, Logged]),
    ("x - 2", Tensor.sub, [Logged, int]),
    ("2 - x", Tensor.__rsub__, [Logged, int]),
    ("p - x", Tensor.sub, [Tensor, Logged]),
    ("x * p", Tensor.mul, [Logged, Tensor]),
    ("x / 2", Tensor.div, [Logged, int]),
    ("2 / x", Tensor.__rtruediv__, [Logged, int]),
    ("x // 2", Tensor.__floordiv__, [Logged, int]),
    ("2 // x", Tensor.__rfloordiv__, [Logged, int]),
    ("x % p", Tensor.remainder, [Logged, Tensor]),
    ("2 % x", Tensor.__rmod__, [Logged, int]),
    ("x ** 2", Tensor.pow, [Logged, int]),
    ("2 ** x", Tensor.__rpow__, [Logged, int]),
    ("x @ p", Tensor.matmul, [Logged, Tensor]),
    ("p @ x", Tensor.matmul, [Tensor, Logged]),
    ("i & 1", Tensor.__and__, [Logged, int]),
    ("1 & i", Tensor.bitwise_and, [Logged, int]),
    ("i << 1", Tensor.__lshift__, [Logged, int]),
    ("1 << i", Tensor.__rlshift__, [Logged, int]),
    ("-x", Tensor.neg, [Logged]),
    ("abs(x)", Tensor.abs, [Logged]),
    ("~i", Tensor.__invert__, [Logged]),
    ("x < 2", Tensor.lt, [Logged, int]),
    ("2 < x", Tensor.gt, [Logged, int]),
    ("p < x", Tensor.gt, [Logged, Tensor]),
    ("x == p", Tensor.__eq__, [Logged, Tensor]),
    ("x != p", Tensor.ne, [Logged, Tensor]),
    ("x[0]", Tensor.__getitem__, [Logged, int]),
    ("p[i]", Tensor.__getitem__, [Tensor, Logged]),
    ("len(x)", Tensor.__len__, [Logged]),
    ("bool(i)", Tensor.__bool__, [Logged]),
    ("float(i)", Tensor.__float__, [Logged]),
    ("int(i)", Tensor.__int__, [Logged]),
    ("operator.index(i)", Tensor.__index__, [Logged]),
    ("0.5 in x", Tensor.__contains__, [Logged, float]),
    ("repr(x)", Tensor.__repr__, [Logged]),
    ("format(x)", Tensor.__format__, [Logged, str]),
    ("reversed(x)", Tensor.__reversed__, [Logged]),
    ("list(x)[0]", Tensor.unbind, [Logged, int]),
    ("x.exp()", Tensor.exp, [Logged]),
    ("x.sum(0)", Tensor.sum, [Logged, int]),
    ("x.dim()", Tensor.dim, [Logged]),
    ("x.reshape(-1)", Tensor.reshape, [Logged, int]),
    ("x.detach()", Tensor.detach, [Logged]),
    ("p.add(x)", Tensor.add, [Tensor, Logged]),
    ("Tensor.add(x, 1)", Tensor.add, [Logged, int]),
    ("Tensor.__add__(x, 1)", Tensor.add, [Logged, int]),
    ("rgrad.add(p, x)", rgrad.add, [Tensor, Logged]),
    ("rgrad.zeros_like(x)", rgrad.zeros_like, [Logged]),
    ("rgrad.cat([p, x])", rgrad.cat, [list]),
    ("rgrad.stack((x, x))", rgrad.stack, [tuple]),
    ("rgrad.where(p > 0, x, p)", rgrad.where, [Tensor, Logged, Tensor]),
    ("rgrad.einsum('ij,jk', x, p)", rgrad.einsum, [str, Logged, Tensor]),
    ("rgrad.flip(x, [0])", rgrad.flip, [Logged, list]),
    ("F.linear(x, p)", F.linear, [Logged, Tensor]),
    ("F.softsign(x)", F.softsign, [Logged]),
    ("F.cross_entropy(x, p)", F.cross_entropy, [Logged, Tensor]),
    ("F.mse_loss(p, x)", F.mse_loss, [Tensor, Logged]),
    ("nn.Linear(2, 2)(x)", F.linear, [Logged, rgrad.nn.Parameter, rgrad.nn.Parameter]),
    ("x.shape", Tensor.shape.__get__, [Logged]),  # type: ignore[attr-defined]
    ("x.grad", Tensor.grad.__get__, [Logged]),  # type: ignore[union-attr]
]


@pytest.mark.parametrize(("call", "func", "kinds"), METHODS, ids=[row[0] for row in METHODS])
def test_what_a_handler_sees(call: str, func: Any, kinds: list[type], device: str) -> None:
    scope = {
        "x": logged(2, 2),
        "i": rgrad.tensor(1).as_subclass(Logged),
        "p": rgrad.rand(2, 2),
        "rgrad": rgrad,
        "F": F,
        "nn": rgrad.nn,
        "Tensor": Tensor,
        "operator": operator,
    }
    LOG.clear()
    result = eval(call, scope)
    seen, types, args, _ = LOG[0]
    assert seen == func
    assert types == (Logged,)
    assert [type(a) for a in args] == kinds
    if isinstance(result, Tensor):
        assert type(result) is Logged


@pytest.mark.parametrize(
    ("statement", "func"),
    [
        ("x += 1", Tensor.add_),
        ("x -= p", Tensor.sub_),
        ("x *= 2", Tensor.mul_),
        ("x /= 2", Tensor.div_),
        ("x //= 2", Tensor.floor_divide_),
        ("x %= 2", Tensor.remainder_),
        ("x **= 2", Tensor.pow_),
        ("i &= 1", Tensor.__iand__),
        ("i |= 1", Tensor.__ior__),
        ("i ^= 1", Tensor.__ixor__),
        ("i <<= 1", Tensor.__ilshift__),
        ("p += x", Tensor.add_),
        ("x[0] = 1", Tensor.__setitem__),
        ("p[0] = x[0]", Tensor.__getitem__),
        ("x.requires_grad = True", Tensor.requires_grad.__set__),  # type: ignore[attr-defined]
        ("x.grad = None", Tensor.grad.__set__),  # type: ignore[union-attr]
    ],
)
def test_statements(statement: str, func: Any) -> None:
    p = rgrad.rand(2, 2)
    scope = {"x": logged(2, 2), "i": rgrad.tensor(1).as_subclass(Logged), "p": p}
    LOG.clear()
    exec(statement, scope)
    assert LOG[0][0] == func
    if statement == "p += x":
        # In place on a plain tensor: its class is that of the result, its memory is its own.
        assert type(scope["p"]) is Logged
        assert scope["p"].data_ptr() == p.data_ptr()


def test_keywords_and_out() -> None:
    p, x = rgrad.ones(2), logged(2)
    rgrad.add(p, other=x)
    assert LOG[-1][2] == (p,)
    assert LOG[-1][3] is not None
    assert LOG[-1][3]["other"] is x
    out = logged(2)
    assert rgrad.add(p, p, out=out) is out
    assert LOG[-1][3] is not None
    assert LOG[-1][3]["out"] is out
    x.sum(dim=0, keepdim=True)
    assert LOG[-1][3] == {"dim": 0, "keepdim": True}


def test_makers_and_settings_ask_nobody() -> None:
    x = logged(2, 2)
    assert rgrad.as_tensor(x) is x
    with pytest.warns(UserWarning, match="copy construct"):
        assert type(rgrad.tensor(x)) is Tensor
    assert rgrad.is_tensor(x)
    assert x.as_subclass(Tensor) is not x
    assert LOG == []


# Classes of results.


def test_results_keep_the_class() -> None:
    x = rgrad.rand(3, 2).as_subclass(Quiet)
    assert type(x) is Quiet
    values, indices = x.max(0)
    assert type(values) is type(indices) is Quiet
    assert type(x.max(0)).__name__ == "max"
    assert {type(part) for part in x.split(1)} == {Quiet}
    assert {type(row) for row in x} == {Quiet}
    assert type(x.shape) is rgrad.Size
    assert type(x.sum().item()) is float
    assert type(x.data) is Quiet
    assert type(x.as_subclass(Tensor)) is Tensor
    assert repr(x).startswith("Quiet(")


def test_subclass_of_a_subclass_wins() -> None:
    class Finer(Quiet):
        pass

    x, y = rgrad.ones(2).as_subclass(Quiet), rgrad.ones(2).as_subclass(Finer)
    assert type(x + y) is type(y + x) is type(rgrad.stack([x, y])) is Finer


def test_unrelated_subclasses_do_not_mix() -> None:
    class Other(Tensor):
        pass

    x, y = rgrad.ones(2).as_subclass(Quiet), rgrad.ones(2).as_subclass(Other)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + y
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'rgrad.add'; all __torch_function__ handlers"):
        rgrad.add(x, y)


def test_one_handler_may_leave_it_to_the_other() -> None:
    class Shy(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            LOG.append((func, types, args, kwargs))
            return NotImplemented

    x, y = rgrad.ones(2).as_subclass(Shy), Duck()
    assert rgrad.add(x, y) == "duck"
    assert [types for _, types, *_ in LOG] == [(Shy, Duck)] * 2


def test_type_errors_of_operators_go_to_the_other_operand() -> None:
    class Bad(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise TypeError("mine")

    b = rgrad.ones(2).as_subclass(Bad)
    for wrong in (lambda: b + 1, lambda: 1 + b, lambda: b + rgrad.ones(2), lambda: rgrad.ones(2) + b):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong()
    with pytest.raises(TypeError, match="mine"):
        rgrad.add(b, 1)
    with pytest.raises(TypeError):
        b += 1
    assert (b == 1) is False

    class Worse(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        rgrad.ones(2).as_subclass(Worse) + 1


# Objects that are no tensors.


def test_ducks() -> None:
    p, d = rgrad.ones(2), Duck()
    assert rgrad.add(p, d) == "duck"
    assert LOG[-1][0] is rgrad.add
    assert LOG[-1][1] == (Duck,)
    assert LOG[-1][2] == (p, d)
    for call in (
        lambda: p + d,
        lambda: d + p,
        lambda: p == d,
        lambda: p < d,
        lambda: p.add_(d),
        lambda: rgrad.cat([p, d]),
        lambda: p[d],
        lambda: rgrad.sum(d, 0),
        lambda: p.view(d),
        lambda: F.relu(d),
        lambda: F.linear(p, d),
        lambda: rgrad.mean(input=d),
    ):
        assert call() == "duck"


def test_refusal() -> None:
    p, r = rgrad.ones(2), Refusing()
    with pytest.raises(TypeError, match=r"all __torch_function__ handlers returned NotImplemented:(.|\n)*Refusing"):
        rgrad.add(p, r)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        p + r
    with pytest.raises(TypeError, match="relu"):
        F.relu(r)


def test_plain_method_is_warned_about() -> None:
    class Plain:
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self

    x = Plain()
    with pytest.warns(UserWarning, match="define it as a classmethod"):
        assert rgrad.add(rgrad.ones(1), x) is x


# Switching it off.


def test_disabling() -> None:
    x = logged(2)
    with rgrad.DisableTorchFunctionSubclass():
        assert type(x + 1) is Tensor
        with rgrad.DisableTorchFunction():
            assert type(x.exp()) is Tensor
        assert type(x.exp()) is Tensor
        with enable_reentrant_dispatch():
            assert type(x + 1) is Logged
        assert not has_torch_function((x,))
    assert names() == ["add"]
    assert type(x + 1) is Logged
    with rgrad._C.DisableTorchFunctionSubclass():
        assert not rgrad._C._is_torch_function_enabled()
    assert rgrad._C._is_torch_function_enabled()


def test_super_runs_without_asking_again() -> None:
    x = logged(2)
    F.softsign(x)
    assert names() == ["softsign"]


# Making objects of subclasses.


def test_as_subclass_shares_memory_and_history() -> None:
    w = rgrad.ones(2, requires_grad=True)
    x = (w * 2).as_subclass(Quiet)
    assert x.grad_fn is not None
    assert x.grad_fn.name() == "AliasBackward0"
    (x * 3).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [6.0, 6.0]
    p = rgrad.zeros(2)
    p.as_subclass(Quiet).fill_(1)
    assert p.tolist() == [1.0, 1.0]
    for wrong in (int, 3, type):
        with pytest.raises(TypeError, match="does not inherit from Tensor"):
            p.as_subclass(wrong)  # type: ignore[arg-type]


def test_new_with_arguments_of_its_own() -> None:
    class Named(Tensor):
        name: str

        def __new__(cls, data: Any, name: str) -> Any:
            return Tensor._make_subclass(cls, data)

        def __init__(self, data: Any, name: str) -> None:
            self.name = name

    x = Named(rgrad.ones(2), "n")
    assert type(x) is Named
    assert x.name == "n"
    assert type(x + 1) is Named

    class Counted(Tensor):
        """Its __init__ does not call Tensor's."""

        count: int

        def __new__(cls, data: Any, count: int) -> Any:
            return super().__new__(cls, data)

        def __init__(self, data: Any, count: int) -> None:
            self.count = count

    y: Any = Counted(rgrad.ones(2), 3).requires_grad_()
    product = y * y
    node = product.grad_fn
    while node.next_functions:
        node = node.next_functions[0][0]
    assert node.variable is y
    assert y.count == 3
    with pytest.raises(TypeError, match="subclass of Tensor"):
        Tensor._make_subclass(int, rgrad.ones(2))


def test_the_object_comes_back() -> None:
    x = rgrad.ones(2).as_subclass(Quiet)
    x.requires_grad_()
    x.note = "mine"  # type: ignore[attr-defined]
    y = x * x
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t))
    assert y.grad_fn is not None
    address = id(x)
    del x
    y.sum().backward()
    assert type(seen[0]) is Tensor
    assert type(seen[1]) is Quiet
    assert id(seen[1]) == address
    assert seen[1].note == "mine"
    assert type(seen[1].grad) is Tensor
    assert seen[1].grad is seen[1].grad


def test_function_gets_and_saves_the_object() -> None:
    class Double(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            assert type(x) is Quiet
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert type(x) is Quiet
            assert x.note == 1
            return g * 2

    x: Any = rgrad.ones(2).as_subclass(Quiet).requires_grad_()
    x.note = 1
    out = Double.apply(x)
    assert type(out) is Quiet
    out.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_grad_is_asked_about() -> None:
    x = logged(2).requires_grad_()
    y = (x * 2).sum()
    LOG.clear()
    (g,) = rgrad.autograd.grad(y, x)
    assert names() == ["grad"]
    assert LOG[0][0] is rgrad.autograd.grad
    assert type(g) is Logged
    assert g.as_subclass(Tensor).tolist() == [2.0, 2.0]
    assert rgrad.autograd.grad([Duck()], rgrad.ones(1)) == "duck"


def test_parameters() -> None:
    p = rgrad.nn.Parameter(rgrad.ones(2))
    assert type(p + 1) is Tensor
    assert type(p.exp()) is Tensor
    own = rgrad.nn.Parameter(rgrad.ones(2).as_subclass(Quiet))
    assert type(own) is Quiet
    assert isinstance(own, rgrad.nn.Parameter)
    assert own.requires_grad
    assert type(own + 1) is Quiet
    assert not isinstance(rgrad.ones(2).as_subclass(Quiet), rgrad.nn.Parameter)
    module = rgrad.nn.Module()
    module.own = own
    assert dict(module.named_parameters()) == {"own": own}
    assert type(p + logged(2)) is Logged
    assert not has_torch_function((p, rgrad.ones(1)))

    class Mine(rgrad.nn.Parameter):
        pass

    assert type(Mine(rgrad.ones(2))) is Mine
    assert type(Mine(rgrad.ones(2)) * 2) is Tensor


def test_overriding_methods_in_the_subclass() -> None:
    class Swapped(Tensor):
        def __add__(self, other: Any) -> Any:
            return super().__add__(other).mul(10)

        def exp(self) -> Any:
            return "mine"

    x = rgrad.ones(2).as_subclass(Swapped)
    assert type(x + 1) is Swapped
    assert (x + 1).tolist() == [20.0, 20.0]
    assert x.exp() == "mine"
    assert type(rgrad.exp(x)) is Swapped


# Faults and lifetimes.


def test_nothing_is_kept() -> None:
    x = logged(3)
    ref = weakref.ref(x)
    y = x + 1
    rgrad.add(x, other=y)
    LOG.clear()
    del x, y
    gc.collect()
    assert ref() is None


def test_an_argument_that_changes_its_list() -> None:
    """The handler runs while the arguments are held."""
    items: list[Any] = [rgrad.ones(1), Duck()]

    class Clearing(Duck):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            items.clear()
            gc.collect()
            return len(args)

    items.append(Clearing())
    assert rgrad.cat(items) == 1


def test_no_warning_and_no_recursion_in_repr() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Logged" in repr(logged(2))


def test_calls_leave_nothing_behind() -> None:
    x, p = rgrad.ones(2).as_subclass(Quiet), rgrad.ones(2)

    def work() -> None:
        for _ in range(500):
            y = (x + 1).exp()
            rgrad.cat([x, y]).sum(0)
            rgrad.add(p, other=y)
            assert x[0] == x[0]
            assert x.shape == p.shape
            with BaseTorchFunctionMode():
                rgrad.zeros(1)

    work()
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(Quiet)
    work()
    gc.collect()
    assert len(gc.get_objects()) <= before[0] + 5
    assert sys.getrefcount(Quiet) == before[1]


def test_threads_dispatch_at_once() -> None:
    from threading import Thread

    x, p = rgrad.ones(2).as_subclass(Quiet), rgrad.ones(2)
    kinds: list[set[type]] = []

    def work(in_mode: bool) -> None:
        seen = set()
        for _ in range(300):
            if in_mode:
                with BaseTorchFunctionMode():
                    seen |= {type(p + 1), type(x + 1)}
            else:
                seen |= {type(p + 1), type(x + 1)}
        kinds.append(seen)

    threads = [Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds == [{Tensor, Quiet}] * 4
    assert rgrad._core._torch_function_modes() == []
