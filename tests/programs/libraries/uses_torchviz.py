# torchviz: a picture of a graph
import torch
from torchviz import make_dot

model = torch.nn.Linear(2, 1)
dot = make_dot(model(torch.ones(1, 2)), params=dict(model.named_parameters()))
assert "AddmmBackward0" in dot.source and "weight" in dot.source
