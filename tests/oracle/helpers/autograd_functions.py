"""Custom Functions of all kinds, for random programs: each does one thing that PyTorch has a rule for."""

from __future__ import annotations

from typing import Any


def functions(T: Any) -> dict[str, Any]:
    """Custom Functions of all kinds, made anew for each program."""

    class Square(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2

    class SaveOutput(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    class Two(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y + h, g * x + h

    class Lazy(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y)
            return x.sin(), y * 3, T.ones(2)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any, i: Any) -> Any:
            x, _ = ctx.saved_tensors
            return None if g is None else g * x.cos(), None if h is None else h * 3

    class Half(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y, z = x * 2, x > 0
            w = x + 1
            ctx.mark_non_differentiable(w)
            return y, z, w

        @staticmethod
        def backward(ctx: Any, g: Any, *rest: Any) -> Any:
            return g * 2

    class Dirty(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    class DirtyTwo(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return y * 2, x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return h, g * 2

    class Same(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2, h * 5

    class View(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.view(3, 3) * 2

    class Views(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[0], x[1]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return T.stack([g, h, T.zeros_like(g)])

    class Inner(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with T.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x * ctx.x
            return ctx.y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return T.autograd.grad(ctx.y, ctx.x, g, retain_graph=True)[0]

    class Raises(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("raised in backward")

    class Once(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @T.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0].cos()

    class Bad(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, how: int) -> Any:
            ctx.how = how
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return [
                None,
                (g[:1, :1], None),
                (g, None, None),
                (g, g),
                g,
                ("no", None),
                (g.sum(), None),
                (g.to(T.float32), None),
            ][ctx.how]

    class Setup(T.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, n: int = 2) -> Any:
            return x**n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ctx.n * x ** (ctx.n - 1) * g, None

        @staticmethod
        def jvp(ctx: Any, t: Any, _: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ctx.n * x ** (ctx.n - 1) * t

    class Batched(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y, y + 1

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x + h

        @staticmethod
        def jvp(ctx: Any, t: Any, u: Any) -> Any:
            x, y = ctx.saved_tensors
            return t * y + u * x, u * 1

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
            y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
            made = Batched.apply(x, y)
            return made, (0, None if in_dims[1] is None else 0)

    class Direct(T.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)
            ctx.mark_non_differentiable(*([output] if output.dim() > 2 else []))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    class Pair(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.add_(1)
            y.mul_(2)
            ctx.mark_dirty(x, y)
            return x, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g, h * 2

    class Undefined(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + 1, [y * 2], "text", None

        @staticmethod
        def backward(ctx: Any, g: Any, *rest: Any) -> Any:
            return (g, None) if ctx.needs_input_grad[1] else g

    return {k: v for k, v in locals().items() if k != "T"}
