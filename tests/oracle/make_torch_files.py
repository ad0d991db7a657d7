"""Writes tests/data/torch_files with the real PyTorch: small files of each form, for tests that stand alone.

.venv-oracle/bin/python tests/oracle/make_torch_files.py
"""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch

FOLDER = Path(__file__).resolve().parents[1] / "data" / "torch_files"


def content() -> dict[str, Any]:
    x = torch.arange(12.0).view(3, 4)
    marked = torch.ones(2)
    marked.nick = "n"  # type: ignore[attr-defined]
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    return {
        "x": x,
        "view": x.t()[1:],
        "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
        "half": torch.tensor([1.5, -2.0]).bfloat16(),
        "complex": torch.tensor([1 + 2j]),
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "mask": x > 3,
        "large": torch.tensor([2**63], dtype=torch.uint64),
        "short": torch.arange(3).to(torch.uint16),
        "empty": torch.empty(0, 3),
        "number": torch.tensor(3.0),
        "marked": marked,
        "meta": torch.empty(2, 3, device="meta"),
        "state": model.state_dict(),
        "dtype": torch.float16,
        "size": x.shape,
        "device": torch.device("cpu"),
        "set": {1, 2},
        "bytes": b"ab",
    }


def tar(path: Path) -> None:
    """A file as PyTorch 0.1 wrote it: two tensors over one memory."""
    storages, tensors = io.BytesIO(), io.BytesIO()
    for value in (1, (7, "cpu", torch.FloatStorage)):
        pickle.dump(value, storages, 2)
    storages.write(struct.pack("<q4f", 4, 1, 2, 3, 4))
    pickle.dump([], storages, 2)
    pickle.dump(2, tensors, 2)
    for key, shape, stride, offset in ((1, (2, 2), (2, 1), 0), (2, (2,), (2,), 1)):
        pickle.dump((key, 7, torch.FloatTensor), tensors, 2)
        numbers = (*shape, *stride, offset)
        tensors.write(struct.pack("<i4x", len(shape)) + struct.pack(f"<{len(numbers)}q", *numbers))

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return obj[1:] if isinstance(obj, str) and obj.startswith("#") else None

    whole = io.BytesIO()
    Pickler(whole, 2).dump({"all": "#1", "column": "#2"})
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as out:
        for name, data in (("storages", storages), ("tensors", tensors), ("pickle", whole)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data.getvalue())
            out.addfile(entry, io.BytesIO(data.getvalue()))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    torch.save(content(), FOLDER / "zip.pt")
    torch.save(content(), FOLDER / "first_form.pt", _use_new_zipfile_serialization=False)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    torch.save(model, FOLDER / "module.pt")
    # Without the sources of classes, which files of this form have otherwise.
    with mock.patch("torch.serialization.get_source_lines_and_file", side_effect=OSError):
        torch.save(model, FOLDER / "module_first_form.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), FOLDER / "quantized.pt")
    torch.save(torch.eye(3).to_sparse(), FOLDER / "sparse.pt")
    torch.save(torch.ones(2).to(torch.float8_e4m3fn), FOLDER / "float8.pt")
    torch.jit.save(torch.jit.script(model), FOLDER / "script.pt")
    tar(FOLDER / "tar.pt")


if __name__ == "__main__":
    main()
