"""Warnings that name the user's line, however many functions of the package lie between."""

import os
import sys
import warnings

from .. import _core

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_said: set[str] = set()


def _level() -> int:
    """The ``stacklevel`` with which the caller's ``warnings.warn`` names the first line outside the package."""
    level, frame = 0, sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level + 1


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the user's line that has called into the package."""
    warnings.warn(text, category, stacklevel=_level())


def warn_user_once(text: str, category: type[Warning] = UserWarning) -> None:
    """As :func:`warn_user`, once in a process for each text, unless :func:`rgrad.set_warn_always` is on."""
    if text not in _said or _core.is_warn_always_enabled():
        _said.add(text)
        warnings.warn(text, category, stacklevel=_level())
