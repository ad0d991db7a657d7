"""Files that are written by a path: whole or not at all, with the permissions and links that were there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rgrad._runtime.whole_files import text_written_whole
from rgrad.autograd.graph import draw, explain

ROOT_USER = os.geteuid() == 0


def test_a_new_file_has_the_permissions_of_any(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        rgrad.save(1, tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664])
def test_permissions_stay(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "model"
    rgrad.save(1, path)
    path.chmod(mode)
    rgrad.save(2, path)
    assert rgrad.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_links_stay(tmp_path: Path) -> None:
    real, link, link_of_link = tmp_path / "folder" / "real", tmp_path / "link", tmp_path / "again"
    real.parent.mkdir()
    link.symlink_to("folder/real")
    link_of_link.symlink_to(link)
    # The first leads to nothing yet.
    for number, path in enumerate((link, link_of_link)):
        rgrad.save(number, path)
        assert rgrad.load(real) == number
    assert link.is_symlink()
    assert link_of_link.is_symlink()
    assert [file.name for file in real.parent.iterdir()] == ["real"]


def test_names_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    for number in range(2):
        rgrad.save(number, path)
        assert rgrad.load(path) == number


class Broken:
    """What fails when half of the file is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        from rgrad._files.archive import StoredArchive

        add = StoredArchive.add

        def broken(archive: StoredArchive, name: str, data: Any) -> None:
            if name == "archive/data/1":
                raise error
            add(archive, name, data)

        monkeypatch.setattr(StoredArchive, "add", broken)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()], ids=repr
)
@pytest.mark.parametrize("old", [False, True])
def test_what_fails_leaves_the_old_file(
    error: BaseException, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    if old:
        rgrad.save({"w": rgrad.ones(3)}, path)
    Broken(monkeypatch, error)
    with pytest.raises(type(error)):
        rgrad.save([rgrad.zeros(3), rgrad.ones(1)], path)
    assert [file.name for file in tmp_path.iterdir()] == ["model"] * old
    assert not old or rgrad.load(path)["w"].tolist() == [1.0] * 3


def test_who_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    rgrad.save({"w": rgrad.ones(3)}, path)
    program = """
import os, signal, sys
import rgrad
from rgrad._files.archive import StoredArchive
add = StoredArchive.add
def deadly(archive, name, data):
    add(archive, name, data)
    archive._file.flush()
    if name == "archive/data/0":
        os.kill(os.getpid(), signal.SIGKILL)
StoredArchive.add = deadly
rgrad.save([rgrad.zeros(1000), rgrad.ones(1)], sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -9
    assert rgrad.load(path)["w"].tolist() == [1.0] * 3


def test_a_map_of_the_old_file_lasts(tmp_path: Path) -> None:
    path = tmp_path / "model"
    rgrad.save(rgrad.full((100_000,), 3.0), path)
    mapped = rgrad.load(path, mmap=True)
    # The new file is much shorter: were it the same one, the next line would end the process.
    rgrad.save(rgrad.zeros(1), path)
    assert mapped[-1].item() == 3.0
    assert rgrad.load(path).tolist() == [0.0]


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, other: (done.append("name"), replace(self, other))[1])
    rgrad.save(1, tmp_path / "model")
    assert done == ["sync", "name", "sync"]


def test_pipes_are_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    rgrad.save(rgrad.ones(2), pipe)
    reader.join()
    (tmp_path / "copy").write_bytes(got[0])
    assert rgrad.load(tmp_path / "copy").tolist() == [1.0, 1.0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    rgrad.save(1, os.devnull)


@pytest.mark.skipif(ROOT_USER, reason="root may write everywhere")
def test_what_may_not_be_written(tmp_path: Path) -> None:
    path = tmp_path / "model"
    rgrad.save(1, path)
    path.chmod(0o400)
    # A rename would replace it, but that is not what its permissions say.
    with pytest.raises(PermissionError):
        rgrad.save(2, path)
    assert rgrad.load(path) == 1


def test_a_folder_that_takes_no_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    rgrad.save(1, path)

    def refuse(folder: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rgrad._runtime.whole_files._beside", refuse)
    rgrad.save(2, path)
    assert rgrad.load(path) == 2
    with pytest.raises(PermissionError):
        rgrad.save(2, tmp_path / "other")


def test_folders_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        rgrad.save(1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    with text_written_whole(path) as file:
        file.write("naïve\n")
    assert path.read_text(encoding="utf-8") == "naïve\n"
    with pytest.raises(UnicodeEncodeError), text_written_whole(path) as file:
        file.write("\udc80")
    assert path.read_text(encoding="utf-8") == "naïve\n"
    with text_written_whole(path, errors="replace") as file:
        file.write("\udc80")
    assert path.read_text(encoding="utf-8") == "?"
    assert path.read_text(encoding="utf-8") == "?"
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


def exports(folder: Path) -> list[tuple[str, Any]]:
    """What writes pictures, traces and tables to files."""
    x = rgrad.ones(3, requires_grad=True)
    with rgrad.autograd.profiler.profile() as prof, rgrad.memory.record() as recording:
        y = (x * 2).sum()
    return [
        ("trace.json", prof.export_chrome_trace),
        ("trace.json.gz", prof.export_chrome_trace),
        ("memory.svg", recording.snapshot().save),
        ("gradient.svg", explain(y, wrt=x).save),
        ("graph.svg", draw(y).save),
    ]


def test_exports_replace_whole_files(tmp_path: Path) -> None:
    for name, export in exports(tmp_path):
        path = tmp_path / name
        path.write_bytes(b"old")
        path.chmod(0o640)
        with path.open("rb") as old:
            export(str(path))
            # Who has the old file open still reads it: the new one was written beside it.
            assert old.read() == b"old"
        assert len(path.read_bytes()) > 20
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {file.name for file in tmp_path.iterdir()} == {name for name, _ in exports(tmp_path)}
