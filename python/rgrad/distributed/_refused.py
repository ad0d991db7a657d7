"""Classes for many processes that programs test for, and that cannot be made here."""

from __future__ import annotations

from typing import Any


class Refused:
    """What PyTorch has for many processes. Classes of this kind are there so that ``isinstance`` can ask for them.

    Raises:
        NotImplementedError: One is made.
    """

    #: What to do without it.
    instead = "there is one process"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"distributed: {type(self).__name__} divides work among processes; {self.instead}")
