"""Methods called with PyTorch's names of their arguments, and `type` with the class itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rgrad
from rgrad import Tensor

CALLS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "view": (lambda x: x.view(size=(3, 2)), lambda x: x.view(3, 2)),
    "view of one size": (lambda x: x.view(size=6), lambda x: x.view(6)),
    "expand": (lambda x: x[:, :1].expand(size=(2, 4)), lambda x: x[:, :1].expand(2, 4)),
    "repeat": (lambda x: x.repeat(repeats=(2, 1)), lambda x: x.repeat(2, 1)),
    "sum_to_size": (lambda x: x.sum_to_size(size=(1, 3)), lambda x: x.sum_to_size(1, 3)),
    "reshape": (lambda x: x.reshape(shape=(3, 2)), lambda x: x.reshape(3, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_by_name(name: str) -> None:
    x = rgrad.arange(6.0).view(2, 3)
    by_name, by_place = CALLS[name]
    assert rgrad.equal(by_name(x), by_place(x))


def test_wrong_names() -> None:
    x = rgrad.ones(2)
    for call in (x.view, x.expand, x.repeat, x.sum_to_size):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call(sizes=(2,))
    with pytest.raises(TypeError, match=r"view\(\) missing 1 required positional argument"):
        x.view()
    assert rgrad.tensor(2.0).expand().shape == rgrad.tensor(2.0).repeat().shape == ()


def test_type_of_the_class(device: str) -> None:
    x = rgrad.ones(2, dtype=rgrad.int32).to(device).type(rgrad.Tensor)
    assert (x.dtype, x.device.type) == (rgrad.float32, "cpu")
    assert rgrad.ones(2).type(rgrad.Tensor).type() == "rgrad.FloatTensor"
