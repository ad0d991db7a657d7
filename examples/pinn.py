"""A small physics-informed network: it learns the solution of a differential equation from the equation.

.venv/bin/python examples/pinn.py [--steps 400]

The network u(t) shall obey u'' = -u, u(0) = 0, u'(0) = 1; the solution is sin(t). The loss is the residual of the
equation at points in time. `grad` twice gives u'' at one point as a function of the weights, `vmap` gives it at all
points, and a backward pass through all of that trains the weights.
"""

import argparse
import math

import rgrad
from rgrad.func import functional_call, grad, vmap


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args(argv).steps
    if steps < 1:
        parser.error(f"--steps must be at least 1, got {steps}")

    rgrad.manual_seed(0)
    net = rgrad.nn.Sequential(
        rgrad.nn.Linear(1, 24), rgrad.nn.Tanh(), rgrad.nn.Linear(24, 24), rgrad.nn.Tanh(), rgrad.nn.Linear(24, 1)
    ).to(rgrad.float64)
    weights = dict(net.named_parameters())

    def u(t, weights):
        return functional_call(net, weights, (t.view(1),)).squeeze()

    slope = grad(u)
    curvature = grad(slope)
    times = rgrad.linspace(0, math.pi, 32, dtype=rgrad.float64)
    start = rgrad.zeros((), dtype=rgrad.float64)

    def loss():
        values = vmap(u, in_dims=(0, None))(times, weights)
        residual = vmap(curvature, in_dims=(0, None))(times, weights) + values
        at_start = u(start, weights) ** 2 + (slope(start, weights) - 1) ** 2
        return residual.square().mean() + at_start

    optimizer = rgrad.optim.Adam(net.parameters(), lr=0.01)
    schedule = rgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 8) == 0:
            print(f"step {step:4}: loss {value.item():.2e}")

    with rgrad.no_grad():
        found = vmap(u, in_dims=(0, None))(times, weights)
    error = (found - times.sin()).abs().max().item()
    print(f"largest error against sin(t): {error:.4f}")
    return net


if __name__ == "__main__":
    main()
