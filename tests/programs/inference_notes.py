"""Grad mode, leaves and hooks when a network is tested. A PyTorch program."""

import warnings

import numpy as np
import torch
import torchvision
from torch import nn
from torch.autograd import Variable

model = torchvision.models.resnet18()
regular_input = Variable(torch.randn(1, 3, 40, 40))
print(model(regular_input).requires_grad)

# What there was before no_grad: it warns, and changes nothing.
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    volatile_input = Variable(torch.randn(1, 3, 40, 40), volatile=True)
    print(model(volatile_input).requires_grad)
    print(model(volatile_input).volatile)
print([str(w.message).split(" and ")[0] for w in told])

try:
    torch.tensor([1], requires_grad=True)
except RuntimeError as error:
    print(str(error))

x = torch.tensor([1.0], requires_grad=True)
with torch.no_grad():
    y = x * 2
print(y.requires_grad)


@torch.no_grad()
def doubler(x):
    return x * 2


print(doubler(x).requires_grad)
is_train = False
with torch.set_grad_enabled(is_train):
    y = x * 2
print(y.requires_grad)
torch.set_grad_enabled(True)
print((x * 2).requires_grad)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)

# A graph that begins in its middle.
a = Variable(torch.tensor(np.array([1, 2, 3], dtype=np.float64)), requires_grad=False)
b = Variable(torch.tensor(np.array([4, 5, 6], dtype=np.float64)), requires_grad=False)
c = Variable((a**2).data, requires_grad=True)
d = sum(c + b)
d.backward()
print(c.grad)
c = Variable((a**2).data, requires_grad=True)
c.backward(torch.ones(3))
print(c.grad)

features_blobs = []


def hook_feature(module, input, output):
    features_blobs.append(output.data.cpu().numpy())


model._modules.get("layer4").register_forward_hook(hook_feature)
model(regular_input)
print(features_blobs[0].shape)


class Flatten(nn.Module):
    def forward(self, x):
        return x.view(x.size(0), -1)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2, 2), nn.LeakyReLU(0.1), Flatten(), nn.Linear(8 * 4 * 4, 16), nn.Linear(16, 8 * 4 * 4)
        )
        self.decoder = nn.Sequential(nn.Linear(8 * 4 * 4, 3 * 8 * 8), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x)).view(-1, 3, 8, 8)


net = Autoencoder()
for param in net.encoder.parameters():
    param.requires_grad = False
print([param.requires_grad for param in net.parameters()])
loss = nn.functional.mse_loss(net(torch.rand(2, 3, 8, 8)), torch.rand(2, 3, 8, 8))
loss.backward()
print([param.grad is None for param in net.parameters()])


class X:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __call__(self, a, b):
        self.a, self.b = a, b
        print(f"called with ({self.a}, {self.b})")


X(1, 2)(4, 5)

print(torch.tensor(3).shape, torch.tensor([1, 2]).numpy() if torch.tensor(0).device.type == "cpu" else "[1 2]")
one = torch.ones(1, requires_grad=True) * 2
one.backward(torch.ones(1))
with torch.no_grad():
    model.eval()
    for input in [torch.rand(1, 3, 40, 40)]:
        print(model(input).requires_grad)
