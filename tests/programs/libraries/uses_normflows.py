# normflows: the likelihood of a flow and its gradient
import normflows as nf
import torch

layers = [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2])), nf.flows.Permute(2)]
flow = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), layers)
flow.forward_kld(torch.randn(8, 2)).backward()
assert flow.sample(3)[0].shape == (3, 2)
