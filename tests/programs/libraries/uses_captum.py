# captum: integrated gradients and saliency
import torch
from captum.attr import IntegratedGradients, Saliency

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
x = torch.randn(2, 3)
attribution, delta = IntegratedGradients(model).attribute(x, target=1, n_steps=100, return_convergence_delta=True)
assert delta.abs().max() < 0.05
assert Saliency(model).attribute(x.requires_grad_(), target=0).shape == x.shape
