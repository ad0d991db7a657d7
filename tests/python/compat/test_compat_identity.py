"""What says that it is PyTorch while rgrad stands in its place, and only then."""

from __future__ import annotations

import pickle

import pytest

import rgrad
from rgrad import compat
from rgrad.torch_version import TorchVersion


def test_the_version_is_pytorchs_only_under_its_name() -> None:
    own = rgrad.__version__
    with compat.as_torch():
        assert isinstance(rgrad.__version__, TorchVersion)
        assert rgrad.__version__ == rgrad.version.__version__ == "2.13.0"
        assert rgrad.__version__ >= (2, 1)
        assert rgrad.__version__.split(".")[:2] == ["2", "13"]
        assert rgrad._core.__version__ == own
    assert rgrad.__version__ == rgrad.version.__version__ == own == rgrad._core.__version__


def test_names_of_types_are_pytorchs_only_under_its_name() -> None:
    x = rgrad.ones(2, dtype=rgrad.float64)

    def told() -> list[str]:
        things = (rgrad.float32, rgrad.bool, rgrad.channels_last, rgrad.Size([2, 3]), rgrad.float16)
        return [*map(repr, things), *map(str, things), x.type(), repr(x), f"{rgrad.int64}", rgrad.typename(x)]

    before = told()
    with compat.as_torch():
        assert told() == [text.replace("rgrad.", "torch.") for text in before]
        assert str(rgrad.float32) == "torch.float32"
        assert x.type(rgrad.float32).dtype == rgrad.float32
        assert x.type("torch.FloatTensor").dtype == rgrad.float32
        assert hash(rgrad.float32) == hash(pickle.loads(pickle.dumps(rgrad.float32)))
    assert told() == before


# Each is smaller than the next.
ASCENDING = [
    "0.9",
    "1.0.dev3",
    "1.0a1",
    "1.0a2",
    "1.0b1",
    "1.0rc1",
    "1.0",
    "1.0+cpu",
    "1.0+5",
    "1.0.post1",
    "1.10",
    "1!0.1",
]


@pytest.mark.parametrize("at", range(len(ASCENDING) - 1))
def test_versions_compare_as_versions(at: int) -> None:
    less, more = TorchVersion(ASCENDING[at]), ASCENDING[at + 1]
    assert less < more
    assert less <= more
    assert not less > more
    assert not less >= more
    assert less != more
    assert TorchVersion(more) > str(less)


def test_versions_compare_with_what_libraries_give() -> None:
    version = TorchVersion("2.13.0")
    assert version == "2.13"
    assert version == (2, 13)
    assert version >= (2, 1, 1)
    assert version < [3]
    assert version == pickle.loads(pickle.dumps(version))
    assert hash(version) == hash("2.13.0")
    assert version != 3
    assert version != "parrot"
    assert TorchVersion("parrot") == "parrot"
    assert TorchVersion("parrot") > "cage"
    with pytest.raises(TypeError):
        _ = version < 3


def test_the_module_of_tensors_is_pytorchs_only_under_its_name() -> None:
    before = rgrad.Tensor.__module__
    assert before != "torch"
    with compat.as_torch():
        assert type(rgrad.ones(1)).__module__ == "torch"
        assert rgrad.equal(pickle.loads(pickle.dumps(rgrad.ones(2))), rgrad.ones(2))
    assert rgrad.Tensor.__module__ == before
