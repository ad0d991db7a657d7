"""Derivatives as they are recorded: what hooks see of them, and their own derivatives, on rgrad and on torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from program_kit import compare, cut, function, hooks, leaf, registry  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS, program = registry()


def recorded(T: Any, log: list[Any], f: Any, *values: float) -> None:
    """What a recorded derivative saves (the very input, the very cotangent, or values), and its derivatives."""
    x = leaf(T, *values)
    y = f(x)
    cotangent = T.full(y.shape, 2.0, dtype=T.float64, requires_grad=True)
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append((t is x, t is cotangent, t.detach()))
        return t

    with hooks(T, pack):
        (g,) = T.autograd.grad(y, x, cotangent, create_graph=True)
    log.append(seen)
    log.append(g)
    if g.requires_grad:
        log.append(T.autograd.grad(g.sum(), (x, cotangent), allow_unused=True))


@pytest.mark.parametrize("exponent", [3, 2, 1, 0, 2.5, 0.5, -1, -2.0, 0.1, 0.0, 1.0, 300, -0.0])
def test_power_by_a_number(exponent: float) -> None:
    def power(T: Any, log: list[Any]) -> None:
        recorded(T, log, lambda x: x**exponent)

    compare(power)


@pytest.mark.parametrize("name", ["sin", "cos", "log", "exp", "reciprocal", "neg", "log1p", "expm1", "sqrt"])
def test_function(name: str) -> None:
    def apply(T: Any, log: list[Any]) -> None:
        recorded(T, log, lambda x: getattr(x, name)())

    compare(apply)


@pytest.mark.parametrize("exponent", [0, 1, 2, 0.5, -1, 1.5])
def test_powers_at_special_values(exponent: float) -> None:
    def power(T: Any, log: list[Any]) -> None:
        for cotangent in (1.0, float("inf"), float("nan")):
            x = leaf(T, 0.0, -1.0, 2.0, float("nan"), float("inf"))
            y = x**exponent
            (g,) = T.autograd.grad(y, x, T.full_like(y, cotangent).detach(), create_graph=True)
            log.append(g)
            if g.requires_grad:
                log.append(T.autograd.grad(g.sum(), x))
        x = leaf(T, 0.0, -1.0, 2.0)
        log.append(T.autograd.grad(x**exponent, x, T.full((3,), float("inf"), dtype=T.float64)))

    compare(power)


@program
def the_exponent_of_the_inner_power_is_exact(T: Any, log: list[Any]) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    (g,) = T.autograd.grad((x**0.1).sum(), x, create_graph=True)
    node = g.grad_fn
    while node.name() != "PowBackward0":
        node = next(n for n, _ in reversed(node.next_functions) if n is not None)
    log.append(node._saved_exponent)
    return T.autograd.grad(g.sum(), x)


@program
def powers_of_a_tensor_exponent(T: Any, log: list[Any]) -> Any:
    x, e = leaf(T, 0.0, 2.0, -1.0, 3.0), leaf(T, 0.0, 0.0, 0.0, 2.0)
    for cotangent in (1.0, float("inf")):
        y = x**e
        log.append(T.autograd.grad(y, x, T.full_like(y, cotangent).detach()))


@program
def no_gradient_unpacks_too(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    with hooks(T, lambda t: t.detach(), lambda t: (log.append("unpacked"), t)[1]):
        y = x * x
    cut(T).apply(y).sum().backward()
    log.append("freed")
    return y.grad_fn._saved_self


@program
def no_gradient_retains(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x * x
    cut(T).apply(y).sum().backward(retain_graph=True)
    return y.grad_fn._saved_self


@program
def no_gradient_and_a_function(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = function(T, lambda ctx, x: x * 1, lambda ctx, g: (log.append(g), g)[1]).apply(x)
    cut(T).apply(y).sum().backward()
    return x.grad


# Of rows that begin with minus infinity PyTorch's are nan (see `docs/differences.md`).
INFINITE = [
    [0.5, -float("inf"), 1.0],
    [1.0, float("inf"), 2.0],
    [float("inf"), float("inf"), 1.0],
    [1.0, float("nan"), 2.0],
    [float("inf"), -float("inf"), 0.0],
]


@pytest.mark.parametrize("values", INFINITE, ids=str)
def test_second_derivatives_of_logcumsumexp_at_infinity(values: list[float]) -> None:
    def run(T: Any, log: list[Any]) -> Any:
        x, weights = leaf(T, *values), T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
        (g,) = T.autograd.grad((x.logcumsumexp(0) * weights).sum(), x, create_graph=True)
        log.append(g)
        (second,) = T.autograd.grad((g * weights).sum(), x)
        return (second * 1e9).round() / 1e9 + 0.0  # 0 is 0, not -4e-15 or -0

    compare(run)


PIECEWISE = {
    "relu": lambda T, x: x.relu(),
    "relu_": lambda T, x: (x * 1).relu_(),
    "relu6": lambda T, x: T.nn.functional.relu6(x),
    "hardtanh": lambda T, x: T.nn.functional.hardtanh(x),
    "leaky_relu": lambda T, x: T.nn.functional.leaky_relu(x),
    "rrelu": lambda T, x: T.nn.functional.rrelu(x),
    "prelu": lambda T, x: T.nn.functional.prelu(x, T.tensor(0.25, dtype=T.float64)),
    "threshold": lambda T, x: T.nn.functional.threshold(x, 0.1, 0.2),
    "hardshrink": lambda T, x: T.nn.functional.hardshrink(x),
    "softshrink": lambda T, x: T.nn.functional.softshrink(x),
    "max_pool1d": lambda T, x: T.nn.functional.max_pool1d(x.reshape(1, 1, -1), 2),
    "max_pool2d": lambda T, x: T.nn.functional.max_pool2d(x.reshape(1, 2, -1), 2),
    "max_pool3d": lambda T, x: T.nn.functional.max_pool3d(x.reshape(1, 1, 2, -1), (1, 2, 1)),
    "adaptive_max_pool2d": lambda T, x: T.nn.functional.adaptive_max_pool2d(x.reshape(1, 2, -1), 1),
    "clamp": lambda T, x: x.clamp(-1, 1),
    "maximum": lambda T, x: T.maximum(x, T.zeros_like(x)),
    "amax": lambda T, x: x.amax(),
}


@pytest.mark.parametrize("name", PIECEWISE)
@pytest.mark.parametrize("history", [False, True], ids=["leaf", "computed"])
def test_second_derivatives_of_piecewise_linear_operations(name: str, history: bool) -> None:
    """Those that PyTorch has are zeros; the others are refused on both."""

    def run(T: Any, log: list[Any]) -> Any:
        x = leaf(T, -2.0, -0.5, 0.5, 2.0)
        v = x * 1 if history else x
        (g,) = T.autograd.grad(PIECEWISE[name](T, v).sum(), v, create_graph=True)
        log.append((g.detach(), g.requires_grad))
        return T.autograd.grad((g * g).sum(), (x, v), allow_unused=True)

    compare(run)


RANDOM = {
    "normal_": lambda t: t.normal_(),
    "uniform_": lambda t: t.uniform_(),
    "exponential_": lambda t: t.exponential_(),
    "random_": lambda t: t.random_(),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ of a tensor": lambda t: t.bernoulli_(t.detach().clamp(0, 1)),
    "log_normal_": lambda t: t.log_normal_(),
    "geometric_": lambda t: t.geometric_(0.5),
    "cauchy_": lambda t: t.cauchy_(),
    "fill_": lambda t: t.fill_(1),
}


@pytest.mark.parametrize("name", RANDOM)
def test_values_that_are_overwritten_have_gradients_of_0(name: str) -> None:
    def run(T: Any, log: list[Any]) -> Any:
        x = leaf(T, 0.2, 0.4)
        y = x * 3
        RANDOM[name](y)
        y.sum().backward()
        log.append((x.grad, y.requires_grad, y._version))
        RANDOM[name](x)

    compare(run)


COMPARISONS = ("lt_", "le_", "gt_", "ge_", "eq_", "ne_")


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("other", ["number", "tensor", "leaf"])
def test_values_that_are_overwritten_by_a_comparison_have_gradients_of_0(name: str, other: str) -> None:
    def run(T: Any, log: list[Any]) -> Any:
        x = leaf(T, 0.2, 0.4)
        y = x * 3
        b = 0.7 if other == "number" else T.tensor([0.6, 0.7], dtype=T.float64, requires_grad=other == "leaf")
        getattr(y, name)(b)
        log.append((type(y.grad_fn).__name__, y.requires_grad, y))
        y.sum().backward()
        log.append((x.grad, b.grad if other == "leaf" else None))
        getattr(x, name)(b)

    compare(run)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    compare(PROGRAMS[name])
