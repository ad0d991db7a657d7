"""OpenMP, which is not used here: threads are those of :func:`rgrad.set_num_threads`."""


def is_available() -> bool:
    """Always False."""
    return False
