"""A small transformer that learns to write, letter by letter, from the help texts that ship with Python.

    .venv/bin/python examples/characters.py
    .venv/bin/python examples/characters.py --steps 2000 --width 128
    .venv/bin/python examples/characters.py --device wgpu

It leaves a learning curve, and ends by writing some lines of its own. After the 400 steps of the default it knows which
letters follow each other, and writes few words that exist; the second command, some minutes, makes most of them words.
"""

import math
from pydoc_data.topics import topics

import common
import matplotlib.pyplot as plt
from tqdm import tqdm

import rgrad
from rgrad import nn
from rgrad.nn import functional as F


class Block(nn.Module):
    """Attention over what came before, then a small network for each place; both add to their input."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.network(self.norm2(x)))


class Writer(nn.Module):
    """The scores of the next letter at each place."""

    def __init__(self, letters, length, width, heads, blocks, dropout):
        super().__init__()
        self.length = length
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(blocks)))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, text):
        places = rgrad.arange(text.shape[1], device=text.device)
        return self.scores(self.norm(self.blocks(self.letters(text) + self.places(places))))


def load_text():
    """The text as numbers, and the letters that they stand for."""
    text = "\n".join(topics[name] for name in sorted(topics))
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    return rgrad.tensor([number[letter] for letter in text]), letters


def draw_batch(text, args):
    """Pieces of the text, and the same pieces one letter further."""
    starts = rgrad.randint(0, len(text) - args.length - 1, (args.batch_size, 1))
    at = starts + rgrad.arange(args.length + 1)
    pieces = text[at].to(args.device)
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train(model, train_text, test_text, args):
    """Train; return (step, loss) of training and of tests."""
    optimizer = rgrad.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)

    def rate(step):
        warm = min(1.0, (step + 1) / max(1, args.steps // 20))
        return warm * (0.1 + 0.45 * (1 + math.cos(math.pi * step / args.steps)))

    schedule = rgrad.optim.lr_scheduler.LambdaLR(optimizer, rate)
    curves = {"training": [], "test": []}
    with tqdm(range(args.steps), desc="training", unit="step") as bar:
        for step in bar:
            optimizer.zero_grad()
            loss = loss_of(model, *draw_batch(train_text, args))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            curves["training"].append((step + 1, loss.item()))
            if (step + 1) % args.test_every == 0 or step + 1 == args.steps:
                model.eval()
                with rgrad.no_grad():
                    losses = [loss_of(model, *draw_batch(test_text, args)).item() for _ in range(4)]
                model.train()
                curves["test"].append((step + 1, sum(losses) / len(losses)))
                bar.set_postfix(loss=f"{loss.item():.3f}", test=f"{curves['test'][-1][1]:.3f}", refresh=False)
    return curves


@rgrad.no_grad()
def write(model, letters, begin, count, temperature=0.8):
    """`begin`, and `count` letters that the model adds to it."""
    model.eval()
    device = model.norm.weight.device
    text = rgrad.tensor([[letters.index(letter) for letter in begin]], device=device)
    for _ in range(count):
        scores = model(text[:, -model.length :])[:, -1] / temperature
        text = rgrad.cat([text, rgrad.multinomial(F.softmax(scores, dim=-1), 1)], 1)
    return "".join(letters[i] for i in text[0].tolist())


def main(argv=None):
    parser = common.parser(__doc__)
    parser.add_argument("--steps", type=common.number(int, 1, 10**6), default=400, help="of training (400)")
    parser.add_argument("--batch-size", type=common.number(int, 1, 4096), default=16, help="pieces in a step (16)")
    parser.add_argument("--length", type=common.number(int, 2, 4096), default=64, help="letters in a piece (64)")
    parser.add_argument("--width", type=common.number(int, 4, 4096), default=64, help="numbers at each place (64)")
    parser.add_argument("--blocks", type=common.number(int, 1, 64), default=2, help="of the network (2)")
    parser.add_argument("--lr", type=common.number(float, 1e-9, 10.0), default=3e-3, help="learning rate (0.003)")
    parser.add_argument("--test-every", type=common.number(int, 1, 10**6), default=50, help="steps (50)")
    parser.add_argument("--write", type=common.number(int, 0, 10**5), default=300, help="letters at the end (300)")
    args = common.begin(parser, argv)
    if args.width % 4:
        parser.error("--width must be a multiple of 4, the number of heads")

    text, letters = load_text()
    cut = len(text) * 9 // 10
    model = Writer(len(letters), args.length, args.width, 4, args.blocks, dropout=0.0).to(args.device)
    print(f"{len(text):,} letters, {len(letters)} different ones;", end=" ")
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    curves = train(model, text[:cut], text[cut:], args)
    shares = text.bincount() / len(text)
    entropy = -(shares * shares.log()).sum().item()
    print(f"test loss {curves['test'][-1][1]:.3f} nats per letter;", end=" ")
    print(f"guessing gives {math.log(len(letters)):.3f}, the frequencies of letters {entropy:.3f}")

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, curve in curves.items():
        axes.plot(*zip(*curve, strict=True), label=name, alpha=0.8)
    axes.axhline(math.log(len(letters)), color="grey", linestyle=":", label="guessing")
    axes.set(xlabel="step", ylabel="cross-entropy (nats per letter)", title="A transformer learns to write")
    axes.legend()
    figure.savefig(args.out / "characters.png", dpi=150)
    print(f"plot: {args.out / 'characters.png'}\n")
    print(write(model, letters, "The ", args.write))


if __name__ == "__main__":
    main()
