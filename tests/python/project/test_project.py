"""The project itself: its commands, documents, examples and lists agree with each other and with the code."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from places import ROOT

TASKS = ROOT / "scripts" / "tasks.py"
LONGEST = 600  # lines of a file


def tracked() -> list[Path]:
    """The project's own files: what git knows, and what it would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        tops = ("src", "python", "tests", "benches", "examples", "scripts", "docs", ".ci")
        inside = [p for top in tops for p in (ROOT / top).rglob("*") if "__pycache__" not in p.parts]
        listed = [str(p) for p in [*ROOT.glob("*.*"), *inside]]
    return sorted(path for name in listed if (path := ROOT / name).is_file())


def texts(*suffixes: str) -> dict[str, str]:
    found = {}
    for path in tracked():
        if not suffixes or path.suffix in suffixes:
            try:
                found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return found


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def run(*command: str | Path, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "MPLBACKEND": "Agg", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


# ----------------------------------------------------------------------------------------------------- commands


def commands() -> set[str]:
    """The commands that ./run itself lists."""
    told = run(sys.executable, TASKS, "help")
    assert told.returncode == 0, told.stderr
    return set(re.findall(r"^  (\w+) ", told.stdout, flags=re.MULTILINE))


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_documents_name_commands_that_exist(document: str) -> None:
    named = set(re.findall(r"\./run ([a-z]\w*)", read(document)))
    assert named
    assert named <= commands()


def test_readme_starts_with_its_two_commands() -> None:
    block = re.search(r"```sh\n(.*?)```", read("README.md"), flags=re.DOTALL)
    assert block is not None
    assert [line.split("#")[0].strip() for line in block[1].splitlines()] == ["./run example", "./run test"]


def test_contributing_lists_the_test_sections() -> None:
    told = run(sys.executable, TASKS, "help").stdout
    sections = re.search(r"the sections named: (.+)", told)
    assert sections is not None
    assert f"({sections[1]})" in read("CONTRIBUTING.md")


@pytest.mark.parametrize("script", ["run", ".ci/run"])
def test_scripts_are_executable_and_parse(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"
    checked = run(shell, "-n", path)
    assert checked.returncode == 0, checked.stderr


def test_run_works_from_any_directory(tmp_path: Path) -> None:
    told = run(ROOT / "run", "help", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "./run COMMAND" in told.stdout
    assert list(tmp_path.iterdir()) == []


def test_unknown_commands_and_sections_are_one_line() -> None:
    for arguments, said in (
        (["nothing"], "no command 'nothing'"),
        (["test", "nothing"], "no test section 'nothing'"),
        (["test", "fmt", "ruff", "nothing"], "no test section 'nothing'"),
    ):
        told = run(sys.executable, TASKS, *arguments)
        assert told.returncode == 1
        assert said in told.stderr
        assert len(told.stderr.splitlines()) == 1


def test_words_after_the_last_section_are_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TASKS.parent))
    from sections import chosen

    assert chosen([]) == ([], [])
    assert chosen(["cargo", "clippy"]) == (["cargo", "clippy"], [])
    assert chosen(["pytest", "-k", "view and not grad"]) == (["pytest"], ["-k", "view and not grad"])
    assert chosen(["cargo", "accuracy"]) == (["cargo"], ["accuracy"])
    assert chosen(["ruff", "pytest", "-x"]) == (["ruff", "pytest"], ["-x"])
    assert chosen(["ruff", "cargo", "--", "accuracy"]) == (["ruff", "cargo"], ["accuracy"])


def fake_tool(directory: Path, name: str, prints: str) -> None:
    path = directory / name
    path.write_text(f"#!{shutil.which('sh')}\necho '{prints}'\n")
    path.chmod(0o755)


def test_missing_python_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    told = run(shutil.which("sh") or "sh", ROOT / "run", "example", PATH=str(tmp_path), PYTHON="no-such-python")
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1
    assert "no Python 3.11 or newer found" in told.stderr
    assert "apt install python3" in told.stderr


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ({}, "cargo was not found: install a Rust toolchain from https://rustup.rs"),
        ({"cargo": "cargo 1.0.0", "rustc": "rustc 1.0.0"}, "update it with `rustup update stable`"),
        ({"cargo": "cargo 99.0.0", "rustc": "rustc 99.0.0"}, "no working C compiler `cc`"),
    ],
    ids=["no cargo", "old rustc", "no compiler"],
)
def test_missing_tools_are_one_line_that_says_what_to_install(tools: dict[str, str], said: str, tmp_path: Path) -> None:
    for name, prints in tools.items():
        fake_tool(tmp_path, name, prints)
    told = run(sys.executable, TASKS, "test", "fmt", PATH=str(tmp_path), CARGO_HOME=str(tmp_path / "none"))
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1
    assert said in told.stderr


def test_the_task_runner_needs_only_the_standard_library() -> None:
    imported = set()
    scripts = [TASKS, *(TASKS.with_name(f"{name}.py") for name in ("builds", "sections", "steps"))]
    for script in scripts:
        for node in ast.walk(ast.parse(script.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert imported <= sys.stdlib_module_names | {script.stem for script in scripts}


def test_readme_taste_runs() -> None:
    block = re.search(r"```python\n(.*?)```", read("README.md"), flags=re.DOTALL)
    assert block is not None
    assert len(block[1].splitlines()) <= 25
    done = run(sys.executable, "-W", "error", "-c", block[1])
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


# -------------------------------------------------------------------------------------------------------- benches


def test_compare_bench_lists_and_runs_a_row() -> None:
    bench = ROOT / "benches" / "compare"
    listed = run(sys.executable, bench, "--list")
    assert listed.returncode == 0, listed.stderr
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    assert {"scalar_chain", "add_4x4", "mlp_step", "custom_function", "matmul_1024", "sum_4m", "import_time"} <= names
    done = run(sys.executable, bench, "--quick", "add_4x4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a + b, 4x4, no_grad" in done.stdout
    wrong = run(sys.executable, bench, "no_such_row")
    assert wrong.returncode == 2
    assert "no row 'no_such_row'" in wrong.stderr


# ------------------------------------------------------------------------------------------ documents and metadata


def cargo() -> dict[str, str]:
    package: dict[str, str] = tomllib.loads(read("Cargo.toml"))["workspace"]["package"]
    for name in ("Cargo.toml", "src/kernels/Cargo.toml"):
        stated = tomllib.loads(read(name))["package"]
        assert all(stated[key] == {"workspace": True} for key in package), name
    return package


def test_one_version_everywhere() -> None:
    from importlib.metadata import version

    import rgrad

    assert rgrad.__version__ == cargo()["version"] == version("rgrad")
    newest = re.search(r"^## (\d+\.\d+\.\d+)", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == cargo()["version"]
    assert "version" in tomllib.loads(read("pyproject.toml"))["project"]["dynamic"]


def test_licences_agree() -> None:
    assert cargo()["license"] == tomllib.loads(read("pyproject.toml"))["project"]["license"] == "MIT OR Apache-2.0"
    assert "Permission is hereby granted" in read("LICENSE-MIT")
    assert "Version 2.0, January 2004" in read("LICENSE-APACHE")


def test_links_between_documents_lead_somewhere() -> None:
    for name, text in texts(".md").items():
        prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if "://" not in target:
                assert (ROOT / name).parent.joinpath(target).exists(), f"{name} links to {target}"


def test_contributing_shows_a_real_row() -> None:
    section = read("CONTRIBUTING.md").partition("## Add a pointwise operation")[2]
    block = re.search(r"```rust\n(.*?)```", section, flags=re.DOTALL)
    assert block is not None
    assert len(block[1].splitlines()) <= 10
    assert any(block[1] in text for name, text in texts(".rs").items() if name.startswith("src/kernels/rows/"))


# By kind of addition: what its example is called in the sources, and the file that needs no such name.
PLACES = {
    "reduction with an accumulator of its own": (r"\bCountNonzero\b", {"src/ops/reduce.rs"}),
    "operation with a gradient and kernels of its own, in a family of requests that exists": (
        r"\bScanKind::LogSumExp\b",
        set(),
    ),
    "the same with a new family of requests": (r"GridSample|GridPass|^(?:pub )?mod grid(?:_sample)?;$", set()),
}


@pytest.mark.parametrize("what", PLACES)
def test_contributing_counts_the_places(what: str) -> None:
    names, more = PLACES[what]
    row = re.search(rf"^\| {what} \| (\d+) \|", read("CONTRIBUTING.md"), flags=re.MULTILINE)
    assert row is not None
    sources = {name: text for name, text in texts(".rs").items() if name.startswith("src/")}
    found = {name for name, text in sources.items() if re.search(names, text, flags=re.MULTILINE)}
    assert int(row[1]) == len(found | more)


def test_contributing_shows_every_room() -> None:
    listed = set(re.findall(r"^src/(\S+)/ ", read("CONTRIBUTING.md"), flags=re.MULTILINE))
    rooms = [path for top in (ROOT / "src", ROOT / "src" / "kernels") for path in top.iterdir() if path.is_dir()]
    assert listed == {str(path.relative_to(ROOT / "src")) for path in rooms}


# -------------------------------------------------------------------------------------------------- every file


def test_no_file_is_too_long() -> None:
    long = {name: len(text.splitlines()) for name, text in texts(".rs", ".py", ".pyi", ".sh").items()}
    too_long = {name: lines for name, lines in long.items() if lines > LONGEST and not name.endswith(".pyi")}
    assert too_long == {}


def test_every_test_of_the_suite_has_a_folder_and_a_name_of_its_own() -> None:
    suite = ROOT / "tests" / "python"
    files = [path for path in tracked() if suite in path.parents and path.name.startswith("test_")]
    assert [path.name for path in files if path.parent in (suite, suite / "helpers")] == []
    # pytest imports test files by their name alone.
    assert len({path.name for path in files}) == len(files) > 100


def test_no_file_mentions_a_place_on_somebodys_machine() -> None:
    places = re.compile(r"(?<![\w.~])/(?:work|opt|tmp|home|root|Users)/\w")
    found = [f"{name}: {match[0]}" for name, text in texts().items() for match in places.finditer(text)]
    assert found == []


def test_nothing_is_left_undone() -> None:
    marks = re.compile(r"\b(?:TO(?:)DO|FIX(?:)ME|X(?:)XX)\b|\bto(?:)do!|\bunimple(?:)mented!")
    files = texts(".rs", ".py", ".md").items()
    found = [f"{name}: {match[0]}" for name, text in files for match in marks.finditer(text)]
    assert found == []


def test_the_module_says_that_it_needs_the_gil() -> None:
    # PyO3 declares a module safe without the GIL unless this is said.
    declared = [m for text in texts(".rs").values() for m in re.findall(r"#\[(?:pyo3::)?pymodule\b.*\]", text)]
    assert declared == ["#[pymodule(gil_used = true)]"]
    assert not any("PyUnstable_Module_SetGIL" in text or "gil_used(" in text for text in texts(".rs").values())


def test_import_is_lean() -> None:
    heavy = ["jax", "matplotlib", "scipy", "sklearn", "torch", "wgpu"]
    code = f"import sys, rgrad; print(sorted(set(sys.modules) & set({heavy})))"
    done = run(sys.executable, "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
