"""Checkpoints in folders, of one process without a group: what is written, and what damaged ones do."""

from pathlib import Path
from typing import Any

import pytest

import rgrad
import rgrad.distributed.checkpoint as dcp
from rgrad import nn
from rgrad.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from rgrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from rgrad.distributed.checkpoint.stateful import Stateful

STATE = {
    "model": {"0.weight": rgrad.arange(6.0).reshape(2, 3), "half": rgrad.ones(2, dtype=rgrad.bfloat16)},
    "list": [1, {"deep": rgrad.tensor(3)}, [rgrad.zeros(2, 0)]],
    "words": ["a", "b"],
    "pair": (1, 2.5),
    "none": None,
    "by_number": {0: {"step": rgrad.tensor(1.0)}},
}


def empty(value: Any) -> Any:
    if isinstance(value, rgrad.Tensor):
        return rgrad.zeros_like(value) - 1
    if isinstance(value, dict):
        return {key: empty(entry) for key, entry in value.items()}
    if isinstance(value, list) and value != ["a", "b"]:
        return [empty(entry) for entry in value]
    return "nothing"


def same(first: Any, second: Any) -> None:
    assert type(first) is type(second)
    if isinstance(first, rgrad.Tensor):
        assert first.dtype == second.dtype
        assert rgrad.equal(first, second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            same(first[key], second[key])
    elif isinstance(first, list):
        for a, b in zip(first, second, strict=True):
            same(a, b)
    else:
        assert first == second


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    dcp.save(STATE, checkpoint_id=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".metadata", "__0_0.distcp"]
    found = empty(STATE)
    weight = found["model"]["0.weight"]
    dcp.load(found, checkpoint_id=tmp_path)
    same(found, STATE)
    assert found["model"]["0.weight"] is weight
    part = {"words": []}
    dcp.load(part, checkpoint_id=tmp_path)
    assert part == {"words": ["a", "b"]}
    more = {"words": [], "new": 5}
    dcp.load(more, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert more == {"words": ["a", "b"], "new": 5}


def test_a_second_checkpoint_takes_the_place_of_the_first(tmp_path: Path) -> None:
    for value in range(3):
        dcp.save({"x": rgrad.full((2,), float(value))}, checkpoint_id=tmp_path)
        state = {"x": rgrad.zeros(2)}
        dcp.load(state, checkpoint_id=tmp_path)
        assert state["x"].tolist() == [value, value]
        assert len(list(tmp_path.iterdir())) == 2


def test_modules_and_optimizers_without_processes(tmp_path: Path) -> None:
    def made(seed: int) -> Any:
        rgrad.manual_seed(seed)
        net = nn.Linear(3, 2)
        optimizer = rgrad.optim.Adam(net.parameters())
        net(rgrad.ones(1, 3)).sum().backward()
        optimizer.step()
        return net, optimizer

    first, second = made(0), made(1)
    assert isinstance(first[0], Stateful)
    model, optim = get_state_dict(*first)
    dcp.save({"net": first[0], "model": model, "optim": optim}, checkpoint_id=tmp_path)
    dcp.load({"net": second[0]}, checkpoint_id=tmp_path)
    same(dict(first[0].state_dict()), dict(second[0].state_dict()))
    model, optim = get_state_dict(*second)
    state = {"model": model, "optim": optim}
    dcp.load(state, checkpoint_id=tmp_path)
    set_state_dict(*second, model_state_dict=state["model"], optim_state_dict=state["optim"])
    same(first[1].state_dict()["state"], second[1].state_dict()["state"])
    assert dcp.async_save({"net": first[0]}, checkpoint_id=tmp_path).result().version == "1.0.0"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"zz": rgrad.ones(1)}, "Missing key in checkpoint state_dict: zz"),
        ({"none": rgrad.ones(1)}, "another object in the checkpoint"),
        ({"model": {"0.weight": 3}}, "a tensor in the checkpoint"),
        ({"model": {"0.weight": rgrad.ones(3, 2)}}, r"Size mismatch between saved \(2, 3\) and current: \(3, 2\)"),
    ],
)
def test_a_state_that_does_not_fit_stays_as_it_is(state: Any, text: str, tmp_path: Path) -> None:
    dcp.save(STATE, checkpoint_id=tmp_path)
    state = {"words": [], **state}
    with pytest.raises(dcp.CheckpointException, match=text) as error:
        dcp.load(state, checkpoint_id=tmp_path)
    assert list(error.value.failures) == [0]
    assert state["words"] == []


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    def fails(text: str) -> None:
        with pytest.raises(dcp.CheckpointException, match=text):
            dcp.load({"x": rgrad.zeros(3)}, checkpoint_id=tmp_path)

    fails("there is no checkpoint")
    assert not dcp.FileSystemReader.validate_checkpoint_id(tmp_path)
    dcp.save({"x": rgrad.ones(3)}, checkpoint_id=tmp_path)
    assert dcp.FileSystemReader.validate_checkpoint_id(tmp_path)
    metadata, data = tmp_path / ".metadata", tmp_path / "__0_0.distcp"
    whole, content = metadata.read_bytes(), data.read_bytes()
    for cut in range(0, len(whole), 37):
        metadata.write_bytes(whole[:cut])
        fails("no metadata of a checkpoint, or it is damaged")
    metadata.write_bytes(whole.replace(b"__0_0.distcp", b"../../passwd"))
    fails("outside of the checkpoint's folder")
    metadata.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    fails("damaged")
    metadata.write_bytes(whole)
    data.write_bytes(content[:-100])
    fails("it is damaged")
    data.write_bytes(b"\0" * len(content))
    fails("RANK 0")
    data.unlink()
    fails("a file of the checkpoint is missing")
    metadata.unlink()
    data.write_bytes(content)
    fails("the checkpoint is not complete")


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="`checkpoint_id` or `storage_writer`"):
        dcp.save({})
    with pytest.raises(RuntimeError, match="`checkpoint_id` or `storage_reader`"):
        dcp.load({})
    with pytest.raises(TypeError, match="must be a dict, got list"):
        dcp.save([], checkpoint_id=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="FileSystemWriter, got str"):
        dcp.save({}, storage_writer="here")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="DefaultSavePlanner, got str"):
        dcp.save({}, checkpoint_id=tmp_path, planner="mine")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="flatten_state_dict"):
        dcp.DefaultLoadPlanner(flatten_state_dict=False)
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b"):
        dcp.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="meta device"):
        dcp.save({"x": rgrad.ones(2, device="meta")}, checkpoint_id=tmp_path)
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(RecursionError, match="500 deep"):
        dcp.save(loop, checkpoint_id=tmp_path)


def test_folders_become_files_and_files_folders(tmp_path: Path) -> None:
    state = {key: value for key, value in STATE.items() if key != "by_number"}
    rgrad.save(state, tmp_path / "one.pt")
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "two.pt")
    same(rgrad.load(tmp_path / "two.pt"), state)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        dcp_to_torch_save(tmp_path / "nowhere", tmp_path / "three.pt")
    reader = dcp.FileSystemReader(tmp_path / "folder")
    metadata = reader.read_metadata()
    metadata.planner_data["list.0"] = ("words", 5)
    writer = dcp.FileSystemWriter(tmp_path / "folder")
    writer.finish(metadata)
    with pytest.raises(RuntimeError, match="it is damaged"):
        dcp_to_torch_save(tmp_path / "folder", tmp_path / "three.pt")
    metadata = dcp.save(state, checkpoint_id=tmp_path / "folder")
    metadata.state_dict_metadata["model.half"].size = rgrad.Size([1 << 40])
    writer.finish(metadata)
    with pytest.raises(RuntimeError, match="and the files have"):
        dcp_to_torch_save(tmp_path / "folder", tmp_path / "three.pt")
    assert not (tmp_path / "three.pt").exists()
