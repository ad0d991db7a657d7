"""rgrad in PyTorch's place: `torch` and all below it are modules of rgrad, in the process or in a block."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import rgrad
from rgrad import compat


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real PyTorch that other tests have imported, or that is there to import, must not be seen."""
    others = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    for name in others:
        del sys.modules[name]
    yield
    assert not compat.is_installed()
    assert "torch" not in sys.modules
    sys.modules.update(others)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package named torch that is no rgrad, there to be found."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\n__version__ = '0.0'\n")
    (package / "inner.py").write_text("word = 'the other one'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package


def python(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_way_of_importing_gives_rgrads_modules() -> None:
    with compat.as_torch():
        import torch
        import torch.nn.functional as F
        from torch import nn, optim
        from torch.optim.lr_scheduler import StepLR
        from torch.utils.data import DataLoader, Dataset

        assert torch is rgrad
        assert F is rgrad.nn.functional
        assert (nn, optim) == (rgrad.nn, rgrad.optim)
        assert StepLR is rgrad.optim.lr_scheduler.StepLR
        assert (DataLoader, Dataset) == (rgrad.utils.data.DataLoader, rgrad.utils.data.Dataset)
        assert importlib.import_module("torch.autograd.graph") is rgrad.autograd.graph
        assert importlib.import_module(".modules", "torch.nn") is rgrad.nn.modules
        assert sys.modules["torch.autograd.graph"] is rgrad.autograd.graph
    with pytest.raises(ModuleNotFoundError):
        exec("import torch.nn.utils.rnn", {})


def test_the_modules_keep_what_they_say_of_themselves() -> None:
    specs = {name: module.__spec__ for name, module in sys.modules.items() if name.startswith("rgrad")}
    with compat.as_torch():
        import torch.nn.init
        import torch.signal.windows  # noqa: F401

        assert rgrad.nn.init.__name__ == "rgrad.nn.init"
        assert rgrad.signal.windows.__spec__.name == "rgrad.signal.windows"
    assert all(sys.modules[name].__spec__ is spec for name, spec in specs.items())


def test_no_module_is_there_twice() -> None:
    code = """
import rgrad.compat; rgrad.compat.install()
import pkgutil, sys, importlib, torch
for found in pkgutil.walk_packages(torch.__path__, "torch."):
    if found.name.rpartition(".")[2] != "__main__" and ".tensorboard" not in found.name:
        importlib.import_module(found.name)
files = {}
for name, module in sys.modules.items():
    if getattr(module, "__file__", None) and (name + ".").startswith(("torch.", "rgrad.")):
        files.setdefault(module.__file__, set()).add(id(module))
assert len(files) > 250, len(files)
assert [f for f, modules in files.items() if len(modules) > 1] == []
print("once")
"""
    assert python(code) == "once\n"


def test_importlib_and_pkgutil_and_inspect_answer() -> None:
    with compat.as_torch():
        import torch

        assert importlib.util.find_spec("torch") is not None
        found = importlib.util.find_spec("torch.nn")
        assert found is not None
        assert found.origin == rgrad.nn.__file__
        spec = importlib.util.find_spec("torch.optim.sgd")
        assert spec is not None
        assert spec.loader is not None
        assert "class SGD" in (spec.loader.get_source("torch.optim.sgd") or "")  # type: ignore[attr-defined]
        assert spec.loader.get_code("torch.optim.sgd") is not None  # type: ignore[attr-defined]
        assert spec.loader.is_package("torch.optim.sgd") is False  # type: ignore[attr-defined]
        assert importlib.util.find_spec("torch.nonsense") is None
        with pytest.raises(ModuleNotFoundError, match="No module named 'torch.nonsense'"):
            importlib.import_module("torch.nonsense")
        with pytest.raises(ModuleNotFoundError):
            importlib.util.find_spec("torch.nonsense.more")
        names = {module.name for module in pkgutil.iter_modules(torch.__path__, "torch.")}
        assert {"torch.nn", "torch.optim", "torch.utils"} <= names
        assert pkgutil.resolve_name("torch.nn:Linear") is rgrad.nn.Linear
        assert "class Linear" in inspect.getsource(torch.nn.Linear)
        assert inspect.getmodule(torch.nn.Linear) is rgrad.nn.modules.linear


def test_metadata_names_the_release() -> None:
    assert "torch" not in {d.name for d in importlib.metadata.distributions(path=[])}
    with compat.as_torch():
        assert importlib.metadata.version("torch") == "2.13.0"
        assert importlib.metadata.distribution("Torch").metadata["Name"] == "torch"
        assert "torch" in importlib.metadata.packages_distributions()["torch"]
        with pytest.raises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("torch-nothing")


def test_pickles_name_classes_either_way() -> None:
    with compat.as_torch():
        import torch

        for thing in (torch.nn.Linear, torch.float32, torch.Size([2]), torch.device("cpu"), torch.channels_last):
            assert pickle.loads(pickle.dumps(thing)) == thing
        # As a pickle of PyTorch names it.
        assert pickle.loads(b"ctorch.nn.modules.linear\nLinear\n.") is rgrad.nn.Linear
    assert pickle.loads(pickle.dumps(rgrad.nn.Linear)) is rgrad.nn.Linear


def test_another_torch_is_left_alone(fake: Path) -> None:
    import torch

    other: ModuleType = torch
    assert other.__version__ == "0.0"
    with compat.as_torch():
        import torch

        assert torch is rgrad
        with compat.as_torch():
            import torch.nn

            assert torch.nn is rgrad.nn
        assert sys.modules["torch"] is rgrad
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch.inner")
    assert sys.modules["torch"] is other
    assert importlib.import_module("torch.inner").word == "the other one"
    assert "torch.nn" not in sys.modules
    with pytest.raises(RuntimeError, match=r"torch was imported before .*as_torch"):
        compat.install()
    assert not compat.is_installed()
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]


def test_the_alias_wins_over_a_torch_that_was_not_imported(fake: Path) -> None:
    compat.install()
    try:
        import torch

        assert torch is rgrad
    finally:
        compat.uninstall()


def test_install_and_uninstall() -> None:
    assert not compat.is_installed()
    compat.install()
    compat.install()
    assert compat.is_installed()
    with compat.as_torch(), pytest.raises(RuntimeError, match="open block"):
        compat.uninstall()
    assert compat.is_installed()
    compat.uninstall()
    compat.uninstall()
    assert not compat.is_installed()


def test_a_block_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), compat.as_torch():
        raise KeyError
    assert not compat.is_installed()


def test_a_missing_name_says_the_page() -> None:
    with compat.as_torch():
        import torch

        assert not hasattr(torch, "nonsense")
        with pytest.raises(AttributeError, match=r"no attribute 'nonsense'.*docs/in-torchs-place.md"):
            _ = torch.nonsense


def test_import_of_rgrad_does_not_import_the_alias() -> None:
    assert (
        python("import sys, rgrad; print([m for m in sys.modules if 'compat' in m and m.startswith('rgrad')])")
        == "[]\n"
    )
