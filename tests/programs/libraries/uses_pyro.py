# pyro-ppl: a step of variational inference
import pyro
import pyro.distributions as dist
import torch


def model(x):
    with pyro.plate("data", len(x)):
        pyro.sample("x", dist.Normal(pyro.sample("m", dist.Normal(0.0, 1.0)), 1.0), obs=x)


guide = pyro.infer.autoguide.AutoNormal(model)
svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), pyro.infer.Trace_ELBO())
assert svi.step(torch.ones(5)) > 0
