"""What `import rgrad` loads, and what it leaves until somebody asks."""

import subprocess
import sys

import pytest

import rgrad


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*(m for m in sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_parts_come_when_they_are_used() -> None:
    loaded = loaded_after("import rgrad")
    assert "rgrad.autograd" in loaded
    late = ("nn", "optim", "utils", "serialization", "overrides", "wgpu", "testing", "autograd.graph")
    assert not {f"rgrad.{name}" for name in late} & loaded
    assert not {"wgpu", "cffi", "threading"} & loaded
    # One part brings no other with it but those that it is made of.
    loaded = loaded_after("import rgrad; rgrad.nn.Linear(1, 1)")
    assert "rgrad.nn.modules.linear" in loaded
    assert not {"rgrad.optim", "rgrad.utils.data", "rgrad.serialization", "wgpu"} & loaded


@pytest.mark.parametrize("package", [rgrad, rgrad.autograd, rgrad.utils], ids=lambda p: p.__name__)
def test_all_names_are_there_and_listed(package: object) -> None:
    listed = dir(package)
    for name in package.__all__:  # type: ignore[attr-defined]
        assert name in listed
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match=r"module 'rgrad.*' has no attribute 'nothing_of_the_sort'"):
        package.nothing_of_the_sort  # type: ignore[attr-defined]


def test_names_of_parts_are_taken_in_every_way() -> None:
    for code in (
        "from rgrad import *; nn.Linear(1, 1); load; optim.SGD",
        "import rgrad.nn.functional as F; F.relu",
        "from rgrad import nn, save, serialization; assert serialization.save is save",
        "from rgrad.utils.data import DataLoader; import rgrad; assert rgrad.utils.data.DataLoader is DataLoader",
        "from rgrad.autograd.gradcheck import GradcheckError; import rgrad; assert callable(rgrad.autograd.gradcheck)",
    ):
        loaded_after(code)
