# safetensors: save and load tensors
import tempfile

import torch
from safetensors.torch import load_file, save_file

with tempfile.TemporaryDirectory() as folder:
    given = {"a": torch.randn(3, 4), "b": torch.arange(5)}
    save_file(given, folder + "/x.safetensors")
    found = load_file(folder + "/x.safetensors")
assert all(torch.equal(found[k], given[k]) for k in given)
