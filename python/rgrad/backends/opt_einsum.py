"""The package opt_einsum, which is not used here."""

enabled: bool = False
strategy: str | None = None


def is_available() -> bool:
    """Always False: :func:`rgrad.einsum` contracts from left to right."""
    return False
