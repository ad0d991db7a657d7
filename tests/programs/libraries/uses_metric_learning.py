# pytorch-metric-learning: a triplet loss with mined triplets
import torch
from pytorch_metric_learning import losses, miners

x, y = torch.randn(8, 4, requires_grad=True), torch.arange(8) % 2
losses.TripletMarginLoss()(x, y, miners.MultiSimilarityMiner()(x, y)).backward()
losses.NTXentLoss()(x, y).backward()
assert x.grad.shape == x.shape
