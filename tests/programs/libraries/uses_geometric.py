# torch-geometric: a graph convolution and an attention layer
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

data = Data(x=torch.randn(3, 4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
for layer in (GCNConv(4, 2), GATConv(4, 2)):
    layer(data.x, data.edge_index).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
