"""The programs of tests/programs print with PyTorch what is stored, and what rgrad prints.

PyTorch's torchvision is not there: a network of the same shapes and a reader of the same files stand in for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from loading import load  # noqa: E402

KIT = load("tests/python/project/test_programs.py")

STAND_IN = """
import gzip, struct, sys, types
import numpy as np
import torch
from torch import nn

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer4 = nn.Sequential(nn.Conv2d(3, 512, 20, 20), nn.BatchNorm2d(512), nn.ReLU())
        self.fc = nn.Linear(512, 1000)
    def forward(self, x):
        return self.fc(self.layer4(x).mean((2, 3)))

class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train=True, download=False, transform=None):
        stem = f"{root}/MNIST/raw/{'train' if train else 't10k'}"
        images = gzip.open(stem + "-images-idx3-ubyte.gz").read()
        self.images = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
        self.classes = np.frombuffer(open(stem + "-labels-idx1-ubyte", "rb").read(), np.uint8, offset=8)
        self.transform = transform
    def __len__(self):
        return len(self.images)
    def __getitem__(self, at):
        return self.transform(self.images[at]), int(self.classes[at])

class Compose:
    def __init__(self, steps):
        self.steps = steps
    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x

vision = types.ModuleType("torchvision")
vision.models = types.ModuleType("torchvision.models")
vision.models.resnet18 = vision.models.resnet50 = Residual
vision.datasets = types.ModuleType("torchvision.datasets")
vision.datasets.MNIST = MNIST
vision.transforms = types.ModuleType("torchvision.transforms")
vision.transforms.Compose = Compose
vision.transforms.ToTensor = lambda: lambda image: torch.tensor(image[None] / np.float32(255))
vision.transforms.Normalize = lambda mean, std: lambda image: (image - mean[0]) / std[0]
torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = lambda: 0
torch.cuda.reset_peak_memory_stats = lambda: None
for name in ("", ".models", ".datasets", ".transforms"):
    sys.modules["torchvision" + name] = vision if not name else getattr(vision, name[1:])
"""


@pytest.mark.parametrize("program", KIT.PROGRAMS, ids=lambda p: p.stem)
def test_pytorch_prints_what_is_stored(program: Path, tmp_path: Path) -> None:
    got = KIT.printed(program, "cpu", tmp_path, library="torch", head=STAND_IN)
    KIT.agree(got, KIT.stored(program))


@pytest.mark.parametrize("program", KIT.PROGRAMS, ids=lambda p: p.stem)
def test_rgrad_prints_what_is_stored(program: Path, tmp_path: Path) -> None:
    KIT.agree(KIT.printed(program, "cpu", tmp_path), KIT.stored(program))
