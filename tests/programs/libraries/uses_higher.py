# higher: the gradient through a step of an optimizer
import higher
import torch

model = torch.nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
    steps.step(inner(torch.ones(1, 1)).square().sum())
    inner(torch.ones(1, 1)).sum().backward()
torch.testing.assert_close(model.weight.grad, torch.tensor([[0.8]]))
