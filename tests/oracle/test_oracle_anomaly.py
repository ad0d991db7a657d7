"""Anomaly mode, warnings, and nodes and contexts whose graph is gone, on rgrad and on torch."""

# ruff: noqa: PERF401
from __future__ import annotations

import gc
import io
import re
import sys
import warnings
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from program_kit import attempt, compare, function, leaf, registry  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS, program = registry()


def shown(caught: list[warnings.WarningMessage]) -> list[Any]:
    """Each warning without its stack, and which of a program's own functions are in that."""
    found = []
    for w in caught:
        text, _, stack = str(w.message).partition(" Traceback of forward call")
        found.append((w.category.__name__, text, "in backward" in stack, "in hook" in stack, "in program" in stack))
    return found


def failing(T: Any, log: list[Any], run: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with T.autograd.set_detect_anomaly(True):
            log.append(attempt(run))
    log.append(shown(caught))


def squared_root(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 1

    def backward(ctx: Any, g: Any) -> Any:
        return (g * ctx.saved_tensors[0]).sqrt()

    return function(T, forward, backward)


@program
def induced_by_a_function(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def run() -> Any:
        y = squared_root(T).apply(x * 0)
        (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()

    failing(T, log, run)


@program
def induced_by_a_hook(T: Any, log: list[Any]) -> Any:
    for before in (False, True):
        x = leaf(T)
        graph = []

        def hook(g: Any, graph: Any = graph) -> Any:
            return (g * graph[0]).sqrt()

        def record(x: Any = x, graph: Any = graph, hook: Any = hook) -> Any:
            graph.append(x * 0)
            z = graph[0] * 2
            z.register_hook(hook)
            return z.sum()

        early = record() if before else None

        def run(x: Any = x, early: Any = early, record: Any = record) -> Any:
            total = early if early is not None else record()
            (g,) = T.autograd.grad(total, x, create_graph=True)
            g.sum().backward()

        failing(T, log, run)


@program
def induced_by_a_pass_inside(T: Any, log: list[Any]) -> Any:
    kept: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        with T.enable_grad():
            kept.append((leaf(T) * 0).sqrt() * 0)
        return g

    def run() -> Any:
        function(T, lambda ctx, x: x * 1, backward).apply(leaf(T) * 1).sum().backward()
        kept[0].sum().backward()

    failing(T, log, run)


@program
def induced_twice(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def run() -> Any:
        y = squared_root(T).apply(x**2)
        (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = T.autograd.grad(g.sum(), x, create_graph=True)
        (h * 0).sqrt().sum().backward()

    failing(T, log, run)


@program
def an_error_of_a_function(T: Any, log: list[Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("no")

    own = function(T, lambda ctx, x: x * 1, backward)
    failing(T, log, lambda: own.apply(leaf(T)).sum().backward())
    before = own.apply(leaf(T)).sum()
    failing(T, log, before.backward)


@program
def a_warning_that_a_filter_raises(T: Any, log: list[Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("no")

    own = function(T, lambda ctx, x: x * 1, backward)
    errors, sys.stderr = sys.stderr, io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with T.autograd.set_detect_anomaly(True):
                log.append(attempt(own.apply(leaf(T)).sum().backward))
        log.append(re.match(r"[^.]*\.", sys.stderr.getvalue()).group())  # type: ignore[union-attr]
    finally:
        sys.stderr = errors


@program
def arguments(T: Any, log: list[Any]) -> Any:
    for call in (
        lambda: T.autograd.set_detect_anomaly(1),
        lambda: T.autograd.set_detect_anomaly(True, 2),
        lambda: T.autograd.set_detect_anomaly("x"),
        lambda: T.set_anomaly_enabled(1),
        lambda: T.set_anomaly_enabled(True, 1),
        lambda: T.set_anomaly_enabled(enabled=False, check_nan=True),
    ):
        log.append(attempt(call))
    T.set_anomaly_enabled(False)
    log.append((T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()))
    node = (leaf(T) * 2).grad_fn
    one = T.ones(3, dtype=T.float64)
    for grads in ((1,), ("x",), (one, one), (), (one, 1)):
        log.append(attempt(lambda grads=grads: node(*grads)))


@program
def warnings_that_are_shown_once(T: Any, log: list[Any]) -> Any:
    log.append(T.is_warn_always_enabled())
    for value in (1, "x", None):
        log.append(attempt(lambda value=value: T.set_warn_always(value)))
    x = leaf(T)
    x.sum().backward(create_graph=True)
    for on in (True, False):
        T.set_warn_always(on)
        log.append(T.is_warn_always_enabled())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                x.sum().backward(create_graph=True)
        log.append(len(caught))
    x.grad = None


class Thing:
    """Something whose end can be seen."""


def context(T: Any, log: list[Any], ctx: Any, x: Any) -> None:
    log.append(ctx.saved_tensors[0] is x)
    log.append([(type(n).__name__, nr) for n, nr in ctx.next_functions])
    ctx.metadata["own"] = 1
    log.append(ctx.metadata)
    log.append((ctx.name(), ctx.needs_input_grad, len(ctx._input_metadata), ctx._sequence_nr() >= 0))
    log.append(ctx._raw_saved_tensors[0].unpack() if hasattr(ctx._raw_saved_tensors[0], "unpack") else None)
    handles = [ctx.register_hook(lambda i, o: log.append((i, o))), ctx.register_prehook(lambda o: log.append(o))]
    edge = T.autograd.graph.GradientEdge(ctx, 0)
    for _ in range(2):
        log.append(T.autograd.grad(edge, x, T.ones(3, dtype=T.float64), retain_graph=True))
        for handle in handles:
            handle.remove()


def saving(T: Any, kept: list[Any]) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        kept.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    return function(T, forward, lambda ctx, g: g * 2)


@program
def a_stored_context_outlives_its_outputs(T: Any, log: list[Any]) -> Any:
    x, kept = leaf(T), []
    y = saving(T, kept).apply(x)
    del y
    gc.collect()
    context(T, log, kept[0], x)


@program
def a_context_from_grad_fn_outlives_its_outputs(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = saving(T, []).apply(x)
    ctx = y.grad_fn
    ctx.own = 3
    del y
    gc.collect()
    log.append(ctx.own)
    context(T, log, ctx, x)


@program
def a_context_behind_a_node_outlives_its_outputs(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    z = saving(T, []).apply(x) * 3
    ctx = z.grad_fn.next_functions[0][0]
    del z
    gc.collect()
    context(T, log, ctx, x)


@program
def a_node_outlives_its_output(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    node = (x * x).grad_fn
    gc.collect()
    node.metadata["own"] = 1
    log.append((node.metadata, node._saved_self is x, len(node.next_functions)))
    handle = node.register_hook(lambda i, o: log.append("hook"))
    edge = T.autograd.graph.GradientEdge(node, 0)
    for _ in range(2):
        log.append(T.autograd.grad(edge, x, T.ones(3, dtype=T.float64), retain_graph=True))
        handle.remove()


@program
def cycles(T: Any, log: list[Any]) -> Any:
    for own in (False, True):
        thing = Thing()
        end = weakref.ref(thing)
        x = leaf(T)
        node = (saving(T, []).apply(x) if own else x * x).grad_fn
        node.register_hook(lambda i, o, keep=(node, thing): None)
        del node, thing
        gc.collect()
        log.append(end() is None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    compare(PROGRAMS[name])
