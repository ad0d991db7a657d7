# pytorch-optimizer: Lion and AdaBelief for some steps
import pytorch_optimizer
import torch

for name in ("lion", "adabelief", "soap", "magma"):
    w = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = pytorch_optimizer.load_optimizer(name)([w], lr=0.05)
    for _ in range(12):
        optimizer.zero_grad()
        w.square().sum().backward()
        optimizer.step()
    assert w.square().sum() < 12
