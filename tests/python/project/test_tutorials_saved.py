"""PyTorch's pages on saved tensors, hooks, checkpoints and the mechanics of autograd, as tests in our own words.

The module is imported under PyTorch's name, as a reader of these pages would do it.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad as torch
from rgrad import nn
from rgrad.utils.checkpoint import checkpoint, checkpoint_sequential

# ------------------------------------------------------------------------------------------- what a node has saved


def test_a_node_shows_what_it_saved() -> None:
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    assert x.equal(y.grad_fn._saved_self)
    assert x is y.grad_fn._saved_self
    # An output is packed, and unpacked as another tensor of the same memory.
    z = x.exp()
    assert z.equal(z.grad_fn._saved_result)
    assert z is not z.grad_fn._saved_result
    assert z.grad_fn._saved_result.data_ptr() == z.data_ptr()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._saved_self


def test_hooks_on_one_saved_value() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 3, lambda t: t)
    y.sum().backward()
    # One of the two factors is now three times as large.
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_saved_values_live_in_files_as_long_as_the_graph(tmp_path: Path) -> None:
    class SelfDeletingFile:
        def __init__(self) -> None:
            self.name = tmp_path / str(uuid.uuid4())

        def __del__(self) -> None:
            self.name.unlink()

    def pack(tensor: Any) -> Any:
        file = SelfDeletingFile()
        torch.save(tensor.detach(), file.name)
        return file

    def unpack(file: Any) -> Any:
        return torch.load(file.name)

    x = torch.randn(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert len(list(tmp_path.iterdir())) == 2
    assert x.equal(y.grad_fn._saved_self)
    y.sum().backward()
    assert np.allclose(x.grad.tolist(), (2 * x).tolist())
    del y
    assert not list(tmp_path.iterdir())


def test_only_large_values_that_are_no_parameters_go_elsewhere() -> None:
    moved: list[tuple[int, ...]] = []

    def pack(x: Any) -> Any:
        if not isinstance(x, nn.Parameter) and x.numel() >= 1000:
            moved.append(tuple(x.shape))
            return (x.device, x.cpu())
        return x

    def unpack(packed: Any) -> Any:
        if isinstance(packed, tuple):
            device, tensor = packed
            return tensor.to(device)
        return packed

    class Middle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(1000))

        def forward(self, x: Any) -> Any:
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                # ... compute output, with the hooks on.
                return x * self.w * 2

    model = nn.Sequential(Middle(), nn.Tanh())
    x = torch.randn(1000, requires_grad=True)
    model(x).sum().backward()
    assert moved == [(1000,)]
    assert model[0].w.grad is not None


@pytest.mark.parametrize("returned", [1, "x", None])
def test_an_unpack_hook_that_gives_no_tensor(returned: Any) -> None:
    x = torch.ones(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: returned):
        y = x.pow(2)
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor"):
        y.sum().backward()


def test_a_pack_hook_must_not_write() -> None:
    x = torch.ones(5, requires_grad=True)

    def pack(t: Any) -> Any:
        t *= 2
        return t

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
        pytest.raises(RuntimeError, match="(?i)modif.*in.?place|in-place"),
    ):
        (x * 1).pow(2)


def test_of_nested_hooks_the_innermost_packs() -> None:
    log: list[str] = []

    def named(name: str) -> Any:
        def pack(t: Any) -> Any:
            log.append(f"pack {name}")
            return t.detach()

        def unpack(t: Any) -> Any:
            log.append(f"unpack {name}")
            return t

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    x = torch.ones(1, requires_grad=True)
    with named("outer"):
        y = x.exp()
        with named("inner"):
            z = y.exp()
    z.backward()
    assert log == ["pack outer", "pack inner", "unpack inner", "unpack outer"]


def test_a_returned_input_makes_a_cycle_and_a_detached_one_does_not() -> None:
    def dies(pack: Any) -> bool:
        x = torch.ones(5, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x.exp()
        seen = weakref.ref(y)
        del x, y
        return seen() is None

    assert dies(lambda t: t.detach())
    assert not dies(lambda t: t)


# ------------------------------------------------------------------------------------------------- checkpoints


def test_a_checkpointed_block_runs_twice_and_gives_the_same_gradients() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 4))
    runs: list[bool] = []
    block.register_forward_pre_hook(lambda m, a: runs.append(torch.is_grad_enabled()))
    x = torch.randn(2, 4, requires_grad=True)

    def gradients(run: Any) -> list[Any]:
        torch.manual_seed(1)
        x.grad = None
        block.zero_grad()
        run(x).pow(2).sum().backward()
        return [t.grad.tolist() for t in (x, *block.parameters())]

    plain = gradients(block)
    assert runs == [True]
    for reentrant in (True, False):
        runs.clear()
        assert gradients(lambda x, r=reentrant: checkpoint(block, x, use_reentrant=r)) == plain
        assert runs == [not reentrant, True]


def test_sequential_parts_are_checkpointed_but_the_last() -> None:
    layers = [nn.Linear(3, 3) for _ in range(4)]
    counts = [0] * 4
    for i, layer in enumerate(layers):

        def count(m: Any, a: Any, i: int = i) -> None:
            counts[i] += 1

        layer.register_forward_pre_hook(count)
    x = torch.randn(2, 3, requires_grad=True)
    checkpoint_sequential(nn.Sequential(*layers), 2, x, use_reentrant=False).sum().backward()
    assert counts == [2, 2, 1, 1]
    assert x.grad is not None


def test_recomputation_stops_early_unless_told_otherwise() -> None:
    ends: list[str] = []

    def f(x: Any) -> Any:
        y = x.exp().sin()
        ends.append("end")
        return y

    x = torch.ones(1, requires_grad=True)
    checkpoint(f, x, use_reentrant=False).backward()
    assert ends == ["end"]
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        out = checkpoint(f, x, use_reentrant=False)
    out.backward()
    assert ends == ["end"] * 3


# ---------------------------------------------------------------------------------------- the mechanics of autograd


def test_gradients_where_functions_have_none() -> None:
    def at(f: Any, value: float) -> float:
        x = torch.tensor(value, requires_grad=True)
        f(x).backward()
        gradient: float = x.grad.item()
        return gradient

    assert at(torch.relu, 0.0) == 0.0
    assert at(torch.abs, 0.0) == 0.0
    assert at(torch.sqrt, 0.0) == float("inf")
    assert at(torch.log, -1.0) == -1.0
    assert at(torch.round, 0.3) == 0.0
    # Of equal largest elements each gets its share.
    x = torch.tensor([2.0, 2.0], requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_division_by_zero_behind_a_mask() -> None:
    x = torch.tensor([1.0, 1.0], requires_grad=True)
    div = torch.tensor([0.0, 1.0])
    y = x / div
    mask = div != 0
    loss = y[mask]
    loss.backward()
    assert x.grad.tolist()[1] == 1.0
    assert np.isnan(x.grad.tolist()[0])


def test_modes_of_recording() -> None:
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="(?i)inplace update to inference tensor outside InferenceMode"):
        y.add_(1)
    assert (x * y.clone()).requires_grad


def test_writes_to_what_is_needed_are_found_in_backward() -> None:
    x = torch.ones(2, requires_grad=True)
    a = x * 1
    b = a.exp()
    assert a._version == 0
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()


def test_every_thread_walks_its_own_graph() -> None:
    x = torch.ones(5, 5, requires_grad=True)

    def train() -> None:
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()

    threads = [threading.Thread(target=train) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.shape == (5, 5)
    # None of the gradients that the threads add to one leaf is lost (PyTorch does not promise that).
    assert x.grad[0, 0].item() == 45.0


def test_the_order_in_which_hooks_run() -> None:
    log: list[str] = []

    def says(name: str) -> Any:
        def hook(*args: Any) -> None:
            log.append(name)

        return hook

    x = torch.ones(1, requires_grad=True)
    y = x.clone()
    z = y * 2
    y.register_hook(says("tensor"))
    y.retain_grad()
    y.grad_fn.register_prehook(says("node before"))
    y.grad_fn.register_hook(says("node after"))
    x.register_hook(says("leaf"))
    x.register_post_accumulate_grad_hook(says("accumulated"))
    z.backward()
    assert log == ["tensor", "node before", "node after", "leaf", "accumulated"]


def test_hooks_of_tensors_that_are_captured_but_not_of_nodes_that_do_not_run() -> None:
    log: list[str] = []
    x = torch.ones(1, requires_grad=True)
    y = x.clone()
    z = y * 2
    y.register_hook(lambda g: log.append("tensor"))
    y.grad_fn.register_prehook(lambda g: log.append("node"))
    torch.autograd.grad(z, y)
    assert log == ["tensor"]


def test_hooks_stay_with_the_value_that_they_were_registered_on() -> None:
    def hook(factor: float) -> Any:
        return lambda g: g * factor

    t = torch.tensor(1.0, requires_grad=True).sin()
    t.register_hook(hook(10.0))
    before: list[float] = []
    after: list[float] = []
    t.register_hook(lambda g: before.append(g.item()))
    t.cos_()
    t.register_hook(lambda g: after.append(g.item()))
    t.backward()
    assert after == [1.0]
    # The earlier hooks see the gradient of the value before it was overwritten, one after the other.
    assert np.isclose(before[0], -10.0 * np.sin(np.sin(1.0)))
