"""Values as the messages that TensorBoard reads: scalars, histograms, images, texts, curves, hyperparameters."""

import io
import wave
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._core import Tensor
from ..._tensor.png import encode
from ._library import library

Array = npt.NDArray[Any]


def to_array(value: Any, what: str) -> Array:
    """Numbers, arrays and tensors as an array."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        if value.is_meta:
            raise ValueError(f"{what}: a tensor on the device meta has no values")
        value = value.detach()
        if value.dtype == _core.bfloat16:
            value = value.float()
        return np.asarray(value.numpy(force=True))
    if np.isscalar(value):
        return np.array([value])
    raise NotImplementedError(f"{what}: got {type(value).__name__}, but numpy array or tensor are expected")


def _plugin(name: str, content: bytes = b"") -> Any:
    metadata = library().summary.SummaryMetadata
    return metadata(plugin_data=metadata.PluginData(plugin_name=name, content=content))


def summary_message(tag: str, **value: Any) -> Any:
    summary = library().summary.Summary
    return summary(value=[summary.Value(tag=tag, **value)])


def shape_message(sizes: Sequence[int]) -> Any:
    shape = library().tensor_shape.TensorShapeProto
    return shape(dim=[shape.Dim(size=n) for n in sizes])


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number. In the new style it is a tensor, which loads faster."""
    array = to_array(value, "add_scalar").squeeze()
    if array.ndim:
        raise AssertionError(f"add_scalar: Tensor should contain one element (0 dimensions), got shape {array.shape}")
    number = float(array)
    if not new_style:
        return summary_message(tag, simple_value=number)
    tensor = library().tensor.TensorProto
    if double_precision:
        made = tensor(double_val=[number], dtype="DT_DOUBLE")
    else:
        made = tensor(float_val=[number], dtype="DT_FLOAT")
    return summary_message(tag, tensor=made, metadata=_plugin("scalars"))


# By dtype: the name in messages, and the field.
_KINDS = {
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
    "int8": ("DT_INT8", "int_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "bool": ("DT_BOOL", "bool_val"),
}


def tensor(tag: str, value: Tensor) -> Any:
    """A whole tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"add_tensor: expected a Tensor, got {type(value).__name__}")
    if value.numel() * value.element_size() >= 1 << 31:
        raise ValueError("add_tensor: tensor is bigger than protocol buffer's hard limit of 2GB in size")
    kind, field = _KINDS[str(value.dtype).rpartition(".")[2]]
    sizes = tuple(value.shape)
    if value.dtype.is_complex:
        # Real and imaginary parts in turn.
        value = _core.view_as_real(value.resolve_conj())
    plain = value.detach().resolve_neg().cpu().reshape(-1)
    if kind == "DT_HALF":
        values: Any = plain.numpy().view(np.uint16).tolist()
    elif kind == "DT_BFLOAT16":
        # The upper half of a float32.
        values = (plain.float().numpy().view(np.uint32) >> 16).tolist()
    else:
        values = plain.tolist()
    made = library().tensor.TensorProto(dtype=kind, tensor_shape=shape_message(sizes), **{field: values})
    return summary_message(tag, tensor=made, metadata=_plugin("tensor"))


def histogram_of_counts(
    tag: str, low: float, high: float, num: int, total: float, squares: float, limits: Any, counts: Any
) -> Any:
    """A histogram whose counts are known."""
    made = library().summary.HistogramProto(
        min=low, max=high, num=num, sum=total, sum_squares=squares, bucket_limit=limits, bucket=counts
    )
    return summary_message(tag, histo=made)


def default_bins() -> list[float]:
    """TensorBoard's: growing by a tenth from 1e-12 to 1e20, on both sides of zero."""
    positive = []
    edge = 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return [-v for v in reversed(positive)] + [0.0] + positive


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values."""
    array = to_array(values, "add_histogram").astype(float).reshape(-1)
    if not array.size:
        raise ValueError("add_histogram: The input has no element.")
    if not np.isfinite(array).all():
        raise ValueError("add_histogram: the values have a nan or an infinity; a histogram has no place for them")
    counts, edges = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, edges = _coarser(counts, edges, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("add_histogram: no value lies within the bins")
    first, last = int(filled[0]), int(filled[-1])
    # Only right limits are written. An empty bin in front gives the left limit of the first one.
    inner = counts[max(first - 1, 0) : last + 1].tolist()
    if first == 0:
        inner = [0, *inner]
    limits = edges[first : last + 2].tolist()
    total = float(array.sum())
    return histogram_of_counts(tag, array.min(), array.max(), array.size, total, array.dot(array), limits, inner)


def _coarser(counts: Array, edges: Array, step: int) -> tuple[Array, Array]:
    """Every ``step`` neighbouring bins as one."""
    rest = -len(counts) % step
    joined = np.concatenate([counts, np.zeros(rest, counts.dtype)]).reshape(-1, step).sum(1)
    return joined, np.concatenate([edges[:-1:step], edges[-1:]])


def image_array(value: Any, dataformats: str, what: str) -> npt.NDArray[np.uint8]:
    """Height, width and channels in this order, as bytes; several images as a grid of eight columns."""
    array = to_array(value, what)
    letters = dataformats.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"{what}: You can not use the same dimension shorthand twice. input_format: {dataformats}")
    if array.ndim != len(letters):
        raise AssertionError(
            f"{what}: size of input tensor and input format are different. tensor shape: {array.shape}, "
            f"input_format: {dataformats}"
        )
    wanted = {4: "NCHW", 3: "HWC", 2: "HW"}.get(len(letters), "")
    if not wanted or set(wanted) != set(letters):
        raise AssertionError(
            f"{what}: got dataformats={dataformats!r}, expected an order of the letters NCHW, CHW or HW"
        )
    array = array.transpose([letters.index(c) for c in wanted])
    if array.ndim == 4:
        array = _grid(array).transpose(1, 2, 0)
    elif array.ndim == 2:
        array = np.stack([array] * 3, 2)
    elif array.shape[2] == 1:
        array = np.concatenate([array] * 3, 2)
    if array.dtype != np.uint8:
        array = array.astype(np.float32) * np.float32(255)
        array = np.nan_to_num(array, nan=0.0).clip(0, 255)
    return array.astype(np.uint8)


def _grid(images: Array) -> Array:
    """Images (N, C, H, W) side by side, eight in a row, as (C, H, W)."""
    number, channels, height, width = images.shape
    if channels == 1:
        images = np.concatenate([images] * 3, 1)
    elif channels != 3:
        raise AssertionError(f"add_images: Input should be a 4D numpy array with 3 channels, got {channels}")
    columns = min(number, 8)
    rows = -(-number // max(1, columns))
    canvas = np.zeros((3, height * rows, width * columns), images.dtype)
    for i in range(number):
        y, x = i // columns * height, i % columns * width
        canvas[:, y : y + height, x : x + width] = images[i]
    return canvas


def image(tag: str, value: Any, dataformats: str, what: str = "add_image") -> Any:
    """An image, or a grid of several."""
    array = image_array(value, dataformats, what)
    height, width, channels = array.shape
    if not array.size or channels > 4:
        raise ValueError(f"{what}: got an image of {height} x {width} pixels and {channels} channels, expected 1 to 4")
    data = encode(np.ascontiguousarray(array).tobytes(), width, height, channels)
    made = library().summary.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=data)
    return summary_message(tag, image=made)


def figure_array(figures: Any, close: bool) -> Array:
    """Figures of matplotlib as images (C, H, W), several as (N, C, H, W)."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, (list, tuple)):
        return np.stack([figure_array(figure, close) for figure in figures])
    canvas: Any = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    if close:
        pyplot.close(figures)
    return pixels


def audio(tag: str, value: Any, sample_rate: int) -> Any:
    """One channel of sound, clipped to the range from -1 to 1."""
    array = to_array(value, "add_audio").astype(np.float64).squeeze()
    if array.ndim != 1:
        raise AssertionError(f"add_audio: input tensor should be 1 dimensional, got shape {array.shape}")
    samples = (array.clip(-1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes(samples.tobytes())
    made = library().summary.Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return summary_message(tag, audio=made)


def text(tag: str, words: str) -> Any:
    """Text, which TensorBoard reads as Markdown."""
    if not isinstance(words, str):
        raise TypeError(f"add_text: expected a str, got {type(words).__name__}")
    made = library().tensor.TensorProto(dtype="DT_STRING", string_val=[words.encode()], tensor_shape=shape_message([1]))
    return summary_message(f"{tag}/text_summary", tensor=made, metadata=_plugin("text"))


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """Which scalars stand in one chart: by category and chart the kind, and the tags."""
    messages = library().module("layout")
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(
                        f"add_custom_scalars: a chart of margins has three tags (value, lower, upper), got {len(tags)}"
                    )
                series = messages.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(messages.Chart(title=title, margin=messages.MarginChartContent(series=[series])))
            else:
                made.append(messages.Chart(title=title, multiline=messages.MultilineChartContent(tag=tags)))
        categories.append(messages.Category(title=category, chart=made))
    data = messages.Layout(category=categories).SerializeToString()
    held = library().tensor.TensorProto(dtype="DT_STRING", string_val=[data], tensor_shape=shape_message([]))
    return summary_message("custom_scalars__config__", tensor=held, metadata=_plugin("custom_scalars"))


def pr_curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> Any:
    """Precision and recall at thresholds from 0 to 1."""
    right = to_array(labels, "add_pr_curve").astype(np.float64).reshape(-1)
    scores = to_array(predictions, "add_pr_curve").reshape(-1)
    if right.shape != scores.shape:
        raise ValueError(f"add_pr_curve: got {right.size} labels for {scores.size} predictions")
    thresholds = min(thresholds, 127)
    places = np.floor(scores * (thresholds - 1)).astype(np.int32)
    weight = np.ones(right.shape) if weights is None else to_array(weights, "add_pr_curve")
    reach = (0, thresholds - 1)
    # A prediction counts as positive at every threshold up to its own.
    found = [
        np.cumsum(np.histogram(places, bins=thresholds, range=reach, weights=share * weight)[0][::-1])[::-1]
        for share in (right, 1.0 - right)
    ]
    true_positive, false_positive = found
    true_negative, false_negative = false_positive[0] - false_positive, true_positive[0] - true_positive
    least = 1e-7
    precision = true_positive / np.maximum(least, true_positive + false_positive)
    recall = true_positive / np.maximum(least, true_positive + false_negative)
    return pr_curve_of_counts(
        tag, [true_positive, false_positive, true_negative, false_negative, precision, recall], thresholds
    )


def pr_curve_of_counts(tag: str, rows: Sequence[Any], thresholds: int) -> Any:
    """A curve of true and false positives, true and false negatives, precision and recall."""
    data = np.stack([to_array(row, "add_pr_curve_raw") for row in rows])
    thresholds = min(thresholds, 127)
    content = library().module("pr_curve").PrCurvePluginData(version=0, num_thresholds=thresholds)
    made = library().tensor.TensorProto(
        dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=shape_message(data.shape)
    )
    return summary_message(tag, tensor=made, metadata=_plugin("pr_curves", content.SerializeToString()))


def hparams(values: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None) -> list[Any]:
    """The three messages of a run with hyperparameters: the experiment, the session's start and its end."""
    domains = {} if domains is None else domains
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, domain in domains.items():
        same = name in values and isinstance(domain, list)
        if not same or not all(isinstance(d, type(values[name])) for d in domain):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    struct_pb2 = import_module("google.protobuf.struct_pb2")
    api, data = library().module("hparams_api"), library().module("hparams")
    start = data.SessionStartInfo()
    infos = []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, (Tensor, np.generic)):
            value = value.item()
        if isinstance(value, bool):
            kind, field = "DATA_TYPE_BOOL", "bool_value"
        elif isinstance(value, (int, float)):
            kind, field = "DATA_TYPE_FLOAT64", "number_value"
        elif isinstance(value, str):
            kind, field = "DATA_TYPE_STRING", "string_value"
        else:
            raise ValueError(
                f"add_hparams: value should be one of int, float, str, bool, or Tensor, got {type(value).__name__} for "
                f"{name!r}"
            )
        setattr(start.hparams[name], field, value)
        domain_list = None
        if name in domains:
            domain_list = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: d}) for d in domains[name]])
        infos.append(api.HParamInfo(name=name, type=api.DataType.Value(kind), domain_discrete=domain_list))
    experiment = api.Experiment(
        hparam_infos=infos, metric_infos=[api.MetricInfo(name=api.MetricName(tag=tag)) for tag in metrics]
    )
    end = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    messages = {"experiment": experiment, "session_start_info": start, "session_end_info": end}
    made = []
    for part, message in messages.items():
        content = data.HParamsPluginData(version=0, **{part: message}).SerializeToString()
        made.append(summary_message(f"_hparams_/{part}", metadata=_plugin("hparams", content)))
    return made
