"""Images of handwritten digits: MNIST and its relatives from a folder, and a small set that needs no download."""

import gzip
import math
import os
import struct
import warnings
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import numpy as np

import rgrad
from rgrad import Tensor
from rgrad.utils.data import Dataset

__all__ = ["KMNIST", "MNIST", "Digits", "FashionMNIST"]

Step = Callable[[Any], Any] | None

# The element types of the IDX format, which MNIST comes in: code, and the big-endian type in the file.
_ELEMENTS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
# NumPy's.
_MOST_DIMENSIONS = 64
# gzip makes at most so many bytes of one.
_MOST_PACKED = 1032
_CHUNK = 1 << 20


def read_idx(path: str | os.PathLike[str]) -> Tensor:
    """Read a file in the IDX format, compressed by gzip or not.

    Args:
        path: The file.

    Returns:
        A tensor of the file's shape and element type.

    Raises:
        ValueError: It is no such file, or does not hold what its head says.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
        try:
            start = content.read(4)
            if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _ELEMENTS:
                raise ValueError(f"{name} is no IDX file: it begins with {start.hex(' ') or 'nothing'}")
            kind, rank = np.dtype(_ELEMENTS[start[2]]), start[3]
            head = content.read(4 * rank)
            if len(head) < 4 * rank:
                raise ValueError(
                    f"{name} ends in its head: {rank} sizes are announced, the file has {4 + len(head)} bytes"
                )
            shape = struct.unpack(f">{rank}I", head)
            wanted = math.prod(shape) * kind.itemsize
            most = size * _MOST_PACKED if packed else size - 4 - len(head)
            if wanted > most:
                at_most = "at most " if packed else ""
                raise ValueError(f"{name} holds {at_most}{most} bytes of elements, its shape {shape} takes {wanted}")
            raw = _up_to(content, wanted + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{name} is damaged: {error}") from None
    if len(raw) != wanted:
        count = f"only {len(raw)}" if len(raw) < wanted else "more"
        raise ValueError(f"{name} holds {count} bytes of elements, its shape {shape} takes {wanted}")
    if rank > _MOST_DIMENSIONS:
        raise ValueError(f"{name} has {rank} dimensions, expected at most {_MOST_DIMENSIONS}")
    values = np.frombuffer(raw, kind).reshape(shape)
    return rgrad.from_numpy(values.astype(kind.newbyteorder("=")))


def _up_to(content: IO[bytes], most: int) -> bytearray:
    """What comes next, but no more than so many bytes. Memory is asked for as they come."""
    raw = bytearray()
    while len(raw) < most and (part := content.read(min(_CHUNK, most - len(raw)))):
        raw += part
    return raw


class _Images(Dataset[tuple[Any, Any]]):
    """Images with the number of the class of each."""

    data: Tensor
    targets: Tensor
    classes: ClassVar[list[str]]

    def __init__(self, train: bool, transform: Step, target_transform: Step) -> None:
        self.train = train
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index].numpy()
        target: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        part = "Train" if self.train else "Test"
        return f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}\n    Split: {part}"


def _digits(train: bool) -> tuple[Tensor, Tensor]:
    """The digits of scikit-learn; every fifth is for tests. Pixels of 0 to 16 become 0 to 255."""
    try:
        load_digits = import_module("sklearn.datasets").load_digits
    except ImportError as error:
        raise RuntimeError("The bundled digits are those of scikit-learn: pip install scikit-learn") from error
    images, targets = load_digits(return_X_y=True)
    chosen = (np.arange(len(targets)) % 5 != 0) == train
    pixels = np.round(images[chosen].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    return rgrad.from_numpy(pixels), rgrad.from_numpy(targets[chosen].astype(np.int64))


class Digits(_Images):
    """The 1,797 handwritten digits of 8x8 pixels that scikit-learn ships (Alpaydin and Kaynak 1998).

    Args:
        train: Four fifths to train on; False gives the rest.
        transform: A function of the image, an array of uint8 of shape ``(8, 8)``.
        target_transform: A function of the class, a number.

    Raises:
        RuntimeError: The package scikit-learn is not installed.

    Example:
        >>> from rgrad.vision import datasets
        >>> len(datasets.Digits()), len(datasets.Digits(train=False))
        (1437, 360)
    """

    classes: ClassVar = [str(digit) for digit in range(10)]

    def __init__(self, train: bool = True, transform: Step = None, target_transform: Step = None) -> None:
        super().__init__(train, transform, target_transform)
        self.data, self.targets = _digits(train)


class MNIST(_Images):
    """The 70,000 handwritten digits of 28x28 pixels of LeCun, Cortes and Burges, from files in a folder.

    The files are ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
    ``t10k-labels-idx1-ubyte``, with the ending ``.gz`` or without, in ``root``, ``root/MNIST/raw`` or ``root/raw``.

    Nothing is downloaded. Where the files are not there and ``download`` is True, the digits of :class:`Digits`,
    enlarged to 28x28, stand in for them, and a warning says so: a tutorial that begins with a download runs.

    Args:
        root: The folder.
        train: The 60,000 to train on; False gives the 10,000 to test with.
        transform: A function of the image, an array of uint8 of shape ``(28, 28)``.
        target_transform: A function of the class, a number.
        download: What to do if there are no files: warn and take the bundled digits, or raise an error.

    Raises:
        RuntimeError: There are no files, and ``download`` is False and no earlier object for this folder took the
            bundled digits.
        ValueError: A file is not what it should be, or there are not as many classes as images.
    """

    classes: ClassVar = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]
    # Folders for which the bundled digits stand in; the second object of a tutorial no longer says `download`.
    _stands_in: ClassVar[set[str]] = set()

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Step = None,
        target_transform: Step = None,
        download: bool = False,
    ) -> None:
        super().__init__(train, transform, target_transform)
        self.root = root
        part = "train" if train else "t10k"
        images, labels = (self._find(f"{part}-{what}-ubyte") for what in ("images-idx3", "labels-idx1"))
        if images is not None and labels is not None:
            self.data, self.targets = read_idx(images), read_idx(labels).long()
            if self.data.ndim != 3 or self.targets.shape != self.data.shape[:1]:
                raise ValueError(
                    f"{images} and {labels} do not fit: shapes {tuple(self.data.shape)}, {tuple(self.targets.shape)}"
                )
            return
        place = os.path.abspath(root)
        if type(self) is not MNIST or (not download and place not in self._stands_in):
            raise RuntimeError(
                f"Dataset not found. You can use download=True to download it, in PyTorch; here put {part}-images-idx3-"
                f"ubyte and {part}-labels-idx1-ubyte (.gz or not) into {os.fspath(root)}, or use datasets.Digits()"
            )
        if place not in self._stands_in:
            self._stands_in.add(place)
            warnings.warn(
                f"MNIST: there are no files in {os.fspath(root)}, and nothing is downloaded; the 1,797 "
                "digits of scikit-learn, enlarged to 28x28, stand in for them",
                stacklevel=2,
            )
        small, self.targets = _digits(train)
        self.data = small.repeat_interleave(3, 1).repeat_interleave(3, 2)
        self.data = rgrad.nn.functional.pad(self.data, (2, 2, 2, 2))

    def _find(self, name: str) -> Path | None:
        root = Path(self.root)
        for folder in (root / type(self).__name__ / "raw", root / "raw", root):
            for file in (folder / name, folder / f"{name}.gz"):
                if file.is_file():
                    return file
        return None


class FashionMNIST(MNIST):
    """Articles of clothing in the form of :class:`MNIST` (Xiao et al. 2017). Nothing stands in for them."""

    classes: ClassVar = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """Cursive Japanese characters in the form of :class:`MNIST` (Clanuwat et al. 2018). Nothing stands in for them."""

    classes: ClassVar = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
