"""Each gradient of a small graph beside the product that makes it. A PyTorch program."""

import torch

X1 = torch.tensor(2.0, requires_grad=True)
X2 = torch.tensor(3.0, requires_grad=True)
a = X1 * X2
y1 = torch.log(a)
y2 = torch.sin(X2)
w = y1 * y2
z = w
for tensor in (a, y1, y2, w, z):
    tensor.retain_grad()
print("z =", z.item())
z.backward()
print(f"dz/dw = {w.grad.item()} = {z.grad.item()}")
print(f"dz/dy1 = {w.grad.item()} * {y2.item()} = {y1.grad.item()}")
print(f"dz/dy2 = {w.grad.item()} * {y1.item()} = {y2.grad.item()}")
print(f"dz/da = {y1.grad.item()} / {a.item()} = {a.grad.item()}")
print(f"dz/dX1 = {a.grad.item()} * {X2.item()} = {X1.grad.item()}")
print(f"dz/dX2 = {a.grad.item()} * {X1.item()} + {y2.grad.item()} * {torch.cos(X2).item()} = {X2.grad.item()}")
