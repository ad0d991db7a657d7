"""What published autograd tutorials show, as tests: their exercises in our own words, their numbers exactly.

The module is imported under PyTorch's name, as a reader of these tutorials would do it.
"""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest

import rgrad as torch
from rgrad import nn
from rgrad.autograd import Function, gradcheck, gradgradcheck


def name_of(node: Any) -> str | None:
    return None if node is None else type(node).__name__


def rounded(tensor: Any, digits: int = 4) -> Any:
    return np.round(np.asarray(tensor.detach().tolist()), digits).tolist()


# ------------------------------------------------------------------------------------------------ custom Functions


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y


class GradCoeff(Function):
    @staticmethod
    def forward(ctx, x, coeff):
        ctx.coeff = coeff
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_y):
        return ctx.coeff * grad_y, None


class Sigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return y * (1 - y) * grad_y


def test_exp_function_shows_its_node_and_its_gradient() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    y = Exp.apply(x)
    assert repr(y) == "tensor([2.7183], grad_fn=<ExpBackward>)"
    y.backward()
    assert repr(x.grad) == "tensor([2.7183])"


def test_grad_coeff_scales_only_the_gradient() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = GradCoeff.apply(x, -0.1) ** 2
    assert repr(y) == "tensor([4.], grad_fn=<PowBackward0>)"
    y.backward()
    assert repr(x.grad) == "tensor([-0.4000])"


@pytest.mark.parametrize("eps", [1e-4, 1e-6])
def test_gradcheck_of_a_sigmoid_in_float64(eps: float) -> None:
    x = torch.tensor([-0.4646, -0.4403, 1.2525, -0.5953], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Sigmoid.apply, (x,), eps=eps) is True
    assert gradcheck(torch.sigmoid, (x,), eps=eps) is True
    assert gradgradcheck(Sigmoid.apply, (x,)) is True


@pytest.mark.parametrize("eps", [1e-3, 1e-4, 1e-6])
def test_gradcheck_of_a_sigmoid_in_float32(eps: float) -> None:
    # The tutorial's lesson is that float32 fails below 1e-3. Here the differences are taken in float64, so it passes.
    x = torch.tensor([-0.4646, -0.4403, 1.2525, -0.5953], requires_grad=True)
    assert gradcheck(Sigmoid.apply, (x,), eps=eps) is True
    assert gradcheck(torch.sigmoid, (x,), eps=eps) is True


def test_gradcheck_sees_a_wrong_sigmoid() -> None:
    class Wrong(Sigmoid):
        @staticmethod
        def backward(ctx, grad_y):
            (y,) = ctx.saved_tensors
            return y * (1 + y) * grad_y

    x = torch.tensor([-0.4646, 1.2525], dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (x,))
    assert gradcheck(Wrong.apply, (x,), raise_exception=False) is False


# --------------------------------------------------------------------------------------------- the graph, by hand


def test_nodes_of_a_small_graph() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(0.5, requires_grad=True)
    e = torch.tensor(1.0, requires_grad=True)
    c = a * b
    d = c.exp()
    f = d + e
    assert repr(f) == "tensor(3.7183, grad_fn=<AddBackward0>)"
    assert [t.is_leaf for t in (a, b, c, d, e, f)] == [True, True, False, False, True, False]
    assert [name_of(t.grad_fn) for t in (f, d, c, a)] == ["AddBackward0", "ExpBackward0", "MulBackward0", None]

    (to_d, d_output), (to_e, e_output) = f.grad_fn.next_functions
    assert (name_of(to_d), d_output) == ("ExpBackward0", 0)
    assert (name_of(to_e), e_output) == ("AccumulateGrad", 0)
    assert to_d == d.grad_fn
    assert to_e.variable is e

    f.backward(retain_graph=True)
    assert (rounded(a.grad), rounded(b.grad), rounded(e.grad)) == (1.3591, 5.4366, 1.0)
    for inner in (c, d):
        with pytest.warns(UserWarning, match="not a leaf"):
            assert inner.grad is None
    f.backward()  # the graph was kept, and gradients add up
    assert rounded(a.grad) == 2.7183


def squares() -> tuple[Any, ...]:
    a = torch.tensor([3.0], requires_grad=True)
    b = torch.tensor([2.0], requires_grad=True)
    c, d = a**2, b**2
    e = c * d
    return a, b, c, d, e, d + e


def test_calling_nodes_by_hand() -> None:
    a, b, c, d, e, f = squares()
    f.manual = torch.tensor(1)  # an integer, as the tutorial has it; tensors keep attributes
    d.manual, e.manual = f.grad_fn(f.manual)
    c.manual, more = e.grad_fn(e.manual)
    d.manual = d.manual + more
    a.manual = c.grad_fn(c.manual)
    b.manual = d.grad_fn(d.manual)
    assert (a.manual.tolist(), b.manual.tolist()) == ([24.0], [40.0])
    assert a.manual.grad_fn is not None  # calling a node by hand is itself recorded
    f.backward()  # and frees nothing
    assert (a.grad.tolist(), b.grad.tolist()) == ([24.0], [40.0])


def walk(node: Any, gradient: Any) -> None:
    """Backward in Python: follow next_functions, collect at AccumulateGrad nodes (one output for each node)."""
    stack = [(node, gradient)]
    while stack:
        node, gradient = stack.pop()
        gradients = node(gradient)
        if not isinstance(gradients, tuple):
            gradients = (gradients,)
        for grad, (following, _) in zip(gradients, node.next_functions, strict=True):
            if following is None:
                continue
            if name_of(following) == "AccumulateGrad":
                leaf = following.variable
                leaf.walked = leaf.walked + grad if hasattr(leaf, "walked") else grad
            else:
                stack.append((following, grad))


def test_walking_the_graph_finds_the_leaves_and_their_gradients() -> None:
    a, b, *_, f = squares()
    walk(f.grad_fn, torch.tensor(1))
    assert (a.walked.tolist(), b.walked.tolist()) == ([24.0], [40.0])


class TwoBranches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(10, 5)
        self.relu = nn.ReLU()
        self.left = nn.Linear(5, 2)
        self.right = nn.Linear(5, 2)
        self.last = nn.Linear(2, 2)

    def forward(self, x):
        x = self.relu(self.inner(x))
        return self.left(x) + self.last(self.relu(self.right(x)))


@pytest.mark.parametrize("shape", [(10,), (3, 10)])
def test_walking_a_network_gives_what_backward_gives(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    first = TwoBranches()
    second = TwoBranches()
    second.load_state_dict(first.state_dict())
    x = torch.ones(shape, requires_grad=True)
    walk(first(x).sum().grad_fn, torch.tensor(1.0))
    second(x).sum().backward()
    assert x.walked.shape == x.grad.shape
    np.testing.assert_allclose(x.walked.detach().cpu().numpy(), x.grad.cpu().numpy(), rtol=1e-6)
    for mine, theirs in zip(first.parameters(), second.parameters(), strict=True):
        # Fitting a gradient to a smaller shape (a bias that was broadcast) is the engine's work, so here it is ours.
        fitted = mine.walked.detach().cpu().numpy().reshape(-1, *theirs.shape).sum(axis=0)
        np.testing.assert_allclose(fitted, theirs.grad.cpu().numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("values", "gradient"),
    [
        ([0.3071, 1.1043, 1.3605, -0.3471], [1.5024, 0.4178, 0.3391, 0.0]),
        ([1.2817, 1.7840, -1.7033, 0.1302], [0.2323, 0.1669, 0.0, 2.2866]),
    ],
)
def test_python_control_flow_decides_the_graph(values: list[float], gradient: list[float]) -> None:
    def product_of_positive(x):
        result = 1
        for element in x:
            if element.item() > 0:
                result = element * result
        return result

    x = torch.tensor(values, requires_grad=True)
    product_of_positive(x).backward()
    assert rounded(x.grad) == gradient


# ------------------------------------------------------------------------------------- gradients of what is inside


def test_grad_of_intermediate_and_leaf() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(0.5, requires_grad=True)
    c = a * b
    found = torch.autograd.grad(c.exp(), (c, a))
    assert isinstance(found, tuple)
    assert [rounded(t) for t in found] == [2.7183, 1.3591]
    assert a.grad is None


def test_hook_sees_the_gradient_until_it_is_removed() -> None:
    seen: list[float] = []
    a = torch.tensor(2.0, requires_grad=True)
    c = a * torch.tensor(0.5, requires_grad=True)
    handle = c.register_hook(lambda grad: seen.append(round(grad.item(), 4)))
    d = c.exp()
    d.backward(retain_graph=True)
    assert seen == [2.7183]
    handle.remove()
    d.backward()
    assert seen == [2.7183]


def test_walkthrough_with_retain_grad() -> None:
    # w = log(x1 x2) sin(x2) at (2, 3), each step's gradient kept and compared with the chain rule.
    x1 = torch.tensor(2.0, requires_grad=True)
    x2 = torch.tensor(3.0, requires_grad=True)
    a = x1 * x2
    y1 = torch.log(a)
    y2 = torch.sin(x2)
    w = y1 * y2
    z = w
    for t in (a, y1, y2, w, z):
        t.retain_grad()
        assert t.retains_grad
    assert z.item() == pytest.approx(0.2528530955314636, rel=1e-6)
    z.backward()
    assert z.grad.item() == w.grad.item() == 1.0
    exact = {
        "y1": (y1, math.sin(3), 0.14112000167369843),
        "y2": (y2, math.log(6), 1.7917594909667969),
        "a": (a, math.sin(3) / 6, 0.023520000278949738),
        "x1": (x1, math.sin(3) / 2, 0.07056000083684921),
        "x2": (x2, math.sin(3) / 3 + math.log(6) * math.cos(3), -1.7267885208129883),
    }
    for name, (t, formula, printed) in exact.items():
        assert t.grad.item() == pytest.approx(formula, rel=3e-7), name
        assert t.grad.item() == pytest.approx(printed, rel=2e-7), name  # within one float32 step of what was printed


def test_gradient_of_a_vector_needs_a_direction() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x**2).backward()
    (x**2).backward(torch.tensor([1.0, 1.0, 1.0]))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    x.grad = None
    (x**2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_error_in_backward_comes_out_as_itself() -> None:
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_y):
            raise RuntimeError("some error in backward")

    x = torch.rand(10, 10, requires_grad=True)
    line = inspect.currentframe().f_lineno + 1
    total = Failing.apply(x).sum()
    with pytest.raises(RuntimeError, match="some error in backward") as caught:
        total.backward()
    # The line of the forward call comes with the error itself; nothing had to be switched on.
    notes = "\n".join(caught.value.__notes__)
    assert "FailingBackward" in notes
    assert __file__ in notes
    assert re.search(rf"\b{line}\b", notes)
    assert x.grad is None
    (x * 2).sum().backward()  # the engine is as usable as before
    assert (x.grad == 2).all()


# -------------------------------------------------------------------------------------------- whether to record


def test_anomaly_mode_shows_the_call_behind_an_error() -> None:
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("Some error in backward")

    def run_fn(a):
        return Broken.apply(a).sum()

    x = torch.rand(10, 10, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        pytest.warns(UserWarning, match=r"Traceback of forward call that caused the error:(.|\n)*in run_fn"),
        pytest.raises(RuntimeError, match="Some error in backward"),
        torch.autograd.detect_anomaly(),
    ):
        run_fn(x).backward()


def test_no_grad_as_block_and_as_decorator() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None

    @torch.no_grad()
    def doubler(t):
        return t * 2

    assert not doubler(x).requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize("flag", [True, False])
def test_set_grad_enabled_as_block_and_as_call(flag: bool) -> None:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.set_grad_enabled(flag):
        assert (x * 2).requires_grad is flag
    assert torch.is_grad_enabled()
    try:
        torch.set_grad_enabled(flag)
        assert (x * 2).requires_grad is flag
    finally:
        torch.set_grad_enabled(True)


def test_integers_cannot_require_gradients() -> None:
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)


def test_requires_grad_spreads_from_one_input_to_all_that_follows() -> None:
    a = torch.tensor(np.array([1.0, 2.0, 3.0]))
    b = torch.tensor(np.array([4.0, 5.0, 6.0]))
    assert not (a**2 + b).requires_grad
    c = (a**2).detach().requires_grad_()
    total = sum(c + b)  # Python's own sum, over the elements
    assert total.requires_grad
    total.backward()
    assert c.grad.tolist() == [1.0, 1.0, 1.0]
    assert a.grad is None


def test_variables_of_old_code() -> None:
    from rgrad.autograd import Variable

    a = Variable(torch.tensor(np.array([1, 2, 3], dtype=np.float64)), requires_grad=False)
    b = Variable(torch.tensor(np.array([4, 5, 6], dtype=np.float64)), requires_grad=False)
    c = Variable((a**2).data, requires_grad=True)
    d = sum(c + b)
    d.backward()
    assert c.grad.tolist() == [1.0, 1.0, 1.0]
    assert a.grad is None


def test_evaluation_mode_and_no_grad_are_independent() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.ones(2, 4)
    model.eval()
    assert torch.equal(model(x), model[0](x))  # no dropout, yet a graph
    assert model(x).requires_grad
    model.train()
    torch.manual_seed(3)
    with torch.no_grad():
        y = model(torch.ones(64, 4))  # dropout, yet no graph
    assert not y.requires_grad
    assert (y == 0).any()
    assert all(p.requires_grad for p in model.parameters())


def test_forward_hook_sees_what_a_layer_returns() -> None:
    features: list[Any] = []
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
    handle = model[1].register_forward_hook(lambda module, inputs, output: features.append(output.detach().numpy()))
    model(torch.ones(2, 3))
    assert features[0].shape == (2, 5)
    assert (features[0] >= 0).all()
    handle.remove()
    model(torch.ones(2, 3))
    assert len(features) == 1


# ----------------------------------------------------------------------------------------- jacobians and hessians


def test_jacobian_and_hessian() -> None:
    from rgrad.autograd.functional import hessian, jacobian

    linear = nn.Linear(4, 2)
    vector = torch.randn(4, requires_grad=True)
    matrix = torch.randn((4, 4), requires_grad=True)

    def sum_of_squares(x):
        return (x**2).sum()

    def squared_means(x):  # the mean of each 2x2 block, squared
        return x.reshape(2, 2, 2, 2).mean(dim=(1, 3)) ** 2

    assert torch.equal(jacobian(sum_of_squares, vector), 2 * vector.detach())
    assert torch.equal(hessian(sum_of_squares, vector), 2 * torch.eye(4))
    assert torch.equal(jacobian(linear, vector), linear.weight)
    found = jacobian(squared_means, matrix)
    assert found.shape == (2, 2, 4, 4)
    # d mean² / dx = 2 mean / 4 for the four elements of a block, 0 elsewhere.
    expected = np.zeros((2, 2, 4, 4), dtype=np.float32)
    for i in range(2):
        for j in range(2):
            block = matrix.detach().cpu().numpy()[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            expected[i, j, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = block.mean() / 2
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=1e-5, atol=1e-6)
