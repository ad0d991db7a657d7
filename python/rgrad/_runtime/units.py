"""Amounts as text."""


def bytes_text(n: float) -> str:
    """Bytes with a unit of 1024."""
    for unit in ("B", "KB", "MB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GB"
