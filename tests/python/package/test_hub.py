"""`rgrad.hub`: folders with a hubconf.py, the cache, and state dicts from URLs (of files)."""

from __future__ import annotations

import hashlib
import inspect
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
    assert inspect.signature(hub.load_state_dict_from_url).parameters["weights_only"].default is False
