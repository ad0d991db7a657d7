"""The fast path of operations on few numbers: the bits, nodes, saved values and errors of dispatch."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import _core

Call = Callable[[Any, Any], Any]

NUMBERS = [2, -3, 0, 1, 2.0, 1.5, -0.25, 1e30, 1e-40, float("inf"), float("nan"), 16777217, 2**62, True]
OPERATORS: dict[str, Call] = {
    "x + n": lambda x, n: x + n,
    "n + x": lambda x, n: n + x,
    "x - n": lambda x, n: x - n,
    "n - x": lambda x, n: n - x,
    "x * n": lambda x, n: x * n,
    "n * x": lambda x, n: n * x,
    "x / n": lambda x, n: x / n,
    "n / x": lambda x, n: n / x,
    "x ** n": lambda x, n: x**n,
    "n ** x": lambda x, n: n**x,
    "x % n": lambda x, n: x % n,
    "n % x": lambda x, n: n % x,
    "x // n": lambda x, n: x // n,
    "maximum": lambda x, n: rgrad.clamp(x, min=n),
    "atan2": lambda x, n: rgrad.atan2(x, n),
    "xlogy": lambda x, n: rgrad.xlogy(x, n),
    "leaky_relu": lambda x, n: rgrad.nn.functional.leaky_relu(x, n),
    "sub alpha": lambda x, n: rgrad.sub(x, x, alpha=n),
}
COMPARISONS: dict[str, Call] = {
    "x < n": lambda x, n: x < n,
    "x <= n": lambda x, n: x <= n,
    "x > n": lambda x, n: x > n,
    "x >= n": lambda x, n: x >= n,
    "x == n": lambda x, n: x == n,
    "x != n": lambda x, n: x != n,
    "n < x": lambda x, n: n < x,
    "n == x": lambda x, n: n == x,
    "ge": lambda x, n: rgrad.ge(x, n),
    "eq": lambda x, n: x.eq(n),
    "isnan": lambda x, n: rgrad.isnan(x * n),
    "logical_xor": lambda x, n: rgrad.logical_xor(x, x > n),
    "isclose": lambda x, n: rgrad.isclose(x, x * n),
    "clamp min": lambda x, n: x.clamp(min=n),
    "clamp max": lambda x, n: x.clamp(max=n),
    "clamp both": lambda x, n: x.clamp(-0.5, n),
}
WRITES: dict[str, Call] = {
    "x += n": lambda x, n: x.__iadd__(n),
    "x -= n": lambda x, n: x.__isub__(n),
    "x *= n": lambda x, n: x.__imul__(n),
    "x /= n": lambda x, n: x.__itruediv__(n),
    "x //= n": lambda x, n: x.__ifloordiv__(n),
    "x %= n": lambda x, n: x.__imod__(n),
    "x **= n": lambda x, n: x.__ipow__(n),
    "add_": lambda x, n: x.add_(n),
    "add_ alpha": lambda x, n: x.add_(0.5, alpha=n),
    "sub_": lambda x, n: x.sub_(n),
    "mul_": lambda x, n: x.mul_(n),
    "div_": lambda x, n: x.div_(n),
    "div_ floor": lambda x, n: x.div_(n, rounding_mode="floor"),
    "pow_": lambda x, n: x.pow_(n),
    "clamp_ min": lambda x, n: x.clamp_(min=n),
    "clamp_ max": lambda x, n: x.clamp_(max=n),
    "clamp_ both": lambda x, n: x.clamp_(-0.5, n),
    "atan2_": lambda x, n: x.atan2_(rgrad.full_like(x, 2.0)),
    "tanh_": lambda x, n: x.tanh_(),
    "neg_": lambda x, n: x.neg_(),
    "gt_": lambda x, n: x.gt_(n),
    "x += x": lambda x, n: x.__iadd__(x),
    "x *= y": lambda x, n: x.__imul__(rgrad.full_like(x, 3.0)),
    "x -= y, alpha": lambda x, n: x.sub_(rgrad.full_like(x, 3.0), alpha=n),
    "x += row": lambda x, n: x.__iadd__(x[:1]) if x.ndim > 1 else x.__iadd__(x),
    "x *= wider": lambda x, n: x.__imul__(rgrad.full(x.shape, 0.1, dtype=rgrad.float64)),
    "x += too many": lambda x, n: x.__iadd__(rgrad.ones(2, *x.shape)),
    "x += text": lambda x, n: x.__iadd__("1"),
}
SHAPES = [(), (1,), (3,), (15,), (4, 4), (17,), (8, 16), (5, 27), (1000,)]


@contextmanager
def long_way() -> Iterator[None]:
    before = _core._set_fast_path(False)
    try:
        yield
    finally:
        _core._set_fast_path(before)


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    made = np.random.default_rng(len(shape)).standard_normal(shape)
    return rgrad.tensor(np.asarray(made, dtype="float64").tolist(), dtype=dtype)


def bits(t: Any) -> Any:
    a = t.detach().numpy()
    # The sign of a NaN may differ.
    return (a.shape, a.dtype, np.where(np.isnan(a), np.nan, a).tobytes() if a.dtype.kind == "f" else a.tobytes())


def saved(node: Any) -> dict[str, Any]:
    names = [n for n in dir(node) if n.startswith("_saved_")]
    found = {n: getattr(node, n) for n in names}

    def shown(v: Any) -> Any:
        return (bits(v), v.requires_grad, v.grad_fn and v.grad_fn.name()) if isinstance(v, rgrad.Tensor) else repr(v)

    return {n: shown(v) for n, v in found.items()}


def outcome(call: Call, x: Any, number: Any) -> Any:
    """Everything that a user can see of one call, forward and backward."""
    try:
        y = call(x, number)
    except Exception as e:
        return (type(e), str(e))
    if not y.requires_grad:
        return (bits(y), y.is_leaf)
    node = y.grad_fn
    edges = [None if n is None else (n.name(), k) for n, k in node.next_functions]
    kept = saved(node)
    x.grad = None
    y.backward(rgrad.ones_like(y), retain_graph=True)
    first = bits(x.grad)
    (g,) = rgrad.autograd.grad(y, x, rgrad.ones_like(y), create_graph=True)
    second = None
    if g.requires_grad:
        (second,) = rgrad.autograd.grad(g.sum(), x, allow_unused=True)
    return (bits(y), node.name(), edges, kept, first, bits(g), None if second is None else bits(second))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
def test_numbers_take_the_fast_path_with_the_same_results(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        for number in NUMBERS:
            for needs in (False, True):
                x = values(shape, dtype).requires_grad_(needs)
                short = outcome(OPERATORS[name], x, number)
                with long_way():
                    long = outcome(OPERATORS[name], x, number)
                assert short == long, (shape, number, needs)


@pytest.mark.parametrize("dtype", [rgrad.bool, rgrad.uint8, rgrad.int32, rgrad.int64], ids=str)
def test_other_types_are_promoted_as_before(dtype: Any) -> None:
    x = rgrad.tensor([[0, 1], [1, 1]]).to(dtype)
    for name, call in OPERATORS.items():
        for number in NUMBERS:
            short = outcome(call, x, number)
            with long_way():
                assert short == outcome(call, x, number), (name, number)


def test_a_number_keeps_the_type_of_a_float_tensor() -> None:
    x = rgrad.ones(2, dtype=rgrad.float32)
    assert {(x * n).dtype for n in (2, 2.5, 2**60)} == {rgrad.float32}
    with pytest.raises(OverflowError):
        x * 2**70


@pytest.mark.parametrize("shape", [(), (4, 4), (17,), (2000,)])
def test_gradients_that_are_handed_on_are_apart(shape: tuple[int, ...]) -> None:
    """Of a sum both operands get the cotangent itself: what is done to one gradient must not be seen in the other."""
    x, y = (values(shape, rgrad.float32).requires_grad_() for _ in range(2))
    seed = rgrad.ones(shape)
    (x + y).backward(seed)
    x.grad.mul_(5)
    assert (y.grad == 1).all()
    assert (seed == 1).all()
    x.grad = y.grad = None
    # Each operand's gradient is added to elsewhere, in the pass.
    z = x + y
    (z - x + z + x * 2 + (y + x) - (x - y)).backward(seed)
    assert (x.grad == 3).all()
    assert (y.grad == 4).all()
    assert (seed == 1).all()
    gx, gy = rgrad.autograd.grad(x - y, (x, y), seed)
    assert (gx == 1).all()
    assert (gy == -1).all()


def test_subclasses_of_float_and_int_are_numbers() -> None:
    class Metres(float):
        pass

    class Count(int):
        pass

    x = rgrad.ones(2)
    assert (x * Metres(2.5)).tolist() == [2.5, 2.5]
    assert (Count(3) - x).tolist() == [2.0, 2.0]
    assert (x * np.float32(0.5)).tolist() == [0.5, 0.5]


def test_the_saved_number_is_no_tensor_for_hooks() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = x * 3
    assert y.grad_fn._saved_other.item() == 3.0
    with pytest.raises(RuntimeError, match="Python number"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    y.backward(rgrad.ones(2))
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_other


def same_both_ways(call: Callable[[], Any]) -> Any:
    short = call()
    with long_way():
        long = call()
    assert short == long
    return short


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.int32, rgrad.bool], ids=str)
def test_comparisons_and_bounds_are_the_same_both_ways(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        for number in NUMBERS:
            for needs in (False, True) if dtype.is_floating_point else (False,):
                x = values(shape, dtype).requires_grad_(needs)
                same_both_ways(lambda x=x, number=number: outcome(COMPARISONS[name], x, number))


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_of_tensors_are_the_same_both_ways(name: str) -> None:
    for shape in SHAPES:
        x, y = values(shape, rgrad.float32), values(shape, rgrad.float32).round()
        x = rgrad.where(y == 1, y, x)
        compare = getattr(operator, name)
        z = same_both_ways(lambda x=x, y=y, compare=compare: bits(compare(x, y)))
        assert z[1] == np.dtype(bool)
        assert z[2] == compare(x.numpy(), y.numpy()).tobytes()


def test_comparisons_with_what_is_no_operand_are_pythons() -> None:
    x = rgrad.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015

    class Other:
        def __gt__(self, other: object) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    assert (x < Other()) == "mine"
    assert (x == Other()) is True


def written(name: str, make: Callable[[], tuple[Any, Any]], number: Any, recorded: bool) -> Any:
    """What a user can see of one write in place: of the target, of what it is a view of, and of gradients."""
    base, x = make()

    def version() -> int | None:
        return None if x.is_inference() else x._version

    before = version()
    try:
        with rgrad.set_grad_enabled(recorded):
            y = WRITES[name](x, number)
    except Exception as e:
        return (type(e), str(e), bits(base), version() == before)
    assert y is x
    node = x.grad_fn
    kept = None if node is None else (node.name(), saved(node))
    grad = None
    if x.requires_grad and node is not None:
        try:
            x.sum().backward()
            grad = None if base.grad is None else bits(base.grad)
        except Exception as e:
            grad = (type(e), str(e).split(" Saved for ")[0])
    return (bits(base), bits(x), (before, version()), x.requires_grad, kept, grad)


def targets(shape: tuple[int, ...], dtype: Any) -> dict[str, Callable[[], tuple[Any, Any]]]:
    def whole() -> tuple[Any, Any]:
        x = values(shape, dtype)
        return x, x

    def part() -> tuple[Any, Any]:
        # The first half of memory that goes on behind it.
        base = rgrad.cat([values(shape, dtype).reshape(-1), rgrad.arange(1, 8).to(dtype)])
        return base, base[: base.numel() - 7].view(shape)

    def behind() -> tuple[Any, Any]:
        base = rgrad.cat([rgrad.arange(1, 4).to(dtype), values(shape, dtype).reshape(-1)])
        return base, base[3:].view(shape)

    def leaf() -> tuple[Any, Any]:
        x = values(shape, dtype).requires_grad_()
        return x, x

    def made() -> tuple[Any, Any]:
        x = values(shape, dtype).requires_grad_()
        return x, x * 1.5

    def detached() -> tuple[Any, Any]:
        x = values(shape, dtype)
        return x, x.detach()

    def repeated() -> tuple[Any, Any]:
        x = values((), dtype).expand(3)
        return x, x

    def inference() -> tuple[Any, Any]:
        with rgrad.inference_mode():
            x = values(shape, dtype)
        return x, x

    def frozen() -> tuple[Any, Any]:
        a = values(shape, dtype).numpy().copy()
        a.flags.writeable = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = rgrad.from_numpy(a)
        return x, x

    return {f.__name__: f for f in (whole, part, behind, leaf, made, detached, repeated, inference, frozen)}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
def test_writes_in_place_are_the_same_both_ways(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        for make in targets(shape, dtype).values():
            for number in [2, 0.5, -3, True, float("nan"), 2**62]:
                for recorded in (False, True):
                    same_both_ways(lambda m=make, n=number, r=recorded: written(name, m, n, r))


def test_a_short_write_counts_and_names_itself() -> None:
    x = rgrad.ones(3)
    view = x[1:]
    saved_by = (x * rgrad.ones(3, requires_grad=True)).sum()
    x *= 2
    x.add_(rgrad.ones(3), alpha=3)
    assert (x._version, view._version, x.tolist(), view.tolist()) == (2, 2, [5.0] * 3, [5.0] * 2)
    with pytest.raises(RuntimeError, match="add_"):
        saved_by.backward()
    plain = rgrad.zeros(4)
    half = plain[:2]
    half += 1
    half.clamp_(max=0.5)
    assert plain.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_a_write_is_seen_by_subclasses_and_modes() -> None:
    seen: list[str] = []

    class Watched(rgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = rgrad.ones(2).as_subclass(Watched)
    x *= 2
    _ = x > 1
    assert isinstance(x, Watched)
    assert seen[0] in ("mul_", "__imul__")
    assert seen[1] in ("gt", "__gt__")

    class Silent(rgrad.Tensor):
        def __imul__(self, other: Any) -> str:  # type: ignore[override,misc]
            return "mine"

        def __gt__(self, other: Any) -> str:  # type: ignore[override]
            return "also mine"

    y: Any = rgrad.ones(2).as_subclass(Silent)
    assert (y > 1) == "also mine"
    y *= 2
    assert y == "mine"


def test_a_captured_tensor_is_not_written_by_the_fast_path() -> None:
    outside = rgrad.zeros(3)

    def f(x: Any) -> Any:
        nonlocal outside
        outside += 1
        return x.sum()

    with pytest.raises(RuntimeError):
        rgrad.func.grad(f)(rgrad.ones(3))
    assert outside.tolist() == [0.0] * 3


@pytest.mark.parametrize("shape", [(2,), (4, 4), (17,), (8, 16), (1000,), (2000,)])
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
def test_a_cotangent_that_repeats_one_number(shape: tuple[int, ...], dtype: Any) -> None:
    calls: dict[str, Call] = {
        "mul": lambda x, y: x * y,
        "square": lambda x, y: x * x,
        "number": lambda x, y: x * 3,
        "sub": lambda x, y: x - y,
        "rsub": lambda x, y: 1 - x,
        "sigmoid": lambda x, y: x.sigmoid(),
        "sin": lambda x, y: x.sin(),
        "div": lambda x, y: x / (y * y + 1),
        "leaky_relu": lambda x, y: rgrad.nn.functional.leaky_relu(x, 0.3),
    }
    for call in calls.values():

        def run(call: Call = call) -> Any:
            x, y = (values(shape, dtype).requires_grad_() for _ in range(2))
            z = call(x, y)
            (z.sum() * 0.3).backward()
            grads = [t.grad for t in (x, y)]
            return [None if g is None else (bits(g), g.stride()) for g in grads]

        assert same_both_ways(run)
