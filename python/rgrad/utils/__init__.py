"""Hook handles and data loading."""

from . import data as data
from . import hooks as hooks

__all__ = ["data", "hooks"]
