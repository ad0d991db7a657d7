"""Programs with operators of their own, graphs, futures and TorchScript's names: both libraries give the same."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

PROGRAMS = {
    "schemas": """
        from collections.abc import Sequence

        def f(x: T.Tensor, xs: list[T.Tensor], y: T.Tensor | None, n: int = 2, s: str = "a", e: float = 0.5,
              k: Sequence[int] | None = None, b: bool = True, c: int | float | bool = 1) -> tuple[T.Tensor,
                  T.Tensor]: ...
        def g(x: T.Tensor, y: T.Tensor, *, by: int = 3) -> None: ...
        def h(x: T.Tensor, d: T.device, t: T.dtype | None = None) -> list[T.Tensor]: ...

        infer = T.library.infer_schema
        result = [infer(f, mutates_args=()), infer(g, mutates_args={"y"}), infer(g, mutates_args="unknown"),
                  infer(h, mutates_args=(), op_name="a::b")]
    """,
    "a custom operator": """
        @T.library.custom_op("oracle_lib::scaled", mutates_args=())
        def scaled(x: T.Tensor, by: float = 2.0) -> T.Tensor:
            return x.detach() * by

        def save(ctx, inputs, output):
            ctx.by = inputs[1]
            ctx.shapes = tuple(output.shape), len(inputs)

        def backward(ctx, grad):
            seen.append((ctx.shapes, ctx.needs_input_grad[0]))
            return grad * ctx.by * 10, None

        seen = []
        scaled.register_autograd(backward, setup_context=save)
        scaled.register_fake(lambda x, by=2.0: T.empty_like(x))
        x = T.ones(2, requires_grad=True)
        y = scaled(x, by=3)
        y.sum().backward()
        op = T.ops.oracle_lib.scaled
        result = [y.tolist(), x.grad.tolist(), seen[:1], str(op), op.overloads(), op.default.name(),
            str(op.default._schema),
                  type(y.grad_fn).__name__, scaled(T.ones(3, device="meta")).shape[0], repr(scaled),
                  T.vmap(scaled)(T.ones(2, 3)).tolist(), T.library.opcheck(scaled, (x.detach().requires_grad_(),))]
    """,
    "lists of tensors": """
        @T.library.custom_op("oracle_lib::pairs", mutates_args=())
        def pairs(xs: list[T.Tensor], w: T.Tensor) -> list[T.Tensor]:
            return [x.detach() * w.detach() for x in xs]

        def backward(ctx, grads):
            seen.append((len(grads), ctx.needs_input_grad))
            *xs, w = ctx.saved_tensors
            return [g * w for g in grads], sum(g * x for g, x in zip(grads, xs))

        seen = []
        pairs.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[0],
            inputs[1]))
        xs = [T.full((2,), float(k), requires_grad=True) for k in (1, 2)]
        w = T.ones(2, requires_grad=True)
        outs = pairs(xs, w)
        (outs[0].sum() + outs[1].sum() * 2).backward()
        result = [[x.grad.tolist() for x in xs], w.grad.tolist(), seen, type(outs).__name__]
    """,
    "a batching rule": """
        @T.library.custom_op("oracle_lib::cube", mutates_args=())
        def cube(x: T.Tensor) -> tuple[T.Tensor, T.Tensor]:
            return x.detach() ** 3, x.detach() ** 2

        @cube.register_vmap
        def rule(info, in_dims, x):
            seen.append((info.batch_size, info.randomness, len(in_dims)))
            return cube(x), (in_dims[0], in_dims[0])

        seen = []
        a, b = T.vmap(cube, in_dims=1, out_dims=1)(T.arange(6.0).view(2, 3))
        result = [a.tolist(), b.tolist(), seen]
    """,
    "autocast": """
        @T.library.custom_op("oracle_lib::kind", mutates_args=())
        def kind(x: T.Tensor, y: T.Tensor) -> T.Tensor:
            seen.append((str(x.dtype).split(".")[1], str(y.dtype).split(".")[1], T.is_autocast_enabled("cpu")))
            return x.clone()

        seen = []
        kind.register_autocast("cpu", T.bfloat16)
        kind(T.ones(1), T.ones(1))
        with T.autocast("cpu"):
            out = kind(T.ones(1), T.ones(1, dtype=T.int64))
        result = [seen, str(out.dtype).split(".")[1]]
    """,
    "Library": """
        lib = T.library.Library("oracle_lib2", "FRAGMENT")
        name = lib.define("f(Tensor x, int by=2) -> Tensor")
        lib.impl("f", lambda x, by=2: x * by, "CPU")
        other = lib.define("f.two(Tensor x, Tensor y, Tensor z) -> Tensor")
        lib.impl("f.two", lambda x, y, z: x + y + z, "CompositeImplicitAutograd")
        x = T.ones(2, requires_grad=True)
        T.ops.oracle_lib2.f(x, by=5).sum().backward()
        f = T.ops.oracle_lib2.f
        result = [name, other, x.grad.tolist(), sorted(f.overloads()), f(T.ones(1), T.ones(1), T.ones(1)).item(),
            f(T.ones(1)).item(),
                  str(f.two._schema)]
    """,
    "writes": """
        @T.library.custom_op("oracle_lib::put", mutates_args={"x"})
        def put(x: T.Tensor, number: float) -> None:
            x.detach().numpy()[...] = number

        x = T.zeros(2)
        before = x._version
        got = put(x, 3)
        result = [got, x.tolist(), x._version - before, str(put._opoverload._schema)]
    """,
    "a traced graph": """
        class Net(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = T.nn.Linear(4, 4)
                self.w = T.nn.Parameter(T.ones(4))
                self.inner = T.nn.Sequential(T.nn.Linear(4, 2), T.nn.ReLU())

            def forward(self, x, k=2):
                y = self.first(x) * self.w + 1
                a, b = y.chunk(2, -1)
                z = T.cat([a, b], dim=-1).view(x.shape[0], -1)
                z = T.nn.functional.relu(z, inplace=False)
                z = T.relu(z) - z.size(0) + k
                return {"a": self.inner(z), "b": [z[:, 1:], -z, 1 - z, z.T, z @ z.T, self.first(z) > 0]}

        traced = fx.symbolic_trace(Net())
        result = [[(n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__,
            [a.name for a in n.all_input_nodes],
                    [u.name for u in n.users]) for n in traced.graph.nodes], sorted(traced.state_dict()),
                  [name for name, _ in traced.named_modules()]]
    """,
    "a graph that is changed": """
        traced = fx.symbolic_trace(lambda x: T.relu(x + 1) * 2)
        for node in traced.graph.nodes:
            if node.op == "call_function" and node.target is T.relu:
                with traced.graph.inserting_after(node):
                    new = traced.graph.call_function(T.neg, args=(node,))
                changed = node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
        traced.graph.lint()
        traced.recompile()
        seen = []

        class Names(fx.Interpreter):
            def run_node(self, n):
                seen.append(n.name)
                return super().run_node(n)

        result = [traced(T.ones(2)).tolist(), [n.name for n in changed], Names(traced).run(T.ones(1)).tolist(), seen,
                  fx.Transformer(traced).transform()(T.ones(1)).tolist(), len(traced.graph.nodes),
                      new.format_node().split("target")[0]]
    """,
    "names of nodes": """
        g = fx.Graph()
        names = [g.placeholder("x").name, g.placeholder("input").name, g.placeholder("lambda").name]
        for target in ("layer.0", "layer.0", "layer_7", "Deep.conv2d.12", "a"):
            names.append(g.call_module(target).name)
        for f in (T.relu, T.relu, max, T.Tensor.add, T.nn.functional.gelu):
            names.append(g.call_function(f, ()).name)
        result = names
    """,
    "futures": """
        Future = T.futures.Future
        first = Future()
        seen = []
        after = first.then(lambda done: done.value() + 1)
        first.add_done_callback(lambda done: seen.append(done.value()))
        before = first.done()
        first.set_result(3)
        failed = Future()
        failed.set_exception(ValueError("no"))
        errors = []
        for call in (lambda: first.set_result(4), failed.wait, lambda: T.futures.wait_all([first, failed]),
                     lambda: failed.set_exception(3)):
            try:
                call()
            except BaseException as error:
                errors.append((type(error).__name__, str(error).split(".")[0]))
        result = [before, first.done(), after.wait(), seen, errors, T.futures.wait_all([first, after]),
                  T.jit.wait(T.jit.fork(lambda x: x + 1, 2))]
    """,
    "names of TorchScript": """
        import typing
        jit = T.jit

        def own(x):
            return x

        result = [jit.is_scripting(), jit.is_tracing(), jit.Final is typing.Final, jit.annotate(int, 3),
                  jit.isinstance([1], typing.List[int]), jit.isinstance([1.0], typing.List[int]),
                  jit.isinstance({"a": T.ones(1)}, typing.Dict[str, T.Tensor]), jit.isinstance((1, "a"),
                      typing.Tuple[int, str]),
                  jit.isinstance(None, typing.Optional[int]), jit.unused(own) is own, jit.ignore(own) is own,
                  jit.export(own) is own, T.compiler.is_compiling()]
    """,
    "a traced module": """
        net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.ReLU())
        traced = T.jit.trace(net, T.ones(3, 2))
        result = [isinstance(traced, T.nn.Module), isinstance(traced, T.jit.ScriptModule), sorted(traced.state_dict()),
                  tuple(traced(T.ones(7, 2)).shape), T.equal(traced(T.ones(1, 2)), net(T.ones(1, 2))), traced.training,
                  traced.eval().training]
    """,
    "an exported program": """
        import importlib
        export = importlib.import_module(T.__name__ + ".export")

        class Net(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = T.nn.Parameter(T.ones(3))
                self.register_buffer("b", T.ones(3))

            def forward(self, x, y):
                return x * self.w + self.b, y + 1

        x, y = T.ones(2, 3), T.ones(3)
        program = export.export(Net(), (x, y), dynamic_shapes=({0: export.Dim("batch", min=1, max=64)}, None))
        s = program.graph_signature
        a, b = program.module()(T.ones(5, 3), y)
        errors = []
        for call in (lambda: program(x, y), lambda: program.module()(T.ones(5, 4), y)):
            try:
                call()
            except Exception as error:
                errors.append(str(error)[:20])
        result = [a.tolist(), b.tolist(), list(s.parameters), list(s.buffers), list(s.user_inputs),
            dict(s.inputs_to_parameters),
                  dict(s.inputs_to_buffers), len(s.user_outputs), [k.kind.name for k in s.input_specs],
                      sorted(program.state_dict),
                  errors[0]]
    """,
}


def run(T: Any, program: str) -> Any:
    scope: dict[str, Any] = {"T": T, "fx": T.fx}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(textwrap.dedent(program), scope)
    return scope["result"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert run(rgrad, PROGRAMS[name]) == run(torch, PROGRAMS[name])


BAD = {
    "an argument of another type": ("scaled(3)", RuntimeError, "Expected a value of type 'Tensor' for argument 'x'"),
    "a missing argument": ("scaled()", RuntimeError, "is missing value for argument 'x'"),
    "too many arguments": ("scaled(x, 1.0, 2.0)", RuntimeError, "expected at most 2 argument"),
    "an unknown keyword": ("scaled(x, z=1)", RuntimeError, "Unknown keyword argument 'z' for operator"),
    "no formula": ("scaled(x).sum().backward()", RuntimeError, "no autograd formula was registered"),
    "no fake": ("scaled(T.ones(1, device='meta'))", RuntimeError, "no fake impl registered for"),
    "an alias": ("same(x)", RuntimeError, "may not alias any inputs to this custom operator"),
    "no annotation": ("T.library.infer_schema(lambda x: x, mutates_args=())", ValueError,
        "Parameter x must have a type annotation"),
    "an unknown operator": ("T.ops.oracle_bad.missing", AttributeError, "object has no attribute 'missing'"),
    "a library": ("T.ops.load_library('/none.so')", OSError, "Could not load this library: /none.so"),
    "a kind of library": ("T.library.Library('a', 'ZORK')", ValueError, "Unsupported kind: ZORK"),
    "control flow": ("fx.symbolic_trace(lambda x: 1 if x else 2)", ValueError,
        "cannot be used as inputs to control flow"),
    "iteration": ("fx.symbolic_trace(lambda x: [y for y in x])", ValueError, "Proxy object cannot be iterated"),
    "an erased node": ("g.erase_node(next(iter(g.nodes)))", RuntimeError, "still had 1 users in the graph"),
    "a frozen list": ("fx.immutable_collections.immutable_list([1]).append(2)", TypeError, "does not support mutation"),
    "freeze in training mode": ("T.jit.freeze(T.nn.Linear(1, 1))", RuntimeError, "") ,
    "an export of a function": ("T.export.export(len, ())", ValueError,
        "Expected `mod` to be an instance of `torch.nn.Module`"),
    "arguments in a list": ("T.export.export(T.nn.ReLU(), [x])", RuntimeError,
        "Expecting `args` to be a tuple of example positional"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    code, kind, words = BAD[name]
    for T in (rgrad, torch):
        T.export

        def scaled(x: T.Tensor, by: float = 2.0) -> T.Tensor:  # type: ignore[name-defined]
            return x.detach() * by

        def same(x: T.Tensor) -> T.Tensor:  # type: ignore[name-defined]
            return x

        for f in (scaled, same):
            f.__annotations__.update({"x": T.Tensor, "return": T.Tensor} | ({"by": float} if f is scaled else {}))
        scope = {
            "T": T,
            "fx": T.fx,
            "x": T.ones(1, requires_grad=True),
            "g": T.fx.symbolic_trace(lambda x: x + 1).graph,
            "scaled": T.library.custom_op("oracle_bad::scaled", scaled, mutates_args=()),
            "same": T.library.custom_op("oracle_bad::same", same, mutates_args=()),
        }
        with pytest.raises(kind) as caught:
            exec(code, scope)
        assert words in str(caught.value), (T.__name__, str(caught.value))
