"""autograd.functional under every setting, and gradient checks, on rgrad and on torch."""

# ruff: noqa: PERF401
from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from program_kit import attempt, compare, function, leaf, point, registry  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS, program = registry()

FUNCTIONS: dict[str, Any] = {
    "square": lambda x: x**2,
    "sum of cubes": lambda x: (x**3).sum(),
    "constant": lambda x: x.detach() * 2,
    "linear": lambda x: (x * 2).sum(),
    "two outputs": lambda x: (x * 2, x.sin()),
    "constant sum": lambda x: x.detach().sum(),
    "one constant of two": lambda x: ((x**2).sum(), x.detach().sum()),
}
WITHOUT_VECTOR = ("jacobian", "hessian")
WITH_VECTOR = ("vjp", "jvp", "vhp", "hvp")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_setting(name: str) -> None:
    def settings(T: Any, log: list[Any]) -> None:
        for create_graph, strict, recording, leaves in itertools.product((False, True), repeat=4):
            x = point(T).requires_grad_(leaves)
            options = {"create_graph": create_graph, "strict": strict}
            with T.set_grad_enabled(recording):
                for kind in WITHOUT_VECTOR:
                    call = getattr(T.autograd.functional, kind)
                    log.append(attempt(lambda call=call, x=x, options=options: call(FUNCTIONS[name], x, **options)))
                for kind in WITH_VECTOR:
                    call = getattr(T.autograd.functional, kind)
                    for more in ((), (point(T),), (point(T).sum(),)):
                        log.append(
                            attempt(
                                lambda call=call, x=x, more=more, options=options: call(
                                    FUNCTIONS[name], x, *more, **options
                                )
                            )
                        )

    compare(settings)


@pytest.mark.parametrize("strict", [False, True])
def test_two_inputs(strict: bool) -> None:
    def settings(T: Any, log: list[Any]) -> None:
        of = T.autograd.functional
        for f in (lambda x, y: (x * y).sum(), lambda x, y: (x * 2).sum(), lambda x, y: (x**2).sum()):
            xs = (point(T), point(T))
            for create_graph in (False, True):
                options = {"create_graph": create_graph, "strict": strict}
                for call in (
                    lambda f=f, xs=xs, o=options: of.jacobian(f, xs, **o),
                    lambda f=f, xs=xs, o=options: of.hessian(f, xs, **o),
                    lambda f=f, xs=xs, o=options: of.jacobian(f, xs, vectorize=True, **o),
                    lambda f=f, xs=xs, o=options: of.hessian(f, xs, vectorize=True, **o),
                    lambda f=f, xs=xs, o=options: of.jacobian(f, xs, vectorize=True, strategy="forward-mode", **o),
                    lambda f=f, xs=xs, o=options: of.vjp(f, xs, xs[0].sum(), **o),
                    lambda f=f, xs=xs, o=options: of.jvp(f, xs, xs, **o),
                    lambda f=f, xs=xs, o=options: of.vhp(f, xs, xs, **o),
                    lambda f=f, xs=xs, o=options: of.hvp(f, xs, xs, **o),
                ):
                    log.append(attempt(call))

    compare(settings)


@program
def wrong_arguments(T: Any, log: list[Any]) -> Any:
    x = point(T)
    total = lambda x: x.sum()  # noqa: E731
    for kind in WITHOUT_VECTOR:
        f = getattr(T.autograd.functional, kind)
        strategy = "strategy" if kind == "jacobian" else "outer_jacobian_strategy"
        for call in (
            lambda f=f: f(total, 3),
            lambda f=f: f(total, [x]),
            lambda f=f: f(total, (x, 3)),
            lambda f=f: f(lambda x: 3, x),
            lambda f=f: f(lambda x: (x.sum(), 3), x),
            lambda f=f: f(lambda x: [x.sum()], x),
            lambda f=f: f(lambda x: x * 2, x),
            lambda f=f: f(lambda x: (x.sum(),), x),
            lambda f=f: f(total, x.long()),
            lambda f=f: f(lambda x: x.sum().reshape(1, 1), x),
            lambda f=f: f(total, x, vectorize=True, strict=True),
            lambda f=f, s=strategy: f(total, x, create_graph=True, **{s: "forward-mode"}),
            lambda f=f, s=strategy: f(total, x, strict=True, **{s: "forward-mode"}),
        ):
            log.append(attempt(call))
    for kind in WITH_VECTOR:
        f = getattr(T.autograd.functional, kind)
        for call in (
            lambda f=f: f(total, 3),
            lambda f=f: f(total, x, 3),
            lambda f=f: f(total, x, (x, x)),
            lambda f=f: f(total, x, x[:2]),
            lambda f=f: f(total, (x,), (x[:2],)),
            lambda f=f: f(lambda x: (x.sum(), x.sum()), x, x),
            lambda f=f: f(lambda x: 3, x, x),
            lambda f=f: f(lambda x, y: x.sum(), (x, x), x),
            lambda f=f: f(total, x, [x]),
        ):
            log.append(attempt(call))


@program
def nested_without_recording(T: Any, log: list[Any]) -> Any:
    of = T.autograd.functional
    x = point(T)
    cubes = FUNCTIONS["sum of cubes"]

    def inner(x: Any) -> Any:
        with T.no_grad():
            return of.jacobian(cubes, x, create_graph=True)

    log.append(of.jacobian(inner, x))
    log.append(of.jacobian(inner, leaf(T), create_graph=True))
    with T.no_grad():
        log.append(of.jacobian(lambda x: of.jacobian(cubes, x, create_graph=True), x))
        log.append(of.hessian(lambda x: of.hessian(cubes, x, create_graph=True).sum(), x))
        log.append(of.jacobian(lambda x: of.hessian(cubes, x, create_graph=True), x, create_graph=True))
    with T.inference_mode():
        log.append(of.jacobian(cubes, x))
        log.append(attempt(lambda: of.hessian(cubes, point(T), create_graph=True)))


@program
def functions_in_forward_mode(T: Any, log: list[Any]) -> Any:
    of = T.autograd.functional

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 * ctx.saved_tensors[0]

    def jvp(ctx: Any, t: Any) -> Any:
        log.append(list(t.shape))
        return t * 2 * ctx.saved_tensors[0]

    own = function(T, forward, backward, jvp=jvp)
    bare = function(T, forward, backward)
    x = point(T)
    for strategy in ("forward-mode", "reverse-mode"):
        options = {"vectorize": True, "strategy": strategy}
        outer = {"vectorize": True, "outer_jacobian_strategy": strategy}
        for call in (
            lambda o=options: of.jacobian(own.apply, x, **o),
            lambda o=options: of.jacobian(lambda x: own.apply(x * 2) * x, x, **o),
            lambda o=options: of.jacobian(lambda x: (own.apply(x), x.sum()), x, **o),
            lambda o=options: of.jacobian(lambda x, y: own.apply(x) * y, (x, x), **o),
            lambda o=options: of.jacobian(bare.apply, x, **o),
            lambda o=outer: of.hessian(lambda x: own.apply(x).sum(), x, **o).detach(),
            lambda o=outer: of.hessian(lambda x: bare.apply(x).sum(), x, **o),
        ):
            log.append(attempt(call))


@program
def forward_mode(T: Any, log: list[Any]) -> Any:
    x, single, captured = point(T), point(T).float(), leaf(T)

    def jacobian(f: Any, *xs: Any) -> Any:
        given = xs if len(xs) > 1 else xs[0]
        return attempt(lambda: T.autograd.functional.jacobian(f, given, vectorize=True, strategy="forward-mode"))

    log.append(jacobian(lambda x: x.detach(), x))
    log.append(jacobian(lambda x: (x, x.detach()), x))
    log.append(jacobian(lambda x: T.ones(2), x))
    log.append(jacobian(lambda x, y: (x * y.float(), y), single, x))
    log.append(jacobian(lambda x: x.clone().mul_(2), x))
    log.append(jacobian(lambda x: x[:0], x))
    log.append(jacobian(lambda x: x, x.long()))
    log.append(jacobian(lambda x: x.sin(), leaf(T)))
    log.append(jacobian(lambda x: x * captured, x))
    log.append(jacobian(lambda x: x.reshape(3, 1) * x, x))


# ---- gradcheck


def check(T: Any, log: list[Any], f: Any, *xs: Any, short: bool = False, **options: Any) -> None:
    """The result with and without exceptions, in both modes; only the first line of a message if ``short``."""
    for raises, fast in itertools.product((True, False), repeat=2):
        given = tuple(x.clone().detach().requires_grad_(x.requires_grad) for x in xs)
        found = attempt(
            lambda given=given, raises=raises, fast=fast: T.autograd.gradcheck(
                f, given, raise_exception=raises, fast_mode=fast, **options
            )
        )
        if short and hasattr(found, "text"):
            found.text = found.text.split("\n")[0].split(". Please look")[0]
        log.append(found)


def depending(T: Any, there: Any, elsewhere: Any) -> Any:
    """A function that computes one thing at the point and above it, and another below."""

    def f(x: Any) -> Any:
        return there(x) if bool((x.detach() >= point(T)).all()) else elsewhere(x)

    return f


@program
def other_shapes_below_the_point(T: Any, log: list[Any]) -> Any:
    for elsewhere in (lambda x: (x * 2)[:, None], lambda x: (x * 2).reshape(1, 3), lambda x: (x * 2).repeat(2)):
        check(T, log, depending(T, lambda x: x * 2, elsewhere), leaf(T))
    check(T, log, depending(T, lambda x: x.sum(), lambda x: x.sum().reshape(1)), leaf(T))


@program
def other_dtypes_below_the_point(T: Any, log: list[Any]) -> Any:
    check(T, log, depending(T, lambda x: x * 2, lambda x: (x * 2).float()), leaf(T))


@program
def other_shapes_in_the_second_output(T: Any, log: list[Any]) -> Any:
    f = depending(T, lambda x: (x * 2, x * 3), lambda x: (x * 2, (x * 3)[None]))
    check(T, log, f, leaf(T))


@program
def shapes_that_alternate(T: Any, log: list[Any]) -> Any:
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        return x * 2 if calls[0] % 2 else (x * 2).repeat(2)

    check(T, log, f, leaf(T))


@program
def undefined_gradients(T: Any, log: list[Any]) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2

    for backward in (
        lambda ctx, g: None if g is None else g * 2,
        lambda ctx, g: T.ones(3, dtype=T.float64) if g is None else g * 2,
    ):
        own = function(T, forward, backward)
        check(T, log, own.apply, leaf(T), short=True)
        check(T, log, own.apply, leaf(T), short=True, check_undefined_grad=False)


@program
def undefined_gradients_that_raise(T: Any, log: list[Any]) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        if g is None:
            raise RuntimeError("no gradient")
        return g * 2

    check(T, log, function(T, forward, backward).apply, leaf(T), short=True)


@program
def batches_that_fail(T: Any, log: list[Any]) -> Any:
    noisy = function(T, lambda ctx, x: x * 2, lambda ctx, g: g * 2 + 0 * T.rand(3, dtype=T.float64))
    check(T, log, noisy.apply, leaf(T), short=True, check_batched_grad=True)
    for advice, options in (
        ("failed while testing batched gradient computation", {"check_batched_grad": True}),
        (
            "failed while testing batched gradient computation with forward-mode AD",
            {"check_forward_ad": True, "check_batched_forward_grad": True},
        ),
    ):
        noise = function(
            T,
            lambda ctx, x: x * 2,
            lambda ctx, g: g * 2 + 0 * T.rand(3, dtype=T.float64),
            jvp=lambda ctx, t: t * 2 + 0 * T.rand(3, dtype=T.float64),
        )
        found = attempt(lambda noise=noise, o=options: T.autograd.gradcheck(noise.apply, (leaf(T),), **o))
        log.append((advice in found.text, found.text.startswith("While computing batched gradients, got: vmap: We do")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    compare(PROGRAMS[name])
