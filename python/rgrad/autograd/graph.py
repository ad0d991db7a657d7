"""The graph of backward: its nodes and edges, hooks on saved tensors, hooks on several gradients."""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakSet, WeakValueDictionary

from .. import _core
from .._core import Node, Tensor
from .._runtime.lazy import lazily
from .._tensor.natives import memory_of
from ._explain import GradientExplanation, explain
from ._graph_memory import GraphMemoryReport, memory_report
from ._graph_switches import (
    region_activation_memory_budget,
    set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch,
)
from .grad_mode import enable_grad

if TYPE_CHECKING:
    from ._drawing import Drawing, draw, module_calls

# Drawing stands apart; it comes when something is drawn.
__getattr__, __dir__ = lazily(
    __name__, (), dict.fromkeys(("Drawing", "draw", "module_calls"), "_drawing"), below=__package__
)

__all__ = [
    "Drawing",
    "GradientEdge",
    "GradientExplanation",
    "GraphMemoryReport",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",
    "explain",
    "get_gradient_edge",
    "increment_version",
    "memory_report",
    "module_calls",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class GradientEdge(NamedTuple):
    """Where a gradient goes: an output of a node. ``grad`` and ``backward`` take it in place of a tensor.

    Attributes:
        node: The node.
        output_nr: The number of its output.
        ownership_token: As PyTorch's, for a custom Function; ``node`` itself keeps the graph alive, too.

    Example:
        >>> x = rgrad.tensor(3.0, requires_grad=True)
        >>> edge = rgrad.autograd.graph.GradientEdge((x * x).grad_fn, 0)
        >>> rgrad.autograd.grad(edge, x)
        (tensor(6.),)
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


class _InputMetadata(NamedTuple):
    """Shape, dtype and device of a gradient at an input of a node."""

    shape: Any
    dtype: Any
    device: Any


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Give the edge where the gradient of a tensor is computed.

    Args:
        tensor: A tensor that requires grad.

    Returns:
        The edge. It keeps the graph alive, but not the tensor's value.

    Raises:
        RuntimeError: ``tensor`` does not require grad.

    Example:
        >>> x = rgrad.tensor(3.0, requires_grad=True)
        >>> middle = x * x
        >>> edge = rgrad.autograd.graph.get_gradient_edge(middle)
        >>> rgrad.autograd.grad(middle.sin(), edge)
        (tensor(-0.9111),)
    """
    node, output_nr = _core._gradient_edge(tensor)
    token = None
    if isinstance(node, _core._FunctionCtx):
        with enable_grad():
            token = tensor.view_as(tensor).grad_fn
    return GradientEdge(node, output_nr, token)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that rgrad cannot have seen, so that saved values are known to be stale.

    Args:
        tensor: A tensor or several. Those made in inference mode have no version and are left as they are.

    Example:
        >>> x = rgrad.ones(2)
        >>> rgrad.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    tensors = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
    _core._increment_version([t for t in tensors if not (isinstance(t, Tensor) and t.is_inference())])


class saved_tensors_hooks:
    """A block in which every tensor that is saved for backward goes through a pair of hooks.

    Of nested blocks the innermost packs. A pack hook must not write to its argument. Return ``tensor.detach()`` rather
    than the tensor itself: an output of an operation holds the node that holds what was packed, and such a cycle lives
    until the garbage collector finds it.

    Args:
        pack_hook: ``pack_hook(tensor)`` is called when a tensor is saved, with recording off. What it returns, of any
            type, is saved in the tensor's place.
        unpack_hook: ``unpack_hook(packed)`` is called when backward asks, and returns a tensor of the same shape and
            device, and of the same dtype or, for floats, another dtype of floats, which is converted.

    Raises:
        RuntimeError: Hooks are disabled when the block is entered; later, if a pack hook writes to its argument, or an
            unpack hook returns a tensor of another shape, kind of dtype, or device.
        TypeError: A hook is not callable, or an unpack hook returns no tensor.

    Example:
        >>> def pack(tensor):
        ...     return tensor.detach().numpy().astype("float16")
        >>> def unpack(half):
        ...     return rgrad.from_numpy(half.astype("float32"))
        >>> x = rgrad.tensor([1.0, 2.0], requires_grad=True)
        >>> with rgrad.autograd.graph.saved_tensors_hooks(pack, unpack):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _core._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _core._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A block in which tensors of other devices are saved on the CPU, and copied back when backward asks.

    Args:
        pin_memory: Copy what lies on the CPU, too, as into pinned memory, which no device of rgrad has.
        device_type: The device that would pin it; it has no effect.

    Example:
        >>> x = rgrad.tensor([1.0, 2.0], requires_grad=True)
        >>> with rgrad.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            plain = tensor.detach()
            if not pin_memory:
                return tensor.device, plain.cpu()
            return tensor.device, _core.empty(plain.shape, dtype=plain.dtype, device="cpu").copy_(plain)

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            moved: Tensor = tensor.to(device)
            return moved

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Generator[None]:
    """A block in which it is an error to enter :class:`saved_tensors_hooks`.

    Args:
        error_message: The message of the error.

    Raises:
        RuntimeError: Hooks are in force already.

    Example:
        >>> from rgrad.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
        >>> with disable_saved_tensors_hooks("not in here"):
        ...     try:
        ...         with saved_tensors_hooks(lambda t: t, lambda t: t):
        ...             pass
        ...     except RuntimeError as error:
        ...         print(error)
        not in here
    """
    before = _core._refuse_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _core._refuse_saved_tensors_hooks(before)


class _MultiHandle:
    """Removes several hooks at once; as a context manager at the end of the block."""

    def __init__(self, handles: tuple[Any, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hooks; doing so again changes nothing."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> "_MultiHandle":
        return self

    def __exit__(self, *args: object) -> None:
        self.remove()


class _AllGradients:
    """Collects the gradients of each pass, and calls the function when the last one is there."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable[[Sequence[Tensor | None]], None]) -> None:
        self.fn = fn
        self.size = len(tensors)
        self.wanted = _core._PassesWanted(*tensors)
        self.lock = threading.Lock()
        # For each pass: how many gradients are still to come, and those that are there.
        self.passes: dict[int, tuple[int, list[Tensor | None]]] = {}

    def __call__(self, index: int, grad: Tensor | None) -> None:
        number = _core._tracked_graph_task_id()
        if number == -1:
            return  # a pass that began before this hook was registered
        with self.lock:
            missing, grads = self.passes.get(number, (0, []))
            if not grads:
                missing = self.wanted.count()
                grads = [None] * self.size
            grads[index] = grad
            self.passes[number] = (missing - 1, grads)
            if missing > 1:
                return
            del self.passes[number]
        self.fn(grads)


class _FirstGradient:
    """Calls the function with the first gradient of each pass."""

    def __init__(self, fn: Callable[[Tensor | None], None]) -> None:
        self.fn = fn
        self.wanted = _core._PassesWanted()
        self.lock = threading.Lock()
        self.seen: set[int] = set()

    def __call__(self, grad: Tensor | None) -> None:
        number = _core._tracked_graph_task_id()
        with self.lock:
            if number == -1 or number in self.seen:
                return
            self.seen.add(number)
        self.fn(grad)


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> _MultiHandle:
    """Register a hook that waits for the gradients of several tensors.

    Args:
        tensors: The tensors.
        fn: With ``mode="all"``, ``fn(grads)`` is called once in each backward pass, when the gradients of all those
            tensors are there that the pass computes; ``grads`` has None in the places of the others, and where the pass
            brings no gradient. With ``mode="any"``, ``fn(grad)`` gets the first one, or None. The hook must not change
            its argument; what it returns is ignored.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle with ``remove()``.

    Raises:
        ValueError: There is no such mode.
        RuntimeError: A tensor does not require grad (``"all"``).

    Example:
        >>> x, y = rgrad.ones(2, requires_grad=True), rgrad.ones(2, requires_grad=True)
        >>> handle = rgrad.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads))
        >>> (x * 2 + y * 3).sum().backward()
        [tensor([2., 2.]), tensor([3., 3.])]
        >>> handle.remove()
    """
    if mode == "all":
        every: Any = _AllGradients(tensors, fn)  # type: ignore[arg-type]
        hooks = [lambda grad, i=i: every(i, grad) for i in range(len(tensors))]
        return _MultiHandle(tuple(t.register_hook(hook) for t, hook in zip(tensors, hooks, strict=True)))
    if mode == "any":
        first = _FirstGradient(fn)  # type: ignore[arg-type]
        return _MultiHandle(tuple(t.register_hook(first) for t in tensors if t.requires_grad))
    raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")


def _memory(tensor: Tensor) -> int:
    number: int = memory_of(tensor)._cdata
    return number


class _SavedValue:
    """A saved value. It shares the tensor's memory until the first write to it, then it is a copy."""

    __slots__ = ("__weakref__", "key", "tensor")

    def __init__(self, tensor: Tensor, key: tuple[Any, ...]) -> None:
        self.tensor: Tensor | None = tensor
        self.key = key


class _AllowMutationOnSavedContext:
    """What :class:`allow_mutation_on_saved_tensors` yields: the saved values of graphs recorded in its block."""

    def __init__(self) -> None:
        self._at: defaultdict[int, WeakSet[_SavedValue]] = defaultdict(WeakSet)
        self._same: WeakValueDictionary[tuple[Any, ...], _SavedValue] = WeakValueDictionary()
        self._all: WeakSet[_SavedValue] = WeakSet()

    def clear(self) -> None:
        """Drop every value; the graphs recorded so far have no backward any more."""
        for saved in list(self._all):
            saved.tensor = None
        self._at.clear()
        self._same.clear()

    def _pack(self, tensor: Tensor) -> _SavedValue:
        plain = tensor.detach()
        memory = _memory(plain)
        # One value saved many times is copied once.
        key = (memory, plain._version, plain.storage_offset(), tuple(plain.shape), tuple(plain.stride()), plain.dtype)
        saved = self._same.get(key)
        if saved is None:
            saved = self._same[key] = _SavedValue(plain, key)
            self._at[memory].add(saved)
            self._all.add(saved)
        return saved

    def _unpack(self, saved: _SavedValue) -> Tensor:
        if saved.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return saved.tensor

    def _before_write(self, tensor: Tensor) -> None:
        for saved in self._at.pop(_memory(tensor), ()):
            if saved.tensor is not None:
                saved.tensor = saved.tensor.clone()
                # The value has left this memory; once it is freed, other memory may have the same number.
                self._same.pop(saved.key, None)


_mutation_allowed = threading.local()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Generator[_AllowMutationOnSavedContext]:
    """A block in which tensors saved for backward may be written: what was saved is copied before the first write.

    Forward and backward both happen inside, on one thread.

    Yields:
        An object whose ``clear()`` drops all saved values.

    Raises:
        RuntimeError: Such blocks are nested.
        AssertionError: Backward runs outside of the block, or after ``clear()``.

    Example:
        >>> x = rgrad.ones(2, requires_grad=True)
        >>> with rgrad.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x * 2
        ...     z = y.square()
        ...     _ = y.zero_()
        ...     z.sum().backward()
        >>> x.grad
        tensor([8., 8.])
    """
    if getattr(_mutation_allowed, "on", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(context._pack, context._unpack):
        _mutation_allowed.on = True
        _core._set_before_write(context._before_write)
        try:
            yield context
        finally:
            _core._set_before_write(None)
            _mutation_allowed.on = False
            context.clear()
