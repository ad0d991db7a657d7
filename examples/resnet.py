"""A residual network: a step of training, inference whose memory does not grow, and `eval` beside `train`.

    .venv/bin/python examples/resnet.py
    .venv/bin/python examples/resnet.py --layers 50 --size 224 --batch-size 4
    .venv/bin/python examples/resnet.py --device wgpu

The network learns the bundled digits, enlarged to colour images. Then the same batches go through it three times: with
the results and their graphs kept (memory grows with every batch), under `no_grad` (it does not), and in training mode,
where batch norm takes the statistics of each batch instead of those it has learnt.
"""

import common
import matplotlib.pyplot as plt
from tqdm import tqdm

import rgrad
from rgrad.nn import functional as F
from rgrad.vision import models


def colour_images(size, train):
    """The digits as images (N, 3, size, size)."""
    images, classes = common.digits(train)
    images = F.interpolate(images, size=(size, size), mode="bilinear", align_corners=False)
    return images.expand(-1, 3, -1, -1), classes


def batches(images, classes, size, device):
    for first in range(0, len(images) - size + 1, size):
        yield images[first : first + size].to(device), classes[first : first + size].to(device)


def train(model, images, classes, args):
    """Train for `args.steps` steps; return the losses."""
    optimizer = rgrad.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    model.train()
    losses = []
    with tqdm(total=args.steps, desc="training", unit="step") as bar:
        while len(losses) < args.steps:
            order = rgrad.randperm(len(images))
            for x, y in batches(images[order], classes[order], args.batch_size, args.device):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                bar.update()
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
                if len(losses) == args.steps:
                    break
    return losses


def test(model, images, classes, args, grad):
    """The share of digits that are right, and the bytes held after each batch, with all the losses kept."""
    right, held, kept = 0, [], []
    start = common.memory(args.device)
    with rgrad.set_grad_enabled(grad):
        for x, y in batches(images, classes, args.batch_size, args.device):
            scores = model(x)
            right += (scores.argmax(1) == y).sum().item()
            kept.append(F.cross_entropy(scores, y))  # with grad, each keeps the graph of its batch
            del scores
            held.append(common.memory(args.device) - start)
    return right / (len(held) * args.batch_size), held


def main(argv=None):
    parser = common.parser(__doc__)
    parser.add_argument("--layers", type=int, choices=[18, 34, 50], default=18, help="of the network (18)")
    parser.add_argument("--size", type=common.number(int, 16, 512), default=32, help="pixels in a row (32)")
    parser.add_argument("--batch-size", type=common.number(int, 2, 360), default=32, help="images in a batch (32)")
    parser.add_argument("--steps", type=common.number(int, 1, 100_000), default=60, help="of training (60)")
    parser.add_argument("--test-batches", type=common.number(int, 1, 180), default=6, help="to test with (6)")
    parser.add_argument("--lr", type=common.number(float, 1e-9, 10.0), default=0.005, help="learning rate (0.005)")
    args = common.begin(parser, argv)

    model = getattr(models, f"resnet{args.layers}")(num_classes=10).to(args.device)
    print(f"resnet{args.layers}: {sum(p.numel() for p in model.parameters()):,} parameters")
    losses = train(model, *colour_images(args.size, True), args)
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} after {len(losses)} steps")

    images, classes = colour_images(args.size, False)
    count = args.batch_size * args.test_batches
    images, classes = images[:count], classes[:count]
    model.eval()
    found, with_graphs = test(model, images, classes, args, grad=True)
    same, without = test(model, images, classes, args, grad=False)
    assert same == found
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    moving, _ = test(model, images, classes, args, grad=False)
    model.load_state_dict(state)  # batch norm has learnt the statistics of the test images meanwhile
    print(f"accuracy in eval mode {found:.1%}, in training mode {moving:.1%}")
    print(f"held after {len(without)} batches: {with_graphs[-1] / 2**20:.2f} MiB with graphs", end=", ")
    print(f"{without[-1] / 2**20:.2f} MiB under no_grad")

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(losses)
    left.set(xlabel="step", ylabel="cross-entropy (nats)", title=f"ResNet-{args.layers} on digits", yscale="log")
    right.plot(range(1, len(without) + 1), [b / 2**20 for b in with_graphs], marker=".", label="losses with graphs")
    right.plot(range(1, len(without) + 1), [b / 2**20 for b in without], marker=".", label="under no_grad")
    right.set(xlabel="batches tested", ylabel="MiB held", title="Memory while testing")
    right.legend()
    figure.savefig(args.out / "resnet.png", dpi=150)
    print(f"plot: {args.out / 'resnet.png'}")


if __name__ == "__main__":
    main()
