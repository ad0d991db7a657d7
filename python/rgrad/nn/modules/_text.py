"""How modules print."""

from collections.abc import Callable, Mapping, Sequence
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


def options(*names: str, first: Sequence[str] = (), unless: Mapping[str, Any] | None = None) -> Callable[[Any], str]:
    """An ``extra_repr`` that lists attributes.

    Args:
        names: Are printed as ``name=value``, and ``bias`` as whether there is one.
        first: Are printed before them, as values alone.
        unless: Are printed after them as ``name=value``, unless they have these values.
    """

    def extra_repr(self: Any) -> str:
        """The module's options."""
        shown = [f"{getattr(self, name)}" for name in first]
        values = {name: getattr(self, name) for name in names}
        if "bias" in values:
            values["bias"] = values["bias"] is not None
        for name, usual in (unless or {}).items():
            if (value := getattr(self, name)) != usual:
                values[name] = value
        return ", ".join([*shown, *(f"{n}={v!r}" if isinstance(v, str) else f"{n}={v}" for n, v in values.items())])

    return extra_repr
