"""Convolution and batch norm as one custom Function that saves one buffer instead of two.

    .venv/bin/python examples/fused_conv_bn.py
    .venv/bin/python examples/fused_conv_bn.py --data FOLDER      # with MNIST's files in it
    .venv/bin/python examples/fused_conv_bn.py --device wgpu

Batch norm needs the output of the convolution for its gradient, the convolution its own input. The fused Function keeps
the input only and computes the convolution once more in backward: more arithmetic for less memory between the two
passes. The most that is held at once is not less in this network: it is held in backward, when the convolution's output
is there again. Both networks train on the same digits; a table shows accuracy and both amounts of memory.
"""

import time

import common
import matplotlib.pyplot as plt
from tqdm import tqdm

import rgrad
from rgrad import nn
from rgrad.autograd import Function, gradcheck
from rgrad.autograd.function import once_differentiable
from rgrad.nn import functional as F
from rgrad.utils.data import DataLoader, TensorDataset

# --- 1. The Function ---------------------------------------------------------------------------------------------


def per_channel(x):
    """A vector of channels as (1, C, 1, 1)."""
    return x[None, :, None, None]


class FusedConvBN2D(Function):
    """y = (conv(x, w) - mean) / (deviation + eps), with mean and deviation of each channel."""

    @staticmethod
    def forward(ctx, x, weight, eps=1e-3):
        ctx.save_for_backward(x, weight)  # not the output of the convolution
        y = F.conv2d(x, weight)
        mean, deviation = y.mean((0, 2, 3)), y.std((0, 2, 3))
        ctx.mean, ctx.deviation, ctx.eps = mean, deviation, eps
        # In place: y is this Function's own.
        return y.sub_(per_channel(mean)).div_(per_channel(deviation + eps))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        y = F.conv2d(x, weight).sub_(per_channel(ctx.mean))
        count, scale = y.numel() / y.shape[1], ctx.deviation + ctx.eps
        # d/dy of (y - mean) / (deviation + eps): directly, through the mean, and through the deviation.
        along = (grad * y).sum((0, 2, 3)) / (scale * scale * ctx.deviation * (count - 1))
        grad_y = y.mul_(per_channel(-along)).add_((grad - grad.mean((0, 2, 3), keepdim=True)) / per_channel(scale))
        return nn.grad.conv2d_input(x.shape, weight, grad_y), nn.grad.conv2d_weight(x, weight.shape, grad_y), None


class FusedConvBN(nn.Module):
    """A layer with the weight, built on the Function."""

    def __init__(self, inside, out, kernel):
        super().__init__()
        self.weight = nn.Parameter(rgrad.empty(out, inside, kernel, kernel))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, x):
        return FusedConvBN2D.apply(x, self.weight)


class ConvBN(nn.Sequential):
    """The same from two layers."""

    def __init__(self, inside, out, kernel):
        super().__init__(
            nn.Conv2d(inside, out, kernel, bias=False),
            nn.BatchNorm2d(out, affine=False, track_running_stats=False),
        )


def check_function():
    x, weight = (rgrad.rand(*s, dtype=rgrad.float64, requires_grad=True) for s in [(2, 3, 4, 4), (5, 3, 3, 3)])
    assert gradcheck(FusedConvBN2D.apply, (x, weight))


# --- 2. The network ----------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self, layer, size):
        super().__init__()
        self.first, self.second = layer(1, 32, 3), layer(32, 64, 3)
        self.fc1 = nn.Linear(64 * ((size - 4) // 2) ** 2, 128)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu_(self.first(x))
        x = F.relu_(self.second(x))
        x = F.max_pool2d(x, 2).flatten(1)
        return self.fc2(F.relu_(self.dropout(self.fc1(x))))


def train(model, data, args, name):
    """Train; return the losses, the bytes held after each forward pass beyond those before it, and the largest peak."""
    generator = rgrad.Generator().manual_seed(args.seed)
    batches = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True, generator=generator)
    optimizer = rgrad.optim.Adam(model.parameters(), lr=args.lr)
    losses, held = [], []
    common.forget_peak(args.device)
    model.train()
    with tqdm(total=args.epochs * len(batches), desc=name, unit="step") as bar:
        for _ in range(args.epochs):
            for x, y in batches:
                optimizer.zero_grad()
                before = common.memory(args.device)
                loss = F.cross_entropy(model(x), y)
                losses.append(loss.item())
                held.append(common.memory(args.device) - before)
                loss.backward()
                optimizer.step()
                bar.update()
    return losses, held, common.peak_memory(args.device)


def accuracy(model, data, batch_size):
    model.eval()
    right = 0
    with rgrad.inference_mode():
        for x, y in DataLoader(data, batch_size=batch_size):
            right += (model(x).argmax(1) == y).sum().item()
    return right / len(data)


# --- 3. Both, side by side ---------------------------------------------------------------------------------------


def plot(results, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, (losses, held, _, _) in results.items():
        left.semilogy(losses, label=name, alpha=0.8)
        right.bar(name, sum(held) / len(held) / 2**20)
    left.set(xlabel="step", ylabel="cross-entropy (nats)", title="Both learn the same")
    left.legend()
    right.set(ylabel="MiB", title="Held after the forward pass")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(argv=None):
    parser = common.parser(__doc__)
    parser.add_argument("--epochs", type=common.number(int, 1, 1000), default=2, help="passes over the data (2)")
    parser.add_argument("--batch-size", type=common.number(int, 2, 60_000), default=64, help="digits in a step (64)")
    parser.add_argument("--lr", type=common.number(float, 1e-9, 10.0), default=1e-3, help="learning rate (0.001)")
    parser.add_argument("--data", default=None, help="folder with MNIST's files (default: the bundled digits)")
    args = common.begin(parser, argv)

    check_function()
    print("gradcheck: the gradients of FusedConvBN2D are right")
    parts = [tuple(part.to(args.device) for part in common.digits(train, args.data)) for train in (True, False)]
    train_data, test_data = (TensorDataset(*part) for part in parts)
    size = parts[0][0].shape[-1]
    if args.batch_size > len(train_data):
        parser.error(f"--batch-size must be at most {len(train_data)}, the number of digits")

    results, seconds = {}, {}
    for name, layer in [("fused", FusedConvBN), ("unfused", ConvBN)]:
        rgrad.manual_seed(args.seed)
        model = Net(layer, size).to(args.device)
        start = time.perf_counter()
        losses, held, peak = train(model, train_data, args, name)
        seconds[name] = time.perf_counter() - start
        results[name] = losses, held, peak, accuracy(model, test_data, args.batch_size)

    print(f"{'':8} {'test accuracy':>14} {'after forward':>14} {'peak':>10} {'time':>8}")
    for name, (_, held, peak, right) in results.items():
        mean = sum(held) / len(held)
        print(f"{name:8} {right:>14.2%} {mean / 2**20:>10.2f} MiB {peak / 2**20:>6.1f} MiB {seconds[name]:>6.1f} s")
    means = {name: sum(held) / len(held) for name, (_, held, _, _) in results.items()}
    print(f"fused holds {1 - means['fused'] / means['unfused']:.1%} less after the forward pass")
    plot(results, args.out / "fused_conv_bn.png")
    print(f"plot: {args.out / 'fused_conv_bn.png'}")


if __name__ == "__main__":
    main()
