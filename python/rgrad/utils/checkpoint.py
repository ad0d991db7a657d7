"""Less memory for more time: parts of a model whose intermediate values are computed again in backward."""

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

from .. import _core
from .._core import Tensor
from ..autograd.backward import backward
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Output = TypeVar("Output")
ContextFn = Callable[[], tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]]

_early_stop_set: bool | None = None
_debug_set: bool | None = None

_TIP = (
    "Tip: pass `debug=True` to checkpoint(...), or wrap the code in `with set_checkpoint_debug_enabled(True):`, to see "
    "what was saved by which line in the forward and in the recomputation."
)


class CheckpointError(RuntimeError):
    """The recomputation did not save what the forward had saved, or saved values were asked for twice."""


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Generator[None]:
    """Decide for every forward in this block whether its recomputation stops when all that is needed is there."""
    global _early_stop_set
    before, _early_stop_set = _early_stop_set, enable
    try:
        yield
    finally:
        _early_stop_set = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Generator[None]:
    """Override the argument ``debug`` of every :func:`checkpoint` in this block; None leaves it to the calls."""
    global _debug_set
    before, _debug_set = _debug_set, enabled
    try:
        yield
    finally:
        _debug_set = before


def noop_context_fn() -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
    """The default of ``context_fn``: two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with every tensor detached; those that require grad still do, as leaves."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(_core._require_grad(x.detach(), x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires grad: then the reentrant checkpoint has no gradients."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


@contextlib.contextmanager
def _random_state(state: Any) -> Generator[None]:
    """In this block random numbers start from ``state``; afterwards they go on as before. None: leave them alone."""
    if state is None:
        yield
        return
    before = _core.get_rng_state()
    _core.set_rng_state(state)
    try:
        yield
    finally:
        _core.set_rng_state(before)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Tell the states of random numbers of the GPUs on which tensors are: one stream serves all devices, so none.

    Returns:
        Two empty lists: indices of devices, and their states.
    """
    return [], []


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Put back what :func:`get_device_states` gave, which is nothing.

    Raises:
        RuntimeError: There are states of another program's devices.
    """
    if [*devices, *states]:
        raise RuntimeError(
            "set_device_states: devices have no random numbers of their own here, so there is no state to set; "
            "rgrad.set_rng_state sets the one of all devices"
        )


_DEVICES = ("cpu", "wgpu")


def _autocast_state() -> list[tuple[Any, ...]]:
    """The settings of autocast, as arguments of ``autocast``."""
    cache = _core.is_autocast_cache_enabled()
    return [(d, _core.get_autocast_dtype(d), _core.is_autocast_enabled(d), cache) for d in _DEVICES]


@contextlib.contextmanager
def _autocast(state: list[tuple[Any, ...]]) -> Generator[None]:
    """In this block autocast is as it was when ``state`` was taken."""
    if state == _autocast_state():
        yield
        return
    from ..amp.autocast_mode import autocast

    with contextlib.ExitStack() as stack:
        for setting in state:
            stack.enter_context(autocast(*setting))
        yield


class CheckpointFunction(Function):
    """The reentrant checkpoint: forward without history, backward by a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.wanted = _core._PassesWanted()
        ctx.autocast = _autocast_state()
        ctx.random_state = _core.get_rng_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_positions))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _core._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, rgrad.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            args[i] = tensor
        detached = detach_variable(tuple(args))
        with _random_state(ctx.random_state), _autocast(ctx.autocast), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=True)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


class _StopRecomputation(Exception):
    """Leaves the recomputation when all that is needed is there."""


class _Holder:
    """Stands in the graph for one saved tensor; has its value, for each pass that recomputed it, until that asks."""

    __slots__ = ("__weakref__", "index", "values")

    def __init__(self, index: int) -> None:
        self.index = index
        self.values: dict[object, Tensor | None] = {}


def _metadata(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": lambda _: None}


class _CheckpointFrame:
    """One call of a checkpointed function: how to run it again, and what its operations saved."""

    def __init__(
        self,
        run: Callable[..., Any],
        args: tuple[Any, ...],
        early_stop: bool,
        metadata: Callable[[Tensor], Any],
        debug: bool,
    ) -> None:
        self.run = run
        # Saved tensors: enclosing hooks pack them, and a write before backward is an error.
        self.args = [_core._make_saved_tensor(a) if isinstance(a, Tensor) else a for a in args]
        self.early_stop = early_stop
        self.metadata = metadata
        self.holders: list[weakref.ref[_Holder]] = []
        self.seen: list[Any] = []
        self.forward_done = False
        # One thread recomputes at a time; passes share what was recomputed.
        self.lock = threading.RLock()
        self.recomputed: set[object] = set()
        self.wanted = _core._PassesWanted()
        self.log: tuple[list[str], list[str]] | None = ([], []) if debug else None

    # ---- forward

    def pack(self, x: Tensor) -> _Holder:
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.seen.append(self.metadata(x))
        if self.log:
            self.log[0].append(_described(x))
        return holder

    # ---- backward

    def unpack(self, holder: _Holder) -> Tensor:
        number = _core._tracked_graph_task_id()
        # Outside of backward (`grad_fn._saved_self`) every access recomputes for itself.
        key: object = number if number >= 0 else object()
        with self.lock:
            if key not in self.recomputed:
                self._recompute(key)
            if key not in holder.values:
                raise CheckpointError(
                    "rgrad.utils.checkpoint: a saved tensor was not recomputed: it was saved after the forward of the "
                    f"checkpointed function had ended, or under other hooks.\n{_TIP}"
                )
            value, holder.values[key] = holder.values[key], None
            if number < 0:
                self._forget(key)
        if value is None:
            raise CheckpointError(
                "rgrad.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you "
                "are calling ctx.saved_tensors in backward, make sure to do so only once."
            )
        return value

    def _forget(self, key: object) -> None:
        self.recomputed.discard(key)
        for ref in self.holders:
            if (holder := ref()) is not None:
                holder.values.pop(key, None)

    def _recompute(self, key: object) -> None:
        made: dict[int, Any] = {}
        count = 0
        more = False
        if self.log:
            self.log[1].clear()

        def pack(x: Tensor) -> Tensor:
            nonlocal count, more
            index, count = count, count + 1
            # Without history it is the tensor that the recomputation saves.
            x = x.detach() if x.requires_grad else x
            if self.log:
                self.log[1].append(_described(x))
            if index >= len(self.holders):
                if self.forward_done:
                    raise self._error(
                        "trying to save more tensors during recomputation than during the original forward pass."
                    )
                more = True
                return x
            holder = self.holders[index]()
            made[index] = self.metadata(x)
            if holder is not None:
                holder.values[key] = x
            if self.early_stop and count == len(self.holders):
                raise _StopRecomputation
            return x

        args = [a.unpack() if isinstance(a, _core.SavedTensor) else a for a in self.args]
        with saved_tensors_hooks(pack, lambda x: x), enable_grad(), contextlib.suppress(_StopRecomputation):
            self.run(*args)
        self.recomputed.add(key)
        if not more:
            self._compare(count, made)

    def _compare(self, count: int, made: dict[int, Any]) -> None:
        if count != len(self.holders):
            raise self._error(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {count}."
            )
        different = [
            f"tensor at position {i}:\nsaved metadata: {self.seen[i]}\nrecomputed metadata: {found}"
            for i, found in made.items()
            if self.holders[i]() is not None and found != self.seen[i]
        ]
        if different:
            raise self._error(
                "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                + "\n".join(different)
            )

    def _error(self, what: str) -> CheckpointError:
        if self.log is None:
            return CheckpointError(f"rgrad.utils.checkpoint: {what}\n{_TIP}")
        forward, again = ("\n".join(f"  {i}: {line}" for i, line in enumerate(lines)) for lines in self.log)
        return CheckpointError(
            f"rgrad.utils.checkpoint: {what}\n\nTensors saved during the original forward:\n{forward}\n\n"
            f"Tensors saved during recomputation:\n{again}"
        )


def _described(x: Tensor) -> str:
    """What is being saved now, and by which line."""
    return f"shape {tuple(x.shape)}, {x.dtype}, {x.device}, saved by {_core._describe_call_site() or 'an unknown line'}"


def _without_reentrant(
    function: Callable[..., Output],
    preserve: bool,
    context_fn: ContextFn,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Output:
    debug = debug if _debug_set is None else _debug_set
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not _core.is_grad_enabled():
        return function(*args, **kwargs)
    state = _core.get_rng_state() if preserve else None
    device = _core.get_default_device()
    autocasting = _autocast_state()

    def again(*inputs: Any) -> None:
        before = _core.get_default_device()
        _core.set_default_device(device)
        try:
            with _random_state(state), _autocast(autocasting), recompute_context:
                function(*inputs, **kwargs)
        finally:
            _core.set_default_device(before)

    early_stop = early_stop if _early_stop_set is None else _early_stop_set
    region = _CheckpointFrame(again, args, early_stop, _CHECKS[determinism_check], debug)
    finished = False
    with saved_tensors_hooks(region.pack, region.unpack), forward_context:
        result = function(*args, **kwargs)
        finished = True
    if not finished:
        raise RuntimeError(
            "rgrad.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    region.forward_done = True
    return result


def _chosen(use_reentrant: bool | None, name: str) -> bool:
    if use_reentrant is not None:
        return use_reentrant
    warnings.warn(
        f"rgrad.utils.checkpoint.{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False "
        "is recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
        stacklevel=3,
    )
    return True


def checkpoint(
    function: Callable[..., Output],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Output:
    """Run ``function(*args, **kwargs)`` so that its intermediate values are not kept, but computed again in backward.

    Args:
        function: Must compute the same from the same arguments when it is called again.
        args: Its arguments.
        use_reentrant: False (recommended) records the graph and recomputes what its nodes saved when the first of them
            asks; it works with every way to run backward, nested structures, keyword arguments and nested checkpoints.
            True runs the forward without history and the backward as a pass of its own: it needs an input that requires
            grad and takes neither ``autograd.grad`` nor ``inputs=``. None warns and means True.
        context_fn: Gives two context managers, around the forward and around the recomputation.
        determinism_check: ``"default"`` compares shape, dtype and device of what is recomputed; ``"none"`` does not.
        debug: An error lists what was saved by which line, in the forward and in the recomputation.
        early_stop: Stop the recomputation when all that is needed is there.
        kwargs: Its keyword arguments; and ``preserve_rng_state``: start the recomputation from the forward's random
            state (default True).

    Returns:
        What ``function`` returns.

    Raises:
        CheckpointError: In backward, if the recomputation saved other tensors than the forward.
        ValueError: Arguments are unknown, or need ``use_reentrant=False``.
    """
    reentrant = _chosen(use_reentrant, "checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    if not reentrant:
        return _without_reentrant(function, preserve, context_fn, determinism_check, debug, early_stop, args, kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    made: Output = CheckpointFunction.apply(function, preserve, *args)
    return made


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run modules one after the other in ``segments`` parts, each but the last of them checkpointed.

    Args:
        functions: An ``nn.Sequential``, or a sequence of modules or functions of one argument.
        segments: How many parts to make.
        input: The first one's argument.
        use_reentrant: As for :func:`checkpoint`.
        kwargs: ``preserve_rng_state``, as for :func:`checkpoint`.

    Raises:
        ValueError: A keyword argument is unknown.
    """
    from ..nn import Sequential

    reentrant = _chosen(use_reentrant, "checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps: Sequence[Callable[[Any], Any]] = list(
        functions.children() if isinstance(functions, Sequential) else functions
    )

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return forward

    if not 1 <= segments <= max(len(steps), 1):
        raise ValueError(f"checkpoint_sequential: got {segments} segments for {len(steps)} functions")
    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(part(start, start + size), input, use_reentrant=reentrant, preserve_rng_state=preserve)
    return part(size * (segments - 1), len(steps))(input)
