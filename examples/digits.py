"""Train a small network with a hand-written autograd Function on real handwritten digits.

    ./run example                       # builds everything first
    .venv/bin/python examples/digits.py --help
    .venv/bin/python examples/digits.py --device wgpu

The data are the 1,797 digits of 8x8 pixels that scikit-learn ships. The script checks the Function's gradients,
trains, tests, saves the model, loads it back, and leaves a plot of loss and accuracy.
"""

import argparse
import time
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import rgrad
from rgrad import nn
from rgrad.autograd import Function, gradcheck
from rgrad.utils.data import DataLoader, TensorDataset

mpl.use("Agg")  # draw into a file, whether or not there is a screen
import matplotlib.pyplot as plt

# --- 1. A Function: what happens forward, and the gradient of it -------------------------------------------------


class LinearTanh(Function):
    """y = tanh(x Wᵀ + b), for x (N, in), W (out, in), b (out,), in one node of the graph."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        y = rgrad.tanh(x @ weight.t() + bias)
        ctx.save_for_backward(x, weight, y)  # the only tensors backward needs
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, weight, y = ctx.saved_tensors
        grad_z = grad_y * (1 - y * y)  # tanh'(z) = 1 - tanh(z)²
        return grad_z @ weight, grad_z.t() @ x, grad_z.sum(0)  # one gradient for each input of forward


class TanhLayer(nn.Module):
    """A layer with parameters, built on the Function."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(rgrad.empty(outputs, inputs))
        self.bias = nn.Parameter(rgrad.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x):
        return LinearTanh.apply(x, self.weight, self.bias)


def check_function():
    """Compare backward with numeric differences: in float64, since these lose half of the digits."""
    x, weight, bias = (rgrad.randn(*shape, dtype=rgrad.float64, requires_grad=True) for shape in [(5, 4), (3, 4), (3,)])
    assert gradcheck(LinearTanh.apply, (x, weight, bias))


# --- 2. The data and the network ---------------------------------------------------------------------------------


def load_data(seed, device="cpu"):
    """Digits as float32 in [0, 1], one row of 64 pixels each, three quarters to train on and one to test."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=seed, stratify=labels)
    train_x, test_x = (rgrad.tensor(part, dtype=rgrad.float32, device=device) for part in parts[:2])
    train_y, test_y = (rgrad.tensor(part, dtype=rgrad.int64, device=device) for part in parts[2:])
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def make_model():
    return nn.Sequential(TanhLayer(64, 96), nn.Dropout(0.2), TanhLayer(96, 48), nn.Linear(48, 10))


def predict(model, x):
    model.eval()
    with rgrad.no_grad():
        return model(x).argmax(dim=1)


def accuracy(model, data):
    x, y = data.tensors
    return (predict(model, x) == y).float().mean().item()


# --- 3. Training -------------------------------------------------------------------------------------------------


def train(model, train_data, test_data, args):
    """Train for `args.epochs` epochs; return the mean loss and the accuracies after each."""
    generator = rgrad.Generator().manual_seed(args.seed)
    batches = DataLoader(train_data, batch_size=args.batch_size, shuffle=True, generator=generator)
    optimizer = rgrad.optim.Adam(model.parameters(), lr=args.lr)
    loss_of = nn.CrossEntropyLoss()
    history = {"loss": [], "train": [], "test": []}

    with tqdm(range(args.epochs), desc="training", unit="epoch") as bar:
        for _ in bar:
            model.train()
            total = rgrad.zeros((), device=args.device)
            for x, y in batches:
                optimizer.zero_grad()
                loss = loss_of(model(x), y)
                loss.backward()
                optimizer.step()
                # detach(), or the sum would keep every graph alive; not item(), which waits for the device at each step
                total += loss.detach() * len(x)
            history["loss"].append(total.item() / len(train_data))
            history["train"].append(accuracy(model, train_data))
            history["test"].append(accuracy(model, test_data))
            bar.set_postfix(loss=f"{history['loss'][-1]:.4f}", test=f"{history['test'][-1]:.1%}", refresh=False)
    return history


# --- 4. What remains: a file with the model, and a picture -------------------------------------------------------


def save_and_load(model, test_data, path):
    """Save the parameters, load them into a fresh model, and make sure that both predict the same."""
    rgrad.save(model.state_dict(), path)
    again = make_model().to(model[0].weight.device)
    again.load_state_dict(rgrad.load(path))
    x, _ = test_data.tensors
    assert rgrad.equal(predict(model, x), predict(again, x)), "the loaded model predicts something else"


def plot(history, path):
    """Draw the loss and both accuracies against the epoch."""
    epochs = range(1, len(history["loss"]) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figure.suptitle("Handwritten digits, 8x8 pixels: a network with a custom Function")
    left.semilogy(epochs, history["loss"], color="tab:red", marker=".", label="training")
    left.set(xlabel="epoch", ylabel="cross-entropy (nats per digit)", title="Loss")
    right.plot(epochs, [100 * a for a in history["train"]], color="tab:blue", marker=".", label="training")
    right.plot(epochs, [100 * a for a in history["test"]], color="tab:orange", marker=".", label="test")
    right.axhline(95, color="grey", linestyle=":", label="95 %")
    right.set(xlabel="epoch", ylabel="correct digits (%)", title=f"Accuracy: {history['test'][-1]:.1%} on test digits")
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def number(kind, low, high):
    """An argparse type: a number of this kind from `low` up to `high`."""

    def parse(text):
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be from {low} to {high}, got {text}")
        return value

    parse.__name__ = kind.__name__  # argparse names it where the text is no number at all
    return parse


def main(argv=None):
    parser = argparse.ArgumentParser(description="Train a network with a custom Function on handwritten digits.")
    parser.add_argument("--epochs", type=number(int, 1, 10_000), default=40, help="times to go through the data (40)")
    parser.add_argument("--batch-size", type=number(int, 1, 1347), default=32, help="digits in one step (32)")
    parser.add_argument("--lr", type=number(float, 1e-9, 10.0), default=2e-3, help="learning rate of Adam (0.002)")
    parser.add_argument("--seed", type=number(int, 0, 2**32 - 1), default=0, help="of split, weights and shuffling (0)")
    parser.add_argument("--device", choices=["cpu", "wgpu"], default="cpu", help="where to train (cpu)")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "output", help="directory for model and plot"
    )
    args = parser.parse_args(argv)
    if args.device == "wgpu" and not rgrad.wgpu.is_available():
        parser.error("--device wgpu: no adapter was found; docs/devices.md says what is needed")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the directory of --out: {error}")

    rgrad.manual_seed(args.seed)
    check_function()
    print("gradcheck: the gradients of LinearTanh are right")

    train_data, test_data = load_data(args.seed, args.device)
    model = make_model().to(args.device)  # made on the CPU: the same weights on every device
    print(f"{len(train_data)} digits to train on, {len(test_data)} to test on;", end=" ")
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    start = time.perf_counter()
    history = train(model, train_data, test_data, args)
    seconds = time.perf_counter() - start

    save_and_load(model, test_data, args.out / "digits.pt")
    plot(history, args.out / "digits.png")
    print(f"test accuracy {history['test'][-1]:.2%} after {args.epochs} epochs in {seconds:.1f} s")
    print(f"model: {args.out / 'digits.pt'} (loads back, same predictions)   plot: {args.out / 'digits.png'}")
    return history["test"][-1]


if __name__ == "__main__":
    main()
