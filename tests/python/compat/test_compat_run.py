"""`python -m rgrad.run`: programs, modules and code run with rgrad as torch, and their errors are their own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

USES = "import torch, sys\nprint(torch.__version__, __name__, sys.argv)\n"


def run(*arguments: str, cwd: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, "-m", "rgrad.run", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, input=given, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("word = 'beside'\n")
    (tmp_path / "script.py").write_text(USES + "import beside\nprint(beside.word, __file__)\n")
    done = run("script.py", "-m", "--x=1", cwd=tmp_path)
    assert done.stdout == "2.13.0 __main__ ['script.py', '-m', '--x=1']\nbeside script.py\n", done.stderr


def test_a_module_and_a_package(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text(USES + "print(__spec__.name, __package__)\n")
    (package / "__main__.py").write_text(USES + "from . import part\n")
    done = run("-m", "package.part", "a", cwd=tmp_path)
    assert done.stdout == f"2.13.0 __main__ ['{package}/part.py', 'a']\npackage.part package\n", done.stderr
    assert run("-m", "package", cwd=tmp_path).stdout.startswith(f"2.13.0 __main__ ['{package}/__main__.py']\n")


def test_code_and_standard_input(tmp_path: Path) -> None:
    assert run("-c", USES, "a").stdout == "2.13.0 __main__ ['-c', 'a']\n"
    assert run("-", "a", given=USES).stdout == "2.13.0 __main__ ['-', 'a']\n"


def test_a_folder_and_an_archive(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(USES + "import beside\n")
    (tmp_path / "folder" / "beside.py").write_text("")
    assert run("folder", cwd=tmp_path).stdout == "2.13.0 __main__ ['folder']\n"
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "folder" / "__main__.py", "__main__.py")
        archive.write(tmp_path / "folder" / "beside.py", "beside.py")
    assert run("all.zip", "a", cwd=tmp_path).stdout == "2.13.0 __main__ ['all.zip', 'a']\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nothing.py"], "can't open file"),
        (["-m", "nothing_there"], "No module named nothing_there"),
        (["-m", "nothing_there.inner"], "Error while finding module specification"),
        (["-m"], "argument expected for the -m option"),
        (["--nonsense"], "unknown option --nonsense"),
        (["-m", "email"], "No module named email.__main__"),
    ],
)
def test_what_cannot_be_run(arguments: list[str], why: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("python -m rgrad.run: ")
    assert why in done.stderr


def test_usage() -> None:
    assert run().returncode == 2
    assert run("--help").returncode == 0
    assert run("--help").stdout.startswith("usage: python -m rgrad.run")


def test_an_exception_shows_the_program_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\ndef work():\n    raise ValueError('mine')\n\nwork()\n")
    done = run(str(script))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{script}", line 5, in <module>',
        f'  File "{script}", line 3, in work',
    ]
    assert lines[-1] == "ValueError: mine"


def test_a_syntax_error_names_the_programs_line(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\nx = = 1\n")
    done = run("script.py", cwd=tmp_path)
    assert done.returncode == 1
    assert 'File "script.py", line 2' in done.stderr
    assert "rgrad" not in done.stderr


def test_exits_are_the_programs(tmp_path: Path) -> None:
    assert run("-c", "import sys; sys.exit(7)").returncode == 7
    assert run("-c", "raise KeyboardInterrupt").returncode == 130
    done = run("-c", "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0")
    assert (done.returncode, done.stdout) == (1, "hook ZeroDivisionError\n")
    assert "end" in run("-c", "import atexit; atexit.register(print, 'end'); 1 / 0").stdout


@pytest.mark.parametrize(
    "code",
    [
        "import torch.nonsense",
        "from torch import nonsense",
        "import torch.nn as n; n.nonsense",
        "import torch; torch.nonsense",
    ],
)
def test_a_missing_name_is_explained(code: str) -> None:
    done = run("-c", code)
    assert done.returncode == 1
    assert "docs/in-torchs-place.md" in done.stderr


def test_errors_of_others_are_not_explained() -> None:
    assert "docs/in-torchs-place.md" not in run("-c", "import nothing_there").stderr
    assert "docs/in-torchs-place.md" not in run("-c", "(1).x").stderr


CHILDREN = """\
import torch
import torch.multiprocessing as mp

def work(index, method):
    import torch.nn
    print(index, method, torch.__version__, torch.nn.Linear(1, 1).weight.shape, flush=True)

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 3
    def __getitem__(self, i):
        import torch
        return torch.tensor(float(i * i))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        mp.start_processes(work, args=(method,), nprocs=1, start_method=method)
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Squares(), num_workers=1, multiprocessing_context=context)
        print([x.item() for x in loader])
"""


def test_children_hold_the_alias(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(CHILDREN)
    done = run("script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *(f"0 {method} 2.13.0 torch.Size([1, 1])" for method in ("fork", "spawn", "forkserver")),
        "[0.0, 1.0, 4.0]",
        "[0.0, 1.0, 4.0]",
    ]


def test_a_program_can_start_another(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(USES)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'rgrad.run', 'inner.py'], check=True)"
    assert run("-c", code, cwd=tmp_path).stdout == "2.13.0 __main__ ['inner.py']\n"


def test_the_plugin_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import torch\n")
    (tmp_path / "test_it.py").write_text("import torch, rgrad\ndef test_it():\n    assert torch is rgrad\n")
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    for more in ([], ["-n", "1"]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "rgrad.compat.pytest", *more, str(tmp_path)],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 passed" in done.stdout
