"""Objects with a state of their own."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """What ``save`` takes the state of, and ``load`` gives it back to: modules, optimizers, a user's classes.

    Example:
        >>> from rgrad.distributed.checkpoint.stateful import Stateful
        >>> isinstance(nn.Linear(1, 1), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """The state, as a dict of tensors and other objects."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state.

        Args:
            state_dict: What :meth:`state_dict` has returned, with other values.
        """
        ...
