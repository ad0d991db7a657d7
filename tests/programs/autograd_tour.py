"""A tour of autograd, from a Function of one's own to inference. A PyTorch program; see test_programs.py."""

import re
import warnings

import torch
from torch import Tensor, autograd, nn
from torch.autograd import Function
from torch.autograd.functional import hessian, jacobian
from torch.nn import AvgPool2d, Linear, Module
from torch.nn import functional as F
from torchvision.models import resnet18, resnet50


class Rectifier(Module):
    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


print(Rectifier(inplace=True)(torch.tensor([-1.0, 2.0])))


# Functions of one's own: what forward saves, and numbers that are no tensors.
class Exponential(Function):
    @staticmethod
    def forward(ctx, i):
        value = i.exp()
        ctx.save_for_backward(value)
        return value

    @staticmethod
    def backward(ctx, grad_output):
        (value,) = ctx.saved_tensors
        return grad_output * value


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.factor * grad_output, None


x = torch.tensor([1.0], requires_grad=True)
y = Exponential.apply(x)
print(y)
y.backward()
print(x.grad)

x = torch.tensor([2.0], requires_grad=True)
y = Scaled.apply(x, -0.1) ** 2
print(y)
y.backward()
print(x.grad)

# The graph: leaves, nodes, and what leads where.
A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(0.5, requires_grad=True)
E = torch.tensor(1.0, requires_grad=True)
C = A * B
D = C.exp()
R = D + E
print(R)
print([t.is_leaf for t in [A, B, C, D, E, R]])
print([type(t.grad_fn).__name__ for t in [R, D, C, A]])
print([(type(node).__name__, at) for node, at in R.grad_fn.next_functions])
print(re.sub("0x[0-9a-f]+", "0x", f"{[t.grad_fn for t in [R, D, C, A]]} {R.grad_fn.next_functions}"))
R.backward(retain_graph=True)
print(A.grad, B.grad, E.grad)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(C.grad, D.grad)

# A pass by hand: nodes are called with the gradient of their result, and tensors carry attributes.
A = torch.tensor([3.0], requires_grad=True)
B = torch.tensor([2.0], requires_grad=True)
C = A**2
D = B**2
E = C * D
R = D + E
R.by_hand = torch.tensor(1)
D.by_hand, E.by_hand = R.grad_fn(R.by_hand)
C.by_hand, second = E.grad_fn(E.by_hand)
D.by_hand = D.by_hand + second
A.by_hand = C.grad_fn(C.by_hand)
B.by_hand = D.grad_fn(D.by_hand)
print(A.by_hand, B.by_hand)


def walk(root, gradient):
    """Give every leaf its gradient as `.found`, path by path."""
    waiting = [[root, gradient]]
    while waiting != []:
        node, given = waiting.pop()
        gradients = node(given)
        if type(gradients) is not tuple:
            gradients = (gradients,)
        for grad, (following, _) in zip(gradients, node.next_functions):
            if type(following).__name__ == "AccumulateGrad":
                leaf = following.variable
                leaf.found = leaf.found + grad if hasattr(leaf, "found") else grad
            else:
                waiting.append([following, grad])


A = torch.tensor([3.0], requires_grad=True)
B = torch.tensor([2.0], requires_grad=True)
D = B**2
R = D + A**2 * D
walk(R.grad_fn, torch.tensor(1))
print(A.found.detach(), B.found.detach())


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 5)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(5, 2)
        self.fc3 = nn.Linear(5, 2)
        self.fc4 = nn.Linear(2, 2)

    def forward(self, x):
        x = self.relu(self.fc1(x))
        left = self.fc2(x)
        right = self.fc4(self.relu(self.fc3(x)))
        return left + right


x = torch.ones([10], requires_grad=True)
state = Branches().state_dict()
net = Branches()
net.load_state_dict(state)
walk(torch.sum(net(x)).grad_fn, torch.tensor(1.0))
net = Branches()
net.load_state_dict(state)
torch.sum(net(x)).backward()
print(torch.allclose(x.found, x.grad, atol=1e-6))


# Python decides what the graph is.
def product_of_positive(x):
    result = 1
    for element in x:
        if element.item() > 0:
            result = element * result
    return result


for values in ([0.3071, 1.1043, 1.3605, -0.3471], [1.2817, 1.7840, -1.7033, 0.1302]):
    x = torch.tensor(values, requires_grad=True)
    product_of_positive(x).backward()
    print(x.grad)

# Matrices of derivatives.
fc = Linear(4, 2)
pool = AvgPool2d(kernel_size=2)


def to_number(x):
    return torch.sum(x**2)


def to_vector(x):
    return fc(x)


def to_matrix(x):
    x = pool(x.reshape((1, 1) + x.shape))
    return x.reshape(x.shape[2:]) ** 2


vector = torch.randn(4, requires_grad=True)
matrix = torch.randn((4, 4), requires_grad=True)
assert jacobian(to_number, vector).shape == (4,)
assert torch.all(jacobian(to_number, vector) == 2 * vector)
assert hessian(to_number, vector).shape == (4, 4)
assert torch.all(hessian(to_number, vector) == 2 * torch.eye(4))
assert jacobian(to_vector, vector).shape == (2, 4)
assert torch.all(jacobian(to_vector, vector) == fc.weight)
assert jacobian(to_matrix, matrix).shape == (2, 2, 4, 4)

# Gradients of what is no leaf: asked for, or seen by a hook.
A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(0.5, requires_grad=True)
C = A * B
print(torch.autograd.grad(C.exp(), (C, A)))
C = A * B
handle = C.register_hook(lambda grad: print("gradient of C:", grad))
C.exp().backward()
handle.remove()


# Derivatives compared with differences: float32 has too few digits for small steps.
class Logistic(Function):
    @staticmethod
    def forward(ctx, x):
        output = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        (output,) = ctx.saved_tensors
        return output * (1 - output) * grad_output


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    single = torch.tensor([-0.4646, -0.4403, 1.2525, -0.5953], requires_grad=True)
    print(torch.autograd.gradcheck(Logistic.apply, (single,), eps=1e-3))
    print(torch.autograd.gradcheck(torch.sigmoid, (single,), eps=1e-3))
double = torch.randn(4, requires_grad=True, dtype=torch.float64)
for eps in (1e-4, 1e-6):
    print(torch.autograd.gradcheck(Logistic.apply, (double,), eps=eps))
    print(torch.autograd.gradcheck(torch.sigmoid, (double,), eps=eps))


# Where a backward pass goes wrong.
class Failing(autograd.Function):
    @staticmethod
    def forward(ctx, inp):
        return inp.clone()

    @staticmethod
    def backward(ctx, gO):
        raise RuntimeError("this backward fails")


def run(a):
    return Failing.apply(a).sum()


out = run(torch.rand(10, 10, requires_grad=True))
try:
    out.backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with autograd.detect_anomaly():
        out = run(torch.rand(10, 10, requires_grad=True))
        try:
            out.backward()
        except RuntimeError as error:
            print(str(error).splitlines()[0])
print(any("Traceback of forward call that caused the error" in str(w.message) for w in told))

# Inference.
net = resnet50()
batch = torch.ones([1, 3, 40, 40])
print(net(batch).requires_grad, tuple(net(batch).shape))
with torch.no_grad():
    print(net(batch).requires_grad)
net = resnet18()
x = torch.randn((1, 3, 40, 40), requires_grad=True)
torch.sum(net(x)).backward()
print(tuple(x.grad.shape))

# A device that is not there is refused, and the network stays where it is.
try:
    net.cuda(0)
except (RuntimeError, AssertionError) as error:
    print(type(error).__name__, {p.device.type for p in net.parameters()} == {x.device.type})

# Where the time goes.
with torch.autograd.profiler.profile() as prof:
    for _ in range(2):
        y = net(x)
        y = torch.sum(y)
        y.backward()
averages = prof.key_averages()
table = averages.table(sort_by="self_cpu_time_total")
columns = re.split(r"\s{2,}", table.splitlines()[1].strip())
print([name for name in columns if name in ("Name", "# of Calls") or name.removeprefix("Self ").startswith("CPU")])
print(re.search("Self CPU time total: ", table) is not None)
own = [row.self_cpu_time_total for row in averages]
shown = [row.split()[0] for row in table.splitlines()[3 : 3 + len(own)]]
keys = sorted(averages, key=lambda row: -row.self_cpu_time_total)
print(all(name.rstrip(".") in row.key for name, row in zip(shown, keys)), len(shown) == len(own))
counts = {row.key: row.count for row in averages}
print(counts["aten::conv2d"] > 0, counts["SumBackward0"])
