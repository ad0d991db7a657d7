"""DTensors, `fully_shard` and checkpoints beside PyTorch's, in one process: names, outcomes, errors and files."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rgrad.distributed.checkpoint.state_dict  # noqa: E402
import rgrad.distributed.fsdp  # noqa: E402
import rgrad.distributed.tensor  # noqa: E402
from places import PACKAGE, ROOT  # noqa: E402

for part in ("checkpoint.state_dict", "fsdp", "tensor"):
    importlib.import_module(f"torch.distributed.{part}")

NAMES = [
    *(f"tensor.{name}" for name in rgrad.distributed.tensor.__all__ if name[0].islower()),
    *(f"tensor.DTensor.{name}" for name in ("from_local", "to_local", "full_tensor", "redistribute")),
    "fsdp.fully_shard",
    "fsdp.register_fsdp_forward_method",
    *(
        f"fsdp.FSDPModule.{name}"
        for name in vars(torch.distributed.fsdp.FSDPModule)
        if not name.startswith("_") and callable(getattr(torch.distributed.fsdp.FSDPModule, name))
    ),
    *(f"fsdp.{name}" for name in ("MixedPrecisionPolicy", "CPUOffloadPolicy", "OffloadPolicy")),
    *(f"checkpoint.{name}" for name in ("save", "load", "async_save", "FileSystemReader", "FileSystemWriter")),
    *(f"checkpoint.{name}" for name in ("DefaultLoadPlanner", "DefaultSavePlanner")),
    *(f"checkpoint.state_dict.{name}" for name in rgrad.distributed.checkpoint.state_dict.__all__),
]
# PyTorch's defaults are objects of its own, or it passes arguments through.
OTHER_DEFAULTS = {"layout", "async_checkpointer_type", "serialization_format", "mp_policy", "offload_policy"}
THROUGH = {"set_reduce_scatter_divide_factor": ["self", "factor"]}


def found(library: Any, name: str) -> Any:
    value = library.distributed
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", NAMES)
def test_parameters_have_pytorchs_names(name: str) -> None:
    theirs, ours = (inspect.signature(found(library, name)).parameters for library in (torch, rgrad))
    last = name.rpartition(".")[2]
    assert list(ours) == THROUGH.get(last, list(theirs))
    for key in [] if last in THROUGH else theirs:
        assert ours[key].kind == theirs[key].kind, key
        empty = inspect.Parameter.empty
        assert (ours[key].default is empty) == (theirs[key].default is empty), key
        if key not in OTHER_DEFAULTS:
            assert ours[key].default == theirs[key].default, key


@pytest.fixture(scope="module")
def meshes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Any]]:
    store = tmp_path_factory.mktemp("store") / "file"
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        yield {library: library.distributed.tensor.init_device_mesh("cpu", (1,)) for library in (torch, rgrad)}
    finally:
        torch.distributed.destroy_process_group()
        rgrad.distributed.destroy_process_group()


CALLS = [
    "x.placements",
    "x.shape, x.size(0), x.numel(), x.stride(), x.dim()",
    "repr(D.Shard(1)), repr(D.Replicate()), repr(D.Partial()), repr(D.Partial('max'))",
    "str(D.Shard(1)), str(D.Replicate()), str(D.Partial('avg'))",
    "D.Shard(0) == D.Shard(0), D.Shard(0) == D.Shard(1), D.Shard(0) == D.Replicate()",
    "D.Shard(0).is_shard(), D.Shard(0).is_shard(1), D.Partial().is_partial(), D.Replicate().is_replicate()",
    "x + x",
    "2 - x * 3",
    "T.where(x > 2, x, -x)",
    "x.sum().placements",
    "x.max().placements",
    "x.sum().full_tensor()",
    "x.mean().full_tensor()",
    "x.norm(2).full_tensor()",
    "repr(x.norm(2).placements)",
    "T.stack([x.norm(2), x.norm(2)]).norm(2).full_tensor()",
    "x.redistribute(mesh, [D.Replicate()])",
    "x.redistribute(mesh, [D.Partial()])",
    "x.redistribute(mesh)",
    "x.to_local()",
    "x.full_tensor()",
    "x.redistribute(mesh, [D.Replicate()]) @ T.ones(3, 1)",
    "T.zeros_like(x), T.ones_like(x).placements",
    "x.clone().mul_(2)",
    "x.detach().zero_()",
    "x + T.ones(2, 3)",
    "x + T.tensor(1.0)",
    "x.item()",
    "x.numpy()",
    "D.distribute_tensor(T.ones(2), mesh, [D.Shard(1)])",
    "D.distribute_tensor(T.ones(2), mesh, [D.Shard(0)] * 2)",
    "D.distribute_tensor(T.ones(2), mesh, [D.Shard(-1)]).placements",
    "D.distribute_tensor(x, mesh, [D.Replicate()])",
    "D.distribute_tensor(x, mesh, [D.Shard(0)]) is x",
    "D.distribute_tensor(T.ones(2, requires_grad=True) * 2, mesh, [D.Shard(0)])",
    "D.DTensor.from_local(T.ones(2), mesh, [D.Shard(0)]).shape",
    "D.DTensor.from_local(T.ones(2), mesh).placements",
    "D.zeros(3, 2, device_mesh=mesh, placements=[D.Shard(0)]).to_local()",
    "D.full((2,), 3.0, device_mesh=mesh)",
    "isinstance(T.nn.Parameter(x), D.DTensor), isinstance(T.nn.Parameter(x), T.nn.Parameter)",
    "F.fully_shard(T.nn.Linear(2, 2), mesh=mesh).__class__.__name__",
    "F.fully_shard(T.nn.ModuleList([T.nn.Linear(1, 1)]), mesh=mesh)",
    "F.fully_shard(T.nn.Linear(2, 2), mesh=mesh, reshard_after_forward=2)",
    "F.fully_shard(T.nn.Linear(2, 2), mesh=mesh, reshard_after_forward='yes')",
    "F.fully_shard(T.nn.Linear(2, 2), mesh=mesh)(T.ones(1, 3))",
    "[p.placements for p in F.fully_shard(T.nn.Linear(2, 2), mesh=mesh).parameters()]",
    "S.get_model_state_dict(T.nn.Linear(1, 1), options=S.StateDictOptions(broadcast_from_rank0=True))",
    "list(S.get_model_state_dict(T.nn.Sequential(T.nn.Linear(1, 1))))",
    "sorted(S.get_optimizer_state_dict(net, T.optim.Adam(net.parameters()))['state'])",
    "S.get_optimizer_state_dict(net, T.optim.SGD(net.parameters(), lr=0.5))['param_groups'][0]['params']",
    (
        "sorted(S.get_optimizer_state_dict(net, T.optim.Adam(net.parameters()), "
        "options=S.StateDictOptions(flatten_optimizer_state_dict=True)))"
    ),
]


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "to_local"):
        return [repr(value.placements), value.full_tensor().tolist()]
    return value.tolist() if hasattr(value, "tolist") else str(value) if hasattr(value, "is_shard") else value


def outcome(library: Any, call: str, meshes: Any) -> Any:
    D = library.distributed.tensor
    mesh = meshes[library]
    x = D.distribute_tensor(library.arange(6.0).reshape(2, 3), mesh, [D.Shard(0)])
    names = {
        "T": library,
        "D": D,
        "F": library.distributed.fsdp,
        "S": library.distributed.checkpoint.state_dict,
        "mesh": mesh,
        "x": x,
        "net": library.nn.Linear(2, 1),
    }
    try:
        return plain(eval(call, names))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_outcomes_are_alike(call: str, meshes: Any) -> None:
    theirs, ours = (outcome(library, call, meshes) for library in (torch, rgrad))
    if isinstance(theirs, type):
        assert issubclass(ours, theirs)
    else:
        assert ours == pytest.approx(theirs) if isinstance(theirs, float) else ours == theirs


def state(library: Any, fill: float) -> dict[str, Any]:
    return {
        "model": {"0.weight": library.full((2, 3), fill), "0.half": library.full((2,), fill, dtype=library.bfloat16)},
        "count": library.tensor(int(fill)),
        "none": library.zeros(0, 4),
        "epoch": int(fill),
        "list": [int(fill), {"x": library.full((1,), fill)}],
        "words": ["a", str(fill)],
        "pair": (fill, None),
    }


@pytest.mark.parametrize("first", ["torch", "rgrad"])
@pytest.mark.filterwarnings("ignore")
def test_folders_are_read_by_both(first: str, tmp_path: Path) -> None:
    libraries = [torch, rgrad] if first == "torch" else [rgrad, torch]
    libraries[0].distributed.checkpoint.save(state(libraries[0], 7.0), checkpoint_id=tmp_path, no_dist=True)
    loaded = state(libraries[1], 1.0)
    libraries[1].distributed.checkpoint.load(loaded, checkpoint_id=tmp_path, no_dist=True)

    def listed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: listed(entry) for key, entry in value.items()}
        return (
            value.tolist() if hasattr(value, "tolist") else [*map(listed, value)] if isinstance(value, list) else value
        )

    assert listed(loaded) == listed(state(libraries[0], 7.0))
    metadata = [library.distributed.checkpoint.FileSystemReader(tmp_path).read_metadata() for library in (torch, rgrad)]
    assert list(metadata[0].state_dict_metadata) == list(metadata[1].state_dict_metadata)
    assert metadata[0].planner_data == metadata[1].planner_data
    assert [str(key) for key in metadata[0].storage_data] == [
        str(key).replace("rgrad.Size", "torch.Size") for key in metadata[1].storage_data
    ]


def test_a_program_for_fsdp2_has_the_same_losses(tmp_path: Path) -> None:
    program = ROOT / "tests" / "python" / "distributed" / "fsdp2_script.py"
    place = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29631"}
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    seen = []
    for words in ([], ["-m", "rgrad.run"]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *words, program, tmp_path / f"{len(words)}"],
            env={**os.environ, **place, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        seen.append([float(number) for number in re.findall(r"(?:loss|norm|sum) (\S+)", done.stdout)])
    assert len(seen[0]) == 13
    assert seen[1] == pytest.approx(seen[0], rel=2e-6)
