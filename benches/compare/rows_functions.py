"""Rows of custom Functions and of derivatives that are recorded, on small tensors."""

from __future__ import annotations

from itertools import repeat
from types import ModuleType
from typing import Any

from harness import Row, Work, to_numpy
from rows_small import leaf, random

LINKS = 100
PRODUCTS = 300


def square(lib: ModuleType) -> Any:
    """The Function of PyTorch's tutorials: one saved tensor."""

    class Square(lib.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x

    return Square


def square_with_setup(lib: ModuleType) -> Any:
    """The same with a forward that takes no context."""

    class Square(lib.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x

    return Square


def forward(make: Any) -> Any:
    def work(lib: ModuleType) -> Work:
        x, apply = leaf(lib, random(4, 4)), make(lib).apply

        def run(n: int) -> None:
            for _ in repeat(None, n):
                apply(x)

        return Work(run, lambda: to_numpy(apply(x)))

    return work


def chain(make: Any) -> Any:
    def work(lib: ModuleType) -> Work:
        x, apply = lib.tensor(0.999, requires_grad=True), make(lib).apply

        def run(n: int) -> None:
            for _ in repeat(None, n):
                y = x
                for _ in repeat(None, LINKS):
                    y = apply(y)
                x.grad = None
                y.backward()

        def result() -> list[Any]:
            run(1)
            return to_numpy(x.grad)

        return Work(run, result)

    return work


def context(what: str) -> Any:
    """One call on a context, repeated inside `forward` or `backward`."""

    def work(lib: ModuleType) -> Work:
        count = [0]

        class Repeats(lib.autograd.Function):  # type: ignore[name-defined,misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                if what == "save":
                    for _ in repeat(None, count[0]):
                        ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                if what == "saved":
                    for _ in repeat(None, count[0]):
                        _ = ctx.saved_tensors
                elif what == "needs":
                    for _ in repeat(None, count[0]):
                        _ = ctx.needs_input_grad
                return grad * ctx.saved_tensors[0]

        x, g = leaf(lib, random(4, 4)), lib.ones(4, 4)

        def run(n: int) -> None:
            count[0] = n
            x.grad = None
            Repeats.apply(x).backward(g)

        def result() -> list[Any]:
            run(1)
            return to_numpy(x.grad)

        return Work(run, result)

    return work


def by_number(reflected: bool) -> Any:
    def work(lib: ModuleType) -> Work:
        x = lib.tensor(random(4, 4))

        def run(n: int) -> None:
            if reflected:
                for _ in repeat(None, n):
                    2 * x
            else:
                for _ in repeat(None, n):
                    x * 2

        return Work(run, lambda: to_numpy(x * 2, 2 * x))

    return work


def by_itself(lib: ModuleType) -> Work:
    x = lib.tensor(random(4, 4))

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x * x

    return Work(run, lambda: to_numpy(x * x))


def module_call(lib: ModuleType) -> Work:
    class Same(lib.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return x

    module, x = Same(), lib.tensor(random(4, 4))

    def run(n: int) -> None:
        for _ in repeat(None, n):
            module(x)

    return Work(run, lambda: to_numpy(module(x)))


def second(lib: ModuleType, y: Any, x: Any) -> Any:
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    return lib.autograd.grad(first if first.dim() == 0 else first.sum(), x)[0]


def second_of_products(lib: ModuleType) -> Work:
    x = lib.tensor(0.999, requires_grad=True)

    def once() -> Any:
        y = x
        for _ in repeat(None, PRODUCTS):
            y = y * x
        return second(lib, y, x)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            once()

    return Work(run, lambda: to_numpy(once()))


def second_of_tanh(lib: ModuleType) -> Work:
    a = leaf(lib, random(32, 32) * 0.1)

    def once() -> Any:
        return second(lib, (a @ a).tanh().sum(), a)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            once()

    return Work(run, lambda: to_numpy(once()))


def second_of_linear(lib: ModuleType) -> Work:
    model, x = lib.nn.Linear(8, 8), leaf(lib, random(4, 8))
    with lib.no_grad():
        for seed, p in enumerate(model.parameters()):
            p.copy_(lib.tensor(random(*p.shape, seed=seed)))

    def once() -> Any:
        return second(lib, model(x).square().sum(), x)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            once()

    return Work(run, lambda: to_numpy(once()))


ROWS = [
    Row("function_forward", "custom Function with one saved tensor, 4x4, fwd", 5, forward(square)),
    Row("function_setup", "the same with setup_context", 5, forward(square_with_setup)),
    Row("function_chain", "100 Functions on a scalar, fwd+bwd, per call", 6, chain(square), per=LINKS, rtol=1e-4),
    Row("function_chain_setup", "the same with setup_context", 6, chain(square_with_setup), per=LINKS, rtol=1e-4),
    # 60 ns are asked of each. `timeit` shows 59, 59 and 24 of them where the loops of these rows, between blocks of the
    # other library, show 127, 110 and 54: a large part is what an attribute costs in Python, in both libraries.
    Row("save_for_backward", "ctx.save_for_backward(x)", 2, context("save")),
    Row("saved_tensors", "ctx.saved_tensors", 4, context("saved")),
    Row("needs_input_grad", "ctx.needs_input_grad", 1, context("needs")),
    Row("mul_itself", "x * x, 4x4, no gradient", 8, by_itself),
    Row("mul_number", "x * 2, 4x4, no gradient", 8, by_number(False)),
    Row("number_mul", "2 * x, 4x4, no gradient", 8, by_number(True)),
    Row("module_call", "nn.Module.__call__ without hooks", 4, module_call),
    Row("second_products", "second derivative of 300 scalar products", 10, second_of_products, rtol=1e-4),
    Row("second_tanh", "second derivative of tanh(a @ a), 32x32", 5, second_of_tanh, rtol=1e-4),
    Row("second_linear", "second derivative of nn.Linear(8, 8) on 4x8", 5, second_of_linear, rtol=1e-4),
]
