# gpytorch: the marginal likelihood of a Gaussian process and its gradient
import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


x, likelihood = torch.linspace(0, 1, 8), gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, x.sin(), likelihood)
(-gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), x.sin())).backward()
assert all(p.grad is not None for p in model.parameters())
