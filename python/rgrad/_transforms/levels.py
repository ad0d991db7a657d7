"""What all transforms share: entering and leaving levels, and trees of tensors of a level."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import local
from typing import Any

from .. import _core
from .._core import Tensor
from ..utils._pytree import tree_map


class Opened:
    """A level that is open: a batch of ``size``, or one that tracks (None)."""

    def __init__(self, number: int, size: int | None = None, randomness: str = "error") -> None:
        self.number, self.size, self.randomness = number, size, randomness
        self._outside = _core.is_grad_enabled()

    @contextmanager
    def mode_below(self, inside: bool) -> Generator[None]:
        """The grad mode that holds one level lower: that outside of the transform, as long as it is on inside."""
        before = _core.is_grad_enabled()
        _core._set_grad_enabled(self._outside and inside)
        # What a Function writes for its level is not captured by it.
        asked = _core._ask_below(self.number)
        try:
            yield
        finally:
            _core._ask_below(asked)
            _core._set_grad_enabled(before)


class _Stack(local):
    def __init__(self) -> None:
        self.levels: list[Opened] = []

    def enter(self, level: Opened) -> None:
        self.levels.append(level)

    def leave(self, number: int) -> None:
        del self.levels[number - 1 :]


_stack = _Stack()


def opened(number: int) -> Opened:
    """The open level of this number."""
    return _stack.levels[number - 1]


@contextmanager
def tracking() -> Generator[int]:
    """A level with history (and tangents) of its own, in which recording is on whatever it is outside."""
    # The core remembers the mode outside for what happens below this level: entered first.
    level = _core._enter_level("track")
    _stack.enter(Opened(level))
    # Tensors without versions cannot be kept for the pass backward.
    inference, recording = _core.is_inference_mode_enabled(), _core.is_grad_enabled()
    _core._set_inference_mode(False)
    _core._set_grad_enabled(True)
    try:
        yield level
    finally:
        _core._set_grad_enabled(recording)
        _core._set_inference_mode(inference)
        _stack.leave(level)
        _core._exit_level(level)


@contextmanager
def batching(size: int, randomness: str) -> Generator[int]:
    """A level whose tensors have a hidden dimension of this size."""
    level = _core._enter_level("batch", size, randomness)
    _stack.enter(Opened(level, size, randomness))
    try:
        yield level
    finally:
        _stack.leave(level)
        _core._exit_level(level)


def wrap_tree(tree: Any, level: int) -> Any:
    """The tensors of a tree as tensors of a tracking level, without history there."""
    return tree_map(lambda x: _core._wrap(x, level) if isinstance(x, Tensor) else x, tree)


def below(value: Any, level: int) -> Any:
    """A tensor as the next lower level sees it."""
    return _core._unwrap(value, level)[0] if isinstance(value, Tensor) else value


def unwrap_tree(tree: Any, level: int) -> Any:
    """The tensors of a tree as the next lower level sees them.

    Raises:
        RuntimeError: A leaf is no tensor.
    """

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")
        return _core._unwrap(value, level)[0]

    return tree_map(one, tree)


def basis(tensors: list[Tensor], start: int = 0, stop: int | None = None) -> list[Tensor]:
    """Rows ``start`` to ``stop`` of the identity over all elements of all tensors, cut at the tensors.

    Entry i has the shape ``(rows, *tensors[i].shape)``, its dtype and device.
    """
    sizes = [x.numel() for x in tensors]
    total = sum(sizes)
    last = total if stop is None else min(stop, total)
    rows = max(last - start, 0)
    made = []
    offset = 0
    for x, size in zip(tensors, sizes, strict=True):
        part = _core.zeros(rows, size, dtype=x.dtype, device=x.device)
        # Row r is the unit vector of element start + r; this tensor has the elements offset to offset + size.
        if rows and offset < last and offset + size > start:
            part.diagonal(offset=start - offset).fill_(1)
        made.append(part.view(rows, *x.shape))
        offset += size
    return made
