"""How optimizers write their parameters: one formula over lists of tensors, in one pass over memory.

An optimizer gives its step as a function of one parameter, its gradient and its states. The function is called once
with symbols, which record the pointwise operations; the native module then runs them over all parameters of a group.
What has no fast way there (gradients in another order than their parameter, parameters that share memory, steps that
are differentiated through) goes through the same function with tensors.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor, _UpdateFormula

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

    def __call__(
        self,
        options: Hashable,
        lists: Sequence[Sequence[Tensor]],
        numbers: Sequence[float],
        names: Sequence[str] = (),
        states: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Write the new values of all tensors.

        Args:
            options: The formula's options.
            lists: One list for each of the formula's tensors, all of one length.
            numbers: The formula's numbers.
            names: Under which name a state has each of the formula's tensors from the third on.
            states: If given, the step is differentiated through: states get new tensors, which the graph may have
                saved.
        """
        if states is None:
            key = (options, len(lists), len(numbers))
            recorded = self._recorded.get(key)
            if recorded is None:
                recorded = self._recorded[key] = self._record(options, len(lists), len(numbers))
            program, literals = recorded
            rest: Sequence[int] = program.apply(lists, [*numbers, *literals])
        else:
            rest = range(len(lists[0]))
        for at in rest:
            group = [tensors[at] for tensors in lists]
            # The graph of a differentiable step may save the parameter's old value, which is overwritten.
            seen = group if states is None else [group[0].clone(), *group[1:]]
            for place, value in self.formula(options, seen, numbers).items():
                if states is None or place < 2:
                    group[place].copy_(value)
                else:
                    states[at][names[place - 2]] = value
