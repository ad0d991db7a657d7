"""How tensors are printed: the native ``repr`` reads what is set here."""

import math
from numbers import Real

from .. import _core

# The threshold that no number of elements exceeds.
NEVER = 2**62

# The smallest float64 has 1,074 digits after its point. No tensor has as many elements as the others.
_LARGEST = {"precision": 1100, "threshold": NEVER, "edgeitems": NEVER, "linewidth": NEVER}

_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how many digits and elements of a tensor are printed; ``None`` leaves an option as it is.

    Args:
        precision: Digits after the decimal point (default 4).
        threshold: Number of elements above which a tensor is summarised (default 1000; ``math.inf``: never).
        edgeitems: Elements shown at each end of a summarised dimension (default 3).
        linewidth: Characters per line (default 80).
        profile: Start from ``"default"``, ``"short"`` or ``"full"`` before the other arguments apply.
        sci_mode: Scientific notation always (True), never (False) or where it is shorter (None).

    Raises:
        TypeError: An option is no number, or ``sci_mode`` is neither a truth value nor None.
        ValueError: The profile is unknown, or an option is no count or a larger one than there can be use for. Nothing
            has changed then.

    Example:
        >>> rgrad.set_printoptions(precision=2)
        >>> rgrad.tensor([3.14159])
        tensor([3.14])
        >>> rgrad.set_printoptions(profile="default")
        >>> rgrad.tensor([3.14159])
        tensor([3.1416])
    """
    chosen: tuple[float | None, ...] = (None, None, None, None)
    if profile is not None:
        if not isinstance(profile, str) or profile not in _PROFILES:
            raise ValueError(f"set_printoptions: got profile={profile!r}, expected one of {sorted(_PROFILES)}")
        chosen = _PROFILES[profile]
    if sci_mode is not None and not (isinstance(sci_mode, int) and sci_mode in (0, 1)):
        raise TypeError(f"set_printoptions: got sci_mode={sci_mode!r}, expected True, False or None")
    given = (precision, threshold, edgeitems, linewidth)
    values: list[int | None] = []
    for name, new, base in zip(_LARGEST, given, chosen, strict=True):
        value = base if new is None else new
        if value is None:
            values.append(None)
        elif not isinstance(value, Real):
            raise TypeError(f"set_printoptions: got {name}={value!r}, expected a whole number of 0 or more")
        elif name == "threshold" and not isinstance(value, bool) and value > NEVER:
            values.append(NEVER)
        elif isinstance(value, bool) or not 0 <= value < math.inf or value != int(value):
            raise ValueError(f"set_printoptions: got {name}={value!r}, expected a whole number of 0 or more")
        elif value > _LARGEST[name]:
            raise ValueError(f"set_printoptions: got {name}={value!r}, expected at most {_LARGEST[name]}")
        else:
            values.append(int(value))
    _core._set_printoptions(values[0], values[1], values[2], values[3], None if sci_mode is None else bool(sci_mode))
