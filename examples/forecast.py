"""An LSTM that forecasts a time series: two waves of different length, with noise.

    .venv/bin/python examples/forecast.py
    .venv/bin/python examples/forecast.py --device wgpu

It learns to say the next number after each of a stretch; then it goes on by itself, from its own forecasts. What it
says is compared with what the series really does, and so are two simple forecasts: the last number that is known, and
the mean of those that come.
"""

import math

import common
import matplotlib.pyplot as plt
from tqdm import tqdm

import rgrad
from rgrad import nn
from rgrad.nn import functional as F


class Forecaster(nn.Module):
    """The next number after each of a series, of shape (N, T): the number, and a change that the network says."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, series, state=None):
        hidden, state = self.lstm(series.unsqueeze(-1), state)
        return series + self.out(hidden).squeeze(-1), state

    @rgrad.no_grad()
    def go_on(self, series, count):
        """`count` forecasts, each from those before it."""
        said, state = self(series)
        found = [said[:, -1:]]
        while len(found) < count:
            said, state = self(found[-1], state)
            found.append(said)
        return rgrad.cat(found, 1)


def make_series(count, noise):
    t = rgrad.arange(count, dtype=rgrad.float32)
    clean = 0.6 * rgrad.sin(2 * math.pi * t / 25) + 0.4 * rgrad.sin(2 * math.pi * t / 60 + 1)
    return clean + noise * rgrad.randn(count)


def train(model, series, args):
    """Train; return the loss of each step."""
    optimizer = rgrad.optim.Adam(model.parameters(), lr=args.lr)
    schedule = rgrad.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps)
    losses = []
    with tqdm(range(args.steps), desc="training", unit="step") as bar:
        for _ in bar:
            starts = rgrad.randint(0, len(series) - args.length - 1, (args.batch_size, 1))
            pieces = series[starts + rgrad.arange(args.length + 1)].to(args.device)
            optimizer.zero_grad()
            said, _ = model(pieces[:, :-1])
            # The first numbers tell too little of the waves to say the next one.
            loss = F.mse_loss(said[:, args.length // 8 :], pieces[:, 1 + args.length // 8 :])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses


def main(argv=None):
    parser = common.parser(__doc__)
    parser.add_argument("--steps", type=common.number(int, 1, 10**6), default=400, help="of training (400)")
    parser.add_argument("--batch-size", type=common.number(int, 1, 4096), default=16, help="stretches in a step (16)")
    parser.add_argument("--length", type=common.number(int, 2, 400), default=160, help="numbers in a stretch (160)")
    parser.add_argument("--width", type=common.number(int, 1, 1024), default=48, help="of the LSTM (48)")
    parser.add_argument("--lr", type=common.number(float, 1e-9, 10.0), default=2e-2, help="largest rate (0.02)")
    parser.add_argument("--ahead", type=common.number(int, 1, 400), default=100, help="numbers to forecast (100)")
    args = common.begin(parser, argv)

    series = make_series(1500, noise=0.03)
    known, ahead = series[: -args.ahead], series[-args.ahead :]
    model = Forecaster(args.width).to(args.device)
    losses = train(model, known, args)
    said = model.go_on(known[None, -200:].to(args.device), args.ahead)[0].cpu()
    error = F.mse_loss(said, ahead).item()
    print(f"mean squared error of the next number {losses[0]:.4f} at first, {losses[-1]:.4f} in the end")
    last = (ahead - known[-1]).square().mean().item()
    print(f"of {args.ahead} numbers ahead {error:.4f};", end=" ")
    print(f"saying their mean {ahead.var(correction=0).item():.4f}, saying the last known number {last:.4f}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=[1, 2], layout="constrained")
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="mean squared error", title="Learning")
    past, future = range(-100, 0), range(args.ahead)
    right.plot(past, known[-100:].numpy(), color="grey", label="known")
    right.plot(future, ahead.numpy(), color="tab:blue", label="what came")
    right.plot(future, said.numpy(), color="tab:orange", linestyle="--", label="forecast")
    right.set(xlabel="time", title=f"{args.ahead} numbers from the model's own forecasts")
    right.legend()
    figure.savefig(args.out / "forecast.png", dpi=150)
    print(f"plot: {args.out / 'forecast.png'}")


if __name__ == "__main__":
    main()
