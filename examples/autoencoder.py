"""An autoencoder whose encoder is frozen afterwards: hooks collect its features, from which a classifier learns.

    .venv/bin/python examples/autoencoder.py
    .venv/bin/python examples/autoencoder.py --device wgpu

First encoder and decoder learn to give digits back through a few numbers. Then the encoder's parameters no longer
require gradients, hooks catch what its layers give, and a linear layer learns to read the class from that.
"""

import common
import matplotlib.pyplot as plt
from tqdm import tqdm

import rgrad
from rgrad import nn
from rgrad.nn import functional as F
from rgrad.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    """8x8 digits to a code of a few numbers and back."""

    def __init__(self, code):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 32 * 4 * 4),
            nn.ReLU(),
            nn.Unflatten(1, (32, 4, 4)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def train(parameters, loss_of, data, args, name):
    """Train; return the mean loss of each epoch."""
    generator = rgrad.Generator().manual_seed(args.seed)
    loader = DataLoader(data, batch_size=64, shuffle=True, generator=generator)
    optimizer = rgrad.optim.Adam(parameters, lr=args.lr)
    losses = []
    with tqdm(range(args.epochs), desc=name, unit="epoch") as bar:
        for _ in bar:
            total = rgrad.zeros((), device=args.device)
            for x, y in loader:
                optimizer.zero_grad()
                loss = loss_of(x, y)
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(x)
            losses.append(total.item() / len(data))
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses


class Features:
    """What chosen layers gave in the last call, caught by forward hooks."""

    def __init__(self, layers):
        self.caught = {}
        self.handles = [layer.register_forward_hook(self._catch(name)) for name, layer in layers.items()]

    def _catch(self, name):
        def hook(module, inputs, output):
            self.caught[name] = output.flatten(1)

        return hook

    def remove(self):
        for handle in self.handles:
            handle.remove()


def main(argv=None):
    parser = common.parser(__doc__)
    parser.add_argument("--epochs", type=common.number(int, 1, 10_000), default=10, help="of both parts (10)")
    parser.add_argument("--code", type=common.number(int, 1, 512), default=16, help="numbers of a code (16)")
    parser.add_argument("--lr", type=common.number(float, 1e-9, 10.0), default=2e-3, help="learning rate (0.002)")
    args = common.begin(parser, argv)

    parts = [tuple(part.to(args.device) for part in common.digits(train)) for train in (True, False)]
    train_data, (test_x, test_y) = TensorDataset(*parts[0]), parts[1]
    model = Autoencoder(args.code).to(args.device)
    losses = train(model.parameters(), lambda x, _: F.mse_loss(model(x), x), train_data, args, "autoencoder")
    print(f"mean squared error {losses[0]:.4f} after one epoch, {losses[-1]:.4f} after {len(losses)}")

    model.encoder.requires_grad_(False)
    before = [p.clone() for p in model.encoder.parameters()]
    features = Features({"convolution": model.encoder[3], "code": model.encoder[5]})
    reader = nn.Linear(32 * 4 * 4 + args.code, 10).to(args.device)

    def scores(x):
        model.encoder(x)
        return reader(rgrad.cat([features.caught["convolution"], features.caught["code"]], 1))

    classifying = train(reader.parameters(), lambda x, y: F.cross_entropy(scores(x), y), train_data, args, "classifier")
    with rgrad.no_grad():
        right = (scores(test_x).argmax(1) == test_y).float().mean().item()
        again = model(test_x[:10])
    features.remove()
    assert all(rgrad.equal(p, q) for p, q in zip(model.encoder.parameters(), before, strict=True)), "it was frozen"
    print(f"test accuracy of a linear layer on frozen features {right:.1%}")

    figure, axes = plt.subplots(2, 10, figsize=(10, 2.6), layout="constrained")
    figure.suptitle(f"Digits (above), and what {args.code} numbers keep of them; classes read with {right:.1%}")
    for column, (x, y) in zip(axes.T, zip(test_x[:10].cpu(), again.cpu(), strict=True), strict=True):
        for axis, image in zip(column, (x, y), strict=True):
            axis.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1)
            axis.axis("off")
    figure.savefig(args.out / "autoencoder.png", dpi=150)
    print(f"classifier's loss {classifying[-1]:.4f}   plot: {args.out / 'autoencoder.png'}")


if __name__ == "__main__":
    main()
