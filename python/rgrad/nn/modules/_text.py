"""How modules print."""

from collections.abc import Callable, Sequence
from typing import Any


def indented(text: str, spaces: int) -> str:
    """``text`` with every line but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def render(name: str, extra_lines: list[str], child_lines: list[str]) -> str:
    """``name(...)`` on one line if there is little inside, else with one line for each thing inside."""
    if len(extra_lines) == 1 and not child_lines:
        return f"{name}({extra_lines[0]})"
    lines = extra_lines + child_lines
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def options(*names: str, first: Sequence[str] = (), if_true: Sequence[str] = ()) -> Callable[[Any], str]:
    """An ``extra_repr`` that lists attributes.

    Args:
        names: Are printed as ``name=value``.
        first: Are printed before them, as values alone.
        if_true: Are printed after them, as ``name=value`` where the value is true.
    """

    def extra_repr(self: Any) -> str:
        """The module's options."""
        shown = [f"{getattr(self, name)}" for name in first]
        for name in (*names, *(name for name in if_true if getattr(self, name))):
            value = getattr(self, name)
            shown.append(f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}")
        return ", ".join(shown)

    return extra_repr
