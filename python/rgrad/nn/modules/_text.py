"""How modules print."""


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
