"""How optimizers write their parameters: one formula over lists of tensors, in one pass over memory.

An optimizer gives its step as a function of one parameter, its gradient and its states. The function is called once
with symbols, which record the pointwise operations; the native module then runs them over all parameters of a group.
What has no fast way there (gradients in another order than their parameter, parameters that share memory, steps that
are differentiated through) goes through the same function with tensors.

Complex numbers are stepped as pairs of real ones: a formula sees views of their parts, as in PyTorch.
"""

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any

from .. import _core
from .._core import Tensor, _UpdateFormula
from .._runtime.info import typename

#: What a formula gives: for each of its tensors that changes, by position, the new value.
Values = dict[int, Any]


class _Number:
    """A number of the formula, by position."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class _Trace:
    """The operations that a formula has asked for so far."""

    def __init__(self, inputs: int, numbers: int) -> None:
        self.inputs = inputs
        self.numbers = numbers
        self.rows: list[tuple[str, list[int], list[int]]] = []
        self.literals: list[float] = []

    def number(self, value: Any) -> int:
        if isinstance(value, _Number):
            return value.at
        self.literals.append(float(value))
        return self.numbers + len(self.literals) - 1

    def row(self, name: str, operands: Sequence[Any], params: Sequence[Any] = ()) -> "Symbol":
        places = [x.at if isinstance(x, Symbol) else -1 - self.number(x) for x in operands]
        self.rows.append((name, places, [self.number(p) for p in params]))
        return Symbol(self, self.inputs + len(self.rows) - 1)


class Symbol:
    """Stands for a tensor while a formula is recorded; its methods are those of tensors that formulas use."""

    __slots__ = ("at", "trace")

    def __init__(self, trace: _Trace, at: int) -> None:
        self.trace = trace
        self.at = at

    def add(self, other: Any, alpha: Any = 1) -> "Symbol":
        """``self + alpha other``."""
        if isinstance(alpha, int) and alpha == 1:
            return self.trace.row("add", (self, other))
        return self.trace.row("add_scaled", (self, other), (alpha,))

    def sub(self, other: Any) -> "Symbol":
        """``self - other``."""
        return self.trace.row("sub", (self, other))

    def mul(self, other: Any) -> "Symbol":
        """``self other``."""
        return self.trace.row("mul", (self, other))

    def div(self, other: Any) -> "Symbol":
        """``self / other``."""
        return self.trace.row("div", (self, other))

    def addcmul(self, first: Any, second: Any, value: Any = 1) -> "Symbol":
        """``self + value first second``."""
        return self.trace.row("addcmul", (self, first, second), (value,))

    def addcdiv(self, first: Any, second: Any, value: Any = 1) -> "Symbol":
        """``self + value first / second``."""
        return self.trace.row("addcdiv", (self, first, second), (value,))

    def lerp(self, end: Any, weight: Any) -> "Symbol":
        """``self + weight (end - self)``."""
        return self.trace.row("lerp", (self, end, weight))

    def maximum(self, other: Any) -> "Symbol":
        """The larger of both."""
        return self.trace.row("maximum", (self, other))

    def clamp(self, min: Any, max: Any) -> "Symbol":
        """The nearest value between both."""
        return self.trace.row("clamp", (self,), (min, max))

    def neg(self) -> "Symbol":
        """``-self``."""
        # The same values as those of the row "neg", from a faster kernel.
        return self.trace.row("mul", (self, -1.0))

    def sqrt(self) -> "Symbol":
        """The square root."""
        return self.trace.row("sqrt", (self,))

    def abs(self) -> "Symbol":
        """The absolute value."""
        return self.trace.row("abs", (self,))

    def sign(self) -> "Symbol":
        """-1, 0 or 1."""
        return self.trace.row("sign", (self,))

    def gt(self, other: Any) -> "Symbol":
        """Whether it is greater."""
        return self.trace.row("gt", (self, other))

    def lt(self, other: Any) -> "Symbol":
        """Whether it is less."""
        return self.trace.row("lt", (self, other))

    def eq(self, other: Any) -> "Symbol":
        """Whether it is equal."""
        return self.trace.row("eq", (self, other))


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, ``no`` elsewhere; of symbols or tensors, ``yes`` and ``no`` may be numbers."""
    if isinstance(condition, Symbol):
        return condition.trace.row("where", (condition, yes, no))
    return _core.where(condition, yes, no)


def plus(x: Any, y: Any, scale: Any) -> Any:
    """``x + scale y``; the scale may be a tensor that gradients go to."""
    return x.add(y.mul(scale)) if isinstance(scale, Tensor) else x.add(y, alpha=scale)


def plus_product(x: Any, a: Any, b: Any, scale: Any) -> Any:
    """``x + scale a b``; the scale may be a tensor that gradients go to."""
    return x.add(a.mul(b).mul(scale)) if isinstance(scale, Tensor) else x.addcmul(a, b, value=scale)


def plus_quotient(x: Any, a: Any, b: Any, scale: Any) -> Any:
    """``x + scale a / b``; the scale may be a tensor that gradients go to."""
    return x.add(a.div(b).mul(scale)) if isinstance(scale, Tensor) else x.addcdiv(a, b, value=scale)


class Update:
    """A formula and the programs recorded from it, one for each choice of options.

    Args:
        formula: ``formula(options, tensors, numbers)`` with a tuple of options, of tensors (or symbols) and of numbers;
            it gives the new values by position.
    """

    def __init__(self, formula: Callable[[Any, Any, Any], Values]) -> None:
        self.formula = formula
        self._recorded: dict[Hashable, tuple[_UpdateFormula, list[float]]] = {}

    def _record(self, options: Any, inputs: int, numbers: int) -> tuple[_UpdateFormula, list[float]]:
        trace = _Trace(inputs, numbers)
        tensors = tuple(Symbol(trace, at) for at in range(inputs))
        values = self.formula(options, tensors, tuple(map(_Number, range(numbers))))
        writes = []
        for place, value in values.items():
            if value.at < inputs:
                # What is written must be the result of a row.
                value = value.mul(1.0)
            writes.append((place, value.at - inputs))
        return _UpdateFormula(inputs, trace.rows, writes), trace.literals

    def planned(
        self,
        options: Hashable,
        lists: Sequence[Sequence[Tensor]],
        numbers: Sequence[Any],
        names: Sequence[str] = (),
        states: Sequence[dict[str, Any]] | None = None,
        after: Callable[[], None] | None = None,
    ) -> "Write":
        """The new values of all tensors, to be written by :meth:`Write.run`.

        Args:
            options: The formula's options.
            lists: One list for each of the formula's tensors, all of one length.
            numbers: The formula's numbers.
            names: Under which name a state has each of the formula's tensors from the third on.
            states: If given, the step is differentiated through: states get new tensors, which the graph may have
                saved.
            after: Called when all tensors are written.

        Raises:
            TypeError: A number is none.
        """
        numbers = [value if isinstance(value, Tensor) else value + 0 for value in numbers]
        recorded = None
        if states is None:
            key = (options, len(lists), len(numbers))
            recorded = self._recorded.get(key)
            if recorded is None:
                recorded = self._recorded[key] = self._record(options, len(lists), len(numbers))

        def formula(tensors: Sequence[Any]) -> Values:
            return self.formula(options, tensors, numbers)

        return Write(formula, recorded, lists, numbers, names, states, after)

    def __call__(self, options: Hashable, lists: Sequence[Sequence[Tensor]], numbers: Sequence[Any]) -> None:
        """Write the new values of all tensors now."""
        self.planned(options, lists, numbers).run()


class Write:
    """Tensors of a step and the formula for their new values."""

    __slots__ = ("after", "formula", "given", "lists", "names", "numbers", "recorded", "states")

    def __init__(
        self,
        formula: Callable[[Sequence[Any]], Values],
        recorded: tuple[_UpdateFormula, list[float]] | None,
        lists: Sequence[Sequence[Tensor]],
        numbers: Sequence[Any],
        names: Sequence[str],
        states: Sequence[dict[str, Any]] | None,
        after: Callable[[], None] | None,
    ) -> None:
        self.formula = formula
        self.recorded = recorded
        self.given = lists
        # Their own tensors, or views of the parts of complex ones.
        self.lists = _parts(lists)
        self.numbers = numbers
        self.names = names
        self.states = states
        self.after = after

    def check(self) -> None:
        """Fail as :meth:`run` would, before anything is written."""
        for at in unusual(self.lists):
            group = [tensors[at] for tensors in self.lists]
            for place, value in self.formula([t.clone() for t in group]).items():
                if self.states is None or place < 2:
                    check_write(group[place], value)

    def is_plain(self) -> bool:
        """Whether :meth:`run` cannot fail half-way if states are those of the last step.

        What it refuses then, it refuses before the first write.
        """
        return self.recorded is not None and _alike(self.lists)

    def seen(self) -> list[list[int]]:
        """Which states are written, as numbers that tell them from those of the step before."""
        return [list(map(id, tensors)) for tensors in self.given[2:]]

    def run(self) -> None:
        """Write the new values."""
        rest: Sequence[int] = range(len(self.lists[0]))
        if self.recorded is not None:
            program, literals = self.recorded
            rest = program.apply(self.lists, [*self.numbers, *literals])
        for at in rest:
            group = [tensors[at] for tensors in self.lists]
            # The graph of a differentiable step may save the parameter's old value, which is overwritten.
            seen = group if self.states is None else [group[0].clone(), *group[1:]]
            for place, value in self.formula(seen).items():
                if self.states is None or place < 2:
                    group[place].copy_(value)
                else:
                    is_complex = self.given[place][at].dtype.is_complex
                    self.states[at][self.names[place - 2]] = _core.view_as_complex(value) if is_complex else value
        if self.after is not None:
            self.after()


def _parts(lists: Sequence[Sequence[Tensor]]) -> Sequence[Sequence[Tensor]]:
    """The lists with complex tensors as pairs of real numbers."""
    try:
        kinds = set(map(_DTYPE, lists[0]))
    except AttributeError:
        # What is no tensor is refused later.
        return lists
    if not any(kind.is_complex for kind in kinds):
        return lists
    params, grads, *states = lists
    # A gradient is only read: its conjugation may be computed first.
    resolved = [t.resolve_conj() if isinstance(t, Tensor) else t for t in grads]
    return [
        [_core.view_as_real(t) if isinstance(t, Tensor) and t.dtype.is_complex else t for t in tensors]
        for tensors in (params, resolved, *states)
    ]


class Steps:
    """What a step does to some tensors where it is no formula.

    Args:
        run: Writes them.
        written: All that it writes, as lists of tensors.
        read: Lists of tensors that it uses together with the first list of ``written``.
    """

    __slots__ = ("read", "run", "written")

    def __init__(
        self,
        run: Callable[[], None],
        written: Sequence[Sequence[Tensor]],
        read: Sequence[Sequence[Tensor]],
    ) -> None:
        self.run = run
        self.written = written
        self.read = read

    def is_plain(self) -> bool:
        """Whether :meth:`run` cannot fail half-way: it may."""
        return False

    def seen(self) -> list[list[int]]:
        """Which states are written; see :meth:`Write.seen`."""
        return []

    def check(self) -> None:
        """Fail if something may not be written, or cannot be computed with what is read."""
        first = self.written[0]
        for at in unusual([first, *self.read]):
            for tensors in self.read:
                _core.empty_like(first[at]).copy_(first[at] + tensors[at])
        for tensors in self.written:
            for at in unusual([tensors]):
                check_write(tensors[at], tensors[at])


_DTYPE: Callable[[Tensor], Any] = attrgetter("dtype")
_DEVICE: Callable[[Tensor], Any] = attrgetter("device")
_IS_CPU: Callable[[Tensor], bool] = attrgetter("is_cpu")
_SAME: tuple[Callable[[Tensor], Any], ...] = (attrgetter("shape"), _DTYPE, _DEVICE)


def _alike(lists: Sequence[Sequence[Tensor]]) -> bool:
    """Whether parameters, gradients and first states have one shape, dtype and device each, and parameters no overlaps.

    It is a quicker look than :func:`unusual`, for steps whose states were looked at once. False may be a false alarm.
    """
    first, *others = lists[:3]
    dtypes = list(map(_DTYPE, first))
    for other in others:
        if not all(map(Tensor.is_same_size, first, other)) or list(map(_DTYPE, other)) != dtypes:
            return False
    if not all(all(map(_IS_CPU, tensors)) for tensors in (first, *others)):
        devices = list(map(_DEVICE, first))
        if any(list(map(_DEVICE, other)) != devices for other in others):
            return False
    return all(map(Tensor.is_contiguous, first))


def unusual(lists: Sequence[Sequence[Tensor]]) -> list[int]:
    """Where a step may fail: tensors at one place differ in shape, dtype or device, or one of them may not be written.

    It is a quick look at many tensors. What is found may be fine.

    Raises:
        TypeError: Something is no tensor.
    """
    for tensors in lists:
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(f"optimizer.step: parameters, gradients and states are tensors, but got {typename(t)}")
    found: set[int] = set()
    for of in _SAME:
        first, *others = (list(map(of, tensors)) for tensors in lists)
        for other in others:
            if other != first:
                found.update(at for at, (a, b) in enumerate(zip(first, other, strict=True)) if a != b)
    records, inference = _core.is_grad_enabled(), _core.is_inference_mode_enabled()
    for tensors in lists:
        found.update(at for at, frozen in enumerate(map(Tensor.is_frozen, tensors)) if frozen)
        found.update(
            at for at, plain in enumerate(map(Tensor.is_contiguous, tensors)) if not plain and _overlaps(tensors[at])
        )
        if not inference:
            found.update(at for at, protected in enumerate(map(Tensor.is_inference, tensors)) if protected)
        if records:
            found.update(at for at, t in enumerate(tensors) if t.requires_grad and t.is_leaf)
    return sorted(found)


def _overlaps(t: Tensor) -> bool:
    """Whether elements may share memory."""
    end = 0
    for stride, size in sorted(zip(t.stride(), t.shape, strict=True)):
        if size > 1:
            if stride <= end:
                return True
            end += stride * (size - 1)
    return False


def check_write(target: Tensor, value: Tensor) -> None:
    """Fail as ``target.copy_(value)`` would. The target keeps its values."""
    _core.empty_like(target).copy_(value)
    target.copy_(target.detach())
