"""What an error says of a name of PyTorch that rgrad does not have."""

from __future__ import annotations

from types import ModuleType

PAGE = "docs/in-torchs-place.md"
HINT = (
    f"rgrad lacks this name of PyTorch. {PAGE} says what is there; `python -m rgrad.compat check FILE` lists "
    "all names that a program uses and rgrad lacks."
)


def _is_ours(name: str | None) -> bool:
    return (name or "").partition(".")[0] in ("torch", "rgrad")


def add_hint(error: BaseException) -> None:
    """Add a note to an error that says that rgrad lacks a module or a name of one."""
    if isinstance(error, AttributeError):
        lacking = isinstance(error.obj, ModuleType) and _is_ours(error.obj.__name__)
    else:
        lacking = isinstance(error, ImportError) and _is_ours(error.name)
    if lacking and HINT not in str(error):
        error.add_note(HINT)
