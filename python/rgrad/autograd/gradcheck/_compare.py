"""Derivatives beside differences: entry by entry, or along one direction; complex numbers a part at a time."""

import math
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ._error import GradcheckError
from ._jacobian import FiniteDifferences, quasi_random

if TYPE_CHECKING:
    from ._jacobian import Matrix

# Analytical gradients of float32 functions carry rounding errors of this many units of the largest entry.
_ROUNDING_UNITS = 64
_MAX_PROBED = 64
_REAL, _IMAGINARY = 0, 1


class _View:
    """What is compared of the Jacobian of one output by one input.

    That is one part of a complex output; for forward mode one of a complex input. The parts of the other side are those
    of a complex number, compared by its absolute value.
    """

    def __init__(self, numeric: FiniteDifferences, found: Any, o: int, i: int, part: int) -> None:
        self.by_output: bool = found.split_by_output
        complex_input, complex_output = numeric.complex_inputs[i], numeric.complex_outputs[o]
        split = complex_output if self.by_output else complex_input
        self.joined: bool = complex_input if self.by_output else complex_output
        # The parts to compare: of the side that is split, and of the other one.
        self.chosen = slice(part, None, 2) if split else slice(None)
        element = "outputs" if self.by_output else "inputs"
        name = "imaginary" if part == _IMAGINARY else "real"
        self.prefix = f"While considering the {name} part of complex {element} only, " if split else ""
        self.stride, self.part = (2, part) if split else (1, 0)

    def of(self, parts: "Matrix") -> Any:
        """The matrix of real or complex numbers to compare."""
        one = parts[:, self.chosen] if self.by_output else parts[self.chosen]
        if not self.joined:
            return one
        return one[::2] + 1j * one[1::2] if self.by_output else one[:, ::2] + 1j * one[:, 1::2]

    def position(self, row: int, column: int, error: complex) -> tuple[int, int]:
        """Row and column among the parts of an entry of the matrix: where its error is larger."""
        other = int(abs(error.imag) > abs(error.real)) if self.joined else 0
        joined = 2 if self.joined else 1
        if self.by_output:
            return joined * row + other, self.stride * column + self.part
        return self.stride * row + self.part, joined * column + other


def _passes(numeric: FiniteDifferences, found: Any) -> tuple[int, ...]:
    split = numeric.complex_outputs if found.split_by_output else numeric.complex_inputs
    return (_IMAGINARY, _REAL) if any(split) else (_REAL,)


def _slack(numeric: FiniteDifferences, numerical: "Matrix") -> float:
    """How much rounding of low precision gradients may add to an error."""
    import numpy as np

    if not numeric.low_roundoff or not numerical.size:
        return 0.0
    largest = float(np.abs(numerical).max())
    return _ROUNDING_UNITS * numeric.low_roundoff * largest if np.isfinite(largest) else 0.0


def check_entries(numeric: FiniteDifferences, found: Any, limits: tuple[float, float, float]) -> None:
    """Compare all entries; raise GradcheckError for the first output and input where they differ."""
    import numpy as np

    atol, rtol, nondet_tol = limits
    per_output, analytical = numeric.jacobians(), found.jacobians()
    for part in _passes(numeric, found):
        for o, row in enumerate(analytical):
            for i, whole in enumerate(row):
                view = _View(numeric, found, o, i, part)
                a, n = view.of(whole), view.of(per_output[o][i])
                with np.errstate(all="ignore"):
                    allowed = atol + rtol * np.abs(n) + _slack(numeric, n)
                    fine = (a == n) | (np.abs(a - n) <= allowed)
                if not fine.all():
                    raise _mismatch(numeric, found, view, o, i, (whole, per_output[o][i]), allowed, nondet_tol)


def _mismatch(
    numeric: FiniteDifferences,
    found: Any,
    view: _View,
    o: int,
    i: int,
    whole: tuple["Matrix", "Matrix"],
    allowed: "Matrix",
    nondet_tol: float,
) -> GradcheckError:
    import numpy as np

    from ._diagnosis import FORMULA, diagnose, worst_entry

    a, n = view.of(whole[0]), view.of(whole[1])
    at = worst_entry(a, n, allowed)
    limit = float(allowed[at])

    def verdict_on(row: int, column: int) -> tuple[str, str]:
        with np.errstate(all="ignore"):
            place = view.position(row, column, complex(a[row, column]) - complex(n[row, column]))
        return diagnose(numeric, i, o, *place, *whole, limit, nondet_tol)

    verdict, evidence = verdict_on(*at)
    if verdict == FORMULA and np.isnan(a[at]):
        # nan spreads along a row: look for the entry where the function itself is at fault.
        for other in np.flatnonzero(np.isnan(a[at[0]]))[:_MAX_PROBED]:
            other_verdict, other_evidence = verdict_on(at[0], int(other))
            if other_verdict != FORMULA:
                at, verdict, evidence = (at[0], int(other)), other_verdict, other_evidence
                break
    shape = numeric.arrays[i].shape[:-1] if numeric.complex_inputs[i] else numeric.arrays[i].shape
    input_index = tuple(int(k) for k in np.unravel_index(at[0], shape))
    output_index = tuple(int(k) for k in np.unravel_index(at[1], tuple(found.outputs[o].shape)))
    got, want = a[at].item(), n[at].item()
    error = GradcheckError(
        f"{view.prefix}Jacobian {found.name}mismatch for output {o} with respect to input {i},\n"
        f"numerical:{_shown(n)}\nanalytical:{_shown(a)}\n"
        f"worst entry: output{list(output_index)} with respect to input{list(input_index)}: "
        f"analytical {got:.10g}, numerical {want:.10g}, difference {abs(got - want):.3g}, allowed {limit:.3g}\n"
        f"verdict: {verdict} ({evidence})"
    )
    error.output_idx, error.input_idx = o, i
    error.output_index, error.input_index = output_index, input_index
    error.analytical, error.numerical, error.verdict = got, want, verdict
    return error


def _shown(matrix: Any) -> Tensor:
    import numpy as np

    return _core.from_numpy(np.ascontiguousarray(matrix))


def check_direction(numeric: FiniteDifferences, found: Any, limits: tuple[float, float, float]) -> None:
    """Compare ``vᵀ J u`` for one irregular u per input and v per output (both positive, of length 1).

    Of complex numbers each part has such a vector of its own.
    """
    import numpy as np

    def units(seed: int, size: int, paired: bool) -> "Matrix":
        """One row for each part that is compared."""
        rows = np.zeros((2, size) if paired else (1, size))
        for part, row in enumerate(rows):
            drawn = quasi_random(seed + 101 * part, size // len(rows))
            row[part :: len(rows)] = drawn / max(math.sqrt(float(drawn @ drawn)), 1e-300)
        return rows

    atol, rtol, _ = limits
    us = [
        units(i, array.size, paired)
        for i, (array, paired) in enumerate(zip(numeric.arrays, numeric.complex_inputs, strict=True))
    ]
    vs = [
        units(len(us) + o, size, paired).T
        for o, (size, paired) in enumerate(zip(numeric.sizes, numeric.complex_outputs, strict=True))
    ]
    moved = [
        [numeric.directional(i, u.reshape(array.shape)) for u in rows]
        for i, (rows, array) in enumerate(zip(us, numeric.arrays, strict=True))
    ]
    analytical = found.along(us, vs)
    for part in _passes(numeric, found):
        for o, (v, row) in enumerate(zip(vs, analytical, strict=True)):
            for i, (u, whole) in enumerate(zip(us, row, strict=True)):
                view = _View(numeric, found, o, i, part)
                a = view.of(whole).item()
                n = view.of(np.array([step[o] @ v for step in moved[i]])).item()
                rounding = _ROUNDING_UNITS * numeric.low_roundoff * abs(n)
                # Errors of atol in every entry add up to this.
                weights = view.of(np.outer(u.sum(1), v.sum(0)))
                limit = atol * float(np.abs(weights.real).sum() + np.abs(weights.imag).sum()) + rtol * abs(n) + rounding
                if not abs(a - n) <= limit:
                    check_entries(numeric, found, limits)
                    raise GradcheckError(
                        f"{view.prefix}Jacobian {found.name}mismatch for output {o} with respect to input {i},\n"
                        f"numerical:{n:.10g}\nanalytical:{a:.10g}\n"
                        "along a random direction. Fast gradcheck failed but element-wise differences are small. "
                        "This means that the test might've passed in slow_mode!"
                    )
