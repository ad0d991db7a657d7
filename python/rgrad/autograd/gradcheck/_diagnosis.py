"""Why two derivatives disagree: looks at the function around the entry where they disagree most."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._jacobian import FiniteDifferences

if TYPE_CHECKING:
    from ._jacobian import Matrix

NOT_DETERMINISTIC = "not deterministic"
KINK = "kink or not differentiable there"
PRECISION = "too coarse a precision"
FORMULA = "wrong formula"


def worst_entry(analytical: "Matrix", numerical: "Matrix", allowed: "Matrix") -> tuple[int, int]:
    """Row and column of the largest error in proportion to what is allowed; nan counts as infinite."""
    import numpy as np

    with np.errstate(all="ignore"):
        excess = np.abs(analytical - numerical) / np.maximum(allowed, np.finfo(np.float64).tiny)
    excess = np.nan_to_num(excess, nan=np.inf, posinf=np.inf)
    hopeless = np.isinf(excess)
    if hopeless.any():
        # nan and inf spread along rows and columns. They start at an entry whose row and column are full of them.
        excess = hopeless * (hopeless.sum(0, keepdims=True) + hopeless.sum(1, keepdims=True))
    row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return int(row), int(column)


def diagnose(
    numeric: FiniteDifferences,
    which: int,
    output: int,
    row: int,
    column: int,
    analytical: "Matrix",
    numerical: "Matrix",
    allowed: float,
    nondet_tol: float,
) -> tuple[str, str]:
    """A verdict (one of the four above) about one entry, and a sentence of evidence.

    ``row`` and ``column`` are the flat positions in the parts of the input and of the output.
    """
    import numpy as np

    index = np.unravel_index(row, numeric.arrays[which].shape)

    def at(step: float) -> tuple[float, float]:
        return numeric.probe(which, index, output, column, step)

    here, again = at(0.0)[0], at(0.0)[0]
    if not (here == again or abs(here - again) <= nondet_tol or (math.isnan(here) and math.isnan(again))):
        return NOT_DETERMINISTIC, f"the function gave {here:.10g} and {again:.10g} for the same input"
    if not math.isfinite(here):
        return KINK, f"the function is {here} there"

    a = float(analytical[row, column])
    eps = numeric.eps
    found = [_slopes_around(at, here, step, numeric.roundoff) for step in (eps / 16, eps, 16 * eps)]
    if any(not (math.isfinite(s.left) and math.isfinite(s.right)) for s in found if s is not None):
        return KINK, "the slope is not finite there"
    finer, given, wider = found
    if given is None or wider is None:
        return PRECISION, f"a step of {eps:g} does not change the input; give a larger eps or float64 inputs"
    # The finest step in which rounding does not hide the slope.
    fine, coarse = (given, wider) if finer is None or finer.noise > 1e-3 * given.size else (finer, given)
    # Where the function is smooth, the gap between the slopes is its curvature times the step: 16 times smaller in
    # the finer step. At a kink it stays, at a jump or a vertical slope it grows.
    if fine.gap > max(10 * fine.noise, 0.01 * fine.size) and fine.gap > coarse.gap / 4:
        return KINK, f"slope to the left {fine.left:.6g}, to the right {fine.right:.6g}"
    if abs(fine.centre) > 3 * abs(coarse.centre) + 10 * (fine.noise + coarse.noise):
        return KINK, (
            f"the slope grows without limit: {coarse.centre:.6g} over {coarse.step:g}, "
            f"{fine.centre:.6g} over {fine.step:g}"
        )

    if abs(a - given.centre) <= given.noise + 4 * allowed and given.noise > allowed:
        return PRECISION, (
            f"rounding alone may change the numerical value by {given.noise:.2g}; use float64 inputs or an eps of "
            f"{numeric.roundoff ** (1 / 3):.0e} or more"
        )
    for other in (finer, wider):
        if other is not None and other.noise <= allowed and abs(a - other.centre) <= allowed < abs(a - given.centre):
            return PRECISION, (
                f"the numerical value is {given.centre:.10g} over a step of {eps:g}, but {other.centre:.10g} over "
                f"{other.step:g}, which agrees; give another eps"
            )
    return FORMULA, _pattern(analytical, numerical, numeric.complex_inputs[which], numeric.complex_outputs[output])


class _Slopes:
    """Difference quotients to both sides of a point."""

    def __init__(self, step: float, left: float, right: float, noise: float) -> None:
        self.step = step
        self.left = left
        self.right = right
        # How much rounding of the function's values alone can change a slope.
        self.noise = noise
        self.gap = abs(right - left)
        self.size = max(abs(left), abs(right))
        self.centre = (left + right) / 2


def _slopes_around(at: Any, here: float, step: float, roundoff: float) -> _Slopes | None:
    """The slopes for a step; None if it is lost in rounding of the input."""
    up, up_step = at(step)
    down, down_step = at(-step)
    if up_step == 0 or down_step == 0:
        return None
    noise = 8 * roundoff * max(abs(here), abs(up), abs(down)) / step
    return _Slopes(step, (down - here) / down_step, (up - here) / up_step, noise)


def _pattern(analytical: "Matrix", numerical: "Matrix", complex_input: bool, complex_output: bool) -> str:
    """What the whole matrix says about a wrong formula."""
    import numpy as np

    if np.isnan(analytical).any():
        return f"the analytical gradient is nan in {int(np.isnan(analytical).sum())} of {analytical.size} entries"
    if not analytical.any():
        return "the analytical gradient is zero everywhere: is the way back cut by detach, no_grad or a None?"
    top = float(np.abs(numerical).max(initial=0.0))
    if top == 0:
        return "the function does not depend on this input"
    counted = np.abs(numerical) > 1e-3 * top
    ratios = analytical[counted] / numerical[counted]
    low, high = float(np.min(ratios)), float(np.max(ratios))
    middle = (low + high) / 2
    if high - low <= 1e-5 * abs(middle):
        return f"the analytical gradient is {middle:.6g} times the numerical one in all {ratios.size} entries"
    if any(_agree(turned, numerical, top) for turned in _conjugates(analytical, complex_input, complex_output)):
        return "the analytical gradient has a conjugate too many or too few"
    if analytical.shape[0] == analytical.shape[1] and _agree(analytical.T, numerical, top):
        return "the analytical gradient is the transpose of the numerical one"
    with np.errstate(all="ignore"):
        bad = np.abs(analytical - numerical) > 1e-4 * np.maximum(np.abs(numerical), 1e-3 * top)
    return f"{int(bad.sum())} of {bad.size} entries differ by more than 1e-4 of their size"


def _agree(a: "Matrix", b: "Matrix", top: float) -> bool:
    import numpy as np

    return np.allclose(a, b, rtol=1e-4, atol=1e-6 * top)


def _conjugates(matrix: "Matrix", complex_input: bool, complex_output: bool) -> Iterator["Matrix"]:
    """The matrix with the imaginary parts of the input, the output, or both negated."""
    for by_input, by_output in ((True, False), (False, True), (True, True)):
        if by_input <= complex_input and by_output <= complex_output:
            turned = matrix.copy()
            if by_input:
                turned[1::2] *= -1
            if by_output:
                turned[:, 1::2] *= -1
            yield turned
