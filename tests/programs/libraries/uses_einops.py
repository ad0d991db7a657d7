# einops: rearrange, reduce, repeat and the layer
import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange

x = torch.arange(24.0).view(2, 3, 4).requires_grad_()
assert torch.equal(rearrange(x, "a b c -> c (a b)"), x.permute(2, 0, 1).reshape(4, 6))
assert torch.equal(reduce(x, "a b c -> a", "mean"), x.mean((1, 2)))
assert repeat(x, "a b c -> a b c r", r=2).shape == (2, 3, 4, 2)
torch.nn.Sequential(Rearrange("a b c -> a (b c)"), torch.nn.Linear(12, 1))(x).sum().backward()
assert x.grad is not None and x.grad.shape == x.shape
