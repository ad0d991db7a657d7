"""Anomaly mode: operations remember the stack of calls that made them, and backward stops at the first nan."""

import warnings

from .. import _core

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """A block in which errors in backward carry the whole stack of the forward call, and a nan in backward is an error.

    The stack comes as a warning ("Error detected in ...Backward") and as a note on the exception. Entering warns, since
    the mode costs time; :class:`set_detect_anomaly` does not warn.

    Args:
        check_nan: False lets gradients be nan.

    Example:
        >>> import warnings
        >>> x = rgrad.tensor(0.0, requires_grad=True)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with rgrad.autograd.detect_anomaly():
        ...         y = x.sqrt() * 0.0
        ...         try:
        ...             y.backward()
        ...         except RuntimeError as error:
        ...             print(error.args[0].split(" at ")[0])
        Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _core.is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = _core.is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _core.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        _core.set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switches anomaly mode on or off: at once when it is called, and until the end of the block in a ``with``.

    Args:
        mode: Whether the mode is on.
        check_nan: False lets gradients be nan.

    Example:
        >>> with rgrad.autograd.set_detect_anomaly(True):
        ...     print(rgrad.is_anomaly_enabled())
        True
        >>> rgrad.is_anomaly_enabled()
        False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _core.is_anomaly_enabled()
        self.prev_check_nan = _core.is_anomaly_check_nan_enabled()
        _core.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        _core.set_anomaly_enabled(self.prev, self.prev_check_nan)
