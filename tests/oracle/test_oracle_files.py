"""Files both ways: the real PyTorch reads what `save` writes, without trust, and `load` what PyTorch writes."""

from __future__ import annotations

import importlib
import inspect
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from rgrad._files.torch_names import torch_name  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Couldn't retrieve source code:UserWarning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN:UserWarning"),
]

DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32", "bool"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)


def content(T: Any, old: bool) -> dict[str, Any]:
    x = T.arange(12.0).view(3, 4)
    z = T.tensor([1 + 2j, 3 - 1j])
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3))
    optimizer = T.optim.Adam(model.parameters())
    model(T.ones(4, 2)).sum().backward()
    optimizer.step()
    marked = T.ones(2)
    marked.nick = "n"
    found = {kind: T.tensor([0, 1, 1]).to(getattr(T, kind)) for kind in DTYPES if not (old and kind in NEW)}
    return {
        **found,
        "views": [x, x.t()[1:], x[1:, ::2], x.expand(2, 3, 4)],
        "leaf": T.ones(2, requires_grad=True),
        "parameter": T.nn.Parameter(T.ones(2), requires_grad=False),
        "lazy": [z, z.conj()],
        "marked": marked,
        "meta": T.ones(2, 3, device="meta"),
        "empty": [T.empty(0, 3), T.tensor(2.0)],
        "state": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "plain": [1, -(2**70), 2.5, None, True, "naïve", b"\x00\xff", (1, {2: "x"}), {1, 2}, 1j],
        "torch": [T.float16, T.Size([2, 3]), T.device("cpu")],
    }


NEW = ("complex32", "uint64", "uint32", "uint16")


def shown(value: Any) -> Any:
    """What must be the same on both sides."""
    if isinstance(value, (rgrad.Tensor, torch.Tensor)):
        layout = str(value.dtype).rpartition(".")[2], tuple(value.shape), value.stride(), value.storage_offset()
        kind = type(value).__name__, value.requires_grad, getattr(value, "nick", None), value.untyped_storage().nbytes()
        elements = None if value.device.type == "meta" else value.detach().to(device="cpu")
        if elements is not None:
            wide = "complex128" if elements.is_complex() else "float64"
            T = torch if isinstance(value, torch.Tensor) else rgrad
            elements = elements.to(getattr(T, wide)).tolist()
        return layout, kind, elements
    if isinstance(value, dict):
        return [(shown(key), shown(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return [shown(entry) for entry in value]
    return str(value).replace("rgrad.", "torch.")


def through(obj: Any, writer: Any, reader: Any, old: bool, **options: Any) -> Any:
    file = io.BytesIO()
    writer.save(obj, file, _use_new_zipfile_serialization=not old)
    file.seek(0)
    return reader.load(file, **options)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("mine", [False, True])
def test_what_one_writes_the_other_reads(mine: bool, old: bool, trusted: bool) -> None:
    writer, reader = (rgrad, torch) if mine else (torch, rgrad)
    obj = content(writer, old)
    found = through(obj, writer, reader, old, weights_only=not trusted)
    for key, value in obj.items():
        assert shown(found[key]) == shown(value), key
    base, *views = found["views"]
    assert {view.untyped_storage().data_ptr() for view in views} == {base.untyped_storage().data_ptr()}
    assert found["state"]._metadata == obj["state"]._metadata


MODULES = {
    "linear": lambda T: (T.nn.Linear(3, 2), (2, 3)),
    "conv": lambda T: (T.nn.Sequential(T.nn.Conv2d(1, 2, 3, padding=1), T.nn.ReLU(), T.nn.MaxPool2d(2)), (1, 1, 4, 4)),
    "norms": lambda T: (T.nn.Sequential(T.nn.BatchNorm1d(4), T.nn.LayerNorm(4), T.nn.GELU()).eval(), (3, 4)),
    "lstm": lambda T: (T.nn.LSTM(3, 2, batch_first=True), (1, 4, 3)),
    "projected": lambda T: (T.nn.LSTM(3, 4, 2, bias=False, bidirectional=True, proj_size=2), (4, 1, 3)),
    "gru": lambda T: (T.nn.GRU(3, 2, 2), (4, 1, 3)),
    "attention": lambda T: (T.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).eval(), (1, 3, 4)),
    "transposed": lambda T: (T.nn.ConvTranspose1d(2, 1, 2), (1, 2, 3)),
    "dropout": lambda T: (T.nn.Sequential(T.nn.Dropout(0.5), T.nn.Softmax(-1)).eval(), (2, 3)),
}


@pytest.mark.parametrize("mine", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_whole_modules(name: str, mine: bool) -> None:
    writer, reader = (rgrad, torch) if mine else (torch, rgrad)
    model, shape = MODULES[name](writer)
    found = through(model, writer, reader, False, weights_only=False)
    results = [
        m(T.linspace(-1, 1, 96)[: writer.Size(shape).numel()].reshape(shape))
        for m, T in ((model, writer), (found, reader))
    ]
    first, second = (torch.tensor((r[0] if isinstance(r, tuple) else r).detach().tolist()) for r in results)
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)
    assert repr(found) == repr(model)


def test_a_map_by_pytorch(tmp_path: Any) -> None:
    path = tmp_path / "model.pt"
    rgrad.save({"a": rgrad.arange(5.0), "b": rgrad.arange(3)}, path)
    assert [t.tolist() for t in torch.load(path, mmap=True).values()] == [[0, 1, 2, 3, 4], [0, 1, 2]]


@pytest.mark.parametrize("place", ["nn", "optim", "optim.lr_scheduler", "distributions", "utils.data", "autograd"])
def test_files_name_classes_as_pytorch_does(place: str) -> None:
    ours, theirs = (importlib.import_module(f"{T}.{place}") for T in ("rgrad", "torch"))
    classes = {
        name: kind
        for name, kind in vars(theirs).items()
        if inspect.isclass(kind) and kind.__module__.startswith("torch.") and not name.startswith("_")
    }
    both = [name for name in classes if name in dir(ours) and name != "SavedTensor"]
    assert both
    for name in both:
        kind, wanted = getattr(ours, name), classes[name]
        assert torch_name(kind.__module__, kind.__qualname__) == (wanted.__module__, wanted.__qualname__)
