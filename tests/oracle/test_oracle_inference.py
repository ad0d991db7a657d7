"""Tensors of inference mode among normal ones, in every combination: beside PyTorch."""

import warnings

import pytest
import torch

import rgrad


def pairs():
    """Tensors of every kind made in and outside of inference mode."""

    def base(m, requires_grad=False):
        return m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=requires_grad)

    def inside(m, f):
        with m.inference_mode():
            return f()

    def first_row_inside(m, b):
        return inside(m, lambda: b[0])

    return {
        "inference": lambda m: inside(m, lambda: base(m)[0]),
        "leaf": lambda m: m.tensor([1.0, 2.0], requires_grad=True),
        "computed": lambda m: m.tensor([1.0, 2.0], requires_grad=True) * 1,
        "plain": lambda m: m.tensor([1.0, 2.0]),
        "view": lambda m: base(m)[0],
        "view of leaf": lambda m: base(m, True)[0],
        "view of computed": lambda m: (base(m, True) * 1)[0],
        "inference view of normal": lambda m: first_row_inside(m, base(m)),
        "inference view of computed": lambda m: first_row_inside(m, base(m, True) * 1),
        "inference view of leaf": lambda m: first_row_inside(m, base(m, True)),
        "normal view of inference": lambda m: inside(m, lambda: base(m))[0],
    }


def saved_by_a_function(m, a):
    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Twice.apply(a)


OPERATIONS = {
    "mul": lambda m, a, b: a * b,
    "add": lambda m, a, b: a + b,
    "matmul": lambda m, a, b: a @ b,
    "mul_": lambda m, a, b: a.mul_(b),
    "add_": lambda m, a, b: a.add_(b),
    "copy_": lambda m, a, b: a.copy_(b),
    "out": lambda m, a, b: m.mul(b.detach(), b.detach(), out=a),
    "item assignment": lambda m, a, b: a.__setitem__(0, b[0]),
    "view": lambda m, a, b: a.view(2, 1),
    "write through a view": lambda m, a, b: a.view(2).mul_(b),
    "unsqueeze_": lambda m, a, b: a.unsqueeze_(0),
    "where": lambda m, a, b: m.where(a > 0, a, b),
    "cat": lambda m, a, b: m.cat([a, b]),
    "exp": lambda m, a, b: a.exp(),
    "detach_": lambda m, a, b: a.detach_(),
    "requires_grad_": lambda m, a, b: a.requires_grad_(),
    "requires_grad": lambda m, a, b: setattr(a, "requires_grad", True),
    "data": lambda m, a, b: setattr(a, "data", b),
    "grad": lambda m, a, b: setattr(a, "grad", b.detach()),
    "clone": lambda m, a, b: a.clone(),
    "contiguous": lambda m, a, b: a.contiguous(),
    "zero_": lambda m, a, b: a.zero_(),
    "resize_": lambda m, a, b: a.resize_(1),
    "unbind": lambda m, a, b: a.unbind(0)[0],
    "parameter": lambda m, a, b: m.nn.Parameter(a),
    "backward": lambda m, a, b: (a * 3).sum().backward(),
    "saved": lambda m, a, b: saved_by_a_function(m, a),
    "func.grad": lambda m, a, b: m.func.grad(lambda x: (x * b).sum())(a),
    "vmap": lambda m, a, b: m.func.vmap(lambda x: x * x)(a),
    "is_inference": lambda m, a, b: m.is_inference(a),
    "increment_version": lambda m, a, b: m.autograd.graph.increment_version(a),
}


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_inference_tensors_among_normal_ones(operation, mode):
    kinds = pairs()

    def state(m, x):
        if not isinstance(x, m.Tensor):
            return x
        node = x.grad_fn
        # A node that is made anew has another name in PyTorch.
        known = (
            None
            if node is None
            else type(node).__name__.replace("AsStrided", "View").replace("Select", "View").replace("Unsqueeze", "View")
        )
        return x.tolist(), x.is_inference(), x.requires_grad, x.is_leaf, known

    def ran(m, first, second):
        a, b = kinds[first](m), kinds[second](m)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with getattr(m, mode)():
                    result = operation(m, a, b)
                return repr((state(m, result), state(m, a))), ""
            except Exception as error:
                kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
                return kind, str(error)

    wrong = []
    for first in kinds:
        for second in ("inference", "leaf", "computed", "plain"):
            expected, got = ran(torch, first, second), ran(rgrad, first, second)
            words = expected[1].split(". ")[0].rstrip(".")
            if got[0] != expected[0] or words not in got[1].replace("rgrad", "torch"):
                wrong.append((first, second, expected, got))
    assert wrong == []


ALONE = [
    *("a * a", "a * 2", "2 - a", "a + b", "a.sum()", "(a ** 3).sum()", "a * c", "c * a", "a.sin()", "a @ b"),
    *(
        "a.add(1)",
        "a.mul_(2)",
        "a.add_(b)",
        "a.exp_()",
        "m.cat([a, b])",
        "m.cat([a, c])",
        "a[0]",
        "a.view(-1) * b",
        "-a",
    ),
    *("m.where(a > 0, a, b)", "a.relu()", "a + b + c", "a.to(m.float64)", "a.clone()", "a.softmax(0)"),
    *(
        "a.masked_fill(a > 0, 1.0)",
        "a.detach() * c",
        "m.stack([a, b]).sum()",
        "a.cumsum(0)",
        "a.norm()",
        "a.view(1, 2)",
    ),
]


@pytest.mark.parametrize("code", ALONE)
def test_operations_on_inference_tensors_that_require_grad(code):
    """Nothing is recorded where all inputs are inference tensors."""

    def outcome(m):
        with m.inference_mode():
            a, b = m.ones(2).requires_grad_(), m.ones(2)
        c = m.ones(2, requires_grad=True)
        try:
            made = eval(code, {"m": m, "a": a, "b": b, "c": c})
        except RuntimeError as error:
            return str(error).split(". ")[0].replace("rgrad", "torch")[:60]
        return made.requires_grad, made.grad_fn is not None, made.is_inference(), made.tolist()

    assert outcome(rgrad) == outcome(torch)
