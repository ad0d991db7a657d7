"""What all transforms share: entering and leaving levels, and trees of tensors of a level."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import local
from typing import Any

from .. import _core
from .._core import Tensor
from ..utils._pytree import tree_map


class OpenLevel:
    """A level that is open: a batching level of ``size``, or a tracking level (None)."""

    def __init__(
        self, number: int, size: int | None = None, randomness: str = "error", of_gradients: bool = False
    ) -> None:
        self.number, self.size, self.randomness = number, size, randomness
        self.of_gradients = of_gradients
        self._outside = _core.is_grad_enabled()

    @contextmanager
    def mode_below(self, inside: bool) -> Generator[None]:
        """A block with the grad mode of the next lower level: on if it is on outside the transform and inside."""
        before = _core.is_grad_enabled()
        _core._set_grad_enabled(self._outside and inside)
        # A rule may write to tensors of lower levels: the check against writes to captured tensors is off.
        asked = _core._ask_below(self.number)
        try:
            yield
        finally:
            _core._ask_below(asked)
            _core._set_grad_enabled(before)


class _LevelStack(local):
    def __init__(self) -> None:
        self.levels: list[OpenLevel] = []

    def enter(self, level: OpenLevel) -> None:
        self.levels.append(level)

    def leave(self, number: int) -> None:
        del self.levels[number - 1 :]


_stack = _LevelStack()


def open_level(number: int) -> OpenLevel:
    """The open level of this number."""
    return _stack.levels[number - 1]


def inside_transform() -> bool:
    """Whether a transform of ``rgrad.func`` is open; a batch of gradients or tangents is none."""
    return any(not level.of_gradients for level in _stack.levels)


@contextmanager
def tracking() -> Generator[int]:
    """A level with its own history and tangents. Recording is on inside, whatever it is outside."""
    # First: the core stores the grad mode outside, for operations below this level.
    level = _core._enter_level("track")
    _stack.enter(OpenLevel(level))
    # Tensors of inference mode have no version, so they cannot be saved for backward.
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
def batching(size: int, randomness: str, of_gradients: bool = False) -> Generator[int]:
    """A level whose tensors have a hidden dimension of this size.

    In a batch of gradients or tangents, custom Functions run as they do without transforms.
    """
    level = _core._enter_level("batch", size, randomness)
    _stack.enter(OpenLevel(level, size, randomness, of_gradients))
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
