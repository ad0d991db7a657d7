"""Objects that answer with themselves, arrays that change behind a tensor, endless chains: errors, and no crash."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor


class GivesItself:
    """Answers each of these methods with itself."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self


class Sequence:
    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: Any) -> Any:
        return self


class Index:
    def __index__(self) -> Any:
        return self


class Float:
    def __float__(self) -> Any:
        return self


class Item:
    """Says that it is a scalar of NumPy, whose value is itself."""

    def item(self) -> Any:
        return self


Item.__module__ = "numpy"


def endless() -> list[Any]:
    data: list[Any] = []
    data.append(data)
    return data


OBJECTS: dict[str, Callable[[], Any]] = {
    "__array__": GivesItself,
    "__getitem__": Sequence,
    "__index__": Index,
    "__float__": Float,
    "item": Item,
    "a list in itself": endless,
    "a list of those": lambda: [GivesItself(), Sequence()],
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "tensor": rgrad.tensor,
    "as_tensor": rgrad.as_tensor,
    "asarray": rgrad.asarray,
    "from_numpy": rgrad.from_numpy,
    "Tensor": Tensor,
    "index": lambda o: rgrad.ones(3)[o],
    "index in a tuple": lambda o: rgrad.ones(3, 3)[o, o],
    "assignment": lambda o: rgrad.ones(3).__setitem__(0, o),
    "place of an assignment": lambda o: rgrad.ones(3).__setitem__(o, 0),
    "add": lambda o: rgrad.ones(3) + o,
    "reflected add": lambda o: o + rgrad.ones(3),
    "comparison": lambda o: rgrad.ones(3) < o,
    "sizes": lambda o: rgrad.zeros(o),
    "view": lambda o: rgrad.ones(3).view(o),
    "dims": lambda o: rgrad.ones(3).sum(o),
    "cat": lambda o: rgrad.cat(o),
    "stack": lambda o: rgrad.stack([o]),
    "fill": lambda o: rgrad.full((2,), o),
    "alpha": lambda o: rgrad.add(rgrad.ones(1), 1, alpha=o),
    "where": lambda o: rgrad.where(rgrad.ones(1) > 0, o, 1.0),
    "einsum": lambda o: rgrad.einsum("i->i", o),
    "device": lambda o: rgrad.ones(1, device=o),
    "dtype": lambda o: rgrad.ones(1, dtype=o),
    "to": lambda o: rgrad.ones(1).to(o),
    "backward": lambda o: rgrad.ones(2, requires_grad=True).exp().backward(o),
    "new_tensor": lambda o: rgrad.ones(1).new_tensor(o),
    "pad": lambda o: rgrad.nn.functional.pad(rgrad.ones(3), o),
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("name", CALLS)
def test_conversions_end(name: str, kind: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
        CALLS[name](OBJECTS[kind]())


def test_an_array_from_another_object_is_taken() -> None:
    class Holds:
        def __array__(self, *_: Any, **__: Any) -> np.ndarray:
            return np.arange(3.0)

    assert rgrad.tensor(Holds()).tolist() == [0, 1, 2]
    with pytest.raises(
        ValueError, match=r"__array__ method not producing an array: GivesItself.__array__\(\) returned GivesItself"
    ):
        rgrad.tensor(GivesItself())


def test_results_that_contain_themselves() -> None:
    class Own(Tensor):
        pass

    with pytest.raises(RecursionError, match="contains itself"):
        Own.__torch_function__(lambda _: endless(), (Own,), (rgrad.ones(2),))


@pytest.mark.parametrize("share", [rgrad.from_numpy, rgrad.as_tensor, lambda a: rgrad.asarray(a, copy=False)])
def test_an_array_under_a_tensor_is_not_resized(share: Callable[[np.ndarray], Tensor]) -> None:
    a = np.arange(4.0)
    t = share(a)
    view = t[1:]
    for held in (t, view):
        with pytest.raises(ValueError, match="cannot resize"):
            a.resize(1_000_000, refcheck=False)
        assert held.sum().item() == 6
    del t, view, held
    gc.collect()
    a.resize(5, refcheck=False)
    assert len(a) == 5


@pytest.mark.parametrize("link", ["grad", "attribute", "both"])
def test_long_chains_are_dropped(link: str) -> None:
    first = at = rgrad.zeros(1)
    for _ in range(200_000):
        new = rgrad.zeros(1)
        if link != "attribute":
            at.grad = new
        if link != "grad":
            at.next = new  # type: ignore[attr-defined]
        at = new
    del at, new
    del first
    gc.collect()


def test_a_long_chain_of_gradients_in_a_cycle() -> None:
    first = at = rgrad.zeros(1)
    for _ in range(100_000):
        at.grad = rgrad.zeros(1)
        at = at.grad
    at.back = first  # type: ignore[attr-defined]
    del at, first
    gc.collect()
