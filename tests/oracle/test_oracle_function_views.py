"""Views that may not be written, and what custom Functions return and write: rgrad beside torch, messages too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import same  # noqa: E402 - torch must be there first
from function_kit import leaf, made, trial  # noqa: E402

pytestmark = pytest.mark.oracle

Program = Callable[[Any], list[Any]]
PROGRAMS: list[Program] = []


def program(f: Program) -> Program:
    PROGRAMS.append(f)
    return f


def write(v: Any, by: Any = 2) -> Any:
    return trial(lambda: (v.mul_(by), None)[1])


def flags(t: Any, base: Any) -> tuple[Any, ...]:
    # The node of a view made anew has another name in torch: AsStridedBackward0.
    own = t.grad_fn is not None and t.grad_fn.name() == "MyFnBackward"
    return t.requires_grad, t._is_view(), t._base is base, t is base, t.grad_fn is None, own


# ------------------------------------------------------------------------------------------------- refused writes

CALLS: dict[str, Callable[[Any], Any]] = {
    "unbind": lambda a: a.unbind(0)[1],
    "split": lambda a: a.split(2)[1],
    "split_sizes": lambda a: a.split([1, 3])[1],
    "chunk": lambda a: a.chunk(2)[0],
    "tensor_split": lambda a: a.tensor_split(2)[1],
    "iteration": lambda a: list(a)[2],
    "slice": lambda a: a[1:],
    "view_as": lambda a: a.view_as(a),
    "select": lambda a: a[0],
}


def of_every_mode(T: Any, call: Callable[[Any], Any]) -> list[Any]:
    out: list[Any] = []
    for mode in (T.enable_grad, T.no_grad, T.inference_mode):
        for later in (T.enable_grad, T.no_grad, T.inference_mode):
            for a in (leaf(T) * 1, leaf(T), T.ones(4, dtype=T.float64)):
                with mode():
                    v, other = call(a), call(a)
                with later():
                    w = other.view_as(other)
                out += [v.requires_grad, w.requires_grad]
                # One write at a time: torch takes an old view of a base that has just got a history for a leaf.
                out.append(write(w if later is not T.enable_grad else v, leaf(T, 2.0)[0]))
    return out


def of_base_written(T: Any, call: Callable[[Any], Any]) -> list[Any]:
    out: list[Any] = []
    for mode in (T.enable_grad, T.no_grad, T.inference_mode):
        a = leaf(T) * 1
        with mode():
            v = call(a)
        w = v.view_as(v)
        a.mul_(2)
        out.append(trial(lambda: v.grad_fn is None))  # noqa: B023 - called at once
        out.append(trial(lambda: w.grad_fn is None))  # noqa: B023
        out.append(trial(lambda: v * 2))  # noqa: B023
    return out


@pytest.mark.parametrize("scenario", [of_every_mode, of_base_written])
@pytest.mark.parametrize("name", CALLS)
def test_refused_writes_say_the_same(name: str, scenario: Callable[[Any, Callable[[Any], Any]], list[Any]]) -> None:
    same(scenario(rgrad, CALLS[name]), scenario(torch, CALLS[name]))


@program
def newer_mark(T: Any) -> list[Any]:
    out: list[Any] = []
    two = (leaf(T) * 1).view(2, 2)
    with T.no_grad():
        rows = two[:]
        part = two.unbind(0)[0].view_as(two[0])
    out += [write(rows.unbind(0)[0]), write(part), write(part.unbind(0)[1])]
    with T.inference_mode():
        v, w = rows[0], two.unbind(0)[1]
    with T.no_grad():
        u = w[:1]
    out += [write(v), write(w), write(u), write(u.unbind(0)[0]), write(w.split(1)[0])]
    several = two.unbind(0)[0]
    out += [write(several.view_as(several)), write(several.view(1, 2).squeeze(0)), write(several.view(1, 2).squeeze())]
    out += [
        write(several.view(1, 2, 1).squeeze((0, 2))),
        write(several.view(2, 1).transpose(0, 1)),
        write(several.view(2, 1).t()),
    ]
    out += [
        write(several.expand(2, 2)[0]),
        write(several.unfold(0, 1, 1)),
        write(several[None]),
        write(several.movedim(0, 0)),
    ]
    return out


@program
def names_in_texts(T: Any) -> list[Any]:
    a = leaf(T) * 1
    out = [write(made(T, lambda ctx, x: x[:2], name=n).apply(a)) for n in ("Foo", "Foo2", "FooBackward", "F3Backward7")]
    return [*out, write(T.ones(3, requires_grad=True)), write(leaf(T)[:2])]


# ------------------------------------------------------------------------------------------------- outputs


def no_differentiable(ctx: Any, x: Any) -> Any:
    ctx.mark_non_differentiable(x)
    return x


def second_not_differentiable(ctx: Any, x: Any) -> Any:
    other = x[2:]
    ctx.mark_non_differentiable(other)
    return x[:2], other


def third_not_differentiable(ctx: Any, x: Any) -> Any:
    other = x[2:]
    ctx.mark_non_differentiable(other)
    return x[:2], other, x * 1


FORWARDS: dict[str, Callable[..., Any]] = {
    "view": lambda ctx, x: x[:2],
    "input": lambda ctx, x: x,
    "two views": lambda ctx, x: (x[:2], x[2:]),
    "view and value": lambda ctx, x: (x[:2], x * 2),
    "input and value": lambda ctx, x: (x, x * 2),
    "input twice": lambda ctx, x: (x, x),
    "view and number": lambda ctx, x: (x[:2], 3),
    "integers": lambda ctx, x: (x[:2], x.long()),
    "not differentiable": no_differentiable,
    "second not differentiable": second_not_differentiable,
    "third not differentiable": third_not_differentiable,
}


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("name", FORWARDS)
def test_outputs_are_the_same_and_refuse_the_same(name: str, recording: bool) -> None:
    def scenario(T: Any) -> list[Any]:
        out: list[Any] = []
        for a in (leaf(T) * 1, leaf(T), T.ones(4, dtype=T.float64)):
            with T.set_grad_enabled(recording):
                got = made(T, FORWARDS[name]).apply(a)
            for t in got if isinstance(got, tuple) else (got,):
                if isinstance(t, T.Tensor):
                    out += [flags(t, a), t]
                    out.append(write(t, leaf(T, 2.0)[0]) if t.is_floating_point() else None)
        return out

    same(scenario(rgrad), scenario(torch))


@program
def beside_another_input(T: Any) -> list[Any]:
    out: list[Any] = []
    y = leaf(T)
    for x in (T.ones(4, dtype=T.float64), T.arange(4), leaf(T) * 1, (leaf(T) * 1)[1:3]):
        got = made(T, lambda ctx, x, y: (x, y * 1)).apply(x, y)
        out += [flags(got[0], x), flags(got[1], y), write(got[0])]
    return out


@program
def written_views_of_temporaries(T: Any) -> list[Any]:
    def view_written(ctx: Any, x: Any) -> Any:
        t = x.clone()
        v = t[:2]
        v.mul_(2)
        return v

    def base_written(ctx: Any, x: Any) -> Any:
        t = x.clone()
        v = t.view(2, 2)[0]
        t.mul_(2)
        return v

    def both_returned(ctx: Any, x: Any) -> Any:
        t = x.clone()
        v = t[:2]
        v.mul_(2)
        return v, t

    out: list[Any] = []
    for forward in (view_written, base_written, both_returned):
        x = leaf(T)
        f = made(T, forward, lambda ctx, *g: T.cat([g[0], g[0]]) + sum(g[1:]))
        got = f.apply(x)
        outs = got if isinstance(got, tuple) else (got,)
        out += [flags(t, x) for t in outs]
        sum((t * t).sum() for t in outs).backward()
        out += [x.grad, *(write(t) for t in outs), *(trial(lambda t=t: t.grad_fn.name()) for t in outs)]
    return out


@program
def any_value(T: Any) -> list[Any]:
    values = (3, "text", [1, 2], {"a": 1}, None, (1, (2, 3)), ())
    return [made(T, lambda ctx, x, v=v: v).apply(leaf(T)) for v in values]


# ------------------------------------------------------------------------------------------------- retain_grad


@program
def retained(T: Any) -> list[Any]:
    out: list[Any] = []

    def double(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    def silently(a: Any) -> None:
        with T.no_grad():
            a.mul_(2)

    writers: list[Callable[[Any, Any, Any], Any]] = [
        lambda a, v, w: a.mul_(3),
        lambda a, v, w: v.mul_(3),
        lambda a, v, w: w.mul_(3),
        lambda a, v, w: a[1].fill_(0.5),
        lambda a, v, w: (a.mul_(3), v * 1, w.mul_(2)),
        lambda a, v, w: made(T, double, lambda ctx, g: g * 2).apply(v),
        lambda a, v, w: made(T, double, lambda ctx, g: g * 2).apply(a),
        lambda a, v, w: silently(a),
        lambda a, v, w: v.copy_(v.detach() * 3),
    ]
    for writer in writers:
        for keeps in ("v", "av", "vw", "w"):
            x = leaf(T)
            a = x * 1
            v, w = a[:2], a[1:]
            kept = [t for t, n in ((a, "a"), (v, "v"), (w, "w")) if n in keeps]
            for t in kept:
                t.retain_grad()
            writer(a, v, w)
            ((v * v).sum() + (w * w * w).sum() + a.sum()).backward()
            out += [(t.grad, t.retains_grad) for t in kept]
            out.append(x.grad)
    return out


# ------------------------------------------------------------------------------------------------- mark_dirty


def one(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def two(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), x * 3


def with_number(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), 3


def with_integers(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), x.long()


def not_returned(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x * 1


def not_differentiable_either(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    ctx.mark_non_differentiable(x)
    return x.mul_(2)


def only_marked(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x


def marked_twice(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x, x)
    return x


def unmarked_again(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    ctx.mark_dirty()
    return x


@program
def dirty_inputs(T: Any) -> list[Any]:
    out: list[Any] = []
    forwards = (one, two, with_number, with_integers, not_returned, not_differentiable_either)
    for forward in (*forwards, only_marked, marked_twice, unmarked_again):
        for recording in (True, False):
            for pick in (lambda a: a, lambda a: a[:2], lambda a: a.unbind(0)[0], lambda a: a.detach()[:2]):
                for a in (leaf(T) * 1, leaf(T), T.ones(4, dtype=T.float64)):
                    x = pick(a)
                    f = made(T, forward, lambda ctx, *g: g[0] * 2)
                    with T.set_grad_enabled(recording):
                        got = trial(lambda: f.apply(x))  # noqa: B023 - called at once
                    first = got[0] if isinstance(got, tuple) else got
                    out += [first if isinstance(first, str) else flags(first, x), x._version]
    return out


@program
def dirty_beside_another_input(T: Any) -> list[Any]:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(y)

    out: list[Any] = []
    for pick in (lambda a: a, lambda a: a[:], lambda a: a.view(2, 2)):
        a, y = T.ones(4, dtype=T.float64), leaf(T)
        a.grad = T.ones(4, dtype=T.float64)
        x = pick(a)
        made(T, forward, lambda ctx, g: (g, g * 3)).apply(x, y.view(x.shape))
        out += [flags(x, a), a.requires_grad]
        a.sum().backward()
        out.append(y.grad)
    return out


@program
def dirty_that_is_no_input(T: Any) -> list[Any]:
    outside = T.ones(3, dtype=T.float64)

    def own(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    def own_view(ctx: Any, x: Any) -> Any:
        y = (x * 2)[:2]
        ctx.mark_dirty(y)
        return y

    def from_outside(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(outside)
        return outside.mul_(2)

    out: list[Any] = []
    for forward in (own, own_view, from_outside):
        for x in (leaf(T), T.ones(3, dtype=T.float64)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got = trial(lambda: made(T, forward).apply(x))  # noqa: B023 - called at once
            out += [got, [str(w.message).split(" (Triggered")[0] for w in caught]]
            outside = T.ones(3, dtype=T.float64)
    return out


def test_only_tensors_are_marked() -> None:
    for method in ("mark_dirty", "mark_non_differentiable"):

        def said(T: Any, method: str = method) -> str:
            def forward(ctx: Any, x: Any) -> Any:
                getattr(ctx, method)(x, 3)
                return x

            return str(trial(lambda: made(T, forward).apply(leaf(T) * 1)))

        # torch's text ends where the type's name should stand.
        assert said(rgrad).startswith(said(torch)[:60])


# ------------------------------------------------------------------------------------------------- subclasses


@program
def returned_subclasses(T: Any) -> list[Any]:
    calls: list[str] = []

    class Seen(T.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Plain(T.Tensor):
        pass

    class Own(T.Tensor):
        def view_as(self, other: Any) -> Any:
            calls.append("own view_as")
            return super().view_as(other)

    out: list[Any] = []
    for cls in (Seen, Plain, Own):
        for make in (lambda: leaf(T), lambda: T.ones(3), lambda: leaf(T) * 1):
            for recording in (True, False):
                x = make().as_subclass(cls)
                calls.clear()
                with T.set_grad_enabled(recording):
                    y = made(T, lambda ctx, x: x).apply(x)
                seen = list(calls)
                out += [type(y).__name__, seen, y is x, y.requires_grad, y._is_view(), y._base is x]
    parameter = T.nn.Parameter(T.ones(2))
    y = made(T, lambda ctx, x: x).apply(parameter)
    return [*out, type(y).__name__, y._base is parameter]


# ------------------------------------------------------------------------------------------------- setup_context


def with_setup(T: Any, forward: Any, setup: Any, backward: Any = lambda ctx, *g: g[0], **more: Any) -> Any:
    return made(T, forward, backward, setup_context=setup, **more)


@program
def defaults(T: Any) -> list[Any]:
    seen: list[Any] = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append(([x for x in inputs if not isinstance(x, T.Tensor)], ctx.needs_input_grad))

    out: list[Any] = []
    f = with_setup(T, lambda x, n=3, m=None: x * n, setup, lambda ctx, g: (g * 3, None, None))
    for call in (
        lambda x: f.apply(x),
        lambda x: f.apply(x, 4),
        lambda x: f.apply(x, 4, 5),
        lambda x: f.apply(x, m=5),
        lambda x: f.apply(x=x),
        lambda x: f.apply(n=2, x=x),
        lambda x: f.apply(),
        lambda x: f.apply(x, 1, 2, 3),
        lambda x: f.apply(x, z=1),
    ):
        x = leaf(T)
        got = trial(lambda: call(x))  # noqa: B023 - called at once
        out.append(got)
        if not isinstance(got, str):
            got.sum().backward()
            out.append(x.grad)
    few = with_setup(T, lambda x, n=3: x * n, setup, lambda ctx, g: g)
    out.append(trial(lambda: few.apply(leaf(T)).sum().backward()))
    rest = with_setup(T, lambda x, n=3, *r: x * n, setup, lambda ctx, g: (g, None))
    out += [rest.apply(leaf(T)), rest.apply(leaf(T), 1, 2, 3)]
    weight = leaf(T, 5.0, 6.0, 7.0, 8.0)
    f = with_setup(
        T,
        lambda x, w=weight: x * w,
        lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
    )
    for x in (leaf(T), T.ones(4, dtype=T.float64)):
        y = f.apply(x)
        y.sum().backward()
        out += [y, x.grad, weight.grad]
    return [*out, list(seen)]


@program
def defaults_in_transforms(T: Any) -> list[Any]:
    seen: list[Any] = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append(len(inputs))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        seen.append((len(tangents), tangents[1]))
        return tangents[0] * 3

    f = with_setup(T, lambda x, n=3: x * n, setup, lambda ctx, g: (g * 3, None), jvp=jvp, generate_vmap_rule=True)
    x = T.ones(2, dtype=T.float64)
    return [
        T.func.grad(lambda x: f.apply(x).sum())(x),
        T.func.vmap(f.apply)(x),
        T.func.jvp(f.apply, (x,), (x,)),
        T.func.vmap(T.func.grad(lambda x: f.apply(x).sum()))(T.ones(3, 2)).contiguous(),
        list(seen),
    ]


@program
def input_returned_and_saved(T: Any) -> list[Any]:
    out: list[Any] = []
    for what in (lambda i, o: i[0], lambda i, o: o):
        for forward in (lambda x: x, lambda x: x.view_as(x), lambda x: x * 1):
            for x in (leaf(T), T.ones(2), leaf(T) * 1):
                f = with_setup(T, forward, lambda ctx, i, o, what=what: ctx.save_for_backward(what(i, o)))
                out.append(trial(lambda: f.apply(x)))  # noqa: B023 - called at once
    return out


@program
def needs_without_recording(T: Any) -> list[Any]:
    seen: list[Any] = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return args[0] * 1

    with T.no_grad():
        made(T, forward).apply(leaf(T), T.ones(2), 3, leaf(T) * 1, leaf(T)[0])
    made(T, forward).apply(leaf(T), T.ones(2), 3, leaf(T) * 1)
    return seen


@pytest.mark.parametrize("f", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_functions_and_views_do_the_same(f: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(f(rgrad), f(torch), factor=10)
