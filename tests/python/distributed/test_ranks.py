"""Two processes and what they do together. Each program is started once; where there is no MPI they are skipped."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rgrad
import rgrad.distributed.checkpoint as dcp
from pages import examples
from places import PACKAGE
from rgrad import distributed as dist
from rgrad.distributed import _group
from rgrad.distributed._launch import find_launcher
from rgrad.distributed.run import main

HERE = Path(__file__).parent
PROGRAM = HERE / "rank_program.py"
CHECKS = [
    name
    for file in (PROGRAM, *(HERE / f"rank_{name}.py" for name in ("training", "tensors", "shards", "checkpoints")))
    for name in re.findall(r"^def (check_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
]


def lacking() -> str:
    """Why no processes can be started, or ""."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    try:
        find_launcher()
    except RuntimeError as error:
        return str(error)
    return ""


LACKING = lacking()
needs_mpi = pytest.mark.skipif(bool(LACKING), reason=LACKING)


def python_path() -> str:
    return os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])


def start(*arguments: str | int | Path, ranks: int = 2, **env: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "rgrad.distributed.run", "--nproc-per-node", str(ranks), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": python_path(), **env}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=250, check=False)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("ranks") / "said.json"
    done = start(PROGRAM, out)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, str] = json.loads(out.read_text(encoding="utf-8"))
    return found


@needs_mpi
@pytest.mark.parametrize("check", CHECKS)
def test_processes_together(said: dict[str, str], check: str) -> None:
    assert said[check] == ""


TRAINING = """
import hashlib
import rgrad
from rgrad import distributed as dist, nn

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
rgrad.manual_seed(5 if rank == 0 else 99)
net = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
net = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net), bucket_cap_mb=0.01)
optimizer = rgrad.optim.Adam(net.parameters(), lr=1e-2)
x = rgrad.randn(64, 20, generator=rgrad.Generator().manual_seed(1))
y = (x.sum(1) > 0).long() + 2 * (x[:, 0] > 0).long()
mine = slice(rank * (64 // size), (rank + 1) * (64 // size))
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x[mine]), y[mine]).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
if rank == 0:
    print(hashlib.sha256(b"".join(t.numpy().tobytes() for t in net.state_dict().values())).hexdigest())
dist.destroy_process_group()
"""


@needs_mpi
@pytest.mark.parametrize("source", [TRAINING, examples("docs/several-machines.md")[0].code], ids=["norms", "the page"])
def test_weights_do_not_depend_on_the_number_of_processes(source: str, tmp_path: Path) -> None:
    program = tmp_path / "training.py"
    program.write_text(source, encoding="utf-8")
    hashes = set()
    for ranks in (1, 2):
        done = subprocess.run(
            [find_launcher().path, "-n", str(ranks), sys.executable, program],
            env={**find_launcher().environment(), "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=200,
            check=True,
        )
        hashes.add(done.stdout.strip())
    assert len(hashes) == 1
    assert len(hashes.pop()) == 64


@needs_mpi
def test_a_program_for_fsdp2_runs_as_it_is(tmp_path: Path) -> None:
    """One process and two have the same losses; so has PyTorch (tests/oracle)."""
    seen = []
    for ranks in (1, 2):
        done = start("-m", "rgrad.run", HERE / "fsdp2_script.py", tmp_path / str(ranks), ranks=ranks)
        assert done.returncode == 0, done.stdout + done.stderr
        seen.append([float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)])
    assert len(seen[0]) == 6
    assert max(abs(a - b) for a, b in zip(*seen, strict=True)) < 1e-6
    assert seen[0][2] < seen[0][0]


@needs_mpi
def test_the_page_trains_in_shards(tmp_path: Path) -> None:
    program = tmp_path / "training.py"
    code = examples("docs/several-machines.md")[1].code
    program.write_text(code.replace("range(100)", "range(1)").replace('"checkpoints', f'"{tmp_path}'), encoding="utf-8")
    done = start(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "last" / ".metadata").exists()


FAULTS: dict[str, tuple[str, int | None, list[str]]] = {
    "raises": ("if rank == 1: raise ValueError('bad batch')", 1, ["[rank1]: ValueError: bad batch"]),
    "exits": ("if rank == 1: sys.exit(7)", 7, ["SystemExit: 7"]),
    "leaves": (
        "if rank == 1: sys.exit(0)",
        1,
        ["[rank0]: rgrad.distributed._errors.DistBackendError: all_reduce #2 at", "rank 1 has left"],
    ),
    "is killed": ("if rank == 1: os.kill(os.getpid(), 9)", None, []),
    "does not come": (
        "if rank == 1: time.sleep(60)",
        1,
        [
            "Timed out waiting 1000ms for all_reduce",
            "rank 0: waiting in #2 all_reduce(float32[1], RedOpType.SUM) at",
            "rank 1: done with #1 all_reduce(float32[1], RedOpType.SUM) at",
        ],
    ),
}


@needs_mpi
@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_that(fault: str, tmp_path: Path) -> None:
    """The others do not wait for it; one traceback says what it was, and the job has its status."""
    code, status, texts = FAULTS[fault]
    program = tmp_path / "program.py"
    program.write_text(
        "import datetime, os, sys, time\n"
        "import rgrad\n"
        "from rgrad import distributed as dist\n"
        "dist.init_process_group('mpi', timeout=datetime.timedelta(seconds=1))\n"
        "rank, x = dist.get_rank(), rgrad.ones(1)\n"
        "dist.all_reduce(x)\n"
        f"{code}\n"
        "dist.all_reduce(x)\n",
        encoding="utf-8",
    )
    done = start(program)
    assert done.returncode != 0
    assert status is None or done.returncode == status
    for text in texts:
        assert text in done.stderr
    assert done.stderr.count("Traceback") == (1 if status == 1 else 0)


KILLED = """
import os, signal, sys
import rgrad
import rgrad.distributed.checkpoint as dcp
from rgrad import distributed as dist
from rgrad.distributed.tensor import Shard, full, init_device_mesh

dist.init_process_group("mpi")
mesh, at = init_device_mesh("cpu", (dist.get_world_size(),)), int(sys.argv[2])

class Killed(dcp.FileSystemWriter):
    def write(self, name, items):
        if dist.get_rank() == at:
            # In the middle of its file.
            items = iter(items)
            first = next(items)
            return super().write(name, (entry for entry in [first] for _ in [os.kill(os.getpid(), signal.SIGKILL)]))
        return super().write(name, items)

    def finish(self, metadata):
        if at > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        super().finish(metadata)

def state(value):
    return {"x": full((50, 3), value, device_mesh=mesh, placements=[Shard(0)])}

dcp.save(state(1.0), checkpoint_id=sys.argv[1])
dcp.save(state(2.0), storage_writer=Killed(sys.argv[1]))
"""


@needs_mpi
@pytest.mark.parametrize("at", [1, 2], ids=["while it writes", "before the checkpoint is complete"])
def test_a_process_that_is_killed_leaves_the_checkpoint_before(at: int, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(KILLED, encoding="utf-8")
    assert start(program, tmp_path / "folder", at).returncode != 0
    state = {"x": rgrad.zeros(50, 3)}
    dcp.load(state, checkpoint_id=tmp_path / "folder", no_dist=True)
    assert rgrad.equal(state["x"], rgrad.ones(50, 3))
    dcp.save(state, checkpoint_id=tmp_path / "folder", no_dist=True)
    assert len(list((tmp_path / "folder").glob("__*"))) == 1


def test_options_of_the_launcher(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nprint(os.environ['RANK'], os.environ['WORLD_SIZE'], os.environ['LOCAL_RANK'], sys.argv[1:])\n"
        "n = os.environ['TORCHELASTIC_RESTART_COUNT']\nsys.exit(0 if n == '1' else 5)\n",
        encoding="utf-8",
    )
    options = ["--standalone", "--nnodes=1", "--rdzv_backend", "c10d", "--max_restarts=1"]
    done = start(*options, program, "--lr", "1", ranks=1)
    assert done.stdout.splitlines() == ["0 1 0 ['--lr', '1']"] * 2
    assert done.returncode == 0
    assert "starting again (1 of 1)" in done.stderr
    assert start(program, ranks=1).returncode == 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nproc-per-node", "gpu"], "there are no CUDA devices"),
        (["--nproc-per-node", "many"], "Unsupported nproc_per_node value: many"),
        (["--nproc-per-node", "0"], "must be at least 1"),
        (["--nnodes", "2"], "name the machines with --hosts"),
    ],
)
def test_options_that_are_wrong(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main([*options, "train.py"])
    assert error.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_without_mpi4py_it_says_what_to_install(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "2")
    monkeypatch.setattr(_group, "found", lambda: False)
    with pytest.raises(RuntimeError, match=r"pip install 'rgrad\[distributed\]'"):
        dist.init_process_group("mpi", rank=0, world_size=2)
