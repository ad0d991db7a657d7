"""Remote calls: there are none, as in a PyTorch that was built without them."""


def is_available() -> bool:
    """Always False: there is one process."""
    return False


__all__ = ["is_available"]
