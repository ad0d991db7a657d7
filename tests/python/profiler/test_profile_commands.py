"""``python -m rgrad.profile`` and ``python -m rgrad.env``."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rgrad
from rgrad import env
from rgrad.utils import collect_env

SCRIPT = """
import sys
import rgrad
from helper import factor

x = rgrad.ones(3, requires_grad=True)
(x * factor).tanh().sum().backward()
print("arguments", sys.argv[1:], __name__)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rgrad.profile", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "script.py").write_text(SCRIPT)
    (tmp_path / "code" / "helper.py").write_text("factor = 2")
    return tmp_path


def test_profile_prints_the_table_and_leaves_the_trace(folder: Path) -> None:
    done = run(folder, "code/script.py", "--its", "own")
    assert done.returncode == 0, done.stderr
    assert "arguments ['--its', 'own'] __main__" in done.stdout
    assert "Self CPU %" in done.stdout
    assert "aten::tanh" in done.stdout
    assert "TanhBackward0" in done.stdout
    with gzip.open(folder / "script.trace.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    assert "aten::tanh" in [e["name"] for e in events]


def test_profile_takes_options(folder: Path) -> None:
    done = run(
        folder,
        *("--output", "out.json", "--shapes", "--memory", "--flops", "--stack", "1", "--row-limit", "3"),
        "code/script.py",
    )
    assert done.returncode == 0, done.stderr
    assert "Input Shapes" in done.stdout
    assert "CPU Mem" in done.stdout
    assert "script.py(" in done.stdout
    assert (folder / "out.json").exists()


def test_profile_of_scripts_that_end_early(folder: Path) -> None:
    (folder / "status.py").write_text("import rgrad, sys\nrgrad.ones(2)\nsys.exit(3)")
    done = run(folder, "status.py")
    assert done.returncode == 3
    assert "aten::ones" in done.stdout
    (folder / "broken.py").write_text("import rgrad\nrgrad.ones(2)\n1 / 0")
    done = run(folder, "broken.py")
    assert done.returncode == 1
    assert "aten::ones" in done.stdout
    assert "ZeroDivisionError" in done.stderr
    done = run(folder, "missing.py")
    assert done.returncode == 2
    assert "there is no file 'missing.py'" in done.stderr


def test_table_and_trace_are_not_lost_together(folder: Path) -> None:
    done = run(folder, "-o", "no/such/folder.json", "code/script.py")
    assert done.returncode == 1
    assert "Self CPU %" in done.stdout
    assert "FileNotFoundError" in done.stderr
    command = [sys.executable, "-m", "rgrad.profile", "code/script.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unread:
        assert unread.stdout is not None
        unread.stdout.close()
        unread.wait(timeout=120)
    assert json.loads(gzip.decompress((folder / "script.trace.json.gz").read_bytes()))["traceEvents"]


def test_profile_of_a_module(folder: Path) -> None:
    done = run(folder / "code", "-m", "script")
    assert done.returncode == 0, done.stderr
    assert "aten::tanh" in done.stdout


def test_env_says_what_a_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    env.main()
    said = capsys.readouterr().out
    assert f"rgrad version: {rgrad.__version__}" in said
    for line in ("Python version", "CPU features", "Threads", "wgpu adapters", "numpy=="):
        assert line in said
    info = collect_env.get_env_info()
    assert (info.rgrad_version, info.native_module) == (rgrad.__version__, rgrad._core.__file__)
    assert collect_env.pretty_str(info._replace(packages=[], environment=[])).count(" none") >= 2


def test_env_is_written_on_broken_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise OSError("no")

    monkeypatch.setattr(collect_env, "_os", broken)
    assert "OS: unknown (OSError: no)" in collect_env.get_pretty_env_info()
