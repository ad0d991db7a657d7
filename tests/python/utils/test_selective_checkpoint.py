"""Selective checkpointing: operations that a policy saves do not run again."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from functools import partial
from typing import Any

import pytest

import rgrad
from op_kit import Op, leaves, views
from op_table import OPS
from rgrad.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = rgrad.ops.aten


class Counter:
    """The operations that this thread runs, by name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def see(self, name: str, node: str, kind: str, inputs: Any, outputs: Any) -> None:
        if outputs is not None:
            self.names.append(str(rgrad.ops._called(name, node, kind, inputs)))

    def __enter__(self) -> Counter:
        rgrad._core._push_operation_watcher(self.see)
        return self

    def __exit__(self, *_: object) -> None:
        rgrad._core._pop_operation_watcher()


def block(x: rgrad.Tensor, w: rgrad.Tensor) -> rgrad.Tensor:
    return ((x @ w).sin() @ w).exp().sum()


def recomputed(saved: list[Any]) -> tuple[list[str], list[Any]]:
    """What runs in the recomputation when these operations are saved, and the gradients."""
    x = rgrad.arange(4.0).reshape(2, 2).div(4).requires_grad_()
    w = rgrad.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
    counter = Counter()

    def contexts() -> Any:
        forward, again = create_selective_checkpoint_contexts(saved)

        class Both:
            """Counts outside of the saved results: it sees only what runs."""

            def __enter__(self) -> None:
                counter.__enter__()
                again.__enter__()

            def __exit__(self, *error: Any) -> None:
                again.__exit__(*error)
                counter.__exit__()

        return forward, Both()

    out = checkpoint(block, x, w, use_reentrant=False, context_fn=contexts)
    out.backward()
    return counter.names, [x.grad, w.grad]


def test_what_is_saved_does_not_run_again() -> None:
    everything, plain = recomputed([])
    assert everything.count("aten.mm.default") == 2
    assert "aten.sin.default" in everything
    for saved, gone in (
        ([aten.mm.default], {"aten.mm.default"}),
        ([aten.sin.default, aten.exp.default], {"aten.sin.default", "aten.exp.default"}),
        ([aten.mm.default, aten.sin.default, aten.exp.default, aten.sum.default], set(everything)),
    ):
        ran, grads = recomputed(saved)
        assert set(ran) == set(everything) - gone
        for a, b in zip(grads, plain, strict=True):
            assert a.equal(b)


def test_a_policy_gets_context_name_and_arguments() -> None:
    seen = []

    def policy(context: Any, op: Any, *args: Any) -> CheckpointPolicy:
        assert not context.is_recompute
        seen.append((op, [a.shape if isinstance(a, rgrad.Tensor) else a for a in args], context.op_output.shape))
        return CheckpointPolicy.MUST_SAVE

    x = rgrad.ones(2, 3, requires_grad=True)
    out = checkpoint(
        lambda x: (x.t() @ x * 2).sum(),
        x,
        use_reentrant=False,
        context_fn=partial(create_selective_checkpoint_contexts, policy),
    )
    out.backward()
    assert seen == [
        (aten.t.default, [(2, 3)], (3, 2)),
        (aten.mm.default, [(3, 2), (2, 3)], (3, 3)),
        (aten.mul.Tensor, [(3, 3), 2], (3, 3)),
        (aten.sum.default, [(3, 3)], ()),
    ]


@pytest.mark.parametrize("op", [op for op in OPS if op.grad != "none"], ids=lambda op: op.name)
def test_every_operation_can_be_saved(op: Op) -> None:
    """The gradients are those without a checkpoint, and every name is one of the list."""
    known = set(rgrad.ops.aten._known)
    for sample in op.all_samples()[:2]:
        results = []
        for saves in (None, True, False):
            rgrad.manual_seed(1)
            leaf = leaves(rgrad, sample, "float64", requires_grad=True)

            def function(*inputs: Any, params: Any = sample.params) -> Any:
                out = op.call(rgrad, *inputs, **params)
                outs = out if isinstance(out, (tuple, list)) else (out,)
                return sum(o.sum() for o in outs if isinstance(o, rgrad.Tensor) and o.requires_grad)

            inputs = views(sample, leaf)
            if saves is None:
                out = function(*inputs)
            else:
                # A copy that the function then writes cannot be saved.
                def policy(_context: Any, name: Any, *_: Any, saves: bool = saves) -> bool:
                    return saves and name is not aten.clone.default

                contexts = partial(create_selective_checkpoint_contexts, policy)
                out = checkpoint(function, *inputs, use_reentrant=False, context_fn=contexts)
            if not isinstance(out, rgrad.Tensor):
                continue
            out.backward()
            results.append([t.grad for t in leaf if isinstance(t, rgrad.Tensor)])
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                assert (a is None and b is None) or a.allclose(b, equal_nan=True)
    assert set(rgrad.ops.aten._known) == known


def test_writes_in_the_region_run_again() -> None:
    """A saved value that the region writes is refused. Other writes are as without a checkpoint."""

    def written(x: rgrad.Tensor) -> rgrad.Tensor:
        y = x.sin()
        z = y.cos().mul_(2)
        z[0] += x[1]
        return z * x

    for saved in ([], [aten.sin.default], [aten.sin.default, aten.mul_.Tensor, aten.select.int]):
        x = rgrad.tensor([0.5, 1.5], requires_grad=True)
        contexts = partial(create_selective_checkpoint_contexts, saved)
        checkpoint(written, x, use_reentrant=False, context_fn=contexts).sum().backward()
        again = rgrad.tensor([0.5, 1.5], requires_grad=True)
        written(again).sum().backward()
        assert x.grad.equal(again.grad)
    x = rgrad.tensor([0.5, 1.5], requires_grad=True)
    contexts = partial(create_selective_checkpoint_contexts, [aten.cos.default])
    out = checkpoint(written, x, use_reentrant=False, context_fn=contexts)
    with pytest.raises(RuntimeError, match="cached during selective activation checkpoint has been mutated"):
        out.sum().backward()


def test_nothing_is_kept_after_backward() -> None:
    """Saved results go with the graph, and one that was taken belongs to the recomputed graph alone."""
    x = rgrad.ones(3, 3, requires_grad=True)
    alive: list[weakref.ref[Any]] = []

    def policy(context: Any, op: Any, *args: Any) -> bool:
        alive.append(weakref.ref(context))
        return True

    out = checkpoint(block, x, x, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))
    out.backward()
    del out
    gc.collect()
    assert alive
    assert all(ref() is None for ref in alive)


def test_watchers_are_those_of_one_thread_and_one_block() -> None:
    x = rgrad.ones(2)
    with Counter() as outer:
        x + 1
        thread = threading.Thread(target=lambda: x * 2)
        thread.start()
        thread.join()
        with Counter() as inner:
            x - 1
        with pytest.raises(RuntimeError):
            x + rgrad.ones(3)
        x / 2
    x.sin()
    assert outer.names == ["aten.add.Tensor", "aten.sub.Tensor", "aten.div.Tensor"]
    assert inner.names == ["aten.sub.Tensor"]


def test_a_policy_that_raises_leaves_nothing_behind() -> None:
    def policy(*_: Any) -> bool:
        raise KeyError("mine")

    x = rgrad.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        checkpoint(block, x, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))
    assert (x * 2).grad_fn is not None
    with Counter() as counter:
        x * 2
    assert counter.names == ["aten.mul.Tensor"]


def test_names_of_operations() -> None:
    op = aten.add.Tensor
    assert str(op) == "aten.add.Tensor"
    assert repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert op.name() == "aten::add.Tensor"
    assert aten.mm.default.name() == "aten::mm"
    assert op is aten.add.Tensor
    assert op != aten.add.Scalar
    assert len({op, aten.add.Tensor}) == 1
    assert pickle.loads(pickle.dumps(op)) is op
    assert copy.deepcopy([op])[0] is op
    assert pickle.loads(pickle.dumps(aten.mm)) is aten.mm
    assert aten.mm.default(rgrad.eye(2), rgrad.ones(2, 2)).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nothing'"):
        aten.nothing
    with pytest.raises(AttributeError, match="The underlying op of 'aten.mm' has no overload name 'nothing'"):
        aten.mm.nothing


def test_autocast_is_as_in_the_forward() -> None:
    """The recomputation runs under the forward's autocast, whichever is on when backward runs."""
    for reentrant in (False, True):
        seen: list[Any] = []

        def function(x: rgrad.Tensor, seen: list[Any] = seen) -> rgrad.Tensor:
            y = x @ x
            seen.append(y.dtype)
            return y.float().sin().sum()

        x = rgrad.ones(2, 2, requires_grad=True)
        with rgrad.autocast("cpu"):
            out = checkpoint(function, x, use_reentrant=reentrant)
        out.backward()
        plain = checkpoint(function, x, use_reentrant=reentrant)
        with rgrad.autocast("cpu"):
            plain.backward()
        assert seen == [rgrad.bfloat16, rgrad.bfloat16, rgrad.float32, rgrad.float32]
