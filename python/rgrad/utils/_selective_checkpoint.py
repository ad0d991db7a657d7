"""Selective checkpointing: a policy decides by operation which results the recomputation takes from memory.

In the forward of a checkpointed function a watcher asks the policy about each operation, and keeps the results of those
that are to be saved. In the recomputation another watcher answers with these results in place of the operations. Writes
in place and views always run again: a view costs nothing, and a write belongs to the tensor that it changes.
"""

import enum
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from .. import _core, ops
from .._core import Tensor

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
_RECOMPUTE = object()
_CONSUMED = object()

#: Operations that a policy is not asked about: they detach, or read what a tensor is.
SAC_IGNORED_OPS: set[ops.OpOverload] = {
    ops.aten.detach.default,
    ops.aten.dim.default,
    ops.aten.is_contiguous.default,
    ops.aten.is_contiguous.memory_format,
    ops.aten.is_non_overlapping_and_dense.default,
    ops.aten.is_strides_like_format.default,
    ops.aten.numel.default,
    ops.aten.size.default,
    ops.aten.storage_offset.default,
    ops.aten.stride.default,
    ops.aten.sym_numel.default,
    ops.aten.sym_size.default,
    ops.aten.sym_storage_offset.default,
    ops.aten.sym_stride.default,
    ops.prim.device.default,
}


class CheckpointPolicy(enum.Enum):
    """What a policy answers for an operation.

    ``SAVE``: its result is kept, and the recomputation takes it. ``RECOMPUTE``: it runs again. ``MUST`` and ``PREFER``
    are the same here; a policy that answers ``PREFER_RECOMPUTE`` throughout is a plain checkpoint.
    ``CPU_OFFLOAD`` is taken for ``RECOMPUTE``.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy.

    Attributes:
        is_recompute: Always False: a policy is asked in the forward only.
        op_output: What the operation has returned, a tensor or a tuple of tensors.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """A result, and the version that it had."""

    __slots__ = ("value", "version")

    def __init__(self, value: Tensor) -> None:
        self.value = value.detach()
        self.version = None if value.is_inference() else value._version

    def get(self, mutable: bool) -> Tensor:
        if not mutable and self.version is not None and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


_Storage = dict[ops.OpOverload, dict[int, Any]]
_Policy = Callable[..., CheckpointPolicy | bool]


class _Watcher:
    """A context in which ``see`` is told of every operation, which it counts by name."""

    def __init__(self, storage: _Storage) -> None:
        self.storage = storage
        self.counts: dict[ops.OpOverload, int] = defaultdict(int)

    def __enter__(self) -> Self:
        # Passes begin anew: a second one finds what the first has consumed.
        self.counts.clear()
        _core._push_operation_watcher(self.see)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core._pop_operation_watcher()

    def count(self, op: ops.OpOverload) -> int:
        index = self.counts[op]
        self.counts[op] += 1
        return index

    def see(self, name: str, node: str, kind: str, inputs: tuple[Any, ...], outputs: list[Tensor] | None) -> Any:
        raise NotImplementedError


class _Caching(_Watcher):
    """Around the forward: asks the policy, and keeps results."""

    def __init__(self, policy: _Policy, storage: _Storage) -> None:
        super().__init__(storage)
        self.policy = policy

    def see(self, name: str, node: str, kind: str, inputs: tuple[Any, ...], outputs: list[Tensor] | None) -> None:
        if outputs is None:
            return
        op = ops._called(name, node, kind, inputs)
        if op in SAC_IGNORED_OPS:
            return
        index = self.count(op)
        context = SelectiveCheckpointContext(
            is_recompute=False, op_output=outputs[0] if len(outputs) == 1 else tuple(outputs)
        )
        policy = self.policy(context, op, *inputs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        saves = policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        self.storage[op][index] = [_Kept(out) for out in outputs] if saves and kind == "computes" else _RECOMPUTE


class _Cached(_Watcher):
    """Around the recomputation: answers with the results that were kept."""

    def __init__(self, storage: _Storage, mutable: bool) -> None:
        super().__init__(storage)
        self.mutable = mutable

    def see(
        self, name: str, node: str, kind: str, inputs: tuple[Any, ...], outputs: list[Tensor] | None
    ) -> list[Tensor] | None:
        if (outputs is None) is not (kind == "computes"):
            return None
        op = ops._called(name, node, kind, inputs)
        if op in SAC_IGNORED_OPS:
            return None
        index = self.count(op)
        entries = self.storage.get(op)
        if entries is None:
            raise RuntimeError(f"{op} encountered during backward but not found in storage. {_MISMATCH}")
        entry = entries.get(index)
        if entry is None:
            raise RuntimeError(
                f"{op} invocation index {index} encountered during backward but not found in storage. {_MISMATCH}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return None
        entries[index] = _CONSUMED
        return [kept.get(self.mutable) for kept in entry]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: _Policy | list[ops.OpOverload], allow_cache_entry_mutation: bool = False
) -> tuple[_Watcher, _Watcher]:
    """Two contexts for :func:`checkpoint` by which some operations are not computed again.

    Args:
        policy_fn_or_list: Either a function of a :class:`SelectiveCheckpointContext`, the operation
            (``rgrad.ops.aten.mm.default``) and its arguments (tensors and numbers), which answers with a
            :class:`CheckpointPolicy`; or a list of operations to save, all others are computed again.
        allow_cache_entry_mutation: Take saved results even if they have been written in place since.

    Returns:
        The context of the forward and that of the recomputation.

    Raises:
        ValueError: Something in the list is no operation such as ``rgrad.ops.aten.mm.default``.
        TypeError: The first argument is neither a function nor a list.

    Example:
        >>> from functools import partial
        >>> from rgrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> contexts = partial(create_selective_checkpoint_contexts, [rgrad.ops.aten.mm.default])
        >>> x = rgrad.ones(2, 2, requires_grad=True)
        >>> checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=contexts).backward()
        >>> x.grad.shape
        rgrad.Size([2, 2])
    """
    policy: _Policy
    if isinstance(policy_fn_or_list, list):
        saved = policy_fn_or_list
        for op in saved:
            if not isinstance(op, ops.OpOverload):
                hint = (
                    "Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
                    "`rgrad.ops.aten.mm`, change it to `rgrad.ops.aten.mm.default`."
                    if isinstance(op, ops.OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}"
                )

        def policy(_context: SelectiveCheckpointContext, op: ops.OpOverload, *_args: Any) -> bool:
            return op in saved

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: _Storage = defaultdict(dict)
    return _Caching(policy, storage), _Cached(storage, allow_cache_entry_mutation)
