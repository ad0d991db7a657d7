"""`rgrad.hub`: folders with a hubconf.py, the cache, and state dicts from URLs (of files)."""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

import rgrad
from rgrad import hub

CONF = '''
dependencies = ["math"]
import helper_of_the_hub
from rgrad import nn

def small(width=2, *, bias=True):
    """A linear layer."""
    return nn.Linear(helper_of_the_hub.INPUTS, width, bias=bias)

def _hidden():
    pass

number = 3
'''


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    sys.modules.pop("helper_of_the_hub", None)


def repository(folder: Path, conf: str = CONF) -> Path:
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(conf, encoding="utf-8")
    (folder / "helper_of_the_hub.py").write_text("INPUTS = 3\n", encoding="utf-8")
    return folder


def test_a_local_folder(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    before = list(sys.path)
    model = hub.load(folder, "small", 5, source="local", bias=False)
    assert isinstance(model, rgrad.nn.Linear)
    assert (model.in_features, model.out_features, model.bias) == (3, 5, None)
    assert hub.load(str(folder), "small", source="LOCAL").out_features == 2
    assert sys.path == before


def test_a_repository_in_the_cache(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository(cache / "someone_models_main")
    repository(cache / "someone_models_fix_it", CONF.replace("3)", "4)").replace("def small", "def other"))
    assert hub.list("someone/models") == ["small"]
    assert hub.list("someone/models:fix/it", verbose=False) == ["other"]
    assert hub.help("someone/models", "small") == "A linear layer."
    assert hub.load("someone/models", "small", 4).out_features == 4
    assert "Using cache found in" in capsys.readouterr().err


def test_code_is_not_downloaded(cache: Path) -> None:
    repository(cache / "someone_models_main")
    refused = r"does not download code.*git clone https://github.com/someone"
    with pytest.raises(RuntimeError, match=refused):
        hub.load("someone/else", "small")
    with pytest.raises(RuntimeError, match=refused):
        hub.list("someone/models:v2")
    with pytest.raises(RuntimeError, match=refused):
        hub.help("someone/models", "small", force_reload=True)


@pytest.mark.parametrize("name", ["models", "a/b/c", "a/b:", ":main", ""])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match="repo_owner/repo_name"):
        hub.load(name, "small")


def test_what_is_refused(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "small", source="web")
    with pytest.raises(RuntimeError, match="Cannot find callable large in hubconf"):
        hub.load(folder, "large", source="local")
    with pytest.raises(RuntimeError, match="Cannot find callable number in hubconf"):
        hub.load(folder, "number", source="local")
    wrong: Any = 3
    with pytest.raises(ValueError, match="should be a string of function name"):
        hub.load(folder, wrong, source="local")
    with pytest.raises(FileNotFoundError):
        hub.load(tmp_path, "small", source="local")
    needy = repository(tmp_path / "needy", CONF.replace('"math"', '"math", "no_such_package_here"'))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.load(needy, "small", source="local")


def test_the_folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "torch" / "hub")
    hub.set_dir(tmp_path / "mine")
    assert hub.get_dir() == str(tmp_path / "mine")


def saved(file: Path) -> str:
    rgrad.save({"w": rgrad.ones(2)}, file)
    return file.as_uri()


def read(url: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hub.load_state_dict_from_url(url, **options)


def test_a_state_dict_is_fetched_once(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = saved(tmp_path / "net.pth")
    assert read(url)["w"].tolist() == [1, 1]
    told = capsys.readouterr()
    assert f'Downloading: "{url}"' in told.out
    assert "100.0%" in told.err
    (tmp_path / "net.pth").unlink()
    assert read(url, weights_only=True, map_location="meta")["w"].device.type == "meta"
    assert capsys.readouterr().out == ""
    assert [p.name for p in (cache / "checkpoints").iterdir()] == ["net.pth"]


def test_a_state_dict_with_a_hash_in_its_name(tmp_path: Path) -> None:
    saved(tmp_path / "net.pth")
    content = (tmp_path / "net.pth").read_bytes()
    right = tmp_path / f"net-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    wrong = tmp_path / "net-0123abcd.pth"
    for file in (right, wrong):
        file.write_bytes(content)
    folder = str(tmp_path / "models")
    assert read(right.as_uri(), model_dir=folder, check_hash=True, progress=False)["w"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match='invalid hash value .expected "0123abcd"'):
        read(wrong.as_uri(), model_dir=folder, check_hash=True, progress=False)
    # What was wrong has left nothing.
    assert [p.name for p in Path(folder).iterdir()] == [right.name]


def test_urls_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(URLError):
        read((tmp_path / "none.pth").as_uri(), model_dir=str(tmp_path / "models"))
    assert list((tmp_path / "models").iterdir()) == []


def test_a_file_is_not_trusted_unless_the_caller_says_so(tmp_path: Path) -> None:
    assert inspect.signature(hub.load_state_dict_from_url).parameters["weights_only"].default is True
    rgrad.save({"layer": rgrad.nn.ReLU()}, tmp_path / "net.pth")
    url = (tmp_path / "net.pth").as_uri()
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        read(url)
    assert isinstance(read(url, weights_only=False)["layer"], rgrad.nn.ReLU)


@pytest.mark.parametrize("name", ["net.pth", "net-.pth", "net-0123abc.pth", "net-0123ABCD.pth", "net-0123abcd"])
def test_a_hash_that_is_to_be_checked_must_be_there(name: str, tmp_path: Path) -> None:
    saved(tmp_path / name)
    with pytest.raises(ValueError, match="check_hash=True needs a file name"):
        read((tmp_path / name).as_uri(), model_dir=str(tmp_path / "models"), check_hash=True)
    assert not (tmp_path / "models").exists()


def test_the_hash_of_a_kept_file_is_checked(tmp_path: Path) -> None:
    saved(tmp_path / "net.pth")
    content = (tmp_path / "net.pth").read_bytes()
    name = f"net-{hashlib.sha256(content).hexdigest()}.pth"
    url = (tmp_path / "net.pth").as_uri()
    options = {"model_dir": str(tmp_path / "models"), "file_name": name, "check_hash": True}
    for _ in range(2):
        assert read(url, **options)["w"].tolist() == [1, 1]
    rgrad.save({"w": rgrad.zeros(2)}, tmp_path / "models" / name)
    with pytest.raises(RuntimeError, match="invalid hash value .*which was there before. Delete it"):
        read(url, **options)


def test_a_wrong_hash_leaves_the_old_file(tmp_path: Path) -> None:
    url = saved(tmp_path / "net.pth")
    target = tmp_path / "kept"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(url, str(target), "00000000", progress=False)
    assert target.read_bytes() == b"old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept", "net.pth"]


class Answer(io.BytesIO):
    def __init__(self, data: bytes, told: str) -> None:
        super().__init__(data)
        self.headers = {"Content-Length": told}


@pytest.mark.parametrize(("told", "whole"), [("5", True), ("6", False), ("", True), ("x", True), ("-1", True)])
def test_downloads_that_end_early(told: str, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "urlopen", lambda request: Answer(b"12345", told))
    target = tmp_path / "file"
    if whole:
        hub.download_url_to_file("http://host/file", str(target))
        assert target.read_bytes() == b"12345"
    else:
        with pytest.raises(OSError, match="ended after 5 of 6 bytes"):
            hub.download_url_to_file("http://host/file", str(target))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://host", "http://host/", "http://host/folder/..", "http://host/."])
def test_urls_without_a_name(url: str) -> None:
    with pytest.raises(ValueError, match="ends in no name of a file"):
        read(url)
