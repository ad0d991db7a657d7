# tensorboardX: scalars, a histogram and an image
import os
import tempfile

import torch
from tensorboardX import SummaryWriter

with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        writer.add_scalar("a", torch.tensor(1.0), 0)
        writer.add_histogram("b", torch.randn(10), 0)
        writer.add_image("c", torch.rand(3, 4, 4), 0)
    assert os.listdir(folder)
