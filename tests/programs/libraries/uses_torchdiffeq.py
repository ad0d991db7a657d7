# torchdiffeq: a decay by two solvers, and the adjoint's gradient
import torch
from torchdiffeq import odeint, odeint_adjoint


class Decay(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, t, y):
        return -self.rate * y


f, t = Decay(), torch.linspace(0.0, 1.0, 5)
for method in ("dopri5", "rk4"):
    torch.testing.assert_close(
        odeint(f, torch.ones(1), t, method=method)[-1], torch.exp(-f.rate).view(1), rtol=1e-4, atol=1e-4
    )
odeint_adjoint(f, torch.ones(1), t)[-1].sum().backward()
torch.testing.assert_close(f.rate.grad, -torch.exp(-f.rate).detach(), rtol=1e-3, atol=1e-3)
