"""Calls whose nodes' names are compared with torch's, as expressions over the names that SETUP defines."""

SETUP = """
s = T.tensor(0.7, dtype=T.float64).requires_grad_()
v = T.tensor([0.3, -1.2, 2.5, 0.9], dtype=T.float64).requires_grad_()
w = T.tensor([1.3, 0.4, -0.5, 1.9], dtype=T.float64).requires_grad_()
p = T.tensor([1.5, 2.5, 0.5, 3.5], dtype=T.float64)
m = T.tensor([[0.3, -1.2, 2.5], [0.9, 0.1, -0.4]], dtype=T.float64).requires_grad_()
n = T.tensor([[1.3, 0.2, -2.5], [0.7, 1.1, 0.6]], dtype=T.float64).requires_grad_()
q = T.tensor([[1.0, 2.0, 0.5], [0.2, 3.0, 1.5], [0.1, 0.4, 2.2]], dtype=T.float64).requires_grad_()
b = T.arange(24, dtype=T.float64).reshape(2, 3, 4).requires_grad_()
i = T.tensor([0, 2, 1])
k = T.tensor([True, False, True])
h = m.detach() > 0
c = m * 1
F = T.nn.functional
"""

FORMS = (
    # numbers on either side
    *(f"{x} {o} {y}" for o in "+-*/" for x, y in (("m", "2"), ("2", "m"), ("m", "n"), ("m", "s"), ("s", "2"))),
    *(
        "m ** 2",
        "2 ** m",
        "p ** v",
        "s ** s",
        "2.0 ** s",
        "m % 2",
        "-m",
        "abs(m)",
        "m.__rpow__(2)",
        "T.pow(2, m)",
        "T.pow(m, 2)",
    ),
    *(
        "m.add(n, alpha=2)",
        "m.sub(n, alpha=2)",
        "T.rsub(m, n)",
        "T.rsub(m, 2)",
        "T.rsub(m, n, alpha=2)",
        "m.add(2, alpha=3)",
    ),
    *("T.div(m, n, rounding_mode='floor')", "T.div(m, 2, rounding_mode='trunc')", "m.div(2)", "m.reciprocal()"),
    *(
        "m.fmod(2)",
        "m.fmod(n)",
        "m.remainder(n)",
        "m.square()",
        "m.sign()",
        "m.floor()",
        "m.round()",
        "m.round(decimals=2)",
        "m.round(decimals=-1)",
    ),
    *(
        "m.clamp(min=0)",
        "m.clamp(max=0)",
        "m.clamp(0, 1)",
        "m.clamp(min=n)",
        "m.clamp(min=n, max=n + 1)",
        "m.clamp_min(0)",
        "m.clamp_max(0)",
    ),
    *(
        "m.clip(0, 1)",
        "m.clamp_min(n)",
        "m.clamp_max(n)",
        "T.where(h, m, n)",
        "T.where(h, m, 0.0)",
        "T.where(h, 0.0, m)",
        "m.where(h, n)",
    ),
    *(
        "m.lerp(n, 0.3)",
        "m.lerp(n, n)",
        "T.addcmul(m, n, m)",
        "T.addcdiv(m, n, m + 5)",
        "T.hypot(m, n)",
        "T.logaddexp(m, n)",
    ),
    *(
        "T.fmax(m, n)",
        "T.fmin(m, n)",
        "T.maximum(m, n)",
        "T.atan2(m, n)",
        "T.copysign(m, n)",
        "T.copysign(m, -1.0)",
        "T.xlogy(m, n)",
    ),
    *("T.xlogy(m, 2)", "T.xlogy(2, q)", "m.nan_to_num()", "T.logit(q / 5)", "T.logit(q, 0.1)", "m.frac()", "m.sgn()"),
    *("m.masked_fill(h, 1.0)", "m.masked_fill(h, s)", "m.masked_scatter(h, n)", "m.masked_select(h)"),
    # reductions
    *(
        f"m.{f}({a})"
        for f in (
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "max",
            "min",
            "std",
            "var",
            "nansum",
            "nanmean",
            "norm",
            "median",
            "nanmedian",
        )
        for a in ("", "dim=1", "dim=1, keepdim=True")
        if not (f == "norm" and a)
    ),
    *(f"T.{f}(m{a})" for f in ("std_mean", "var_mean", "aminmax") for a in ("", ", dim=1", ", dim=1, keepdim=True")),
    *(
        "T.var(m, 1, True)",
        "T.var(m, correction=0)",
        "T.std_mean(m, (0, 1))",
        "T.var_mean(m, unbiased=False)",
        "m.sum((0, 1))",
        "m.mean((0, 1))",
    ),
    *(
        "T.dist(m, n)",
        "T.dist(m, n, 1)",
        "m.norm(1)",
        "m.norm(2, 1)",
        "m.norm(dim=1)",
        "T.norm(m, p=3, dim=(0, 1))",
        "m.norm(float('inf'))",
    ),
    *(
        "m.norm('fro')",
        "T.norm(m, 'fro', dim=(0, 1))",
        "m.logsumexp(1)",
        "m.cumsum(0)",
        "m.cumprod(0)",
        "m.cummax(0)",
        "m.cummin(1)",
        "m.trace()",
    ),
    *(
        "m.softmax(1)",
        "m.log_softmax(1)",
        "m.quantile(0.5)",
        "m.quantile(0.5, 1)",
        "m.quantile(T.tensor([0.1, 0.5]).double())",
    ),
    *(
        "m.nanquantile(0.5, 1)",
        "m.mode(1)",
        "m.kthvalue(1, 1)",
        "m.sort(1)",
        "m.topk(2, 1)",
        "T.msort(m)",
        "m.sum(dtype=T.float32)",
    ),
    *(
        "m.prod(dtype=T.float32)",
        "m.mean(dtype=T.float32)",
        "m.cumsum(0, dtype=T.float32)",
        "m.softmax(1, dtype=T.float32)",
    ),
    *(
        "s.sum()",
        "s.mean()",
        "s.max()",
        "s.sum(0)",
        "s.amax(0)",
        "s.max(0)",
        "s.cumsum(0)",
        "s.softmax(0)",
        "s.median(0)",
        "s.nanmedian(0)",
    ),
    *("s.logsumexp(0)", "s.prod(0)", "s.sort(0)", "s.norm()", "s.std(correction=0)", "s.cummax(0)", "s.mode(0)"),
    # views, shapes
    *(
        "m.view(6)",
        "m.reshape(6)",
        "m.reshape(2, 3)",
        "m.t().reshape(6)",
        "m[:, ::2].reshape(4)",
        "m.flatten()",
        "m.t().flatten()",
        "s.flatten()",
    ),
    *(
        "m[:, :2].reshape(-1)",
        "b[:, :, ::2].reshape(6, 2)",
        "b[:, :, ::2].flatten(0, 1)",
        "m.T",
        "m.mT",
        "m.t()",
        "m.transpose(0, 1)",
    ),
    *(
        "m.permute(1, 0)",
        "b.permute(2, 0, 1)",
        "m.expand(4, 2, 3)",
        "m.expand(2, 3)",
        "m.expand_as(b[:, :, 0])",
        "m.unsqueeze(0)",
    ),
    *(
        "m.unsqueeze(0).squeeze()",
        "m.unsqueeze(0).squeeze(0)",
        "m.unsqueeze(0).squeeze((0, 1))",
        "m.squeeze()",
        "m.squeeze(0)",
        "s.squeeze()",
    ),
    *(
        "m.select(0, 1)",
        "m.narrow(0, 0, 1)",
        "m[0]",
        "m[0, 1]",
        "m[:, 1]",
        "m[..., 1:]",
        "m[::2]",
        "m[None]",
        "m[...]",
        "m[:]",
        "m[i[:1]]",
    ),
    *(
        "m[:, i]",
        "m[h]",
        "m[:, k]",
        "m[i[:1], 1]",
        "m[0, i]",
        "m[None, :, i]",
        "m[True]",
        "m[[0, 1]]",
        "m[T.tensor(1)]",
        "m[T.tensor(1), 0]",
    ),
    *(
        "m.split(1)",
        "m.chunk(2)",
        "m.unbind(0)",
        "T.tensor_split(m, 2)",
        "m.split([1, 1])",
        "T.hsplit(m, 3)",
        "T.vsplit(m, 2)",
        "T.dsplit(b, 2)",
    ),
    *(
        "q.diagonal()",
        "q.diag()",
        "v.diag()",
        "v.diag(1)",
        "q.diag(1)",
        "T.diag_embed(v)",
        "T.diagflat(v)",
        "T.diagflat(m)",
        "m.unfold(1, 2, 1)",
    ),
    *(
        "m.as_strided((2, 2), (1, 1))",
        "b.movedim(0, 1)",
        "b.swapaxes(0, 1)",
        "m.unflatten(1, (3, 1))",
        "m.view_as(n)",
        "m.reshape_as(n)",
    ),
    *(
        "m.contiguous()",
        "m.t().contiguous()",
        "m.clone()",
        "m.to(T.float32)",
        "m.float()",
        "m.double()",
        "m.type(T.float32)",
        "m.type_as(n)",
    ),
    *(
        "m.ravel()",
        "m.t().ravel()",
        "T.atleast_1d(s)",
        "T.atleast_2d(v)",
        "T.atleast_3d(m)",
        "T.atleast_2d(s)",
        "T.broadcast_to(m, (4, 2, 3))",
    ),
    *("T.broadcast_tensors(m, s)", "T.meshgrid(v, w, indexing='ij')", "m.adjoint()", "m.H", "m.mH", "m.detach() + s"),
    *(
        "m.sum_to_size(1, 3)",
        "m.sum_to_size(3)",
        "m.sum_to_size(2, 3)",
        "m.sum_to_size(())",
        "m.repeat(2, 2)",
        "m.tile(2)",
        "m.tile((2, 1, 2))",
    ),
    *(
        "m.repeat_interleave(2)",
        "m.repeat_interleave(2, 0)",
        "m.repeat_interleave(T.tensor([1, 2]), 0)",
        "m.roll(1)",
        "m.roll(1, 0)",
    ),
    *(
        "T.rot90(q)",
        "T.rot90(q, 2)",
        "T.rot90(q, 3)",
        "T.rot90(q, 0)",
        "m.flip(0)",
        "T.fliplr(m)",
        "T.flipud(m)",
        "m.tril()",
        "m.triu()",
    ),
    # joining, indexing
    *(f"T.{f}([m, n])" for f in ("cat", "stack", "hstack", "vstack", "dstack", "column_stack", "row_stack")),
    *(
        "T.hstack([v, w])",
        "T.vstack([v, w])",
        "T.dstack([v, w])",
        "T.column_stack([v, w])",
        "T.hstack([s, s])",
        "T.cat([m])",
        "T.stack([m])",
    ),
    *(
        "m.gather(1, i[None])",
        "m.scatter(1, i[None], n)",
        "m.scatter(1, i[None], 1.0)",
        "m.scatter_add(1, i[None], n)",
        "m.index_select(1, i)",
    ),
    *(
        "m.index_add(1, i, n)",
        "m.index_add(1, i, n, alpha=2)",
        "m.index_copy(1, i, n)",
        "m.index_fill(1, i, 2.0)",
        "m.index_fill(1, i, s)",
    ),
    *(
        "m.index_put((i[:1],), n[1])",
        "m.take(i)",
        "m.take_along_dim(i[None], 1)",
        "m.take_along_dim(i)",
        "s.gather(0, T.tensor(0))",
    ),
    *(
        "s.gather(0, T.tensor([0]))",
        "m.diff()",
        "m.diff(n=0)",
        "m.diff(n=2)",
        "m.diff(prepend=n)",
        "m.unique()",
        "m.unique(dim=0)",
    ),
    *(
        "m.unique_consecutive(dim=0)",
        "m.unique_consecutive()",
        "T.argwhere(m).double() + s",
        "T.kron(m, n)",
        "T.kron(v, w)",
    ),
    # products
    *(
        "m @ q",
        "m @ q[0]",
        "v @ w",
        "q[0] @ q",
        "b @ v",
        "b @ b.mT",
        "m @ b",
        "b.mT @ m[0, :1, None].expand(3, 2)",
        "T.matmul(b[0], v)",
    ),
    *(
        "m.mm(q)",
        "q.mv(q[0])",
        "v.dot(w)",
        "T.outer(v, w)",
        "T.inner(v, w)",
        "T.inner(m, n)",
        "T.inner(m, s)",
        "T.ger(v, w)",
        "T.bmm(b, b.mT)",
    ),
    *(
        "T.addmm(q, q, q)",
        "T.addmm(q, q, q, beta=2, alpha=3)",
        "T.baddbmm(b, b[:, :, :3], b)",
        "T.tensordot(m, n)",
        "T.tensordot(m, n, dims=([0], [0]))",
    ),
    *(
        "T.einsum('ij,ij->i', m, n)",
        "T.einsum('ij,kj->ik', m, n)",
        "T.einsum('ii->i', q)",
        "T.einsum('ii', q)",
        "T.einsum('i,j->ij', v, w)",
    ),
    *(
        "T.einsum('ij->ji', m)",
        "T.einsum('ij->j', m)",
        "T.einsum('ij->', m)",
        "T.einsum('bij,bkj->bik', b, b)",
        "T.einsum('i,i', v, w)",
    ),
    # nn.functional
    *(
        f"F.{f}(m)"
        for f in (
            "relu",
            "relu6",
            "elu",
            "celu",
            "gelu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "logsigmoid",
            "mish",
            "sigmoid",
            "silu",
            "softplus",
            "softshrink",
            "softsign",
            "tanh",
            "tanhshrink",
            "normalize",
        )
    ),
    *(
        "F.gelu(m, approximate='tanh')",
        "F.threshold(m, 0.1, 5.0)",
        "F.softmax(m, 1)",
        "F.softmin(m, 1)",
        "F.log_softmax(m, 1)",
    ),
    *(
        "F.linear(m, q)",
        "F.linear(m, q, q[0])",
        "F.linear(b, b[0, :2])",
        "F.linear(b, b[0, :2], v[:2])",
        "F.linear(m[0], q)",
        "F.linear(m[0], q, q[0])",
    ),
    *("F.dropout(m, 0.5)", "F.dropout(m, 0.0)", "F.dropout(m, 1.0)", "F.dropout(m, 0.5, training=False)"),
    *(
        f"F.{f}(m, n, reduction='{r}')"
        for f in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div")
        for r in ("none", "mean", "sum")
    ),
    *(
        f"F.binary_cross_entropy_with_logits(m, n.sigmoid().detach(){a}, reduction='{r}')"
        for r in ("none", "mean", "sum")
        for a in ("", ", q[0].detach()", ", pos_weight=q[0].detach()", ", q[0].detach(), pos_weight=q[0].detach()")
    ),
    *(
        f"F.binary_cross_entropy(m.sigmoid(), n.sigmoid().detach(){a}, reduction='{r}')"
        for r in ("none", "mean", "sum")
        for a in ("", ", q[0].detach()")
    ),
    *(
        f"F.{f}(m.log_softmax(1), i[:2], reduction='{r}')"
        for f in ("nll_loss", "cross_entropy")
        for r in ("none", "mean", "sum")
    ),
    *(
        f"F.{f}(b, i[[0, 1, 0, 1]].expand(2, 4), reduction='{r}')"
        for f in ("nll_loss", "cross_entropy")
        for r in ("none", "mean", "sum")
    ),
    *(
        f"F.cross_entropy(m, n.softmax(1).detach(), reduction='{r}', label_smoothing={e})"
        for r in ("none", "mean", "sum")
        for e in (0.0, 0.1)
    ),
    *(f"F.cross_entropy(m, i[:2], reduction='{r}', label_smoothing=0.1)" for r in ("none", "mean", "sum")),
    "F.cross_entropy(m, n.softmax(1).detach(), q[0].detach())",
    *(
        "F.cross_entropy(m[0], i[0])",
        "F.nll_loss(m[0], i[0])",
        "F.kl_div(m, n, log_target=True)",
        "F.smooth_l1_loss(m, n, beta=0.0)",
    ),
    # in place on an inner tensor
    *(
        f"c.{f}"
        for f in (
            "add_(2)",
            "add_(n, alpha=2)",
            "mul_(n)",
            "div_(n)",
            "pow_(2)",
            "exp_()",
            "zero_()",
            "fill_(2)",
            "fill_(s)",
            "copy_(n)",
            "clamp_(0, 1)",
            "clamp_(min=0)",
            "clamp_(max=0)",
            "round_(decimals=1)",
            "masked_fill_(h, 2.0)",
            "index_fill_(1, i, 2.0)",
            "index_add_(1, i, n)",
            "index_copy_(1, i, n)",
            "scatter_(1, i[None], n)",
            "scatter_(1, i[None], 2.0)",
            "scatter_add_(1, i[None], n)",
            "tril_()",
            "t_()",
            "transpose_(0, 1)",
            "unsqueeze_(0)",
            "squeeze_()",
            "cumsum_(0)",
            "lerp_(n, 0.5)",
            "relu_()",
            "sigmoid_()",
            "normal_()",
            "uniform_()",
            "bernoulli_()",
            "exponential_()",
            "index_put_((i[:1],), n[1])",
            "masked_scatter_(h, n)",
            "nan_to_num_()",
            "copy_(n.float())",
            "remainder_(2)",
            "logit_(0.2)",
            "swapaxes_(0, 1)",
            "rsqrt_()",
            "float()",
            "neg_()",
        )
    ),
    *(
        "c.__setitem__(0, n[0]) or c",
        "c.__setitem__((slice(None), i), n) or c",
        "c.__setitem__(h, 2.0) or c",
        "c.__setitem__((0, 1), 5.0) or c",
    ),
)

# Forms of which only the names are compared: writes, second derivatives, and functions written in Python.
NAMED_ONLY = (
    # written in place
    *(
        f"c.{f}"
        for f in (
            "clamp_min_(0)",
            "clamp_max_(0)",
            "clamp_min_(n)",
            "clamp_max_(n)",
            "clamp_(0, 1)",
            "clamp_(min=0)",
            "relu_()",
            "mul_(True)",
            "pow_(2)",
        )
    ),
    "m * True",
    # second derivatives
    *(f"T.autograd.grad(F.{f}(m).sum(), m, create_graph=True)" for f in ("relu", "leaky_relu", "softshrink")),
    # functions written in Python
    *(
        f"T.special.{f}(q)"
        for f in ("digamma", "gammaln", "i0", "i0e", "i1", "i1e", "entr", "erfcx", "log_ndtr", "sinc")
    ),
    *(f"T.special.{f}(q.abs() / 10)" for f in ("erfinv", "ndtri")),
    *(f"T.special.{f}(q.abs().detach(), q)" for f in ("gammainc", "gammaincc", "zeta", "xlog1py")),
    *("T.polygamma(2, q)", "T.nextafter(m, n)", "T.heaviside(m, n)"),
    *(f"T.linalg.{f}(q)" for f in ("det", "inv", "inv_ex", "pinv", "qr", "svd", "eigh", "matrix_exp", "lu_factor")),
    *("T.linalg.solve(q, q)", "T.linalg.cholesky_ex(q @ q.T)", "T.linalg.slogdet(q)[1]"),
)
