"""Event files, read back."""

from __future__ import annotations

import io
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad
from event_files import events, values
from pixels import pixels
from rgrad import nn
from rgrad.utils.tensorboard import FileWriter, SummaryWriter
from rgrad.utils.tensorboard import _library as packages


def test_scalars(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        assert writer.get_logdir() == str(tmp_path)
        for step in range(3):
            writer.add_scalar("loss", rgrad.tensor([1.5 * step], requires_grad=True), step, walltime=100.0 + step)
        writer.add_scalar("a/b", 2)
        writer.add_scalar("numpy", np.float64(3.25), np.int64(7))
        writer.add_scalar("half", rgrad.tensor(0.5, dtype=rgrad.bfloat16))
        writer.add_scalar("new", 0.1, 1, new_style=True)
        writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
    found = values(tmp_path)
    assert [(step, v.simple_value) for step, v in found["loss"]] == [(0, 0.0), (1, 1.5), (2, 3.0)]
    assert [e.wall_time for e in events(tmp_path)][:3] == [100.0, 101.0, 102.0]
    assert found["a/b"][0][1].simple_value == 2
    assert found["numpy"][0][0] == 7
    assert found["half"][0][1].simple_value == 0.5
    new, double = found["new"][0][1], found["double"][0][1]
    assert new.metadata.plugin_data.plugin_name == "scalars"
    assert list(new.tensor.float_val) == [np.float32(0.1)]
    assert list(double.tensor.double_val) == [0.1]


def test_scalars_of_one_plot_are_runs_of_their_own(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_scalars("run/x", {"sin": step * 1.0, "cos": rgrad.tensor(step * 2.0)}, step)
    for name, factor in (("sin", 1.0), ("cos", 2.0)):
        found = values(tmp_path / f"run_x_{name}")["run/x"]
        assert [(s, v.simple_value) for s, v in found] == [(0, 0.0), (1, factor)]


def test_on_devices(tmp_path: Path, device: str) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("x", rgrad.ones(1) * 3)
        writer.add_histogram("h", rgrad.arange(10.0))
        writer.add_image("i", rgrad.rand(3, 4, 5))
    found = values(tmp_path)
    assert found["x"][0][1].simple_value == 3
    assert found["h"][0][1].histo.num == 10


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 5, [0.0, 1.0, 2.0, 4.0]])
def test_histograms(tmp_path: Path, bins: Any) -> None:
    data = rgrad.tensor([0.5, 0.5, 1.5, 3.0, 3.5, 0.0])
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", data, 4, bins=bins)
    ((step, value),) = values(tmp_path)["h"]
    h = value.histo
    assert step == 4
    assert (h.min, h.max, h.num, h.sum) == (0.0, 3.5, 6.0, 9.0)
    assert h.sum_squares == pytest.approx(24.0)
    limits, counts = list(h.bucket_limit), list(h.bucket)
    assert len(limits) == len(counts)
    assert sum(counts) == 6
    assert counts[0] == 0
    assert counts[-1] > 0
    assert limits == sorted(limits)
    # Each bin has the values between its limits.
    for low, high, count in zip(limits, limits[1:], counts[1:], strict=False):
        inside = [v for v in data.tolist() if low <= v < high or (v == high == limits[-1])]
        assert len(inside) == count


def test_histograms_of_few_bins(tmp_path: Path) -> None:
    data = rgrad.linspace(0, 1, 1000)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", data, bins=100, max_bins=7)
        writer.add_histogram_raw("raw", 0.0, 1.0, 3, 1.5, 1.25, [0.5, 1.0], [1, 2])
    h = values(tmp_path)["h"][0][1].histo
    assert sum(h.bucket) == 1000
    assert len(h.bucket) <= 10
    assert list(values(tmp_path)["raw"][0][1].histo.bucket) == [1.0, 2.0]


def test_images(tmp_path: Path) -> None:
    colour = rgrad.zeros(3, 2, 4)
    colour[0, 0, 1], colour[2, 1, 3] = 1.0, 0.5
    grey = rgrad.tensor([[0, 128], [255, 7]], dtype=rgrad.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("colour", colour)
        writer.add_image("grey", grey, dataformats="HW")
        writer.add_image("one", grey.unsqueeze(0))
        writer.add_image("hwc", rgrad.ones(2, 3, 4) * 2, dataformats="HWC")
        writer.add_image("odd", rgrad.tensor([[float("nan"), -1.0]]), dataformats="HW")
        writer.add_images("many", rgrad.ones(10, 1, 2, 3))
        writer.add_images("nhwc", rgrad.zeros(2, 5, 6, 3), dataformats="NHWC")
    found = {tag: rows[0][1].image for tag, rows in values(tmp_path).items()}
    width, height, channels, data = pixels(found["colour"].encoded_image_string)
    assert (width, height, channels) == (4, 2, 3)
    assert data[3:6] == bytes([255, 0, 0])
    assert data[-3:] == bytes([0, 0, 127])
    assert pixels(found["grey"].encoded_image_string)[3] == bytes([0, 0, 0, 128, 128, 128, 255, 255, 255, 7, 7, 7])
    assert pixels(found["one"].encoded_image_string)[3] == pixels(found["grey"].encoded_image_string)[3]
    assert (found["hwc"].height, found["hwc"].width, found["hwc"].colorspace) == (2, 3, 4)
    assert set(pixels(found["hwc"].encoded_image_string)[3]) == {255}
    assert pixels(found["odd"].encoded_image_string)[3] == bytes(6)
    assert (found["many"].height, found["many"].width) == (4, 24)
    assert pixels(found["many"].encoded_image_string)[3].count(255) == 10 * 2 * 3 * 3
    assert (found["nhwc"].height, found["nhwc"].width) == (5, 12)


def test_figures(tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figures = [pyplot.figure(figsize=(2, 1), dpi=50) for _ in range(3)]
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("one", figures[0], close=False)
        assert pyplot.fignum_exists(figures[0].number)
        writer.add_figure("both", figures[1:])
    assert not pyplot.fignum_exists(figures[1].number)
    pyplot.close(figures[0])
    found = {tag: rows[0][1].image for tag, rows in values(tmp_path).items()}
    assert (found["one"].width, found["one"].height) == (100, 50)
    assert (found["both"].width, found["both"].height) == (200, 50)


def test_text_audio_tensors_and_curves(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**hä**", 3)
        writer.add_audio("sound", rgrad.tensor([0.0, 1.0, -2.0]), sample_rate=8000)
        for dtype in ("float32", "float64", "int64", "uint8", "bool", "float16", "bfloat16"):
            writer.add_tensor(dtype, rgrad.tensor([[1.0, 0.0]]).to(getattr(rgrad, dtype)))
        writer.add_pr_curve("curve", rgrad.tensor([1, 0, 1, 0]), rgrad.tensor([0.9, 0.8, 0.3, 0.1]), num_thresholds=11)
    found = values(tmp_path)
    ((step, text),) = found["note/text_summary"]
    assert (step, text.tensor.string_val[0].decode()) == (3, "**hä**")
    assert text.metadata.plugin_data.plugin_name == "text"
    with wave.open(io.BytesIO(found["sound"][0][1].audio.encoded_audio_string)) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8000, 3)
        assert np.frombuffer(sound.readframes(3), "<i2").tolist() == [0, 32767, -32767]
    assert list(found["float64"][0][1].tensor.double_val) == [1.0, 0.0]
    assert list(found["bool"][0][1].tensor.bool_val) == [True, False]
    assert list(found["float16"][0][1].tensor.half_val) == [0x3C00, 0]
    assert list(found["bfloat16"][0][1].tensor.half_val) == [0x3F80, 0]
    assert [d.size for d in found["int64"][0][1].tensor.tensor_shape.dim] == [1, 2]
    curve = np.reshape(found["curve"][0][1].tensor.float_val, (6, 11))
    # At threshold 0 all four count as positive; at 0.5 the first two; at 0.9 the first.
    assert curve[:, 0].tolist() == [2, 2, 0, 0, 0.5, 1.0]
    assert curve[:, 5].tolist() == [1, 1, 1, 1, 0.5, 0.5]
    assert curve[:2, 9].tolist() == [1, 0]


def test_custom_charts(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"a": {"both": ["Multiline", ["x", "y"]], "band": ["Margin", ["v", "l", "u"]]}})
    (row,) = values(tmp_path)["custom_scalars__config__"]
    layout = packages.library().module("layout").Layout.FromString(row[1].tensor.string_val[0])
    both, band = layout.category[0].chart
    assert list(both.multiline.tag) == ["x", "y"]
    assert (band.margin.series[0].value, band.margin.series[0].upper) == ("v", "u")


def test_hyperparameters(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.1, "batch": 8, "name": "adam", "fast": True, "none": None, "decay": rgrad.tensor(0.5)},
            {"accuracy": 0.9, "loss": rgrad.tensor(0.25)},
            {"name": ["adam", "sgd"]},
            run_name="first",
            global_step=5,
        )
    found = values(tmp_path / "first")
    data = packages.library().module("hparams").HParamsPluginData
    parts = {
        tag: data.FromString(found[f"_hparams_/{tag}"][0][1].metadata.plugin_data.content)
        for tag in ("experiment", "session_start_info", "session_end_info")
    }
    start = parts["session_start_info"].session_start_info.hparams
    assert sorted(start) == ["batch", "decay", "fast", "lr", "name"]
    assert start["lr"].number_value == 0.1
    assert start["name"].string_value == "adam"
    assert start["fast"].bool_value is True
    experiment = parts["experiment"].experiment
    assert [m.name.tag for m in experiment.metric_infos] == ["accuracy", "loss"]
    domains = {i.name: [v.string_value for v in i.domain_discrete.values] for i in experiment.hparam_infos}
    assert domains["name"] == ["adam", "sgd"]
    assert (found["loss"][0][0], found["loss"][0][1].simple_value) == (5, 0.25)


def test_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, rgrad.randn(5, 3), verbose=True)
    (event,) = events(tmp_path)
    graph = packages.library().module("graph").GraphDef.FromString(event.graph_def)
    nodes = {node.name: node for node in graph.node}
    assert len(nodes) == len(graph.node)
    assert {name for node in graph.node for name in node.input} <= set(nodes)
    assert [d.size for d in nodes["Sequential/2/1/weight"].attr["_output_shapes"].list.shape[0].dim] == [2, 4]
    last = nodes["output/output"].input[0]
    assert last.startswith("Sequential/2/1/AddmmBackward0")
    reached, waiting = set(), ["output/output"]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += nodes[name].input
    assert reached == set(nodes)
    assert "input/input_0" in reached
    assert "Sequential/0/AddmmBackward0" in capsys.readouterr().out
    assert all(rgrad.equal(value, before[name]) for name, value in model.state_dict().items())


def test_embeddings(tmp_path: Path) -> None:
    mat = rgrad.arange(12.0).reshape(4, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(mat, ["a", "b\tc", "d\ne", 4], rgrad.ones(4, 3, 2, 5), global_step=3, tag="x/y")
        writer.add_embedding(mat, [["a", 1]] * 4, metadata_header=["name", "number"])
    folder = tmp_path / "00003" / "x%2fy"
    assert (folder / "tensors.tsv").read_text().splitlines()[1] == "3.0\t4.0\t5.0"
    assert (folder / "metadata.tsv").read_text() == "a\nb c\nd e\n4\n"
    assert pixels((folder / "sprite.png").read_bytes())[:2] == (10, 4)
    assert (tmp_path / "00000" / "default" / "metadata.tsv").read_text().splitlines()[0] == "name\tnumber"
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.count("embeddings {") == 2
    assert 'tensor_path: "00003/x%2fy/tensors.tsv"' in config
    assert "single_image_dim: 5\n    single_image_dim: 2" in config


def test_folders_and_suffixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_try", filename_suffix=".mine") as writer:
        assert writer.log_dir.startswith("runs/")
        assert writer.log_dir.endswith("_try")
    (file,) = Path(writer.log_dir).iterdir()
    assert file.name.endswith(".mine")


def test_after_a_crash_and_after_closing(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, purge_step=20)
    writer.add_scalar("x", 1.0, 20)
    writer.flush()
    first = events(tmp_path)
    assert [e.step for e in first] == [20, 20, 20]
    assert first[1].session_log.status == packages.library().event.SessionLog.START
    writer.close()
    writer.close()
    writer.flush()


def test_a_closed_writer_opens_a_new_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("x", 1.0)
    writer.close()
    writer.filename_suffix = ".second"
    writer.add_scalar("x", 2.0)
    writer.close()
    assert sorted(v.simple_value for _, v in values(tmp_path)["x"]) == [1.0, 2.0]


def test_the_file_writer_by_itself(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "deep" / "er")
    writer.add_event(packages.library().event.Event(), step=3, walltime=1.0)
    writer.close()
    ((event),) = events(tmp_path / "deep" / "er")
    assert (event.step, event.wall_time) == (3, 1.0)


X = rgrad.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda w: w.add_scalar("x", X), AssertionError, "one element .* got shape"),
        (lambda w: w.add_scalar("x", "a lot"), ValueError, "could not convert"),
        (lambda w: w.add_scalar("x", [1.0]), NotImplementedError, "add_scalar: got list, but numpy array or torch"),
        (lambda w: w.add_scalar(3, 1.0), TypeError, "expected the tag to be a str, got int"),
        (lambda w: w.add_scalar("x", rgrad.ones(1, device="meta")), ValueError, "device meta has no values"),
        (lambda w: w.add_scalars("x", [1.0]), TypeError, "expected tag_scalar_dict to be a dict, got list"),
        (lambda w: w.add_tensor("x", 1.0), TypeError, "expected a Tensor, got float"),
        (lambda w: w.add_histogram("x", rgrad.ones(0)), ValueError, "The input has no element"),
        (lambda w: w.add_histogram("x", X / 0), ValueError, "the values have a nan or an infinity"),
        (lambda w: w.add_histogram("x", X, bins=[2.0, 3.0]), ValueError, "no value lies within the bins"),
        (lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1], [1, 2]), ValueError, "len.bucket_limits. != len"),
        (lambda w: w.add_image("x", X), AssertionError, "size of input tensor and input format are different"),
        (lambda w: w.add_image("x", rgrad.ones(2, 2), dataformats="HH"), AssertionError, "same dimension shorthand"),
        (lambda w: w.add_image("x", rgrad.ones(2, 2), dataformats="AB"), AssertionError, "expected an order of"),
        (lambda w: w.add_image("x", rgrad.ones(7, 2, 2)), ValueError, "2 x 2 pixels and 7 channels, expected 1 to 4"),
        (lambda w: w.add_image("x", rgrad.ones(3, 0, 2)), ValueError, "0 x 2 pixels"),
        (lambda w: w.add_images("x", rgrad.ones(2, 2, 3, 3)), AssertionError, "with 3 channels"),
        (lambda w: w.add_audio("x", rgrad.ones(2, 2)), AssertionError, "1 dimensional"),
        (lambda w: w.add_text("x", 3), TypeError, "add_text: expected a str, got int"),
        (lambda w: w.add_graph(nn.Linear(2, 2)), ValueError, "input_to_model is missing"),
        (lambda w: w.add_graph(3, X), TypeError, "expected an nn.Module, got int"),
        (lambda w: w.add_graph(nn.ReLU(), X), RuntimeError, "no output of the model requires grad"),
        (lambda w: w.add_pr_curve("x", X, rgrad.ones(2)), ValueError, "got 3 labels for 2 predictions"),
        (lambda w: w.add_custom_scalars([]), TypeError, "expected layout to be a dict, got list"),
        (lambda w: w.add_custom_scalars_marginchart(["a"]), AssertionError, "three tags .* got 1"),
        (lambda w: w.add_hparams([], {}), TypeError, "should be dictionary"),
        (lambda w: w.add_hparams({"a": []}, {}), ValueError, "got list for 'a'"),
        (lambda w: w.add_hparams({"a": 1}, {}, {"a": ["b"]}), TypeError, "list of same type as hparam_dict"),
        (lambda w: w.add_embedding(X), AssertionError, "mat should be 2D"),
        (lambda w: w.add_embedding(rgrad.ones(2, 2), ["a"]), AssertionError, "#labels should equal with #data points"),
        (lambda w: w.add_embedding(rgrad.ones(2, 2), None, rgrad.ones(1, 3, 2, 2)), AssertionError, "#images should"),
    ],
)
def test_bad_input(tmp_path: Path, call: Callable[[SummaryWriter], Any], error: type[Exception], said: str) -> None:
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(error, match=said.replace("torch", "tensor")):
            call(writer)
        writer.add_scalar("after", 1.0)
    assert list(values(tmp_path)) == ["after"]


def test_without_a_package_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = """
import sys
for name in ("tensorboard", "tensorboardX"):
    sys.modules[name] = None
from rgrad.utils.tensorboard import SummaryWriter
try:
    SummaryWriter(sys.argv[1])
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert "pip install tensorboard " in done.stdout
    assert "pip install tensorboardX" in done.stdout


def test_the_package_is_imported_on_use() -> None:
    code = "import sys, rgrad.utils.tensorboard; print([m for m in sys.modules if m.startswith('tensorboard')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


# ---- boxes, films, meshes --------------------------------------------------------------------------------------------


def picture_of(data: bytes) -> Any:
    image = pytest.importorskip("PIL.Image")
    return image.open(io.BytesIO(data))


def test_images_with_boxes(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    grey = rgrad.full((3, 20, 30), 0.5)
    boxes = rgrad.tensor([[2.0, 3.0, 12.0, 14.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("plain", grey, boxes, 3)
        writer.add_image_with_boxes("large", grey, boxes, rescale=2, labels=["a"])
        writer.add_image_with_boxes("hwc", grey.permute(1, 2, 0), boxes, dataformats="HWC", labels=["a", "b"])
        with pytest.raises(ValueError, match=r"expected \[N, 4\]"):
            writer.add_image_with_boxes("bad", grey, rgrad.ones(4))
    found = values(tmp_path)
    ((step, value),) = found["plain"]
    shown = np.asarray(picture_of(value.image.encoded_image_string))
    assert (step, shown.shape) == (3, (20, 30, 3))
    red = (shown == (255, 0, 0)).all(2)
    assert red[8, 2]
    assert red[3, 7]
    assert not red[8, 7]
    assert not red[8, 20]
    assert (shown[~red] == 127).all()
    large = found["large"][0][1].image
    assert (large.height, large.width) == (40, 60)
    # Labels are left out where there are not as many as boxes.
    same = picture_of(found["hwc"][0][1].image.encoded_image_string)
    assert (np.asarray(same) == shown).all()


@pytest.mark.parametrize(("number", "size"), [(1, (4, 6)), (2, (4, 12)), (3, (4, 24)), (5, (8, 24))])
def test_films(tmp_path: Path, number: int, size: tuple[int, int]) -> None:
    pytest.importorskip("PIL")
    film = rgrad.zeros(number, 3, 3, 4, 6)
    film[0, 1] = 1.0
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("film", film, 2, fps=5)
        for bad in (rgrad.ones(3, 4, 6), rgrad.ones(1, 2, 2, 4, 4)):
            with pytest.raises(ValueError, match="add_video"):
                writer.add_video("film", bad)
        with pytest.raises(ValueError, match="fps"):
            writer.add_video("film", film, fps=0)
    ((step, value),) = values(tmp_path)["film"]
    assert (step, value.image.height, value.image.width) == (2, *size)
    gif = picture_of(value.image.encoded_image_string)
    assert (gif.format, gif.n_frames, gif.size, gif.info["duration"]) == ("GIF", 3, size[::-1], 200)
    gif.seek(1)
    frame = np.asarray(gif.convert("L"))
    assert (frame[:4, :6] == 255).all()
    assert frame.sum() == 255 * 24


def test_meshes(tmp_path: Path) -> None:
    points, faces = rgrad.rand(1, 4, 3), rgrad.tensor([[[0, 1, 2], [1, 2, 3]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("m", points, colors=rgrad.zeros(1, 4, 3), faces=faces, config_dict={"b": 1, "a": {}})
        writer.add_mesh("cloud", points)
        with pytest.raises(ValueError, match=r"expected \[B, N, 3\]"):
            writer.add_mesh("m", rgrad.ones(4, 3))
    found = values(tmp_path)
    assert sorted(found) == ["cloud_VERTEX", "m_COLOR", "m_FACE", "m_VERTEX"]
    message = packages.library().module("mesh").MeshPluginData
    for name, shape, kinds in (("m_FACE", [1, 2, 3], 0b1110), ("cloud_VERTEX", [1, 4, 3], 0b10)):
        value = found[name][0][1]
        assert value.metadata.plugin_data.plugin_name == "mesh"
        about = message.FromString(value.metadata.plugin_data.content)
        assert (list(about.shape), about.name) == (shape, name.split("_")[0])
        if "components" in message.DESCRIPTOR.fields_by_name:
            assert about.components == kinds
        assert [d.size for d in value.tensor.tensor_shape.dim] == shape
    assert list(found["m_FACE"][0][1].tensor.float_val) == [0, 1, 2, 1, 2, 3]
    assert about.json_config == "{}"


def test_onnx_says_what_to_use(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(NotImplementedError, match="add_graph"):
        writer.add_onnx_graph("model.onnx")
