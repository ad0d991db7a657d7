"""Anomaly mode: operations remember the stack of calls that made them, and backward stops at the first nan."""

import warnings

from .. import _core

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Inside the block, errors in backward carry the whole stack of the forward call, and a nan in backward is one.

    The stack comes as a warning ("Error detected in ...Backward") and as a note on the exception. With
    ``check_nan=False`` gradients may be nan. Entering warns, as the mode costs time; ``set_detect_anomaly`` does not.
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
    """Switches anomaly mode on or off: at once when called, and until the end of the block in a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _core.is_anomaly_enabled()
        self.prev_check_nan = _core.is_anomaly_check_nan_enabled()
        _core.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        _core.set_anomaly_enabled(self.prev, self.prev_check_nan)
