"""Training steps of whole networks of float32: the same layers, parameters and data in each library.

A step is forward, loss, backward and plain descent; the loss is looked at after each.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy

CLASSES = 10


def network(
    build: Callable[[ModuleType], Any], shape: tuple[int, ...], loss: Callable[[ModuleType, Any, Any], Any]
) -> Callable[[ModuleType], Work]:
    """Steps of the network that `build` makes, on one batch of this shape."""

    def make(lib: ModuleType) -> Work:
        data = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        target = np.random.default_rng(1).integers(0, CLASSES, shape[0])

        def fresh() -> Callable[[], Any]:
            model = build(lib)
            rng = np.random.default_rng(2)
            with lib.no_grad():
                for p in model.parameters():
                    fan = max(int(np.prod(p.shape[1:])), 1)
                    values = rng.standard_normal(tuple(p.shape), dtype=np.float32) / np.float32(np.sqrt(fan))
                    p.copy_(lib.tensor(values if p.dim() > 1 else 1 + 0.01 * values))
            x, y = lib.tensor(data), lib.tensor(target)
            descent = lib.optim.SGD(model.parameters(), lr=1e-4)

            def step() -> Any:
                descent.zero_grad()
                value = loss(lib, model(x), y)
                value.backward()
                descent.step()
                return value

            return step

        timed = fresh()

        def run(n: int) -> None:
            for _ in repeat(None, n):
                timed().item()

        def result() -> list[Any]:
            step = fresh()
            return to_numpy(*(step() for _ in range(3)))

        return Work(run, result)

    return make


def cross_entropy(lib: ModuleType, y: Any, target: Any) -> Any:
    return lib.nn.functional.cross_entropy(y, target)


def mean_square(lib: ModuleType, y: Any, _: Any) -> Any:
    return (y * y).mean()


def perceptron(lib: ModuleType) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))


def digits(lib: ModuleType) -> Any:
    """Two convolutions with batch norm, as in the document about fusing them."""
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def resnet18(lib: ModuleType) -> Any:
    """Written out, since PyTorch's lies in a package of its own."""
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(inplace=True),
                nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outside),
            )
            self.short = nn.Identity()
            if stride != 1:
                self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
            self.last = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.last(self.body(x) + self.short(x))

    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = [64, 64, 128, 256, 512]
    for place in range(4):
        layers += [Block(channels[place], channels[place + 1], 1 if place == 0 else 2)]
        layers += [Block(channels[place + 1], channels[place + 1], 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def transformer(lib: ModuleType) -> Any:
    return lib.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)


def counted(forward: float) -> int:
    """Operations of a step, whose two gradients take as many each as forward."""
    return int(3 * forward)


MLP = 2 * 64 * (784 * 512 + 512 * 512 + 512 * CLASSES)
DIGITS = 2 * 32 * (26 * 26 * 9 * 32 + 24 * 24 * 9 * 32 * 64 + 9216 * 128)
BLOCK = 2 * 4 * 128 * (4 * 256 * 256 + 2 * 128 * 256 + 2 * 256 * 1024)
ROWS: list[Row] = [
    Row(
        "mlp_512",
        "784-512-512-10 at 64, step",
        1.5,
        network(perceptron, (64, 784), cross_entropy),
        rtol=1e-4,
        flops=counted(MLP),
    ),
    Row(
        "conv_bn",
        "conv + batch norm network at 32x1x28x28, step",
        1.5,
        network(digits, (32, 1, 28, 28), cross_entropy),
        rtol=1e-3,
        flops=counted(DIGITS),
    ),
    Row(
        "resnet18",
        "ResNet-18 at 1x3x224x224, step",
        1.3,
        network(resnet18, (1, 3, 224, 224), cross_entropy),
        rtol=1e-2,
        flops=counted(3.63e9),
    ),
    Row(
        "resnet18_4",
        "ResNet-18 at 4x3x224x224, step",
        1.3,
        network(resnet18, (4, 3, 224, 224), cross_entropy),
        rtol=1e-2,
        flops=counted(4 * 3.63e9),
    ),
    Row(
        "transformer",
        "transformer block at 4x128x256, step",
        1.3,
        network(transformer, (4, 128, 256), mean_square),
        rtol=1e-3,
        flops=counted(BLOCK),
    ),
]
