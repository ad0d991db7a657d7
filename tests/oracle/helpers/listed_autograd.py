"""Programs of the listed differences in writes, derivatives, hooks and Functions, for `test_oracle_differences.py`."""

from __future__ import annotations

from typing import Any

from listed_slopes import SLOPES

# Title on the page: a program that sets `result`, what that is here, what it is there. A text is part of an error.
AUTOGRAD: dict[str, tuple[str, Any, Any]] = {
    "A write that fails leaves its target as it was": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        try:
            x.fill_(1.0)
        except RuntimeError:
            pass
        result = x.tolist()
        """,
        [0.0, 0.0],
        [1.0, 1.0],
    ),
    "The source of a write by index may share memory with the target": (
        """
        x = T.tensor([1.0, 2.0, 3.0])
        x[T.tensor([2, 0])] = x[:2]
        result = x.tolist()
        """,
        [2.0, 2.0, 1.0],
        "refer to a single memory location",
    ),
    "An expanded tensor takes one number everywhere, and nothing else": (
        """
        x = T.zeros(1, 2).expand(3, 2)
        x.zero_()
        x.masked_fill_(T.tensor([True, False]), 1.0)
        result = x.tolist()
        """,
        "refers to a single memory location",
        [[1.0, 0.0]] * 3,
    ),
    "A view that is older than its base's history stays a view of it": (
        """
        x = T.zeros(2)
        v = x[0]
        y = T.ones(2, requires_grad=True)
        x.mul_(y)
        v.mul_(2.0)
        result = v.is_leaf
        """,
        False,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "`out=` may share memory with an input": (
        """
        d = T.tensor([[1.0, 2.0], [3.0, 4.0]])
        T.add(d, d.diagonal(), out=d)
        result = d.tolist()
        """,
        [[2.0, 6.0], [4.0, 8.0]],
        [[2.0, 6.0], [5.0, 8.0]],
    ),
    "`out=` takes every dtype that the result can be cast to": (
        """
        x, out = T.ones(2, 2), T.empty(2, 2, dtype=T.float64)
        T.matmul(x, x, out=out)
        result = out.tolist()
        """,
        [[2.0, 2.0], [2.0, 2.0]],
        "Expected out tensor to have dtype float, but got double instead",
    ),
    "Views older than `x.data = y` belong to the old memory": (
        """
        x = T.zeros(2)
        v = x.view(2)
        x.data = T.ones(2)
        v.fill_(3.0)
        result = x._version
        """,
        0,
        1,
    ),
    "`set_` refuses a tensor with history": (
        """
        x = T.ones(2, requires_grad=True).exp()
        x.set_(x.detach())
        result = x._version
        """,
        "a tensor with history cannot look at other memory",
        1,
    ),
    "What is detached from an inference tensor cannot be written outside of inference mode either": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        x.detach().add_(1)
        result = x.tolist()
        """,
        "Inplace update to inference tensor outside InferenceMode",
        [1.0, 1.0],
    ),
    "An inference tensor that is given normal memory is a normal tensor": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        x.data = T.ones(2)
        result = x[0].item()
        """,
        1.0,
        "Inference tensors do not track version counter",
    ),
    "What is overwritten by a value without derivative has the gradient 0": (
        """
        x = T.ones(2, requires_grad=True)
        y = x * 2
        y.logical_not_()
        y.sum().backward()
        result = x.grad.tolist()
        """,
        [0.0, 0.0],
        [2.0, 2.0],
    ),
    "The gradient of `as_strided_scatter` is 0 where the view was replaced": (
        """
        x = T.zeros(3, requires_grad=True)
        T.as_strided_scatter(x, T.ones(1), (1,), (1,)).sum().backward()
        result = x.grad.tolist()
        """,
        [0.0, 1.0, 1.0],
        [1.0, 0.0, 0.0],
    ),
    "`scatter_reduce` has a gradient where `src` is larger than `index`": (
        """
        src = T.ones(3, requires_grad=True)
        T.zeros(2).scatter_reduce(0, T.tensor([0, 1]), src, "sum").sum().backward()
        result = src.grad.tolist()
        """,
        [1.0, 1.0, 0.0],
        "returned an invalid gradient",
    ),
    "Padding that takes away more than there is takes it from the other side": (
        "result = T.nn.functional.pad(T.arange(5.0), (-6, 3)).tolist()",
        [0.0, 0.0],
        "length must be non-negative",
    ),
    "Special functions have their limits at infinity": (
        """
        x = T.tensor([float("inf")])
        result = [str(T.i0(x).item()), str(T.polygamma(2, x).item())]
        """,
        ["inf", "-0.0"],
        ["nan", "nan"],
    ),
    "Functions take more dtypes": (
        "result = T.special.ndtri(T.tensor([0.5]).half()).tolist()",
        [0.0],
        "not implemented for 'Half'",
    ),
    "`isin` and `searchsorted` look for the number itself": (
        "result = T.isin(T.tensor([0, 1], dtype=T.uint8), 256).tolist()",
        [False, False],
        [True, False],
    ),
    "What has no derivative has no history": (
        "result = T.floor_divide(T.ones(2, requires_grad=True), 2.0).requires_grad",
        False,
        True,
    ),
    **SLOPES,
    "A triangle that is not read has the gradient 0": (
        """
        x = T.tensor([[2.0, 0.0], [1.0, 3.0]], requires_grad=True)
        T.cholesky_inverse(x).sum().backward()
        result = x.grad[0, 1].item() == 0.0
        """,
        True,
        False,
    ),
    "The order of dimensions in memory is that of the kernel": (
        "result = T.ones(2, 3).t().sort(0)[0].stride()",
        (2, 1),
        (1, 3),
    ),
    "`matrix_exp` of 16-bit floats is right": (
        """
        made = T.linalg.matrix_exp(T.tensor([[0.5, 1], [0, 0.25]]).half())
        result = abs(made[0, 0].item() - 1.6487) < 1e-3
        """,
        True,
        False,
    ),
    "The backward of `linalg.cond` with other norms works": (
        """
        x = T.eye(2, requires_grad=True)
        T.linalg.cond(x, "fro").backward()
        result = x.grad.tolist()
        """,
        [[0.0, 0.0], [0.0, 0.0]],
        "modified by an inplace operation",
    ),
    "Bessel functions have all digits of float64, and derivatives": (
        """
        x = T.tensor([5.52], dtype=T.float64, requires_grad=True)
        y = T.special.bessel_j0(x)
        y.sum().backward()
        result = [round(y.item(), 12), round(x.grad.item(), 9)]
        """,
        [-2.6578369e-05, 0.34026962],
        "does not require grad",
    ),
    "`linalg.lstsq` gives shapes on the meta device": (
        """
        result = tuple(T.linalg.lstsq(T.ones(4, 2, device="meta"), T.ones(4, 3, device="meta")).solution.shape)
        """,
        (2, 3),
        "Meta tensors",
    ),
    "`linalg.ldl_factor` names the block that is 0": (
        """
        result = T.linalg.ldl_factor(T.zeros(2, 2)).LD.tolist()
        """,
        "D[1,1] is zero",
        "INTERNAL ASSERT",
    ),
    "`lobpcg` has gradients with `B`, and takes complex matrices": (
        """
        A = T.diag(T.arange(1.0, 7).double()).requires_grad_()
        start = T.eye(6).double()[:, 3:] + 0.1
        values, _ = T.lobpcg(A, B=2 * T.eye(6).double(), X=start[:, :2])
        values.sum().backward()
        result = [round(v, 3) for v in A.grad.diagonal().tolist()]
        """,
        [0.0, 0.0, 0.0, 0.0, 0.5, 0.5],
        "does not support backward with B != I",
    ),
    "`binary_cross_entropy_with_logits` gives the wider dtype": (
        """
        loss = T.nn.functional.binary_cross_entropy_with_logits(T.zeros(2).double(), T.zeros(2))
        result = str(loss.dtype).rpartition(".")[2]
        """,
        "float64",
        "float32",
    ),
    "complex32 is computed, too": (
        """
        x = T.tensor([1 + 2j], dtype=T.complex32)
        result = T.acosh(x).dtype == T.complex32
        """,
        True,
        "not implemented for 'ComplexHalf'",
    ),
    "bfloat16 as default dtype goes with complex64": (
        """
        before = T.get_default_dtype()
        T.set_default_dtype(T.bfloat16)
        try:
            result = T.tensor([1j]).dtype == T.complex64
        finally:
            T.set_default_dtype(before)
        """,
        True,
        "",
    ),
    "NumPy's complex numbers stay complex": (
        """
        import numpy
        result = (T.ones(1) * numpy.complex64(1j)).dtype == T.complex64
        """,
        True,
        False,
    ),
    "Lazy conjugates can be saved beside their base": (
        """
        import io

        x, file = T.tensor([1 + 2j]), io.BytesIO()
        T.save([x, x.conj().imag], file)
        file.seek(0)
        result = T.load(file)[1].tolist()
        """,
        [-2.0],
        "Cannot save multiple tensors or storages that view the same data as different types",
    ),
    "`where` of a real and a complex tensor has gradients": (
        """
        x, z = T.ones(2, requires_grad=True), T.ones(2, dtype=T.complex64)
        T.view_as_real(T.where(T.tensor([True, False]), x, z)).sum().backward()
        result = x.grad.tolist()
        """,
        [1.0, 0.0],
        "isFloatingType",
    ),
    "The gradient of a complex power of 0 is 0": (
        """
        e = T.tensor([1 + 2j], requires_grad=True)
        T.view_as_real(0 ** e).sum().backward()
        result = [z == 0 for z in e.grad.tolist()]
        """,
        [True],
        [False],
    ),
    "`polar` has the slope of negative absolute values, too": (
        """
        r = T.tensor([-2.0, 0.0], requires_grad=True)
        T.polar(r, T.zeros(2)).real.sum().backward()
        result = r.grad.tolist()
        """,
        [1.0, 1.0],
        [-1.0, 0.0],
    ),
    "`silu` of complex numbers has derivatives": (
        """
        z = T.tensor([1 + 2j], requires_grad=True)
        T.view_as_real(T.nn.functional.silu(z)).sum().backward()
        result = abs(z.grad.item()) > 0
        """,
        True,
        "does not support automatic differentiation for outputs with complex dtype",
    ),
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
