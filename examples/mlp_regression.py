"""Fit a curve from noisy points: the shortest complete training loop.

.venv/bin/python examples/mlp_regression.py [--steps 1500] [--seed 0]
"""

import argparse

import rgrad
from rgrad import nn


def make_data(points, generator):
    """Noisy samples of sin(3x) + x/2 on [-2, 2]: tensors x and y of shape (points, 1)."""
    x = rgrad.rand(points, 1, generator=generator) * 4 - 2
    noise = 0.1 * rgrad.randn(points, 1, generator=generator)
    return x, truth(x) + noise


def truth(x):
    return rgrad.sin(3 * x) + x / 2


def fit(steps, seed):
    """Train, print the loss, and return the error against the noise-free curve."""
    rgrad.manual_seed(seed)  # the weights
    x, y = make_data(256, rgrad.Generator().manual_seed(seed))  # the data
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = rgrad.optim.AdamW(model.parameters(), lr=1e-2)

    for step in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 5) == 0 or step == steps - 1:
            print(f"step {step:5d}   loss {loss.item():.4f}")

    with rgrad.no_grad():  # measuring needs no graph
        grid = rgrad.linspace(-2, 2, 200).unsqueeze(1)
        error = (model(grid) - truth(grid)).square().mean().sqrt().item()
    print(f"root mean square error against the curve itself: {error:.4f} (the noise in the data: 0.1)")
    return error


def main(argv=None):
    parser = argparse.ArgumentParser(description="Fit a noisy curve with a small network.")
    parser.add_argument("--steps", type=int, default=1500, help="steps of AdamW over all points (1500)")
    parser.add_argument("--seed", type=int, default=0, help="seed of data and weights (0)")
    args = parser.parse_args(argv)
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, got {args.steps}")
    return fit(args.steps, args.seed)


if __name__ == "__main__":
    main()
