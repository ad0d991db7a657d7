"""The fused path of multi-head attention: :class:`rgrad.nn.MultiheadAttention` has one way, whatever is set here."""

_enabled = True


def get_fastpath_enabled() -> bool:
    """What :func:`set_fastpath_enabled` was given."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Keep whether the fused path may be taken. It has no effect."""
    global _enabled
    _enabled = value
