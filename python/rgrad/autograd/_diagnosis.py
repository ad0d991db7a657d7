"""Why two derivatives disagree: looks at the function around the entry where they disagree most."""

import math
from typing import TYPE_CHECKING, Any

from ._jacobian import Numeric

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
    row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return int(row), int(column)


def diagnose(
    numeric: Numeric,
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

    ``row`` and ``column`` are the flat positions in the input and in the output.
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
    # Steps: the given one, and a wider one in which rounding counts less and curvature more.
    fine, wide = (_one_sided(at, here, step) for step in (numeric.eps, 16 * numeric.eps))
    if fine is None or wide is None:
        return PRECISION, f"a step of {numeric.eps:g} does not change the input; give a larger eps or float64 inputs"
    (left, right, scale), (wide_left, wide_right, wide_scale) = fine, wide
    if not all(map(math.isfinite, (left, right, wide_left, wide_right))):
        return KINK, f"slope to the left {left:.6g}, to the right {right:.6g}"
    # What rounding of the function's values alone can do to a difference quotient.
    noise = 8 * numeric.roundoff * scale / numeric.eps
    wide_noise = 8 * numeric.roundoff * wide_scale / (16 * numeric.eps)
    gap, wide_gap = abs(right - left), abs(wide_right - wide_left)
    size = max(abs(left), abs(right), abs(wide_left), abs(wide_right))
    # Where the function is smooth, the gap between the slopes is its curvature times the step: 16 times smaller in
    # the finer step. At a kink it stays, at a jump or a vertical slope it grows.
    if gap > max(10 * noise, 0.01 * size) and gap > wide_gap / 4:
        return KINK, f"slope to the left {left:.6g}, to the right {right:.6g}"
    centre, wide_centre = (left + right) / 2, (wide_left + wide_right) / 2
    if abs(centre) > 3 * abs(wide_centre) + 10 * noise + 10 * wide_noise:
        return (
            KINK,
            f"slope grows without limit: {wide_centre:.6g} over {16 * numeric.eps:g}, "
            f"{centre:.6g} over {numeric.eps:g}",
        )

    error = abs(a - centre)
    if error <= noise + 4 * allowed and noise > allowed:
        return PRECISION, (
            f"rounding alone may change the numerical value by {noise:.2g}; use float64 inputs or an eps of "
            f"{numeric.roundoff ** (1 / 3):.0e} or more"
        )
    if abs(a - wide_centre) <= allowed + wide_noise < error:
        return PRECISION, f"over a step of {16 * numeric.eps:g} the numerical value is {wide_centre:.10g}, which agrees"
    if abs(a - centre) <= abs(centre - wide_centre):
        return PRECISION, (
            f"the numerical value depends on the step: {centre:.10g} for {numeric.eps:g}, "
            f"{wide_centre:.10g} for {16 * numeric.eps:g}; give another eps"
        )
    return FORMULA, _pattern(analytical, numerical)


def _one_sided(at: Any, here: float, step: float) -> tuple[float, float, float] | None:
    """Slope to the left, slope to the right, and the size of the values; None if the step is lost in rounding."""
    up, up_step = at(step)
    down, down_step = at(-step)
    if up_step == 0 or down_step == 0:
        return None
    return (down - here) / down_step, (up - here) / up_step, max(abs(here), abs(up), abs(down))


def _pattern(analytical: "Matrix", numerical: "Matrix") -> str:
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
    low, high = float(ratios.min()), float(ratios.max())
    middle = (low + high) / 2
    if high - low <= 1e-5 * abs(middle):
        return f"the analytical gradient is {middle:.6g} times the numerical one in all {ratios.size} entries"
    if analytical.shape[0] == analytical.shape[1] and np.allclose(analytical.T, numerical, rtol=1e-4, atol=1e-6 * top):
        return "the analytical gradient is the transpose of the numerical one"
    with np.errstate(all="ignore"):
        bad = np.abs(analytical - numerical) > 1e-4 * np.maximum(np.abs(numerical), 1e-3 * top)
    return f"{int(bad.sum())} of {bad.size} entries differ by more than 1e-4 of their size"
