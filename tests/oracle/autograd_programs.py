"""The grammar of random programs about autograd: views, writes, hooks, Functions, modes, errors, derivatives.

A program is a list of statements. In their texts {a} and {b} are any tensors, {x} is one of the four that exist from
the start, {n} and {m} are names to assign to, {v} is the name of a view, {k} a digit.
"""

from __future__ import annotations

import random

NAMES = "abcd"
VIEWS = "uvw"

VIEW = (
    "{a}[0]",
    "{a}[..., 1]",
    "{a}[1:]",
    "{a}.t()",
    "{a}.view(-1)",
    "{a}.view(3, 3)",
    "{a}.diagonal()",
    "{a}.unbind(0)[1]",
    "{a}.split(1)[0]",
    "{a}.chunk(2)[0]",
    "{a}.narrow(0, 0, 2)",
    "{a}.expand(2, 3, 3)",
    "{a}.unsqueeze(0)",
    "{a}.squeeze()",
    "{a}.detach()",
    "{a}.data",
    "{a}.view_as({a})",
    "{a}.reshape(-1)",
    "{a}.select(0, 0)",
    "{a}.transpose(0, -1)",
    "{a}.unfold(0, 2, 2)",
    "{a}.real",
    "{a}.contiguous().as_strided((2,), (1,))",
    "{a}.flatten()",
    "{a}.movedim(0, -1)",
    "{a}.mT",
    "{a}.contiguous()",
    "{a}.swapaxes(0, -1)",
    "{a}.tensor_split(2)[1]",
    "{a}.hsplit(3)[1]",
    "{a}.unflatten(0, (1, -1))",
)
FRESH = (
    "{a} * {b}",
    "{a} + {b}",
    "{a} - 2 * {b}",
    "{a}.sin()",
    "{a}.clamp(-3, 3).exp() * 0.1",
    "{a}.sigmoid()",
    "{a} ** 2",
    "{a} ** 3",
    "{a}.clone()",
    "{a} @ {b} * 1",
    "T.maximum({a}, {b})",
    "{a}.softmax(0)",
    "{a}.cumsum(0)",
    "{a}.sum()",
    "{a}.mean(0)",
    "{a}.relu()",
    "{a} / ({b} * {b} + 1)",
    "T.cat([{a}, {b}])",
    "T.stack([{a}, {b}])[0]",
    "T.where({b} > 0, {a}, {b}) * 1",
    "{a}.tanh()",
    "{a}.norm()",
    "{a}.max(0)[0] * 1",
    "{a}.prod(0)",
    "{a}.log_softmax(-1)",
    "T.zeros_like({a})",
    "{a}.new_ones(3, 3)",
    "{a}.logsumexp(0)",
    "{a}.abs()",
    "{a}.index_select(0, T.tensor([0, 1])) * 1",
    "{a}.gather(0, T.tensor([[0, 1, 2]])) * 1",
    "{a}.masked_fill({b} > 0, 0.5) * 1",
    "{a}.flip(0)",
    "{a}.sqrt()",
    "{a}.clamp(-0.5, 0.5)",
    "{a}.var(0)",
    "{a}.add({b}, alpha=2)",
    "T.einsum('ij,jk->ik', {a}, {b}).clone()",
    "{a}.tril()",
    "{a}.roll(1, 0)",
    "{a}.sort(0)[0].contiguous()",
    "{a}.to(T.float32)",
    "{a}.scatter_reduce(0, T.tensor([[0, 1, 1]]), {b}[:1], 'amax')",
    "{a}.index_add(0, T.tensor([1, 1]), {b}[:2])",
    "{a}.index_put((T.tensor([2, 0]),), {b}[:2])",
    "{a}.select_scatter({b}[0], 0, 1)",
    "{a}.diff(dim=0)",
    "{a}.logcumsumexp(0)",
    "{a}.std(0)",
    "{a}.lerp({b}, 0.5)",
    "{a}.erf()",
    "{a}.topk(2, 0)[0]",
    "{a}.cumprod(0)",
    "T.addmm({a}, {b}, {a})",
    "T.linalg.inv({a} + 5 * T.eye(3, dtype=T.float64)).contiguous()",
    "T.linalg.norm({a}, 2)",
    "T.special.i0({a})",
    "T.nn.functional.gelu({a})",
    "T.nn.functional.mse_loss({a}, {b}) * 1",
    "T.nn.functional.linear({a}, {b}) * 1",
    "T.nn.functional.layer_norm({a}, (3,))",
    "T.nn.functional.cross_entropy({a}, T.tensor([0, 2, 1]))",
    "T.minimum({a}, {b}.detach())",
    "T.special.xlogy({a}, {b} * {b})",
    "{a}.new_zeros(3, 3).requires_grad_()",
    "T.empty_like({a}).copy_({b})",
)
WRITE = (
    "{a}.mul_(2)",
    "{a}.mul_({b})",
    "{a}.add_({b})",
    "{a}.add_(1)",
    "{a}.sin_()",
    "{a}.relu_()",
    "{a}.zero_()",
    "{a}.copy_({b})",
    "{a}[0] = 2.0",
    "{a}[0] = {b}[1]",
    "{a}[..., 1].mul_(2)",
    "{a}[1:].add_({b}[:2].clone())",
    "{a} += {b}",
    "{a} *= 0.5",
    "{a}.sigmoid_()",
    "{a}.masked_fill_({b} > 0, 0.5)",
    "{a}.data.mul_(2)",
    "{a}.detach().add_(1)",
    "{a}.detach_()",
    "{a}.fill_(3.0)",
    "{a}.clamp_(min=0)",
    "{a}.scatter_(0, T.tensor([[0, 1, 2]]), {b}[:1].clone())",
    "{a}.index_add_(0, T.tensor([1, 1]), {b}[:2].clone())",
    "{a}[T.tensor([2, 0])] = {b}[:2].clone()",
    "{a}[{b} > 0] = 0.25",
    "{a}.unbind(0)[0].add_(1)",
    "{a}.split(1)[1].mul_(2)",
    "{a}.t_()",
    "{a}.unsqueeze_(0)",
    "{a}.squeeze_()",
    "{a}.transpose_(0, -1)",
    "{a}.data = {b}",
    "{a}.data = {b}.detach().clone()",
    "{a}.sub_({b}, alpha=0.5)",
    "{a}.pow_(2)",
    "{a}.div_(2)",
    "{a}.addcmul_({b}.clone(), {b}.clone())",
    "{a}.lerp_({b}.clone(), 0.5)",
    "T.add({a}, {b}, out={a})",
    "{a}.tanh_()",
    "{a}.fill_(1)",
    "{a}.neg_()",
    "{a}.sqrt_()",
    "{a}.index_put_((T.tensor([0, 0]),), {b}[:2].clone(), accumulate=True)",
    "{a}.masked_scatter_({b} > 0, {a} + {b})",
    "{a}.put_(T.tensor([0, 3]), {b}.reshape(-1)[:2].clone())",
    "{a}.scatter_reduce_(0, T.tensor([[0, 1, 1]]), {b}[:1].clone(), 'prod')",
    "{a}.fill_diagonal_(1.0)",
    "{a}.cumsum_(0)",
    "{a}.swapaxes_(0, 1)",
    "{a}.mul_({b}).add_({b})",
    "{a}[1:, 1:] -= {b}[:2, :2].clone()",
    "{a}.normal_(0, 0)",
    "{a}.requires_grad_().data.zero_()",
    "{a}.erfinv_()",
    "{a}.lgamma_()",
)
FLAG = (
    "{a}.requires_grad_()",
    "{a}.requires_grad_(False)",
    "{a}.requires_grad = True",
    "{a}.retain_grad()",
    "{a}.grad = None",
    "{a}.grad = {b}.detach().clone()",
    "{a}.grad = {b}",
    "{a}.grad.zero_()",
    "{a}.grad.add_(1)",
    "{n} = {a}.grad",
    "{n} = {a}.detach().requires_grad_()",
    "{n} = {a}.clone().detach()",
    "del {n}",
    "{n} = T.nn.Parameter({a})",
    "{n} = {a}.detach().clone().requires_grad_()",
)
HOOK = (
    "{a}.register_hook(lambda g: g * 2)",
    "{a}.register_hook(lambda g: log(g))",
    "{a}.register_hook(lambda g: None)",
    "h = {a}.register_hook(lambda g: log(g))",
    "h.remove()",
    "{a}.register_post_accumulate_grad_hook(lambda p: log(p.grad))",
    "{a}.grad_fn.register_hook(lambda gi, go: log(given(gi), go))",
    "{a}.grad_fn.register_prehook(lambda go: log(go))",
    "{a}.grad_fn.register_prehook(lambda go: tuple(None if g is None else g * 2 for g in go))",
    "{a}.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 3 for g in gi))",
    "{a}.register_hook(lambda g: fail())",
    "{a}.register_hook(lambda g: g[0])",
    "{a}.register_hook(lambda g: 1)",
    "{a}.register_hook(lambda g: g.mul_(2))",
    "{a}.grad_fn.register_hook(lambda gi, go: fail())",
    "{a}.grad_fn.register_hook(lambda gi, go: 1)",
    "{a}.grad_fn.register_hook(lambda gi, go: (*gi, None))",
    "{a}.grad_fn.register_prehook(lambda go: go[:0])",
    "T.autograd.graph.register_multi_grad_hook([{a}, {b}], lambda gs: log(*gs))",
    "T.autograd.graph.register_multi_grad_hook([{a}, {b}], lambda g: log(g), mode='any')",
    "{a}.grad_fn.next_functions[0][0].register_hook(lambda gi, go: log(given(gi), go))",
    "{a}.register_hook(lambda g: (g * {b}))",
    "{a}.register_hook(lambda g: {b}.mul_(2) and None)",
    "log(len([f for f, _ in {a}.grad_fn.next_functions if f]))",
    "{a}.grad_fn.metadata['k'] = 1; log(len({a}.grad_fn.metadata))",
    "T.autograd.graph.get_gradient_edge({a})",
)
CALL = (
    "{n} = Square.apply({a})",
    "{n} = SaveOutput.apply({a})",
    "{n}, {m} = Two.apply({a}, {b})",
    "{n}, {m}, _ = Lazy.apply({a}, {b})",
    "{n}, _, {m} = Half.apply({a})",
    "{n} = Dirty.apply({a})",
    "Dirty.apply({a})",
    "{n}, {m} = DirtyTwo.apply({a}, {b})",
    "{n}, {m} = Same.apply({a}, {b})",
    "{n} = View.apply({a})",
    "{n}, {m} = Views.apply({a})",
    "{n} = Inner.apply({a})",
    "{n} = Raises.apply({a})",
    "{n} = Once.apply({a})",
    "{n} = Bad.apply({a}, {k})",
    "{n} = Setup.apply({a})",
    "{n} = Setup.apply({a}, 3)",
    "{n} = Square.apply({a} * 1)",
    "{n} = Dirty.apply({a}.clone())",
    "{n} = Dirty.apply({a} * 1)[0]",
    "{n} = checkpoint(lambda x, y: (x * y).sin(), {a}, {b}, use_reentrant=False)",
    "{n} = checkpoint(lambda x, y: (x * y).sin(), {a}, {b}, use_reentrant=True)",
    "{n} = checkpoint(lambda x: Square.apply(x).exp(), {a}, use_reentrant=False)",
    "{n} = checkpoint(lambda x: x.mul_(2), {a}.clone(), use_reentrant=False)",
    "{n} = checkpoint(lambda x: x.relu() * {b}, {a}, use_reentrant=False)",
)
PASS = (
    "{a}.sum().backward()",
    "{a}.sum().backward()",
    "{a}.backward({b})",
    "({a} * {b}).sum().backward()",
    "({a} * {a}).sum().backward(retain_graph=True)",
    "{a}.sum().backward(create_graph=True)",
    "{n} = dense(T.autograd.grad({a}.sum(), [{b}])[0])",
    "{n} = dense(T.autograd.grad({a}.sum(), [{b}], create_graph=True)[0])",
    "{n}, {m} = map(dense, T.autograd.grad(({a} * {b}).sum(), [{a}, {b}], create_graph=True))",
    "{n}, {m} = map(dense, T.autograd.grad({a}.sum(), [{b}, {x}], allow_unused=True))",
    "{n} = dense(T.autograd.grad({a}.sum(), [{b}], materialize_grads=True)[0])",
    "{n} = dense(T.autograd.grad({a}, [{b}], T.ones_like({a}), retain_graph=True)[0])",
    (
        "{n} = dense(T.autograd.grad(({a} ** 3).sum(), [{a}], create_graph=True)[0]); "
        "{n} = dense(T.autograd.grad({n}.sum(), [{a}], create_graph=True)[0])"
    ),
    "T.autograd.backward([{a}.sum(), {b}.sum()])",
    "T.autograd.backward({a}.sum(), inputs=leaves({b}))",
    "T.autograd.backward([{a}, {b}], [{b}.detach(), {a}.detach()])",
    "{n} = dense(T.autograd.grad({a}.view(-1), [{b}], T.eye(9, dtype=T.float64), is_grads_batched=True)[0])",
    "{a}.sum().backward(inputs=leaves({x}), retain_graph=True)",
    "{n} = dense(T.autograd.grad({a}.sum(), [T.autograd.graph.get_gradient_edge({b})])[0])",
)
HIGHER = (
    "{n} = T.autograd.functional.jacobian(lambda x: (x * {b}).sum(0), {a}).clone()",
    "{n} = T.autograd.functional.hessian(lambda x: (x * x * {b}).sum(), {a}).clone()",
    "{n} = T.autograd.functional.vjp(lambda x: x * {b}, {a}, {b})[1].clone()",
    "{n} = T.autograd.functional.jvp(lambda x: x * {b}, {a}, {b})[1].detach().clone()",
    "{n} = T.func.grad(lambda x: (x * {b}).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: (x.sin() * {b}).sum())({a}).clone()",
    "{n} = T.func.vmap(lambda x: x * 2 + {b})({a}).clone()",
    "{n} = T.func.vmap(lambda x, y: x * y, in_dims=(0, 1))({a}, {b}).clone()",
    "{n} = T.func.jvp(lambda x: x * {b}, ({a},), ({b},))[1].detach().clone()",
    "{n} = T.func.jacrev(lambda x: (x * x).sum(0))({a}).clone()",
    "{n} = T.func.jacfwd(lambda x: (x * x).sum(0))({a}).clone()",
    "{n} = T.func.hessian(lambda x: (x ** 3).sum())({a}).clone()",
    "{n} = T.func.vjp(lambda x: x.exp(), {a})[1]({b})[0].clone()",
    "{n} = T.func.vmap(Setup.apply)({a}).clone()",
    "{n} = T.func.grad(lambda x: Setup.apply(x).sum())({a}).clone()",
    "{n} = T.func.vmap(T.func.grad(lambda x: (x * x).sum()))({a}).clone()",
    "{n} = T.func.vmap(lambda x: x.add_(1))({a}).clone()",
    "{n} = T.func.grad(lambda x: x.mul_(2).sum())({a}).clone()",
    "{n} = T.func.vmap(Square.apply)({a}).clone()",
    "{n} = T.func.grad(lambda x: Square.apply(x).sum())({a}).clone()",
    "{n} = T.func.jvp(lambda x: Setup.apply(x, 3), ({a},), ({b},))[1].detach().clone()",
    "{n} = T.func.grad(T.func.grad(lambda x: (x ** 3).sum()))({a}[0, 0]).clone()",
    "{n} = T.func.vmap(lambda x: x[0])({a}).clone()",
    "{n} = T.func.vmap(lambda x: x.sum() * {b})({a}).clone()",
    "{n} = T.func.grad(lambda x: ((-x) * {b}).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: ((1 - x) @ {b}).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: written(x.clone(), lambda y: y[0].mul_(2)).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: written(x * {b}, lambda y: y.t()[1:].add_(x.t()[1:])).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: written(T.zeros(3, 3).double(), lambda y: y[1].copy_(x[0])).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: written(x.sin(), lambda y: y.unbind(0)[0].mul_(2)).sum())({a}).clone()",
    "{n} = T.func.grad(lambda x: written(x.sin(), lambda y: y.view(-1)[::2].zero_()).sum())({a}).clone()",
    "{n} = T.func.vmap(lambda x: written(x.clone(), lambda y: y[0].mul_(2)))({a}).clone()",
    "{n} = T.func.vmap(lambda x: written(x * 1, lambda y: y[1:].add_({b}[0, 0])))({a}).clone()",
    "{n} = T.func.vmap(lambda x, y: written(x.clone(), lambda z: z.mul_(y)))({a}, {b}).clone()",
    "{n} = T.func.vmap(lambda x: written({b}, lambda z: z.mul_(x)))({a}).clone()",
    "{n} = T.func.jvp(lambda x: written(x.exp(), lambda y: y[0].mul_(x[1])), ({a},), ({b},))[1].detach().clone()",
    "{n} = T.func.jvp(lambda x: written(x * 2, lambda y: y.t_()), ({a},), ({b},))[1].detach().clone()",
    "{n} = T.func.grad(lambda x: T.func.jvp(lambda y: (y * x).sin(), (x,), ({b},))[1].sum())({a}).clone()",
    "{n} = T.func.jvp(lambda x: T.func.grad(lambda y: (y**3 * x).sum())({b}), ({a},), ({b},))[1].detach().clone()",
    "{n} = T.func.grad(lambda x: ({a} * x.detach() + x).sum())({b}).clone()",
    "with T.no_grad(): {n} = T.func.grad(lambda x: (x * x * {b}).sum())({a})",
    "{n} = T.func.grad(lambda x: no_grad(lambda: x * 2).sum() + x.sum())({a}).clone()",
    "{n} = T.func.vmap(T.func.jacrev(lambda x: x * x), in_dims=1)({a}).clone()",
    "{n} = T.func.vmap(lambda x: T.where(x > 0, x, x * 2).cumsum(0), out_dims=1)({a}).clone()",
    "{n}, {m} = (x.clone() for x in T.func.grad(lambda x, y: (x * y * {x}).sum(), argnums=(0, 1))({a}, {b}))",
    "{n} = T.func.linearize(lambda x: x.sin() * {b}, {a})[1]({b}).detach().clone()",
    "{n} = T.func.vjp(lambda x: (x[0], x.t() * {b}), {a})[1](({b}[0], {b}))[0].clone()",
)
DUAL = (
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); {n} = p * {b}; q = fw.unpack_dual({n}); log(q.primal, q.tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); q = fw.unpack_dual(p.sin()); log(q.tangent)",
    (
        "normal({a}, {b}); p = fw.make_dual({a}, {b}.clone()); v = p[0]; v.mul_(2); "
        "log(fw.unpack_dual(p).tangent, fw.unpack_dual(v).tangent)"
    ),
    "normal({a}, {b}); p = fw.make_dual({a}.clone(), {b}.clone()); p.mul_({b}); log(fw.unpack_dual(p).tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); log(fw.unpack_dual(Setup.apply(p)).tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); log(fw.unpack_dual(Square.apply(p)).tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); log(fw.unpack_dual(Two.apply(p, {b})[0]).tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); y = p.t() @ p; log(fw.unpack_dual(y).tangent); y.sum().backward()",
    (
        "normal({a}, {b}); p = fw.make_dual({a}, {b}); t = fw.unpack_dual(p.exp()).tangent; "
        "{n} = dense(T.autograd.grad(t.sum(), [{a}], allow_unused=True)[0])"
    ),
    "normal({a}, {b}); p = fw.make_dual({a}, {b}[0]); log(p)",
    (
        "normal({a}, {b}); p = fw.make_dual({a}.clone(), {b}.clone()); normal({x}, {b}); {x}.copy_(p); "
        "log(fw.unpack_dual({x}).tangent)"
    ),
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); log(p)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); u = p.detach(); log(fw.unpack_dual(u).tangent)",
    "normal({a}, {b}); p = fw.make_dual({a}, {b}); {x} = p.view(-1)[::2]; log(fw.unpack_dual({x}).tangent)",
)
# rgrad saves less than PyTorch. Under hooks that fail or look at what is saved only these run, which save the same.
PLAIN = (
    "T.broadcast_shapes({a}.shape, {b}.shape); {n} = {a} * {b}",
    "{n} = {a}.sin()",
    "{n} = {a}.sigmoid()",
    "{n} = Square.apply({a})",
    "T.broadcast_shapes({a}.shape, {b}.shape); {n}, {m} = Two.apply({a}, {b})",
    "{n} = {a} ** 2",
    "{n} = {a}.tanh()",
    "T.broadcast_shapes({a}.shape, {b}.shape); ({a} * {b}).sum().backward()",
    "{a}.sum().backward()",
    "{n} = {a}.t()",
    "{n} = SaveOutput.apply({a})",
)
HOOKED = (
    "T.autograd.graph.saved_tensors_hooks(lambda x: (log(x), x.detach())[1], lambda x: x)",
    "T.autograd.graph.saved_tensors_hooks(lambda x: fail(), lambda x: x)",
    "T.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: fail())",
    "T.autograd.graph.saved_tensors_hooks(lambda x: x.numpy(), lambda x: T.from_numpy(x))",
    "T.autograd.graph.saved_tensors_hooks(lambda x: x * 2, lambda x: x / 2)",
    "T.autograd.graph.saved_tensors_hooks(lambda x: 1, lambda x: 2)",
)
MODES = (
    "T.no_grad()",
    "T.no_grad()",
    "T.enable_grad()",
    "T.inference_mode()",
    "T.set_grad_enabled(False)",
    "T.inference_mode(False)",
    "T.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)",
    "T.autograd.graph.saved_tensors_hooks(lambda x: x.detach(), lambda x: x)",
    "T.autograd.graph.save_on_cpu()",
    "T.autograd.graph.disable_saved_tensors_hooks('no hooks')",
    "T.autograd.detect_anomaly(check_nan=False)",
    "T.autograd.graph.allow_mutation_on_saved_tensors()",
    "T.autograd.set_multithreading_enabled(False)",
    "T.autograd.set_detect_anomaly(False)",
)


class Maker:
    """Makes programs from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def fill(self, text: str) -> str:
        pick = self.random.choice
        pool = NAMES * 2 + VIEWS
        first, second = self.random.sample(NAMES, 2)
        return text.format(
            a=pick(pool), b=pick(pool), x=pick(NAMES), n=first, m=second, v=pick(VIEWS), k=pick("01234567")
        )

    def simple(self) -> str:
        kind = self.random.choices(
            ("view", "fresh", "write", "flag", "hook", "call", "pass", "higher"), (16, 16, 18, 7, 8, 10, 14, 5)
        )[0]
        if kind == "view":
            return self.fill("{v} = " + self.random.choice(VIEW))
        if kind == "fresh":
            return self.fill("{n} = " + self.random.choice(FRESH))
        table = {"write": WRITE, "flag": FLAG, "hook": HOOK, "call": CALL, "pass": PASS, "higher": HIGHER}[kind]
        return self.fill(self.random.choice(table))

    def statement(self) -> str:
        roll = self.random.random()
        if roll < 0.16:
            lines = [self.simple() for _ in range(self.random.randint(1, 3))]
            mode = self.random.choice(MODES)
            return f"with {mode}:\n" + "\n".join("    " + line for line in lines)
        if roll < 0.19:
            lines = [self.fill(self.random.choice(PLAIN)) for _ in range(self.random.randint(1, 3))]
            return f"with {self.random.choice(HOOKED)}:\n" + "\n".join("    " + line for line in lines)
        if roll < 0.24:
            lines = [self.fill(self.random.choice(DUAL))]
            return "with fw.dual_level():\n" + "\n".join("    " + line for line in lines)
        return self.simple()

    def program(self) -> list[str]:
        return [self.statement() for _ in range(self.random.randint(3, 12))]
