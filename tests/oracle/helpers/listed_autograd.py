"""Programs of the listed differences in backward, hooks and Functions, for `test_oracle_differences.py`."""

from __future__ import annotations

from typing import Any

# As in `listed_writes.py`.
AUTOGRAD: dict[str, tuple[str, Any, Any]] = {
    "A second pass is refused only where something was saved": (
        """
        x, y = T.ones(2, requires_grad=True), T.zeros(2)
        y[0] = x[0]
        y.sum().backward()
        y.sum().backward()
        result = x.grad.tolist()
        """,
        [2.0, 0.0],
        "backward through the graph a second time",
    ),
    "Operations save less": (
        """
        x, seen = T.ones(2, requires_grad=True), []
        with T.autograd.graph.saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)), lambda t: t):
            x.gather(0, T.tensor([0]))
        result = seen
        """,
        [(1,)],
        [(1,), (2,)],
    ),
    "Selective checkpoints run writes and views again": (
        """
        __import__(T.__name__ + ".utils.checkpoint")
        tools, x = T.utils.checkpoint, T.zeros((), requires_grad=True)
        contexts = lambda: tools.create_selective_checkpoint_contexts([T.ops.aten.mul_.Tensor], True)
        tools.checkpoint(lambda x: x.add(1).mul_(2).square(), x, use_reentrant=False, context_fn=contexts).backward()
        result = x.grad.item()
        """,
        8.0,
        4.0,
    ),
    "Norms have second derivatives of 0 at 0": (
        """
        x = T.zeros(2, requires_grad=True)
        g, = T.autograd.grad(x.norm(), x, create_graph=True)
        result = str(T.autograd.grad(g.sum(), x)[0].tolist())
        """,
        "[0.0, 0.0]",
        "[nan, nan]",
    ),
    "What `nansum` and `nanmean` leave out has the gradient 0": (
        """
        x = T.full((2,), float("nan"), requires_grad=True)
        x.nanmean().backward()
        result = str(x.grad.tolist())
        """,
        "[0.0, 0.0]",
        "[nan, nan]",
    ),
    "`nll_loss` does not keep its input": (
        """
        x = T.ones(2, 2, requires_grad=True)
        (g,) = T.autograd.grad(T.nn.functional.nll_loss(x, T.tensor([0, 1])), x, create_graph=True)
        result = g.requires_grad
        """,
        False,
        True,
    ),
    "Positions are checked where nothing is read, too": (
        """
        try:
            T.zeros(3, 0)[[7]]
            result = "read"
        except IndexError:
            result = "refused"
        """,
        "refused",
        "read",
    ),
    "A gradient has memory of its own": (
        """
        x = T.ones(2, requires_grad=True)
        x.view(2).backward(x)
        x.sum().backward()
        result = x.tolist()
        """,
        [1.0, 1.0],
        [2.0, 2.0],
    ),
    "The version of a new gradient is 0": (
        """
        x = T.ones(2, 2, requires_grad=True)
        (x.t() @ x).sum().backward()
        result = x.grad._version
        """,
        0,
        1,
    ),
    "A graph that grows is warned of": (
        """
        import warnings

        w, total = T.ones(3, requires_grad=True), 0
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for step in range(20):
                loss = (w * w).sum()
                loss.backward()
                total = total + loss
        result = ["a graph grows" in str(w.message) for w in seen]
        """,
        [True],
        [],
    ),
    "Operations on inference tensors that require grad are constants": (
        """
        with T.inference_mode():
            x = T.ones(2, requires_grad=True)
        result = x.sort()[0].requires_grad
        """,
        False,
        True,
    ),
    "`linearize` refuses hooks of saved tensors": (
        """
        with T.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            result = T.func.linearize(lambda x: x.sin(), T.zeros(2))[1](T.ones(2)).tolist()
        """,
        "don't yet support saved tensor hooks",
        [1.0, 1.0],
    ),
    "Inference tensors keep their tangents": (
        """
        with T.inference_mode():
            x, t = T.ones(2), T.ones(2)
        with T.autograd.forward_ad.dual_level():
            tangent = T.autograd.forward_ad.unpack_dual(T.autograd.forward_ad.make_dual(x, t)).tangent
        result = None if tangent is None else tangent.tolist()
        """,
        [1.0, 1.0],
        None,
    ),
    "A tangent has the primal's dtype": (
        """
        with T.autograd.forward_ad.dual_level():
            x = T.autograd.forward_ad.make_dual(T.ones(2), T.ones(2, dtype=T.float64))
        result = None
        """,
        "same dtype as the primal",
        None,
    ),
    "No zeros are added to tangents": (
        """
        x, c = T.ones(2, requires_grad=True), T.ones(2)
        result = T.func.jvp(lambda x: x * c, (x,), (c,))[1].requires_grad
        """,
        False,
        True,
    ),
    "`jacfwd` takes expanded tensors": (
        """
        result = T.func.jacfwd(lambda x: x.sum())(T.ones(1).expand(3)).tolist()
        """,
        [1.0, 1.0, 1.0],
        "refers to a single memory location",
    ),
    "Nested `jvp` differentiates the `jvp` of a Function": (
        """
        class Cube(T.autograd.Function):
            @staticmethod
            def forward(x):
                return x * x * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_forward(*inputs)

            @staticmethod
            def jvp(ctx, tangent):
                (x,) = ctx.saved_tensors
                return 3 * x * x * tangent

        x, one = T.tensor(2.0), T.tensor(1.0)
        result = T.func.jvp(lambda x: T.func.jvp(Cube.apply, (x,), (one,))[1], (x,), (one,))[1].item()
        """,
        12.0,
        0.0,
    ),
    "The dual of an overlapping view has the tangent that was given": (
        """
        forward_ad = T.autograd.forward_ad
        with forward_ad.dual_level():
            x = T.zeros(3).as_strided((2, 2), (1, 1))
            dual = forward_ad.make_dual(x, T.tensor([[1.0, 2.0], [3.0, 4.0]]))
            result = forward_ad.unpack_dual(dual).tangent.tolist()
        """,
        [[1.0, 2.0], [3.0, 4.0]],
        [[1.0, 3.0], [3.0, 4.0]],
    ),
    "A hook of several tensors runs where backward begins at one of them that is a leaf": (
        """
        x, y, result = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True), []
        T.autograd.graph.register_multi_grad_hook([x, y], lambda grads: result.append(len(grads)))
        x.backward(T.ones(2))
        """,
        [2],
        [],
    ),
    "Backward hooks of a module are refused in `vmap`": (
        """
        net, calls = T.nn.Linear(2, 2), []
        net.register_full_backward_hook(lambda *args: calls.append(1))
        T.func.vmap(net)(T.ones(2, 2)).sum().backward()
        result = calls
        """,
        "it must override the setup_context staticmethod",
        [],
    ),
    "Hooks of several leaves run in `autograd.grad`": (
        """
        x, y, seen = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True), []
        T.autograd.graph.register_multi_grad_hook([x, y], lambda grads: seen.append([g is None for g in grads]))
        T.autograd.grad((x * y).sum(), [x, y])
        result = seen
        """,
        [[False, False]],
        "A leaf node was passed to _will_engine_execute_node",
    ),
    "`backward` takes as many gradients as tensors": (
        """
        x = T.ones((), requires_grad=True)
        T.autograd.backward([x * 2], [None, None])
        result = x.grad.item()
        """,
        "got 1 tensors and 2 gradients",
        2.0,
    ),
    "`setup_context` and keyword-only parameters": (
        """
        class Scale(T.autograd.Function):
            @staticmethod
            def forward(x, *, by=3.0):
                return x * by
            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
            @staticmethod
            def backward(ctx, *grads):
                return grads[0] * 3.0, None
        result = Scale.apply(T.ones(2)).tolist()
        """,
        [3.0, 3.0],
        "unexpected keyword argument 'by'",
    ),
    "`metadata` of a node holds what the user puts there": (
        """
        with T.autograd.detect_anomaly():
            y = T.ones(2, requires_grad=True) * 2
        result = list(y.grad_fn.metadata)
        """,
        [],
        ["traceback_"],
    ),
    "Functions written in Python write by a copy": (
        """
        y = T.ones(2, requires_grad=True) * 2
        y.mvlgamma_(1)
        result = type(y.grad_fn).__name__
        """,
        "CopyBackwards",
        "MvlgammaBackward0",
    ),
    "Masks and positions are inputs of a node": (
        """
        x = T.ones(2, requires_grad=True)
        result = len(x[T.tensor([0])].grad_fn.next_functions)
        """,
        2,
        1,
    ),
}
