"""Images with boxes, films and meshes as the messages that TensorBoard reads."""

import io
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ._library import library
from ._values import Array, image, image_array, shape_message, summary_message, to_array

_RED = (255, 0, 0)


def _pillow(what: str, why: str) -> Any:
    try:
        return import_module("PIL.Image"), import_module("PIL.ImageDraw")
    except ImportError as error:
        raise ImportError(f"{what}: {why} needs Pillow ({error}). Install it: pip install pillow") from error


def image_with_boxes(
    tag: str, value: Any, boxes: Any, rescale: float, dataformats: str, labels: Sequence[str] | None
) -> Any:
    """An image with red rectangles, each given by its corners x0, y0, x1, y1, and perhaps with a label."""
    what = "add_image_with_boxes"
    pixels, corners = image_array(value, dataformats, what), to_array(boxes, what)
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise ValueError(f"{what}: got boxes of the shape {list(corners.shape)}, expected [N, 4]: x0, y0, x1, y1")
    if labels is not None:
        labels = [labels] if isinstance(labels, str) else list(labels)
        labels = labels if len(labels) == len(corners) else None
    pillow, drawing = _pillow(what, "drawing")
    picture = pillow.fromarray(pixels[:, :, :3])
    draw = drawing.Draw(picture)
    for i, (left, top, right, bottom) in enumerate(corners.tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill=_RED)
        if labels is not None:
            x0, y0, x1, y1 = draw.textbbox((0, 0), labels[i])
            width, height = x1 - x0, y1 - y0
            margin = int(np.ceil(0.05 * height))
            draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill=_RED)
            draw.text((left + margin, bottom - height - margin), labels[i], fill="black")
    size = (int(pixels.shape[1] * rescale), int(pixels.shape[0] * rescale))
    if size != (pixels.shape[1], pixels.shape[0]):
        picture = picture.resize(size, pillow.Resampling.LANCZOS)
    return image(tag, np.asarray(picture), "HWC", what)


def _rows(films: Array) -> Array:
    """Films (N, T, C, H, W) side by side, in rows whose number is about the root of N, as (T, H, W, C)."""
    number = len(films)
    whole = 1 << max(0, number - 1).bit_length()
    rows = 1 << ((number.bit_length() - 1) // 2)
    empty = np.zeros((whole - number, *films.shape[1:]), films.dtype)
    _, frames, channels, height, width = films.shape
    grid: Array = np.concatenate([films, empty]).reshape(rows, whole // rows, frames, channels, height, width)
    return grid.transpose(2, 0, 4, 1, 5, 3).reshape(frames, rows * height, whole // rows * width, channels)


def video(tag: str, value: Any, fps: float) -> Any:
    """A film as an animated GIF."""
    what = "add_video"
    films = to_array(value, what)
    if films.ndim != 5 or not films.size or films.shape[2] not in (1, 3):
        raise ValueError(
            f"{what}: got a tensor of the shape {list(films.shape)}, expected [N, T, C, H, W] with 1 or 3 channels"
        )
    if not fps > 0:
        raise ValueError(f"{what}: got fps={fps}, expected a positive number")
    frames = _rows(films)
    if frames.dtype != np.uint8:
        frames = np.nan_to_num(frames.astype(np.float32) * 255, nan=0.0).clip(0, 255).astype(np.uint8)
    if frames.shape[3] == 1:
        frames = np.concatenate([frames] * 3, 3)
    pillow, _ = _pillow(what, "a GIF")
    first, *others = [pillow.fromarray(frame) for frame in frames]
    out = io.BytesIO()
    first.save(out, format="GIF", save_all=True, append_images=others, duration=1000 / fps, loop=0)
    _, height, width, channels = frames.shape
    made = library().summary.Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue()
    )
    return summary_message(tag, image=made)


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Mapping[str, Any] | None) -> Any:
    """A mesh or a cloud of points: the same message for vertices, faces and colours, each with its own kind."""
    what = "add_mesh"
    data = library().module("mesh").MeshPluginData
    given = [(vertices, data.VERTEX, "vertices"), (faces, data.FACE, "faces"), (colors, data.COLOR, "colors")]
    parts = [(to_array(part, what), kind, name) for part, kind, name in given if part is not None]
    for part, _, name in parts:
        if part.ndim != 3 or part.shape[2] != 3:
            raise ValueError(f"{what}: got {name} of the shape {list(part.shape)}, expected [B, N, 3]")
    components = sum(1 << kind for _, kind, _ in parts)
    proto = library().summary
    text = json.dumps(config or {}, sort_keys=True)
    values = []
    for part, kind, _ in parts:
        about = data(version=0, name=tag, content_type=kind, shape=part.shape, json_config=text)
        # The older form of the message, which tensorboardX has, does without.
        if "components" in data.DESCRIPTOR.fields_by_name:
            about.components = components
        content = about.SerializeToString()
        plugin = proto.SummaryMetadata.PluginData(plugin_name="mesh", content=content)
        tensor = library().tensor.TensorProto(
            dtype="DT_FLOAT", float_val=part.reshape(-1).tolist(), tensor_shape=shape_message(part.shape)
        )
        values.append(
            proto.Summary.Value(
                tag=f"{tag}_{data.ContentType.Name(kind)}",
                tensor=tensor,
                metadata=proto.SummaryMetadata(plugin_data=plugin),
            )
        )
    return proto.Summary(value=values)
