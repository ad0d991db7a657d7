"""Two recordings of one program, on inputs of different values and sizes: what is the same in both is the graph.

Sizes that differ must have been computed from sizes of tensors. Numbers and constants that differ otherwise come from
the inputs in a way that was not recorded, so the graph would be wrong for other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .._core import Tensor
from ..fx._record import RecordError, Recording, Value, leaves_of, record
from ..fx._sizes import Computed, Dimension, SymbolicInt
from ..nn import Module
from ._examples import other_examples

_ADVICE = (
    "The graph must be the same for all inputs: compute with tensors and their shapes, not with numbers taken from them"
)


class Changed:
    """A number that differs between the two runs and is no size of a tensor. To use it is an error."""

    def __init__(self, first: Any, second: Any, place: str) -> None:
        self.first, self.second, self.place = first, second, place

    def refuse(self) -> NoReturn:
        raise RecordError(
            f"a number changes with the sizes of the inputs ({self.first!r} and {self.second!r}, used at "
            f"{self.place}), but was not computed by + - * // % from shapes. Take sizes from x.shape or x.size(), not "
            "from len(x), floats or NumPy, or make that dimension static"
        )

    def _used(self) -> Any:
        self.refuse()

    __index__ = __float__ = __bool__ = _used


class Pair:
    """The graph that two recordings share.

    Args:
        first: A recording.
        second: Another one, of other inputs.

    Raises:
        RecordError: They have other calls or constants.
    """

    def __init__(self, first: Recording, second: Recording) -> None:
        self.first, self.second = first, second
        self._check_calls()
        self._dims = {
            id(a): tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
            for a, b in zip(first.values, second.values, strict=True)
        }
        self._check_constants()

    def _check_calls(self) -> None:
        ours, theirs = self.first.calls, self.second.calls
        for a, b in zip(ours, theirs, strict=False):
            shapes = [len(leaf.shape) for leaf in leaves_of(a.result) if isinstance(leaf, Value)]
            others = [len(leaf.shape) for leaf in leaves_of(b.result) if isinstance(leaf, Value)]
            if a.name != b.name or shapes != others or a.place != b.place:
                raise RecordError(
                    f"with other inputs the program calls {b.name!r} (at {b.place}) where it called "
                    f"{a.name!r} (at {a.place}). {_ADVICE}"
                )
        if len(ours) != len(theirs) or len(self.first.values) != len(self.second.values):
            raise RecordError(f"with other inputs the program makes {len(theirs)} calls, not {len(ours)}. {_ADVICE}")

    def _check_constants(self) -> None:
        for a, b in zip(self.first.values, self.second.values, strict=True):
            if a.kind != b.kind or a.name != b.name:
                raise RecordError(f"with other inputs the program uses other tensors. {_ADVICE}")
            if a.kind == "constant" and not _same(a.tensor, b.tensor):
                raise RecordError(
                    f"a tensor of shape {a.shape} depends on the inputs, but not by recorded operations "
                    f"(NumPy, numbers taken from tensors, or random numbers?). {_ADVICE}"
                )

    def dims(self, value: Value) -> tuple[int | None, ...]:
        """The sizes of a value, None for those that the inputs decide."""
        return self._dims[id(value)]

    def arguments(self, at: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call: numbers that are the same, sizes that the inputs decide, and what changed."""
        a, b = self.first.calls[at], self.second.calls[at]

        def merge(x: Any, y: Any) -> Any:
            return self._merged(x, y, a.place)

        args: Any = _together(merge, a.args, b.args)
        kwargs: Any = _together(merge, a.kwargs, b.kwargs)
        return args, kwargs

    def _merged(self, a: Any, b: Any, place: str) -> Any:
        if isinstance(a, Value):
            return a
        if isinstance(a, SymbolicInt) and isinstance(b, SymbolicInt):
            if _same_expression(a.expression, b.expression):
                # Not by its value: what two runs have in common by chance is no constant.
                return int(a) if self._settled(a.expression) else a
            return Changed(int(a), int(b), place)
        if isinstance(a, int) and isinstance(b, int):
            return a if a == b and type(a) is type(b) else int(a) if int(a) == int(b) else Changed(a, b, place)
        try:
            equal = a is b or bool(a == b) or (a != a and b != b)
        except Exception:
            equal = False
        return a if equal else Changed(a, b, place)

    def _settled(self, made: Any) -> bool:
        """Whether a size depends on none that the inputs decide."""
        if isinstance(made, Dimension):
            return self.dims(made.value)[made.axis] is not None
        return isinstance(made, int) or all(map(self._settled, made.terms))


def _together(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if isinstance(a, slice) and isinstance(b, slice):
        return slice(*(_together(merge, x, y) for x, y in ((a.start, b.start), (a.stop, b.stop), (a.step, b.step))))
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        made = [_together(merge, x, y) for x, y in zip(a, b, strict=True)]
        return made if isinstance(a, list) else tuple(made)
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _together(merge, a[key], b[key]) for key in a}
    return merge(a, b)


def _same_expression(a: Any, b: Any) -> bool:
    if isinstance(a, Dimension) and isinstance(b, Dimension):
        return a.value.number == b.value.number and a.axis == b.axis
    if isinstance(a, Computed) and isinstance(b, Computed):
        return a.name == b.name and all(map(_same_expression, a.terms, b.terms))
    return type(a) is type(b) is int and a == b


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return a is b
    if a.is_floating_point() or a.is_complex():
        return bool(((a == b) | ((a != a) & (b != b))).all())
    return bool((a == b).all())


def _named(model: Any) -> list[tuple[str, Tensor]]:
    if not isinstance(model, Module):
        return []
    return [*model.named_parameters(), *model.named_buffers()]


def two_recordings(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: Sequence[str],
    dynamic: Sequence[Mapping[int, Any]],
    is_leaf: Callable[[str, Any], bool],
    fold: bool,
) -> Pair:
    """Record a program with an example, and with another one.

    Args:
        model: The module or function.
        args: The example.
        kwargs: Its keyword arguments.
        names: A name for each tensor of the example.
        dynamic: For each tensor, its dimensions that may differ.
        is_leaf: Whether a function of Python is recorded as one call.
        fold: Compute what depends on no input; else what depends on parameters is recorded as well.

    Raises:
        RecordError: The program is no graph, or none that is the same for all inputs.
    """
    named = _named(model)

    def one(own: tuple[Any, ...], other: dict[str, Any]) -> Recording:
        return record(model, own, other, named=named, names=names, is_leaf=is_leaf, fold=fold)

    first = one(args, kwargs)
    failed: Exception | None = None
    for own, other in other_examples(args, kwargs, dynamic):
        try:
            second = one(own, other)
        except RecordError:
            raise
        except Exception as error:
            failed = error
            continue
        return Pair(first, second)
    raise RecordError(
        "the model runs with the example, but not with other sizes along the dynamic dimensions, so these cannot be "
        f"dynamic as they were given: {failed or 'their bounds leave no other size'}"
    ) from failed
