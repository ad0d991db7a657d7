"""The files of TensorBoard's projector: vectors, labels, small images, and the list of what there is."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..._tensor.png import encode
from ._values import Array, image_array, to_array


def write(
    folder: Path, mat: Array, metadata: Any, header: list[str] | None, label_img: Any, subdir: str, tag: str, step: int
) -> str:
    """Writes what belongs to one embedding; gives its entry in the list."""
    if mat.ndim != 2:
        raise AssertionError(
            f"add_embedding: mat should be 2D, where mat.size(0) is the number of data points, got shape {mat.shape}"
        )
    if metadata is not None and len(metadata) != len(mat):
        raise AssertionError(
            f"add_embedding: #labels should equal with #data points, got {len(metadata)} for {len(mat)}"
        )
    images = None if label_img is None else to_array(label_img, "add_embedding")
    if images is not None and len(images) != len(mat):
        raise AssertionError(f"add_embedding: #images should equal with #data points, got {len(images)} for {len(mat)}")
    folder.mkdir(parents=True, exist_ok=True)
    entry = [f'tensor_name: "{tag}:{step:05}"']
    lines = ["\t".join(str(x) for x in row) for row in mat.tolist()]
    (folder / "tensors.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if metadata is not None:
        (folder / "metadata.tsv").write_text(_labels(metadata, header), encoding="utf-8")
        entry.append(f'metadata_path: "{subdir}/metadata.tsv"')
    if images is not None:
        (folder / "sprite.png").write_bytes(_sprite(images))
        height, width = images.shape[2:]
        entry.append(
            f'sprite {{\n    image_path: "{subdir}/sprite.png"\n    single_image_dim: {width}\n'
            f"    single_image_dim: {height}\n  }}"
        )
    entry.append(f'tensor_path: "{subdir}/tensors.tsv"')
    return "embeddings {\n" + "".join(f"  {line}\n" for line in entry) + "}\n"


def _labels(metadata: Any, header: list[str] | None) -> str:
    rows = [[str(x) for x in row] for row in metadata] if header else [[str(x)] for x in metadata]
    if header:
        if any(len(row) != len(header) for row in rows):
            raise ValueError(f"add_embedding: len of header must be equal to the number of columns, got {len(header)}")
        rows.insert(0, [str(x) for x in header])
    # A tab or the end of a line inside of a label would be taken for that of the table.
    words = ([" ".join(cell.split("\t")).replace("\n", " ") for cell in row] for row in rows)
    return "".join("\t".join(row) + "\n" for row in words)


def _sprite(images: Array) -> bytes:
    """All images in a square, row by row; what is left is empty."""
    number = len(images)
    side = math.ceil(math.sqrt(number))
    if images.ndim != 4:
        raise AssertionError(f"add_embedding: expected label_img of shape (N, C, H, W), got {images.shape}")
    tiles = [image_array(one, "CHW", "add_embedding") for one in images]
    height, width, channels = tiles[0].shape
    canvas = np.zeros((side * height, side * width, channels), np.uint8)
    for i, tile in enumerate(tiles):
        y, x = i // side * height, i % side * width
        canvas[y : y + height, x : x + width] = tile
    return encode(canvas.tobytes(), side * width, side * height, channels)
