"""Images of digits, and what turns images into tensors."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import rgrad
from rgrad.utils.data import DataLoader
from rgrad.vision import datasets, transforms

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(values: np.ndarray) -> bytes:
    """An array in the IDX format, written from its description: two zeros, type, rank, sizes, elements, big-endian."""
    head = bytes([0, 0, CODES[values.dtype.str[1:]], values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(values.dtype.newbyteorder(">")).tobytes()


def write_mnist(folder: Path, *, packed: bool = False, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    labels = generator.integers(0, 10, count).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for name, values in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            data = idx(values)
            (folder / (name + (".gz" if packed else ""))).write_bytes(gzip.compress(data) if packed else data)
    return images, labels


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_of_every_type(tmp_path: Path, kind: str, packed: bool) -> None:
    for shape in [(), (3,), (2, 0, 4), (2, 3, 4)]:
        values = (np.arange(np.prod(shape, dtype=int)) - 2).reshape(shape).astype(kind)
        file = tmp_path / "x"
        file.write_bytes(gzip.compress(idx(values)) if packed else idx(values))
        read = datasets.read_idx(file)
        assert read.shape == shape
        assert read.numpy().dtype == np.dtype(kind)
        assert np.array_equal(read.numpy(), values)


def test_broken_idx_files_are_refused(tmp_path: Path) -> None:
    whole = idx(np.arange(12, dtype=np.int32).reshape(3, 4))
    cases = [(b"", "no IDX file"), (b"PK12", "no IDX file"), (whole[:6], "ends in its head"), (whole[:-1], "takes 48")]
    cases += [(whole + b"!", "takes 48"), (bytes([0, 0, 8, 3]) + b"\xff" * 12, "holds 0 bytes")]
    cases += [(gzip.compress(whole)[:-9], "is damaged"), (b"\x1f\x8b" + whole, "is damaged")]
    for raw, words in cases:
        (tmp_path / "x").write_bytes(raw)
        with pytest.raises(ValueError, match=words):
            datasets.read_idx(tmp_path / "x")


def test_files_that_unpack_to_more_than_they_promise(tmp_path: Path) -> None:
    """They are read as far as their head says, or not at all."""
    import tracemalloc

    promised = bytes([0, 0, 8, 1]) + struct.pack(">I", 10)
    tail = b"".join(gzip.compress(bytes(1 << 24)) for _ in range(8))
    claimed = bytes([0, 0, 0x0E, 4]) + b"\xff" * 16
    cases = [
        (gzip.compress(promised) + tail, "holds more bytes of elements, its shape .10,. takes 10"),
        (gzip.compress(claimed + bytes(1000)), "holds at most .* its shape .* takes"),
        (claimed + bytes(1000), "holds 1000 bytes of elements"),
        (gzip.compress(bytes([0, 0, 8, 65]) + b"\0\0\0\1" * 65 + b"x"), "65 dimensions, expected at most"),
    ]
    for raw, words in cases:
        (tmp_path / "x").write_bytes(raw)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=words):
                datasets.read_idx(tmp_path / "x")
            assert tracemalloc.get_traced_memory()[1] < 1 << 23
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("below", ["", "raw", "MNIST/raw"])
@pytest.mark.parametrize("packed", [False, True])
def test_mnist_reads_its_files(tmp_path: Path, below: str, packed: bool) -> None:
    images, labels = write_mnist(tmp_path / below, packed=packed)
    for train in (True, False):
        found = datasets.MNIST(tmp_path, train=train, target_transform=lambda t: t + 100)
        assert len(found) == 5
        assert found.data.dtype == rgrad.uint8
        assert found.targets.dtype == rgrad.int64
        for i in range(5):
            image, target = found[i]
            assert np.array_equal(image, images[i])
            assert target == labels[i] + 100
        assert f"Split: {'Train' if train else 'Test'}" in repr(found)
    assert datasets.FashionMNIST.classes[9] == "Ankle boot"


def test_files_that_do_not_fit_each_other(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(ValueError, match="do not fit"):
        datasets.MNIST(tmp_path)


def test_without_files_the_bundled_digits_stand_in_and_say_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.MNIST(tmp_path / "data")
    with pytest.warns(UserWarning, match="stand in"):
        found = datasets.MNIST(tmp_path / "data", download=True)
    test = datasets.MNIST(tmp_path / "data", train=False)
    small, small_test = datasets.Digits(), datasets.Digits(train=False)
    assert (len(found), len(test)) == (len(small), len(small_test)) == (1437, 360)
    assert found.data.shape == (1437, 28, 28)
    assert rgrad.equal(found.data[:, 2:26:3, 2:26:3], small.data)
    assert rgrad.equal(found.data[:, 4:26:3, 4:26:3], small.data)
    assert int(found.data[:, :2].max()) == int(found.data[:, :, 26:].max()) == 0
    assert int(small.data.max()) == 255
    assert sorted(small.targets.unique().tolist()) == list(range(10))
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.MNIST(tmp_path / "elsewhere", train=False)
    # Digits are no clothes.
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.FashionMNIST(tmp_path / "data", download=True)


def test_the_documents_way_to_load_images(tmp_path: Path) -> None:
    images, labels = write_mnist(tmp_path, count=7)
    steps = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    loader = DataLoader(datasets.MNIST(tmp_path, train=True, download=True, transform=steps), batch_size=4)
    batches = list(loader)
    assert [tuple(x.shape) for x, _ in batches] == [(4, 1, 28, 28), (3, 1, 28, 28)]
    x = np.concatenate([x.numpy() for x, _ in batches])
    assert np.allclose(x[:, 0], (images / 255 - 0.1307) / 0.3081, atol=1e-6)
    assert np.array_equal(np.concatenate([y.numpy() for _, y in batches]), labels)


def test_to_tensor() -> None:
    step = transforms.ToTensor()
    colour = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert np.allclose(step(colour).numpy(), colour.transpose(2, 0, 1) / 255)
    assert step(colour.astype(np.float64)).dtype == rgrad.float64
    assert step(colour.astype(np.int32)).tolist() == colour.transpose(2, 0, 1).tolist()
    assert step(colour[:0]).shape == (3, 0, 4)
    made = step(colour.astype(np.float32))
    made.zero_()
    assert colour.max() == 23
    with pytest.raises(ValueError, match="2/3 dimensional"):
        step(np.zeros(3))
    with pytest.raises(TypeError, match="PIL Image or ndarray"):
        step([1, 2])
    assert repr(step) == "ToTensor()"


def test_to_tensor_of_pillow_images() -> None:
    image = pytest.importorskip("PIL.Image")
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    assert np.allclose(transforms.ToTensor()(image.fromarray(grey)).numpy()[0], grey / 255)
    assert transforms.ToTensor()(image.fromarray(grey > 100)).tolist() == [(grey > 100).astype(float).tolist()]


def test_normalize() -> None:
    x = rgrad.rand(2, 3, 4, 5)
    mean, std = (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)
    wanted = (x.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    assert np.allclose(transforms.Normalize(mean, std)(x).numpy(), wanted, atol=1e-6)
    assert transforms.Normalize(mean, std, inplace=True)(x) is x
    assert np.allclose(x.numpy(), wanted, atol=1e-6)
    assert repr(transforms.Normalize(mean, std)) == "Normalize(mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0))"
    with pytest.raises(ValueError, match="std evaluated to zero"):
        transforms.Normalize(mean, (0.0, 1.0, 1.0))(x)
    with pytest.raises(TypeError, match="should be Tensor Image"):
        transforms.Normalize(mean, std)(x.numpy())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="should be a float tensor"):
        transforms.Normalize(mean, std)(x.int())
    with pytest.raises(ValueError, match="to be a tensor image of size"):
        transforms.Normalize(mean, std)(x[0, 0])


def test_compose_and_lambda() -> None:
    steps = transforms.Compose([transforms.Lambda(lambda x: x + 1), transforms.Lambda(lambda x: x * 2)])
    assert steps(1) == 4
    assert repr(steps) == "Compose(\n    Lambda()\n    Lambda()\n)"
    with pytest.raises(TypeError, match="should be callable"):
        transforms.Lambda(3)  # type: ignore[arg-type]


def test_weights_of_elsewhere_come_as_numpy_arrays(tmp_path: Path) -> None:
    """What the error of `weights=` advises."""
    with pytest.raises(ValueError, match=r"there are no trained weights here.*numpy\.savez") as caught:
        rgrad.vision.models.resnet18(weights="DEFAULT")
    assert "load_state_dict" in str(caught.value)
    trained = rgrad.vision.models.resnet18(num_classes=3)
    file = tmp_path / "weights.npz"
    np.savez(file, **{name: t.numpy() for name, t in trained.state_dict().items()})
    model = rgrad.vision.models.resnet18(num_classes=3)
    model.load_state_dict({name: rgrad.from_numpy(a) for name, a in np.load(file).items()})
    x = rgrad.rand(1, 3, 32, 32)
    assert rgrad.equal(model.eval()(x), trained.eval()(x))
