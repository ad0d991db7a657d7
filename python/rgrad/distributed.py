"""What programs for one process ask of ``distributed``: there are no process groups here."""


def is_available() -> bool:
    """Always False: rgrad trains in one process."""
    return False


def is_initialized() -> bool:
    """Always False: there is no process group."""
    return False
