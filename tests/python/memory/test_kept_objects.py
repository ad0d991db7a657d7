"""Objects that their tensors keep: attributes stay, and whatever else shows such an object may use it as any other."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import rgrad


class Marked(rgrad.Tensor):
    pass


def saved_alone(device: str, subclass: bool = False) -> tuple[weakref.ref[rgrad.Tensor], rgrad.Tensor]:
    """A tensor that only a node holds, with state of its object, and the result whose backward frees it."""
    x = rgrad.ones(300, device=device, requires_grad=True)
    y = (x * 2).as_subclass(Marked) if subclass else x * 2
    y.note = "mine"  # type: ignore[attr-defined]
    return weakref.ref(y), (y * y).sum()


def others(device: str) -> list[rgrad.Tensor]:
    """Tensors that take the memory of what was freed before."""
    return [rgrad.ones(300, device=device) * 5 for _ in range(100)]


def check(kept: Any, device: str) -> None:
    taken = others(device)
    assert kept.note == "mine"
    assert kept.shape == (300,)
    assert kept.sum().item() == 600
    assert (kept + 1).sum().item() == 900
    assert len(taken) == 100


def test_a_weak_reference_gives_the_tensor_beyond_its_graph(device: str) -> None:
    for subclass in (False, True):
        seen, total = saved_alone(device, subclass)
        kept = seen()
        assert kept is not None
        total.backward()
        check(kept, device)
        del kept, total
        assert seen() is None


def test_the_collectors_list_gives_the_tensor_beyond_its_graph(device: str) -> None:
    seen, total = saved_alone(device)
    listed = [o for o in gc.get_objects() if type(o) is rgrad.Tensor and getattr(o, "note", "") == "mine"]
    assert len(listed) == 1
    total.backward()
    check(listed[0], device)
    gc.collect()
    check(listed[0], device)
    listed.clear()
    assert seen() is None


def test_the_object_ends_with_the_graph_and_comes_back_before(device: str) -> None:
    seen, total = saved_alone(device)
    node = total.grad_fn.next_functions[0][0]
    again = node._saved_self
    assert again is seen()
    del again
    assert seen() is not None
    gc.collect()
    del node
    total.backward()
    assert seen() is None


def test_a_tensor_that_another_thread_frees() -> None:
    for _ in range(20):
        seen, total = saved_alone("cpu")
        kept = seen()
        other = threading.Thread(target=total.backward)
        other.start()
        for _ in range(20):
            assert kept is not None
            assert kept.sum().item() == 600
            gc.collect(0)
        other.join()
        check(kept, "cpu")
        del kept
        rgrad.ones(1, requires_grad=True).sum().backward()
        assert seen() is None
