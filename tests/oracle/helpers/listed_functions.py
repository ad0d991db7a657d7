"""Programs of the listed differences in functions and complex numbers, for `test_oracle_differences.py`."""

from __future__ import annotations

from typing import Any

# As in `listed_writes.py`.
FUNCTIONS: dict[str, tuple[str, Any, Any]] = {
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
    "Functions of two tensors take a number for one of them": (
        "result = [round(T.igamma(T.ones(1), 2.0).item(), 4), T.hypot(T.tensor([3.0]), 4.0).item()]",
        [0.8647, 5.0],
        "must be Tensor, not float",
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
    "Derivatives at infinite, huge and nan elements are limits": (
        """
        x = T.tensor([-1e4], requires_grad=True)
        T.nn.functional.soft_margin_loss(x, T.ones(1)).backward()
        result = x.grad.isnan().item()
        """,
        False,
        True,
    ),
    "Slopes keep their digits where a function has saturated": (
        """
        x = T.tensor(20.0, requires_grad=True)
        T.nn.functional.cross_entropy(T.stack([x, x * 0]), T.tensor(0)).backward()
        second = T.func.grad(T.func.grad(lambda v: T.nn.functional.softplus(v, threshold=100.0)))
        result = [bool(x.grad < 0), bool(second(x.detach()) > 0)]
        """,
        [True, True],
        [False, False],
    ),
    "What a choice leaves out has the gradient 0": (
        """
        x = T.tensor([0.0, 2.0], requires_grad=True)
        T.where(x > 0, T.log(x), 0.0).sum().backward()
        result = x.grad.isnan().tolist()
        """,
        [False, False],
        [True, False],
    ),
    "Sums of `exp(-inf)` do not move": (
        """
        low = T.tensor([float("-inf"), float("-inf")])
        zero = T.tensor(0.0)
        slopes = [
            T.func.grad(lambda x: T.logaddexp(x, low).sum())(low)[0],
            T.func.grad(lambda x: T.logsumexp(x, 0))(low)[0],
            T.func.grad(lambda x: T.xlogy(zero, x))(zero),
            T.func.grad(lambda x: T.hypot(x, zero))(zero),
        ]
        result = [bool(g == 0) for g in slopes]
        """,
        [True] * 4,
        [False] * 4,
    ),
    "Squares that are too large or too small stay inside": (
        """
        big = T.tensor(3e19)
        rows = T.tensor([[1e30, 2e30, 4e30]])
        result = [
            bool(T.func.grad(lambda x: T.atan2(x, big))(big) > 0),
            bool(T.nn.functional.layer_norm(rows, (3,))[0, 2] > 1),
            bool(T.nn.functional.normalize(T.full((3,), 6e4, dtype=T.float16), dim=0)[0] > 0.5),
        ]
        """,
        [True] * 3,
        [False] * 3,
    ),
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
    "Airy's function has derivatives, and is 0 at infinity": (
        """
        x = T.tensor([1.0, float("inf")], dtype=T.float64, requires_grad=True)
        y = T.special.airy_ai(x)
        result = [y.requires_grad, T.special.spherical_bessel_j0(x).requires_grad, y.tolist()[1] == 0]
        """,
        [True, True, True],
        [False, False, False],
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
}
