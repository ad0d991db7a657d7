"""Convolution and batch norm as one Function that saves one buffer, checked and trained. A PyTorch program.

Whoever runs it gives DEVICE and DATA, the folder of the digits.
"""

import math
from statistics import mean

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.autograd.function import once_differentiable
from torch.optim.lr_scheduler import StepLR
from torchvision import datasets, transforms


def convolution_backward(grad_out, X, weight):
    grad_weight = F.conv2d(X.transpose(0, 1), grad_out.transpose(0, 1)).transpose(0, 1)
    grad_X = F.conv_transpose2d(grad_out, weight)
    return grad_X, grad_weight


class Conv2D(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, weight):
        ctx.save_for_backward(X, weight)
        return F.conv2d(X, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        X, weight = ctx.saved_tensors
        return convolution_backward(grad_out, X, weight)


weight = torch.rand(5, 3, 3, 3, requires_grad=True, dtype=torch.double)
X = torch.rand(10, 3, 7, 7, requires_grad=True, dtype=torch.double)
print(torch.autograd.gradcheck(Conv2D.apply, (X, weight)))


def per_channel(t):
    return t[None, :, None, None]


def statistics(X):
    total = X.sum(dim=(0, 2, 3))
    var = X.var(unbiased=True, dim=(0, 2, 3))
    return total, torch.sqrt(var), X.numel() / X.size(1)


def normalised(X, total, sqrt_var, N, eps):
    out = X - per_channel(total / N)
    out /= per_channel(sqrt_var + eps)
    return out


def batch_norm_backward(grad_out, X, total, sqrt_var, N, eps):
    scale = sqrt_var + eps
    moved = ((X - per_channel(total) / N) * grad_out).sum(dim=(0, 2, 3))
    moved *= -1
    by_var = moved / scale**2 / (2 * sqrt_var)
    by_mean = grad_out / per_channel(scale)
    by_mean = per_channel(-by_mean.sum(dim=(0, 2, 3)) / N)
    grad = X * per_channel(by_var * N)
    grad += per_channel(-by_var * total)
    grad *= 2 / ((N - 1) * N)
    grad += by_mean
    grad *= per_channel(scale)
    grad += grad_out
    grad /= per_channel(scale)
    return grad


class BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, eps=1e-3):
        ctx.save_for_backward(X)
        ctx.eps = eps
        ctx.total, ctx.sqrt_var, ctx.N = statistics(X)
        return normalised(X, ctx.total, ctx.sqrt_var, ctx.N, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (X,) = ctx.saved_tensors
        return batch_norm_backward(grad_out, X, ctx.total, ctx.sqrt_var, ctx.N, ctx.eps)


a = torch.rand(1, 2, 3, 4, requires_grad=True, dtype=torch.double)
print(torch.autograd.gradcheck(BatchNorm.apply, (a,), fast_mode=False))


class FusedFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, conv_weight, eps=1e-3):
        assert X.ndim == 4
        ctx.save_for_backward(X, conv_weight)
        X = F.conv2d(X, conv_weight)
        ctx.eps = eps
        ctx.total, ctx.sqrt_var, ctx.N = statistics(X)
        return normalised(X, ctx.total, ctx.sqrt_var, ctx.N, eps)

    @staticmethod
    def backward(ctx, grad_out):
        (X, conv_weight) = ctx.saved_tensors
        between = F.conv2d(X, conv_weight)
        grad_out = batch_norm_backward(grad_out, between, ctx.total, ctx.sqrt_var, ctx.N, ctx.eps)
        grad_X, grad_weight = convolution_backward(grad_out, X, conv_weight)
        # There may be more answers than inputs if they are None.
        return grad_X, grad_weight, None, None, None, None, None


class FusedConvBN(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, eps=1e-3, device=None, dtype=None):
        super().__init__()
        factory_kwargs = {"device": device, "dtype": dtype}
        shape = (out_channels, in_channels, kernel_size, kernel_size)
        self.conv_weight = nn.Parameter(torch.empty(*shape, **factory_kwargs))
        self.eps = eps
        self.reset_parameters()

    def forward(self, X):
        return FusedFunction.apply(X, self.conv_weight, self.eps)

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.conv_weight, a=math.sqrt(5))


weight = torch.rand(5, 3, 3, 3, requires_grad=True, dtype=torch.double)
X = torch.rand(2, 3, 4, 4, requires_grad=True, dtype=torch.double)
print(torch.autograd.gradcheck(FusedFunction.apply, (X, weight)))

memory_allocated = [[], []]


class Net(nn.Module):
    def __init__(self, fused=True):
        super().__init__()
        self.fused = fused
        if fused:
            self.convbn1 = FusedConvBN(1, 32, 3)
            self.convbn2 = FusedConvBN(32, 64, 3)
        else:
            self.conv1 = nn.Conv2d(1, 32, 3, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(32, affine=False, track_running_stats=False)
            self.conv2 = nn.Conv2d(32, 64, 3, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(64, affine=False, track_running_stats=False)
        self.fc1 = nn.Linear(9216, 128)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.convbn1(x) if self.fused else self.bn1(self.conv1(x))
        F.relu_(x)
        x = self.convbn2(x) if self.fused else self.bn2(self.conv2(x))
        F.relu_(x)
        x = F.max_pool2d(x, 2)
        F.relu_(x)
        x = x.flatten(1)
        x = self.fc1(x)
        x = self.dropout(x)
        F.relu_(x)
        x = self.fc2(x)
        output = F.log_softmax(x, dim=1)
        memory_allocated[0 if self.fused else 1].append(torch.cuda.memory_allocated())
        return output


def train(model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 2 == 0:
            done, part = batch_idx * len(data), 100.0 * batch_idx / len(train_loader)
            print(f"Epoch: {epoch} [{done}/{len(train_loader.dataset)} ({part:.0f}%)]")
            assert math.isfinite(loss.item())


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.inference_mode():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    assert math.isfinite(test_loss / len(test_loader.dataset))
    assert 0 <= correct <= len(test_loader.dataset)


device = torch.device(DEVICE)  # noqa: F821
loader_kwargs = {"num_workers": 1, "pin_memory": True, "shuffle": True, "batch_size": 16}
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
dataset1 = datasets.MNIST(DATA, train=True, download=True, transform=transform)  # noqa: F821
dataset2 = datasets.MNIST(DATA, train=False, transform=transform)  # noqa: F821
train_loader = torch.utils.data.DataLoader(dataset1, **loader_kwargs)
test_loader = torch.utils.data.DataLoader(dataset2, **loader_kwargs)

torch.backends.cudnn.enabled = True
peaks = []
for fused in (True, False):
    torch.manual_seed(123456)
    model = Net(fused=fused).to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1):
        train(model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
    print(scheduler.get_last_lr())
    peaks.append(torch.cuda.max_memory_allocated())
    torch.cuda.reset_peak_memory_stats()
torch.backends.cudnn.version()
print(f"peak: {peaks[0] / 1024**3:.2f}GB, {peaks[1] / 1024**3:.2f}GB".split(":")[0])
print(mean(memory_allocated[0]) <= mean(memory_allocated[1]))
