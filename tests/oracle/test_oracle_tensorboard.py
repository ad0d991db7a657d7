"""Event files beside those that torch writes: the same messages for the same calls, with both packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
# Not skipped without it: `./run oracle` installs it, and torch's writer needs it.
from torch.utils.tensorboard import SummaryWriter as TheirWriter  # noqa: E402

import rgrad  # noqa: E402
from event_files import events, values  # noqa: E402
from pixels import pixels  # noqa: E402
from rgrad.utils.tensorboard import SummaryWriter  # noqa: E402
from rgrad.utils.tensorboard import _library as packages  # noqa: E402

pytestmark = pytest.mark.oracle


@pytest.fixture(params=sorted(packages.PACKAGES))
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """rgrad's writer uses this package. The messages in files are the same."""
    chosen = packages.Library(request.param)
    for module in ("writer", "_values", "_graph", "_media"):
        monkeypatch.setattr(f"rgrad.utils.tensorboard.{module}.library", lambda: chosen)
    name: str = request.param
    return name


def normal(*shape: int) -> np.ndarray:
    return np.random.RandomState(5).randn(*shape)


BOXES = [[2.0, 3.0, 12.0, 14.0], [5.0, 1.0, 25.0, 18.0]]

Call = Callable[[Any, Any], None]

# `T` is torch or rgrad, `w` its writer.
CALLS: dict[str, Call] = {
    "scalar": lambda T, w: w.add_scalar("x", T.tensor([1.25]), 3),
    "scalar of numpy": lambda T, w: w.add_scalar("x", np.float32(0.1)),
    "new style": lambda T, w: w.add_scalar("x", 0.1, 2, new_style=True),
    "double": lambda T, w: w.add_scalar("x", 0.1, 2, new_style=True, double_precision=True),
    "bfloat16": lambda T, w: w.add_scalar("x", T.tensor(0.1, dtype=T.bfloat16), 2),
    "histogram": lambda T, w: w.add_histogram("x", T.from_numpy(normal(1000)), 1),
    "histogram of integers": lambda T, w: w.add_histogram("x", T.arange(50), 1),
    "histogram of one value": lambda T, w: w.add_histogram("x", T.ones(7), 1),
    "histogram auto": lambda T, w: w.add_histogram("x", T.from_numpy(normal(300)), 1, bins="auto"),
    "histogram doane": lambda T, w: w.add_histogram("x", T.from_numpy(normal(300)), 1, bins="doane"),
    "histogram of few": lambda T, w: w.add_histogram("x", T.from_numpy(normal(300)), 1, bins=100, max_bins=9),
    "histogram by edges": lambda T, w: w.add_histogram("x", T.from_numpy(normal(99)), 1, bins=[-9, -1, 0, 1, 9]),
    "histogram raw": lambda T, w: w.add_histogram_raw("x", 0.0, 1.0, 3, 1.5, 1.2, [0.5, 1.0], [1, 2], 7),
    "image": lambda T, w: w.add_image("x", T.from_numpy(normal(3, 5, 7))),
    "image of bytes": lambda T, w: w.add_image("x", T.arange(24, dtype=T.uint8).reshape(1, 4, 6)),
    "image HW": lambda T, w: w.add_image("x", T.linspace(0, 1, 12).reshape(3, 4), dataformats="HW"),
    "image HWC": lambda T, w: w.add_image("x", T.linspace(0, 1, 24).reshape(2, 4, 3), dataformats="HWC"),
    "image WCH": lambda T, w: w.add_image("x", T.linspace(0, 1, 24).reshape(2, 3, 4), dataformats="WCH"),
    "images": lambda T, w: w.add_images("x", T.linspace(0, 1, 11 * 3 * 4).reshape(11, 1, 3, 4)),
    "images NHWC": lambda T, w: w.add_images("x", T.linspace(0, 1, 2 * 24).reshape(2, 2, 4, 3), dataformats="NHWC"),
    "boxes": lambda T, w: w.add_image_with_boxes("x", T.full((3, 20, 30), 0.5), T.tensor(BOXES), 3),
    "boxes with labels": lambda T, w: w.add_image_with_boxes(
        "x", T.zeros(40, 50, 3), T.tensor(BOXES), dataformats="HWC", labels=["one", "two"]
    ),
    "points": lambda T, w: w.add_mesh("x", T.arange(12.0).reshape(1, 4, 3), global_step=2),
    "text": lambda T, w: w.add_text("x", "# ä\n* b", 4),
    "audio": lambda T, w: w.add_audio("x", T.sin(T.arange(100) * 0.3).reshape(1, 100), 4, sample_rate=8000),
    "tensor": lambda T, w: w.add_tensor("x", T.arange(6.0).reshape(2, 3), 4),
    "tensor of integers": lambda T, w: w.add_tensor("x", T.arange(6, dtype=T.int32), 4),
    "tensor of bools": lambda T, w: w.add_tensor("x", T.arange(6) > 2, 4),
    "curve": lambda T, w: w.add_pr_curve("x", T.arange(50) % 3 == 0, T.linspace(0, 1, 50), 2, num_thresholds=20),
    "custom scalars": lambda T, w: w.add_custom_scalars(
        {
            "a": {"both": ["Multiline", ["x/1", "x/2"]], "band": ["Margin", ["v", "l", "u"]]},
            "b": {"c": ["Multiline", ["z"]]},
        }
    ),
    "multiline chart": lambda T, w: w.add_custom_scalars_multilinechart(["x", "y"], "c", "t"),
    "margin chart": lambda T, w: w.add_custom_scalars_marginchart(["x", "y", "z"]),
    "curve of counts": lambda T, w: w.add_pr_curve_raw("x", *(T.arange(5.0) + i for i in range(6)), 2, 5),
    "curve with weights": lambda T, w: w.add_pr_curve(
        "x", T.arange(50) % 3 == 0, np.linspace(0, 1, 50), 2, weights=np.linspace(0, 2, 50)
    ),
}


def plain(value: Any) -> Any:
    """A message to compare: compressed images as their pixels."""
    if value.WhichOneof("value") == "image":
        import io

        from PIL import Image

        image = Image.open(io.BytesIO(value.image.encoded_image_string))
        return value.tag, value.image.height, value.image.width, value.image.colorspace, image.tobytes()
    if value.metadata.plugin_data.plugin_name == "mesh":
        # The message of tensorboardX is older, and says less.
        from tensorboardX.proto.plugin_mesh_pb2 import MeshPluginData

        about = MeshPluginData.FromString(value.metadata.plugin_data.content)
        about.DiscardUnknownFields()
        value.metadata.plugin_data.content = about.SerializeToString(deterministic=True)
    return value.SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("package")
def test_the_same_messages(name: str, tmp_path: Path) -> None:
    found = []
    for T, writer in ((torch, TheirWriter), (rgrad, SummaryWriter)):
        folder = tmp_path / T.__name__
        with writer(folder) as w:
            CALLS[name](T, w)
        found.append([(tag, step, plain(v)) for tag, rows in values(folder).items() for step, v in rows])
    assert found[0] == found[1]
    assert len(found[0]) == 1


@pytest.mark.usefixtures("package")
def test_boxes_of_another_size(tmp_path: Path) -> None:
    """The pixels are the same. The size beside them is that of the picture; torch writes what it was before."""
    found = []
    for T, writer in ((torch, TheirWriter), (rgrad, SummaryWriter)):
        with writer(tmp_path / T.__name__) as w:
            w.add_image_with_boxes("x", T.ones(3, 20, 30), T.tensor(BOXES), rescale=2)
        ((_, value),) = values(tmp_path / T.__name__)["x"]
        found.append(plain(value)[4])
    assert found[0] == found[1]
    assert (value.image.height, value.image.width) == (40, 60)


@pytest.mark.usefixtures("package")
def test_meshes(tmp_path: Path) -> None:
    found = []
    for T, writer in ((torch, TheirWriter), (rgrad, SummaryWriter)):
        with writer(tmp_path / T.__name__) as w:
            points, faces = T.arange(12.0).reshape(1, 4, 3), T.tensor([[[0, 1, 2], [1, 2, 3]]])
            w.add_mesh("m", points, colors=points * 10, faces=faces, config_dict={"b": 1, "a": {"c": 2}}, global_step=3)
        made = values(tmp_path / T.__name__)
        found.append([(tag, step, plain(v)) for tag, rows in made.items() for step, v in rows])
    assert [(tag, step) for tag, step, _ in found[1]] == [("m_VERTEX", 3), ("m_FACE", 3), ("m_COLOR", 3)]
    assert found[0] == found[1]


@pytest.mark.usefixtures("package")
def test_runs_of_their_own(tmp_path: Path) -> None:
    for T, writer in ((torch, TheirWriter), (rgrad, SummaryWriter)):
        with writer(tmp_path / T.__name__, purge_step=3, filename_suffix=".x") as w:
            w.add_scalars("a/b", {"one": 1.0, "two": T.tensor(2.0)}, 5)
            w.add_hparams(
                {"lr": 0.5, "name": "n", "many": 3},
                {"acc": 0.25},
                {"lr": [0.5, 1.0], "name": ["n", "m"]},
                run_name="run",
                global_step=2,
            )
            w.add_embedding(T.arange(6.0).reshape(3, 2), ["a", "b", "c"], T.ones(3, 3, 4, 4), 2, "t/x")
            w.add_embedding(T.arange(6.0).reshape(3, 2), [["a", 1]] * 3, None, metadata_header=["p", "q"])
    theirs, mine = tmp_path / "torch", tmp_path / "rgrad"

    def names(root: Path) -> list[str]:
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_dir() or "tfevents" not in p.name)

    assert names(mine) == names(theirs)
    for folder in ("a_b_one", "a_b_two", "run"):
        pairs = [
            [
                (tag, s, v.SerializeToString(deterministic=True))
                for tag, r in values(root / folder).items()
                for s, v in r
            ]
            for root in (theirs, mine)
        ]
        assert pairs[0] == pairs[1]
    # The texts of both may differ in spaces.
    assert (mine / "projector_config.pbtxt").read_text().split() == (
        theirs / "projector_config.pbtxt"
    ).read_text().split()
    for file in ("00002/t%2fx/tensors.tsv", "00002/t%2fx/metadata.tsv", "00000/default/metadata.tsv"):
        assert (mine / file).read_text() == (theirs / file).read_text()
    starts = [[(e.step, e.session_log.status) for e in events(root)[:2]] for root in (theirs, mine)]
    assert starts[0] == starts[1] == [(3, 0), (3, 1)]


def test_tensorboard_reads_the_files(tmp_path: Path, package: str) -> None:
    """TensorBoard's own reader, which checks the sums of every record."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = rgrad.nn.Sequential(rgrad.nn.Linear(3, 4), rgrad.nn.ReLU(), rgrad.nn.Linear(4, 1))
    with SummaryWriter(tmp_path) as w:
        for step in range(5):
            w.add_scalar("loss", step * 2.0, step)
        w.add_histogram("weights", model[0].weight, 1)
        w.add_image("picture", rgrad.rand(3, 4, 4))
        w.add_graph(model, rgrad.ones(2, 3))
    read = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(i, i * 2.0) for i in range(5)]
    assert read.Histograms("weights")[0].histogram_value.num == 12
    assert pixels(read.Images("picture")[0].encoded_image_string)[:2] == (4, 4)
    graph = read.Graph()
    assert {node.op for node in graph.node} >= {"AddmmBackward0", "ReluBackward0", "Parameter", "IO Node"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "uint8", "bool"])
@pytest.mark.usefixtures("package")
def test_tensors_are_read_back(dtype: str, tmp_path: Path) -> None:
    """By TensorBoard. For 16-bit floats torch writes the 32 bits of a float, which it cannot read."""
    from tensorboard.util.tensor_util import make_ndarray

    value = rgrad.tensor([[0.0, 1.0, 2.5], [-3.0, 0.3, 100.0]]).to(getattr(rgrad, dtype))
    with SummaryWriter(tmp_path) as w:
        w.add_tensor("x", value)
    message = values(tmp_path)["x"][0][1].tensor
    if dtype == "bfloat16":
        read = [np.uint32(bits << 16).view(np.float32).item() for bits in message.half_val]
    else:
        # Through the bytes: the other package's message is another class.
        from tensorboard.compat.proto.tensor_pb2 import TensorProto

        read = make_ndarray(TensorProto.FromString(message.SerializeToString())).reshape(-1).tolist()
    assert read == value.reshape(-1).tolist()


def test_signatures() -> None:
    import inspect

    for name in [n for n in dir(SummaryWriter) if not n.startswith("_")]:
        mine = inspect.signature(getattr(SummaryWriter, name)).parameters
        theirs = inspect.signature(getattr(TheirWriter, name)).parameters
        assert [(p.name, p.default) for p in mine.values()] == [(p.name, p.default) for p in theirs.values()], name
    assert list(inspect.signature(SummaryWriter).parameters) == list(inspect.signature(TheirWriter).parameters)
